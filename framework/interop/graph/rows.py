"""Values on the host between nodes, and operators that work row by row on a few numbers of rows.

How many boxes a detector keeps differs from image to image. What is compiled for a number of rows is compiled again for
another, so rows are filled up to numbers of which there are few.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import jax
import numpy as np

from framework.core.types import PyTree
from framework.interop.graph.values import MAX_KNOWN, Item, Value
from framework.interop.programs.program import Node, Program, TensorSpec

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
    "Flatten": (0,),
}
_LEAST_ROWS = 8


class RowChain(Protocol):
    """Nodes, each of which reads the rows of the one before it and weights besides.

    Attributes:
        numbers: The nodes in order.
        source, result: The value that the first reads, and the one that the last makes.
    """

    numbers: tuple[int, ...]
    source: str
    result: str

    def run(self, rows: np.ndarray) -> np.ndarray: ...


def padded_count(count: int) -> int:
    """How many rows to compute for `count`: a power of two or one and a half of it, of which there are few."""
    power = max(_LEAST_ROWS, 1 << max(count - 1, 0).bit_length())
    return max(_LEAST_ROWS, power * 3 // 4) if count <= power * 3 // 4 else power


def find_chains(program: Program, numbers: Sequence[int], fixed: Collection[str]) -> list[tuple[int, ...]]:
    """Nodes that work row by row with values of `fixed` alone, as long chains as there are.

    A chain ends where a value has several readers: they would need it, too.
    """
    readers: dict[str, list[int]] = {spec.name: [-1] for spec in program.outputs}
    for number, node in enumerate(program.nodes):
        for each in Program("", "", (node,), {}, (), ()).walk():
            names = [*each.inputs, *(name for body in each.signatures for name in body.outputs)]
            for name in dict.fromkeys(names):
                readers.setdefault(name, []).append(number)
    version = program.domains.get("", 1)
    inside = {n for n in numbers if _keeps_rows(program, program.nodes[n], version, fixed)}
    chains, visited = [], set()
    for number in numbers:
        if number not in inside or number in visited:
            continue
        chain = [number]
        while len(following := readers.get(program.nodes[chain[-1]].outputs[0], [])) == 1:
            (after,) = following
            if after not in inside or program.nodes[after].inputs[0] != program.nodes[chain[-1]].outputs[0]:
                break
            chain.append(after)
        visited.update(chain)
        if any(program.nodes[n].op != "Flatten" for n in chain):  # which is a view on the host
            chains.append(tuple(chain))
    return chains


def _keeps_rows(program: Program, node: Node, version: int, fixed: Collection[str]) -> bool:
    """Whether a node works row by row on any input of two axes and more, with fixed values besides."""
    axis = node.attrs.get("axis", -1 if version >= 13 else 1)
    return (
        _ROWS.get(node.op) == (0,)
        and not _mixes_rows(node, [program.parameters.get(name) for name in node.inputs])
        and node.inputs[0] not in fixed
        and all(name in fixed for name in node.inputs[1:] if name)
        and not (node.op in ("Softmax", "LayerNormalization") and axis < 1 and axis != -1)
        and not (node.op == "Flatten" and node.attrs.get("axis", 1) != 1)
        and node.op != "MatMul"
    )


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
    if not indices or node.op == "Flatten" or _mixes_rows(node, items):
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
    size = padded_count(count)
    padded = list(items)
    for index, array in zip(indices, arrays, strict=True):
        assert isinstance(array, np.ndarray)
        padded[index] = np.concatenate([array, np.zeros((size - count, *array.shape[1:]), array.dtype)])
    return Rows(padded, count)


def _mixes_rows(node: Node, items: Sequence[object]) -> bool:
    """Whether an operator of `_ROWS` reads several rows for one here, or has an addend for each."""
    addend = _shape(items[2]) if node.op == "Gemm" and len(items) > 2 else ()
    attributes = node.attrs.get("transA") or node.attrs.get("training_mode")
    return bool(len(node.outputs) > 1 or attributes or (len(addend) == 2 and addend[0] != 1))


def _shape(item: object) -> tuple:
    return item.shape if isinstance(item, Value | np.ndarray | TensorSpec) else ()


def to_host(item: Item) -> Item:
    """A value as numpy's; lists and what is too large for the host stay."""
    if not isinstance(item, Value) or item.data.size > MAX_KNOWN:
        return item
    return np.asarray(item.logical())
