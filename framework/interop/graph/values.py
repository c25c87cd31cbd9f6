"""What flows between the nodes of a graph: numpy arrays that are known before the program runs, and Values.

A `Value` is a jax array with a layout: the graph speaks of the axes in their logical order (N, C, H, W), and the array
keeps them in another one (N, H, W, C). Transposing a Value only renames axes; an array is moved where an operation
needs the logical order, so a graph of images runs channels-last with transposes at its edges alone.

Sizes and what is computed from them stay numpy, in 64 bits; where a size is symbolic the array is one of objects.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from framework.core.dtypes import narrow
from framework.core.errors import ShapeError
from framework.nn.functional.transposition import move_axes

Dim = Any  # an int, or a symbolic dimension of jax.export
Static = np.ndarray
Array = np.ndarray | jax.Array  # of numpy where all operands are known
MAX_ELEMENTS = 1 << 29
"""Elements that one value may have: 2 GB in float32. A damaged or hostile file asks for more."""
MAX_KNOWN = 1 << 25
"""Elements that one value may have which is computed before the program runs."""
MOST_TIMES = 1 << 14
"""How often longer than before an axis is made where a value is resized, or padded to a large one."""
MAX_RANK = 32


@dataclass(frozen=True, eq=False)
class Value:
    """A jax array whose logical axis `i` is its axis `order[i]`."""

    data: jax.Array
    order: tuple[int, ...]

    @staticmethod
    def of(data: jax.Array) -> Value:
        """An array that lies in its logical order."""
        return Value(data, tuple(range(data.ndim)))

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes in the logical order."""
        return tuple(self.data.shape[axis] for axis in self.order)

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    def stored(self, order: tuple[int, ...]) -> jax.Array:
        """The array with logical axis `i` at `order[i]`."""
        if order == self.order:
            return self.data
        moves = [0] * self.ndim
        for here, there in zip(self.order, order):
            moves[there] = here
        return move_axes(self.data, moves)

    def logical(self) -> jax.Array:
        """The array in the logical order."""
        return self.stored(tuple(range(self.ndim)))

    def channels_last(self) -> jax.Array:
        """The array as [N, *spatial, C]."""
        return self.stored(channels_last(self.ndim))

    def keep(self, data: jax.Array) -> Value:
        """Another array in the same layout."""
        return Value(data, self.order)


Item = (
    Static | Value | None | list
)  # what a name of a graph stands for; a list is a sequence, None an absent input


def channels_last(rank: int) -> tuple[int, ...]:
    """The layout in which [N, C, *spatial] is stored as [N, *spatial, C]."""
    return (0, rank - 1, *range(1, rank - 1)) if rank > 2 else tuple(range(rank))


def is_symbolic(dim: Dim) -> bool:
    """Whether a size is only known when the program runs."""
    return not isinstance(dim, int) and export.is_symbolic_dim(dim)


_limits: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("oar_size_limits", default=None)


@contextlib.contextmanager
def collect_limits() -> Iterator[list[str]]:
    """Within the block: what a graph asks of its symbolic sizes, such as "t <= 512" of a table of positions."""
    limits: list[str] = []
    token = _limits.set(limits)
    try:
        yield limits
    finally:
        _limits.reset(token)


def note_limit(size: Dim, most: int) -> None:
    """Say that the graph cuts `size` elements from an axis of `most`."""
    limits = _limits.get()
    if limits is not None and f"{size} <= {most}" not in limits:
        limits.append(f"{size} <= {most}")


_HOST_TYPES = (np.ndarray, np.generic)


def is_known(*values: object) -> bool:
    """Whether all are numpy arrays, so that the result can be computed before the program runs."""
    for value in values:  # noqa: SIM110 (every node asks this, and a generator takes three times as long)
        if value is not None and not isinstance(value, _HOST_TYPES):
            return False
    return True


def is_text(value: object) -> bool:
    """Whether it is an array of text, which is always numpy's."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "U"


def dims_array(dims: Sequence[Dim]) -> Static:
    """Sizes as int64, or as objects where one is symbolic."""
    if any(is_symbolic(dim) for dim in dims):
        array = np.empty(len(dims), object)
        array[:] = list(dims)
        return array
    return np.array(dims, np.int64).reshape(len(dims))


def as_dims(array: Static) -> list[Dim]:
    """The elements of an array of sizes as Python integers and symbolic dimensions."""
    dims = np.asarray(array).ravel().tolist()
    return dims if array.dtype.kind in "iu" else [dim if is_symbolic(dim) else int(dim) for dim in dims]


def count(shape: Sequence[Dim], where: str, limit: int = MAX_ELEMENTS) -> Dim:
    """The number of elements. Raises: ShapeError, where it is negative or beyond the limit; symbolic sizes pass."""
    total = math.prod(shape)
    fixed = [dim for dim in shape if isinstance(dim, int)]
    # A size is refused by itself too: beside a size of 0 the product says nothing.
    if min([*fixed, 0]) < 0 or max([*fixed, 0]) > limit or (len(fixed) == len(shape) and total > limit):
        raise ShapeError(
            "a value of the graph has an impossible size",
            where=where,
            received=f"shape {list(shape)}",
            allowed=f"sizes of 0 and more, at most {limit:,} elements together",
            fix="the file is damaged, or it was made for other input sizes",
        )
    return total


def device_type(dtype: np.dtype | type) -> np.dtype:
    """The type in which jax keeps values of `dtype`: 32 bits for 64 unless x64 is on."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def to_jax(value: Item) -> jax.Array:
    """A value as a jax array in its logical order; integers that do not fit into 32 bits are an error."""
    if isinstance(value, Value):
        return value.logical()
    array = np.asarray(value)
    if array.dtype == object:
        flat = [jnp.asarray(dim) for dim in array.ravel().tolist()]
        return jnp.stack(flat).reshape(array.shape) if flat else jnp.zeros(array.shape, jnp.int32)
    if array.dtype == np.uint64 and array.size and array.max() < 2**32:
        return jnp.asarray(array.astype(device_type(np.uint64)))
    return jnp.asarray(narrow(array))


