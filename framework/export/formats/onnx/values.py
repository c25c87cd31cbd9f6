"""Arrays of a program as tensors of a graph: how they lie in memory, and what of them is broadcast later.

Our programs are channels-last and ONNX is channels-first. Every value carries the order of its tensor's axes, so a
transposition costs nothing until an operator needs another order, and one behind a convolution is never made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jax.typing import ArrayLike, DTypeLike

from framework.export.formats.onnx.graph import Aval, Graph, Size, is_symbolic

Shape = tuple[Size, ...]
Order = tuple[int, ...]


def inverse(order: Sequence[int]) -> Order:
    """The permutation that undoes another."""
    return tuple(int(axis) for axis in np.argsort(order))


def same(a: Size, b: Size) -> bool:
    """Whether two sizes are equal for all values of their symbols."""
    return bool(a == b)


def same_shape(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether all sizes are, for all values of their symbols."""
    return len(a) == len(b) and all(map(same, a, b))


class Abstract:
    """Shape and type of an array that the program does not name."""

    def __init__(self, shape: Sequence[Size], dtype: DTypeLike) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)


@dataclass(frozen=True, eq=False)
class Value:
    """An array of the program.

    Attributes:
        shape: In the order of the program. An axis may be 1 where the program has more: it is broadcast by whoever
            needs the elements.
        order: Axis i of the program is axis order[i] of the tensor.
        name: The tensor, or for a constant the name under which it is written, "" where it has none of its own.
        array: The elements of a constant, as the tensor has them.
    """

    shape: Shape
    dtype: np.dtype
    name: str
    order: Order
    array: np.ndarray | None = None

    @property
    def is_constant(self) -> bool:
        return self.array is not None

    @property
    def elements(self) -> np.ndarray:
        """The elements of a constant in the program's order."""
        assert self.array is not None
        return self.array.transpose(self.order)

    @property
    def stored_shape(self) -> Shape:
        """The shape of the tensor."""
        return tuple(self.shape[axis] for axis in inverse(self.order))


def constant(array: ArrayLike, name: str = "") -> Value:
    """An array that is known while the graph is made; with a name it is written under it."""
    array = np.asarray(array)
    return Value(array.shape, array.dtype, name, tuple(range(array.ndim)), array)


def common_shape(shapes: Iterable[Sequence[Size]]) -> Shape:
    """What shapes of one rank, or of none, broadcast to."""
    sizes: list[Size] = []
    for shape in shapes:
        if len(shape) > len(sizes):
            sizes = [*shape[: len(shape) - len(sizes)], *sizes]
        start = len(sizes) - len(shape)
        sizes[start:] = [a if same(b, 1) else b for a, b in zip(sizes[start:], shape)]
    return tuple(sizes)


