"""Reading and writing elements at positions that are data.

Positions are not checked, which would cost a look at values: reading beyond the end gives NaN (the smallest number for
integers), writing there does nothing. Where several positions are equal and one value is kept, it is the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.axes import normalize_axis
from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, Arrays, operation
from framework.paddle._kernel.errors import OperandError, ShapeError, require
from framework.paddle._kernel.methods import replace_value
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor
from framework.paddle._kernel.visible import visible_integers
from framework.paddle.ops.promotion import is_inexact
from framework.paddle.ops.shaping import whole_number, whole_numbers

__all__ = [
    "diagonal_scatter",
    "gather",
    "gather_nd",
    "index_add",
    "index_fill",
    "index_put",
    "index_sample",
    "index_select",
    "masked_fill",
    "put_along_axis",
    "scatter",
    "scatter_nd",
    "scatter_nd_add",
    "select_scatter",
    "shard_index",
    "take",
    "take_along_axis",
]
METHODS_ONLY = ("fill_diagonal_", "fill_diagonal_tensor")


def _is_position(index: jax.Array, where: str, allowed: tuple[int, ...] = (0, 1)) -> None:
    column = index.ndim == 2 and index.shape[1] == 1
    if index.dtype.kind not in "iu" or not (index.ndim in allowed or (column and 1 in allowed)):
        raise ShapeError(
            "the index holds positions",
            where=where,
            received=f"an index of {index.dtype} {list(index.shape)}",
            allowed="int32 or int64 of " + " or ".join(f"{n}" for n in allowed) + " dimensions",
        )


@operation
def gather(x: Array, index: Array, axis: int | None = None, name: str | None = None) -> Array:
    """The parts of `x` along an axis (None: the first) at these positions."""
    _is_position(index, "paddle.gather")
    place = normalize_axis(0 if axis is None else whole_number(axis), x.ndim, "paddle.gather")
    return jnp.take(x, index.reshape(-1) if index.ndim == 2 else index, place)


@operation(name="index_select")
def _index_select(x: Array, index: Array, axis: int) -> Array:
    _is_position(index, "paddle.index_select", (1,))
    return jnp.take(x, index.reshape(-1), normalize_axis(whole_number(axis), x.ndim, "paddle.index_select"))


@checked
def index_select(x: Tensor, index: Tensor, axis: int = 0, name: str | None = None) -> Tensor:
    """The parts of `x` along an axis at the positions [n].

    Raises:
        ShapeError: there is no such position (up to 8192 of them on a CPU; else that part is NaN or the least integer).
    """
    numbers = visible_integers(index)
    if numbers is not None and isinstance(axis, int) and -x.ndim <= axis < x.ndim:
        size = x.shape[axis]
        if numbers.max() >= size or numbers.min() < -size:
            raise ShapeError(
                "a position is out of range",
                where="paddle.index_select",
                received=f"positions from {numbers.min()} to {numbers.max()} on axis {axis} of shape {x.shape}",
                allowed=f"{-size} to {size - 1}",
            )
    return _index_select(x, index, axis)


@operation
def gather_nd(x: Array, index: Array, name: str | None = None) -> Array:
    """x[i, j, ...] for every position (i, j, ...) along the last axis of `index`; all of `x` where it is empty."""
    place = _coordinates(index, x.ndim, "paddle.gather_nd")
    return x[place] if place else jnp.broadcast_to(x, (*index.shape[:-1], *x.shape))


def _coordinates(index: jax.Array, ndim: int, where: str) -> tuple[jax.Array, ...]:
    if index.ndim == 0 or index.shape[-1] > ndim or index.dtype.kind not in "iu":
        raise ShapeError(
            "the last axis of the index holds a position of at most as many numbers as the input has axes",
            where=where,
            received=f"an index of {index.dtype} {list(index.shape)} for {ndim} dimensions",
        )
    return tuple(index[..., i] for i in range(index.shape[-1]))


@operation
def index_sample(x: Array, index: Array) -> Array:
    """In each row of `x` [N, M] the elements at the positions of that row of `index` [N, K]."""
    if x.ndim != 2 or index.ndim != 2 or x.shape[0] != index.shape[0]:
        raise ShapeError(
            "both have two dimensions and as many rows",
            where="paddle.index_sample",
            received=f"shapes {list(x.shape)} and {list(index.shape)}",
        )
    return jnp.take_along_axis(x, index, 1)


@operation
def scatter(x: Array, index: Array, updates: Array, overwrite: bool = True, name: str | None = None) -> Array:
    """`x` with rows replaced by `updates`; with overwrite=False these rows become the sums of their updates."""
    _is_position(index, "paddle.scatter")
    index = index.reshape(-1)
    rows = updates.reshape(index.shape + x.shape[1:]).astype(x.dtype)
    return x.at[index].set(rows) if overwrite else x.at[index].set(0).at[index].add(rows)


@operation
def scatter_nd_add(x: Array, index: Array, updates: Array, name: str | None = None) -> Array:
    """`x` with updates added at the positions along the last axis of `index`."""
    require(x.dtype == updates.dtype, "x and updates of one type", "paddle.scatter_nd_add", updates.dtype)
    return _added(x, _coordinates(index, x.ndim, "paddle.scatter_nd_add"), updates)


def _added(x: jax.Array, place: tuple[jax.Array, ...], updates: jax.Array) -> jax.Array:
    """`updates` added at positions; positions of no numbers mean the whole of `x`, once for each."""
    if not place:
        return x + updates.reshape(-1, *x.shape).sum(0).astype(x.dtype)
    return x.at[place].add(updates.astype(x.dtype))


@operation
def scatter_nd(index: Array, updates: Array, shape: Sequence[int], name: str | None = None) -> Array:
    """Zeros of this shape with updates added at the positions along the last axis of `index`."""
    zeros = jnp.zeros(whole_numbers(shape), updates.dtype)
    return _added(zeros, _coordinates(index, zeros.ndim, "paddle.scatter_nd"), updates)


@operation
def index_add(x: Array, index: Array, axis: int, value: Array, name: str | None = None) -> Array:
    """`x` with the parts of `value` added along an axis at the positions [n]."""
    _is_position(index, "paddle.index_add", (1,))
    place = normalize_axis(axis, x.ndim, "paddle.index_add")
    moved = jnp.moveaxis(x, place, 0).at[index.reshape(-1)].add(jnp.moveaxis(value, place, 0).astype(x.dtype))
    return jnp.moveaxis(moved, 0, place)


@operation
def index_fill(x: Array, index: Array, axis: int, value: Array, name: str | None = None) -> Array:
    """`x` with one number in the parts along an axis at the positions [n]."""
    _is_position(index, "paddle.index_fill", (1,))
    place = normalize_axis(axis, x.ndim, "paddle.index_fill")
    filled = (
        jnp.moveaxis(x, place, 0).at[index.reshape(-1)].set(jnp.asarray(value).astype(x.dtype).reshape(()))
    )
    return jnp.moveaxis(filled, 0, place)


@operation
def _index_put(x: Array, indices: Arrays, value: Array, accumulate: bool) -> Array:
    at = x.at[tuple(indices)]
    value = jnp.asarray(value).astype(x.dtype)
    if x.dtype == bool and accumulate:
        return at.max(value)  # their sum: whether one of them is true
    return at.add(value) if accumulate else at.set(value)


@operation(name="index_put")
def _mask_put(x: Array, mask: Array, value: Array, accumulate: bool) -> Array:
    """`_index_put` for a mask of the leading axes whose values are not known: the n-th true one takes the n-th part of
    `value`."""
    value = jnp.asarray(value).astype(x.dtype)
    rest = x.ndim - mask.ndim
    if value.ndim > rest and value.shape[0] > 1:
        number = jnp.cumsum(mask.reshape(-1)).reshape(mask.shape) - 1
        value = jnp.take(value, number, axis=0, mode="clip")
    elif value.ndim > rest:
        value = value[0]
    hit = mask.reshape(*mask.shape, *[1] * rest)
    if accumulate:
        return x | (hit & value) if x.dtype == bool else x + jnp.where(hit, value, 0).astype(x.dtype)
    return jnp.where(hit, value, x)


@checked
def index_put(
    x: Tensor, indices: Sequence[Tensor], value: Tensor, accumulate: bool = False, name: str | None = None
) -> Tensor:
    """`x` with the value put (or added) at x[indices]; masks become positions."""
    if len(indices) == 1 and indices[0].dtype == "bool" and isinstance(indices[0]._value, Symbol):
        return _mask_put(x, indices[0], value, accumulate)
    arrays: list[Any] = []
    for part in indices:
        if part.dtype == "bool":
            arrays.extend(np.nonzero(part.numpy()))
        else:
            arrays.append(part)
    return _index_put(x, arrays, value, accumulate)


@operation
def _take_flat(x: Array, index: Array, mode: str) -> Array:
    if mode == "raise":  # positions are checked before
        index = jnp.where(index < 0, index + x.size, index)
    return jnp.take(x.reshape(-1), index, mode="wrap" if mode == "wrap" else "clip")


@checked
def take(x: Tensor, index: Tensor, mode: str = "raise", name: str | None = None) -> Tensor:
    """Elements of the flattened input; a position beyond the end raises, is clipped or goes round."""
    if mode not in ("raise", "wrap", "clip"):
        raise ShapeError(
            "unknown mode", where="paddle.take", received=repr(mode), allowed="'raise', 'wrap', 'clip'"
        )
    holds = isinstance(index, Tensor) and index.dtype.name in ("int32", "int64")
    require(holds, "the index is a Tensor of int32 or int64", "paddle.take", index, OperandError)
    if mode == "raise" and index.size and not isinstance(index._value, Symbol):
        values = index.numpy()
        if values.min() < -x.size or values.max() >= x.size:
            raise ShapeError(
                "a position lies outside the input",
                where="paddle.take",
                received=f"{values.min()} to {values.max()} of {x.size} elements",
                fix="mode='clip' or mode='wrap'",
            )
    return _take_flat(x, index, mode)


def _along(x: jax.Array, indices: jax.Array, axis: int, broadcast: bool, where: str) -> tuple[jax.Array, int]:
    """The positions with the shape of the result, and the counted axis."""
    place = normalize_axis(axis, x.ndim, where)
    if x.ndim != indices.ndim:
        raise ShapeError(
            "the index needs as many dimensions as the input",
            where=where,
            received=f"shapes {list(x.shape)} and {list(indices.shape)}",
        )
    if broadcast:
        shape = np.broadcast_shapes(
            (*x.shape[:place], 1, *x.shape[place + 1 :]),
            (*indices.shape[:place], 1, *indices.shape[place + 1 :]),
        )
        indices = jnp.broadcast_to(indices, (*shape[:place], indices.shape[place], *shape[place + 1 :]))
    elif any(i > s for a, (i, s) in enumerate(zip(indices.shape, x.shape, strict=True)) if a != place):
        raise ShapeError(
            "without broadcasting the index is nowhere longer than the input, but along the axis",
            where=where,
            received=f"shapes {list(x.shape)} and {list(indices.shape)}, axis {axis}",
        )
    return indices, place


def _grid(indices: jax.Array, place: int) -> tuple[jax.Array, ...]:
    """The coordinates of every element that `indices` speaks of."""
    grid = [
        jnp.arange(size).reshape((1,) * a + (size,) + (1,) * (indices.ndim - a - 1))
        for a, size in enumerate(indices.shape)
    ]
    return tuple(indices if a == place else g for a, g in enumerate(grid))


@operation
def take_along_axis(arr: Array, indices: Array, axis: int, broadcast: bool = True) -> Array:
    """Elements at the positions `indices` along an axis, all other coordinates equal."""
    indices, place = _along(arr, indices, axis, broadcast, "paddle.take_along_axis")
    if broadcast:
        shape = [*indices.shape[:place], arr.shape[place], *indices.shape[place + 1 :]]
        return jnp.take_along_axis(jnp.broadcast_to(arr, shape), indices, place)
    return arr[_grid(indices, place)]


_REDUCERS = {
    "mul": jnp.multiply,
    "multiply": jnp.multiply,
    "amin": jnp.minimum,
    "amax": jnp.maximum,
}
_REDUCTIONS = ("assign", "add", "mean", *_REDUCERS)


def _combined(
    x: jax.Array, indices: jax.Array, values: jax.Array, place: int, combine: Callable[..., jax.Array]
) -> jax.Array:
    """One place along the axis after the other: jax has no gradient for scattering products and extremes at positions
    that may be equal, and within one place they differ."""

    def step(out: jax.Array, part: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        index, value = part
        grid = _grid(jnp.expand_dims(index, place), place)
        return out.at[grid].set(combine(out[grid], jnp.expand_dims(value, place))), None

    parts = jnp.moveaxis(indices, place, 0), jnp.moveaxis(values, place, 0)
    return lax.scan(step, x, parts)[0]


def _neutral(reduce: str, x: jax.Array) -> Any:
    if reduce in ("mul", "multiply"):
        return 1
    if reduce in ("amin", "amax"):
        limits = jnp.finfo(x.dtype) if is_inexact(x) else jnp.iinfo(x.dtype)
        return limits.max if reduce == "amin" else limits.min
    return 0


@operation
def put_along_axis(
    arr: Array,
    indices: Array,
    values: Array,
    axis: int,
    reduce: str = "assign",
    include_self: bool = True,
    broadcast: bool = True,
) -> Array:
    """`arr` with values put, or combined with what is there, at the positions `indices` along an axis.

    `reduce` is 'assign', 'add', 'mul'/'multiply', 'amin', 'amax' or 'mean'; include_self=False leaves what is there
    out of the combination.
    """
    if reduce not in _REDUCTIONS:
        raise ShapeError(
            "unknown reduction",
            where="paddle.put_along_axis",
            received=repr(reduce),
            allowed=", ".join(_REDUCTIONS),
        )
    indices, place = _along(arr, indices, axis, broadcast, "paddle.put_along_axis")
    grid = _grid(indices, place)
    values = jnp.broadcast_to(jnp.asarray(values).astype(arr.dtype), indices.shape)
    start = arr if include_self or reduce == "assign" else arr.at[grid].set(_neutral(reduce, arr))
    if reduce in _REDUCERS:
        return _combined(start, indices, values, place, _REDUCERS[reduce])
    out = start.at[grid].set(values) if reduce == "assign" else start.at[grid].add(values)
    if reduce != "mean":
        return out
    counts = jnp.zeros(arr.shape, arr.dtype).at[grid].add(1)
    counts = jnp.maximum(counts + (1 if include_self else 0), 1)
    return out / counts if is_inexact(arr) else out // counts


@operation
def masked_fill(x: Array, mask: Array, value: Array, name: str | None = None) -> Array:
    """`x` with one number where the mask holds; x and mask are broadcast."""
    return jnp.where(mask, jnp.asarray(value).astype(x.dtype).reshape(()), x)


@operation
def select_scatter(x: Array, values: Array, axis: int, index: Array, name: str | None = None) -> Array:
    """`x` with `values` as its part number `index` along an axis."""
    place = normalize_axis(axis, x.ndim, "paddle.select_scatter")
    if values.shape != x.shape[:place] + x.shape[place + 1 :]:
        raise ShapeError(
            "the values have the shape of the input without the axis",
            where="paddle.select_scatter",
            received=f"values of shape {list(values.shape)}, an input of shape {list(x.shape)}, axis {axis}",
        )
    moved = jnp.moveaxis(x, place, 0).at[index].set(values.astype(x.dtype))
    return jnp.moveaxis(moved, 0, place)


def _diagonal(x: jax.Array, offset: int, axis1: int, axis2: int) -> tuple[jax.Array, np.ndarray, np.ndarray]:
    """`x` with the two axes first, and the coordinates of a diagonal."""
    moved = jnp.moveaxis(x, (axis1, axis2), (0, 1))
    rows, columns = moved.shape[:2]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    steps = np.arange(length)
    return moved, steps + max(-offset, 0), steps + max(offset, 0)


@operation
def diagonal_scatter(
    x: Array, y: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None
) -> Array:
    """`x` with `y` as the diagonal of two axes; the diagonal is the last axis of `y`."""
    moved, rows, columns = _diagonal(x, offset, axis1, axis2)
    if y.shape != (*moved.shape[2:], len(rows)):
        raise ShapeError(
            "the values do not have the shape of the diagonal",
            where="paddle.diagonal_scatter",
            received=f"values of shape {list(y.shape)} for a diagonal of {[*moved.shape[2:], len(rows)]}",
        )
    moved = moved.at[rows, columns].set(jnp.moveaxis(y, -1, 0).astype(x.dtype))
    return jnp.moveaxis(moved, (0, 1), (axis1, axis2))


def fill_diagonal_tensor(
    x: Tensor, y: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, name: str | None = None
) -> Tensor:
    """`x` with `y` as the diagonal of two axes; the diagonal is the last axis of `y`."""
    return diagonal_scatter(x, y, offset, dim1, dim2)


@operation
def _fill_diagonal(x: Array, value: Array, offset: int, wrap: bool) -> Array:
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(
            "a diagonal needs two dimensions, or more of equal sizes",
            where="Tensor.fill_diagonal_",
            received=f"shape {list(x.shape)}",
        )
    columns = x.shape[-1]
    stride = sum(math.prod(x.shape[axis + 1 :]) for axis in range(x.ndim))
    end = x.size if wrap or x.ndim > 2 else min(x.size, columns * columns)
    places = np.arange(0, end, stride)
    if x.ndim == 2:  # the offset must not lead into another row
        shifted = places % columns + offset
        places = (places + offset)[(shifted >= 0) & (shifted < columns)]
    else:
        places = places + offset
    flat = x.reshape(-1).at[places[(places >= 0) & (places < x.size)]]
    return flat.set(jnp.asarray(value).astype(x.dtype)).reshape(x.shape)


def fill_diagonal_(
    x: Tensor, value: TensorLike, offset: int = 0, wrap: bool = False, name: str | None = None
) -> Tensor:
    """Put a number on the diagonal; in a tall matrix `wrap` begins it again after each columns + 1 rows."""
    return replace_value(x, _fill_diagonal(x, value, offset, bool(wrap)))


@operation(differentiable=False)
def shard_index(input: Array, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1) -> Array:
    """Positions within one of `nshards` equal parts of 0 to index_num - 1; those of other parts become ignore_value."""
    if not 0 <= shard_id < nshards:
        raise ShapeError(
            "there is no such shard",
            where="paddle.shard_index",
            received=f"shard_id={shard_id}, nshards={nshards}",
        )
    size = (index_num + nshards - 1) // nshards
    return jnp.where(input // size == shard_id, input % size, ignore_value)
