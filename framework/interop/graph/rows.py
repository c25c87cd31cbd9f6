"""Values on the host between nodes, and operators that work row by row on a few numbers of rows.

How many boxes a detector keeps differs from image to image. What is compiled for a number of rows is compiled again for
another, so rows are filled up to a power of two, of which there are few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from framework.core.types import PyTree
from framework.interop.graph.values import MAX_KNOWN, Item, Value
from framework.interop.programs.program import Node

# The inputs of an operator that have a row for each row of its result.
_ROWS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "LayerNormalization"), (0,)
    ),
    **dict.fromkeys(
        ("Relu", "Sigmoid", "Softmax", "LeakyRelu", "HardSwish", "HardSigmoid", "Erf", "Elu"), (0,)
    ),
    **dict.fromkeys(("MaxPool", "AveragePool", "GlobalAveragePool"), (0,)),
    "RoiAlign": (1, 2),
}
_LEAST = 8


@dataclass(frozen=True, eq=False)
class Rows:
    """The inputs of a node, filled up with zeros, and how many rows are real."""

    padded: list[Item]
    count: int

    def run(self, function: Callable[..., jax.Array], to_array: Callable[[Item], PyTree]) -> np.ndarray:
        """The real rows of what the node's compiled function makes; without any it is not run."""
        arrays = [to_array(item) for item in self.padded]
        if self.count:
            return np.asarray(function(*arrays))[: self.count]
        shape = jax.eval_shape(function, *arrays)
        return np.zeros((0, *shape.shape[1:]), shape.dtype)


def split_rows(node: Node, version: int, items: Sequence[Item]) -> Rows | None:
    """The rows of a node that works row by row; None where it does not, or where another node would see them."""
    indices = _ROWS.get(node.op, ())
    if not indices or len(node.outputs) > 1 or node.attrs.get("transA"):
        return None
    arrays = [items[index] if index < len(items) else None for index in indices]
    if any(not isinstance(array, np.ndarray) or array.ndim < 1 or array.dtype == object for array in arrays):
        return None
    axis = node.attrs.get("axis", -1 if version >= 13 else 1)
    first = arrays[0]
    assert isinstance(first, np.ndarray)
    if node.op in ("Softmax", "LayerNormalization") and axis in (0, -first.ndim):
        return None
    if node.op == "MatMul" and (
        first.ndim != 2 or np.ndim(_shape(items[1])) != 1 or len(_shape(items[1])) != 2
    ):
        return None
    count = len(first)
    size = max(_LEAST, 1 << max(count - 1, 0).bit_length())
    padded = list(items)
    for index, array in zip(indices, arrays, strict=True):
        assert isinstance(array, np.ndarray)
        padded[index] = np.concatenate([array, np.zeros((size - count, *array.shape[1:]), array.dtype)])
    return Rows(padded, count)


def _shape(item: Item) -> tuple:
    return item.shape if isinstance(item, Value | np.ndarray) else ()


def to_host(item: Item) -> Item:
    """A value as numpy's; lists and what is too large for the host stay."""
    if not isinstance(item, Value) or item.data.size > MAX_KNOWN:
        return item
    return np.asarray(item.logical())