class Layout:
    """Names of tensors in the order and shape that an operator needs."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def tensor(self, value: Value) -> str:
        """The name of a value's tensor as it lies."""
        if value.array is None:
            return value.name
        if value.name and value.name in self.graph.root.constants:
            return value.name
        return self.graph.constant(value.array, value.name or None)

    def value(self, name: str, aval: Aval, order: Order | None = None, shape: Shape | None = None) -> Value:
        """A tensor as the value of an abstract array of jax."""
        shape = tuple(aval.shape) if shape is None else tuple(shape)
        return Value(
            shape, np.dtype(aval.dtype), name, tuple(range(len(shape))) if order is None else tuple(order)
        )

    def arrange(self, value: Value, order: Sequence[int]) -> str:
        """The tensor whose axis order[i] is axis i of the value."""
        order = tuple(order)
        if value.order == order or len(order) <= 1:
            return self.tensor(value)
        moved = tuple(value.order[axis] for axis in inverse(order))
        if value.array is not None:
            return self.graph.constant(np.ascontiguousarray(value.array.transpose(moved)))
        name, stored = self.tensor(value), value.stored_shape
        target = [stored[axis] for axis in moved]
        long = [axis for axis in moved if not same(stored[axis], 1)]
        if long == sorted(long):
            return self.reshape(name, stored, target)
        return self.graph.add("Transpose", name, perm=list(moved))

    def plain(self, value: Value, shape: Sequence[Size] | None = None) -> str:
        """The tensor in the program's order; with `shape`, broadcast to it."""
        return self.arrange(self.spread(value, shape), range(len(value.shape)))

    def place(self, value: Value, axes: Sequence[int], shape: Sequence[Size]) -> str:
        """The tensor whose axis i is axis axes[i] of the value, with all elements of `shape`."""
        return self.arrange(self.spread(value, shape), inverse(axes))

    def spread(self, value: Value, shape: Sequence[Size] | None) -> Value:
        """The value with all elements of `shape`."""
        if shape is None or same_shape(value.shape, shape):
            return value
        shape = tuple(shape)
        if not value.shape and shape:
            value = replace(
                value,
                shape=(1,) * len(shape),
                order=tuple(range(len(shape))),
                array=None if value.array is None else value.array.reshape((1,) * len(shape)),
            )
        stored = [shape[axis] for axis in inverse(value.order)]
        if value.array is not None and not any(map(is_symbolic, stored)):
            return replace(value, shape=shape, array=np.broadcast_to(value.array, stored), name="")
        name = self.graph.add("Expand", self.tensor(value), self.graph.sizes(stored))
        return replace(value, shape=shape, name=name, array=None)

    def reshape(self, name: str, old: Sequence[Size], new: Sequence[Size]) -> str:
        """A tensor of shape `old` as one of shape `new`, with as little arithmetic of sizes as it takes."""
        if same_shape(old, new):
            return name
        larger = [size for size in old if not same(size, 1)]
        if any(map(is_symbolic, new)) and same_shape(larger, [size for size in new if not same(size, 1)]):
            ones = [i for i, size in enumerate(old) if same(size, 1)]
            name = self.graph.add("Squeeze", name, self.graph.integers(*ones)) if ones else name
            ones = [i for i, size in enumerate(new) if same(size, 1)]
            return self.graph.add("Unsqueeze", name, self.graph.integers(*ones)) if ones else name
        target: list[Size] = [
            0 if is_symbolic(size) and i < len(old) and same(size, old[i]) else size
            for i, size in enumerate(new)
        ]
        symbolic = [i for i, size in enumerate(target) if is_symbolic(size)]
        if len(symbolic) == 1:
            target[symbolic[0]] = -1
        return self.graph.add("Reshape", name, self.graph.sizes(target))

    def reshape_value(self, value: Value, shape: Sequence[Size]) -> Value:
        """The value with another shape, in the order of its tensor where the new axes follow from it."""
        if value.array is not None and not any(map(is_symbolic, shape)):
            if value.order == tuple(range(len(value.order))):
                return constant(value.array.reshape([int(size) for size in shape]))
            return constant(value.elements.reshape([int(size) for size in shape]))
        groups = axis_groups(value.shape, shape)
        if groups is None:
            return self._reshape_plain(value, shape)
        order = _order_of_groups(groups, value.order)
        if order is None:
            together = _gather_groups(groups, value.order)
            value = replace(value, name=self.arrange(value, together), order=together, array=None)
            order = _order_of_groups(groups, together)
            assert order is not None
        stored = [shape[axis] for axis in inverse(order)]
        name = self.reshape(self.tensor(value), value.stored_shape, stored)
        return Value(tuple(shape), value.dtype, name, order)

    def _reshape_plain(self, value: Value, shape: Sequence[Size]) -> Value:
        name = self.reshape(self.plain(value), value.shape, shape)
        return Value(tuple(shape), value.dtype, name, tuple(range(len(shape))))


Group = tuple[list[int], list[int]]


def axis_groups(old: Sequence[Size], new: Sequence[Size]) -> list[Group] | None:
    """The shortest runs of axes of two shapes that hold equally many elements; None where sizes do not say."""
    groups: list[Group] = []
    i = j = 0
    while i < len(old) or j < len(new):
        left, right = [], []
        a: Size = 1
        b: Size = 1
        if i < len(old):
            left, a, i = [i], old[i], i + 1
        if j < len(new):
            right, b, j = [j], new[j], j + 1
        while not same(a, b):
            # The side that divides the other one takes one more axis.
            if j < len(new) and (i >= len(old) or _divides(b, a)):
                right, b, j = [*right, j], b * new[j], j + 1
            elif i < len(old):
                left, a, i = [*left, i], a * old[i], i + 1
            else:
                return None
        groups.append((left, right))
    return _join_ones(groups, old, new)


def _divides(a: Size, b: Size) -> bool:
    try:
        return bool(b % a == 0)
    except Exception:  # jax raises what it cannot decide in several ways
        return False


def _join_ones(groups: list[Group], old: Sequence[Size], new: Sequence[Size]) -> list[Group] | None:
    """Groups as they are; one of a side without axes is joined to the one before it."""
    joined: list[Group] = []
    for left, right in groups:
        if joined and (not left or not right):
            joined[-1] = (joined[-1][0] + left, joined[-1][1] + right)
        else:
            joined.append((left, right))
    if joined and (not joined[0][0] or not joined[0][1]):
        if len(joined) == 1:
            return None
        joined[1] = (joined[0][0] + joined[1][0], joined[0][1] + joined[1][1])
        joined = joined[1:]
    return joined


def _order_of_groups(groups: list[Group], order: Order) -> Order | None:
    """The order of the reshaped tensor, if every group of axes lies together in the old one."""
    for left, _ in groups:
        positions = [order[axis] for axis in left]
        if positions != list(range(positions[0], positions[0] + len(positions))):
            return None
    first = sorted(groups, key=lambda group: order[group[0][0]])
    stored = [axis for _, right in first for axis in right]
    return inverse(stored)


def _gather_groups(groups: list[Group], order: Order) -> Order:
    """The order in which every group of axes lies together, in the place of its last axis: channels whose halves are
    shuffled stay in front of height and width, heads of attention go behind the positions."""
    by_place = sorted(groups, key=lambda group: max(order[axis] for axis in group[0]))
    return inverse([axis for left, _ in by_place for axis in left])