def as_type(value: Item, dtype: np.dtype) -> jax.Array:
    """A value in this type, also where it has 64 bits."""
    if dtype in (np.int64, np.uint64, np.float64):
        with jax.enable_x64(True):
            return to_jax(value).astype(dtype)
    return to_jax(value).astype(dtype)


def to_value(value: Item) -> Value:
    """A value with a layout, made of a numpy array where it is one."""
    return value if isinstance(value, Value) else Value.of(to_jax(value))


def shape_of(value: Item) -> tuple[Dim, ...]:
    """The logical shape."""
    return value.shape if isinstance(value, Value) else np.shape(value)  # type: ignore[arg-type]


def align(values: Sequence[Item]) -> tuple[list[jax.Array], tuple[int, ...]]:
    """Operands of an elementwise operation in one layout, that of the largest, and this layout.

    All have the highest rank among them, axes of size 1 in front as broadcasting has it; a single number stays one.
    """
    arrays = [to_value(value) for value in values]
    rank = max(array.ndim for array in arrays)
    full = [array for array in arrays if array.ndim == rank]
    lead = max(full, key=lambda a: (sum(dim != 1 for dim in a.shape), a.order != tuple(range(rank))))
    aligned = []
    for array in arrays:
        missing = rank - array.ndim
        if array.ndim == 0 and rank:
            aligned.append(array.data)
            continue
        if missing:
            shifted = tuple(axis + missing for axis in array.order)
            array = Value(array.data.reshape((1,) * missing + array.data.shape), (*range(missing), *shifted))
        aligned.append(array.stored(lead.order))
    check_broadcast(aligned)
    return aligned, lead.order


def check_broadcast(arrays: Sequence[jax.Array | Static], limit: int = MAX_ELEMENTS) -> None:
    """Refuse operands that broadcast to too large a result. Raises: ShapeError."""
    most = math.prod([array.size for array in arrays])
    if isinstance(most, int) and 0 < most <= limit:
        return  # no result is larger than this product
    if all(isinstance(dim, int) for array in arrays for dim in array.shape):
        count(np.broadcast_shapes(*(array.shape for array in arrays)), "broadcasting", limit)


# -- reshaping ----------------------------------------------------------------------------------------------------


def reshape(value: Value, shape: Sequence[Dim]) -> Value:
    """The logical reshape with as little movement as the layout allows.

    Axes fall into groups that are merged or split on their own. Only axes that are merged and do not lie beside one
    another in memory are moved: [N, C, H, W] stored as [N, H, W, C] becomes [N, C, HW] in place.
    """
    groups = _groups(value.shape, tuple(shape))
    # Groups in the order of memory, each with its axes in logical order. A group without axes of its own goes last.
    positions = [min((value.order[a] for a in inside), default=value.ndim) for inside, _ in groups]
    in_memory = sorted(range(len(groups)), key=lambda g: (positions[g], g))
    moves = [value.order[axis] for g in in_memory for axis in groups[g][0]]
    data = value.data if moves == list(range(value.ndim)) else move_axes(value.data, moves)
    order, sizes = [0] * len(shape), []
    for g in in_memory:
        for axis in groups[g][1]:
            order[axis] = len(sizes)
            sizes.append(shape[axis])
    return Value(data.reshape(sizes), tuple(order))


def _groups(old: tuple[Dim, ...], new: tuple[Dim, ...]) -> list[tuple[range, range]]:
    """Consecutive axes of both shapes whose products agree, as short as can be told."""
    groups = []
    i = j = 0
    while i < len(old) or j < len(new):
        stop_i, stop_j = _matching(old[i:], new[j:])
        groups.append((range(i, i + stop_i), range(j, j + stop_j)))
        i, j = i + stop_i, j + stop_j
    return groups


def _matching(old: tuple[Dim, ...], new: tuple[Dim, ...]) -> tuple[int, int]:
    """The least numbers of leading axes with equal products; all where none can be told."""
    if not old or not new:
        return len(old), len(new)
    for total in range(2, len(old) + len(new)):
        for i in range(max(1, total - len(new)), min(len(old), total - 1) + 1):
            if math.prod(old[:i]) == math.prod(new[: total - i]):
                if total - i < len(new) and i < len(old) and not _rests_agree(old[i:], new[total - i :]):
                    continue
                return i, total - i
    return len(old), len(new)


def _rests_agree(old: tuple[Dim, ...], new: tuple[Dim, ...]) -> bool:
    return bool(math.prod(old) == math.prod(new))
