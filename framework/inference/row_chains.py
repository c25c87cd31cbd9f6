"""Chains of nodes that work row by row behind suppression, compiled together for few numbers of rows.

How many boxes a detector keeps differs from image to image. Rows go through a chain in blocks of a few sizes, which are
small where a row is large: what lies between two nodes stays in the processor's cache, and few rows are computed in
vain: the mask head of Mask R-CNN took 3.3 s of CPU time for 100 boxes by 128 rows node by node, and 0.86 s so.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from framework.interop.graph.layer import GraphLayer
from framework.nn.functional_core import State

# Numbers that the largest value of a block has.
_BLOCK_VALUES = 1 << 21
_MOST_ROWS = 256
# Products in the time that one number of a weight takes to be read and laid out for a block.
_PRODUCTS_OF_WEIGHT = 32


@functools.lru_cache(maxsize=4096)
def block_sizes(count: int, most: int, row_cost: float, block_cost: float) -> tuple[int, ...]:
    """The blocks that compute `count` rows in the least time, each a power of two up to `most`, which is one.

    Args:
        row_cost, block_cost: Of a row, and of a block whatever it has, in the same unit.
    """
    full, rest = divmod(count, most)
    sizes = [1 << shift for shift in range(most.bit_length())]
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for rows in range(1, rest + 1):
        options = [(best[max(rows - size, 0)], size) for size in sizes]
        best.append(
            min(
                (
                    (before + size * row_cost + block_cost, (size, *blocks))
                    for (before, blocks), size in options
                ),
                key=lambda option: (option[0], len(option[1])),
            )
        )
    return (*[most] * full, *sorted(best[rest][1], reverse=True))


@dataclass(frozen=True)
class _Form:
    """Rows of one shape: how many a block has at most, what a row and a block cost, and a row of the result."""

    most: int
    row_cost: float
    block_cost: float
    row: jax.ShapeDtypeStruct


class CompiledChain:
    """A chain of nodes as one compiled function. Safe in threads.

    Args:
        needed: Nodes that make what the chain reads of weights.
        function: The chain's result by name, for the value that it reads by name.
    """

    def __init__(
        self,
        layer: GraphLayer,
        numbers: tuple[int, ...],
        needed: Sequence[int],
        function: Callable[[Mapping[str, jax.Array]], State],
    ) -> None:
        nodes = [layer.program.nodes[number] for number in numbers]
        self.numbers, self._all = numbers, (*needed, *numbers)
        self.source, self.result = nodes[0].inputs[0], nodes[-1].outputs[0]
        self._layer, self._function = layer, function
        self._outputs = tuple(node.outputs[0] for node in nodes)
        self._forms: dict[tuple, _Form] = {}

    def run(self, rows: np.ndarray) -> np.ndarray:
        """The rows behind the last node."""
        form = self._form(rows)
        results = np.empty((len(rows), *form.row.shape[1:]), form.row.dtype)
        start = 0
        for block in block_sizes(len(rows), form.most, form.row_cost, form.block_cost):
            chunk = rows[start : start + block]
            missing = block - len(chunk)
            filling = [np.zeros((missing, *chunk.shape[1:]), chunk.dtype)] if missing else []
            padded = np.concatenate([chunk, *filling]) if missing else chunk
            values = self._function({self.source: padded})  # type: ignore[dict-item]
            results[start : start + block] = np.asarray(values[self.result])[: len(chunk)]
            start += block
        return results

    def _form(self, rows: np.ndarray) -> _Form:
        key = rows.shape[1:], rows.dtype
        if key not in self._forms:
            row = jax.ShapeDtypeStruct((1, *rows.shape[1:]), rows.dtype)
            shapes = jax.eval_shape(
                lambda row: self._layer.run_nodes(self._all, {self.source: row}, self._outputs), row
            )
            largest = max(math.prod(shape.shape) for shape in (row, *shapes.values()))
            most = 1 << max((_BLOCK_VALUES // max(largest, 1)).bit_length() - 1, 3)
            costs = self._costs({self.source: row, **shapes})
            self._forms[key] = _Form(min(_MOST_ROWS, most), *costs, shapes[self.result])
        return self._forms[key]

    def _costs(self, shapes: Mapping[str, jax.ShapeDtypeStruct]) -> tuple[float, float]:
        """Of a row and of a block, in products of two numbers."""
        row = block = 0.0
        for node in (self._layer.program.nodes[number] for number in self.numbers):
            before, behind = shapes[node.inputs[0]].shape, shapes[node.outputs[0]].shape
            held = [self._layer.program.parameters.get(name) for name in node.inputs[1:2]]
            weights = sum(math.prod(array.shape) for array in held if isinstance(array, np.ndarray))
            # A weight is used once for each pixel of what its channels are counted in.
            channels = before if node.op == "ConvTranspose" else behind
            row += math.prod(behind) + weights * math.prod(channels[2:])
            block += weights * _PRODUCTS_OF_WEIGHT
        return row, block
