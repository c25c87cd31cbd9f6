"""Operations that give a Tensor another shape, another order of axes, or repeat it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.axes import normalize_axis
from framework.paddle._kernel.arguments import DTypeLike, TensorLike
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, Arrays, freeze, operation
from framework.paddle._kernel.dtypes import INEXACT, to_numpy
from framework.paddle._kernel.dtypes import dtype as Dtype
from framework.paddle._kernel.errors import AssertedError, IntegerError, ShapeError, require
from framework.paddle._kernel.free_sizes import is_free_size
from framework.paddle._kernel.settings import reads_values
from framework.paddle._kernel.tensor import Tensor
from framework.paddle._kernel.views import Sizes, contiguous_strides, reshaped, reversed_axes, view_of
from framework.paddle.ops.promotion import axes_of

__all__ = [
    "as_complex",
    "as_real",
    "as_strided",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_shape",
    "broadcast_tensors",
    "broadcast_to",
    "expand",
    "expand_as",
    "flatten",
    "flip",
    "moveaxis",
    "repeat_interleave",
    "reshape",
    "reverse",
    "roll",
    "rot90",
    "squeeze",
    "t",
    "tile",
    "tolist",
    "transpose",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
]

_MOST_AXES = 8  # that Paddle expands to
Whole = int | Sequence[Any] | None


def whole_numbers(values: Any) -> tuple[int, ...]:
    """A setting as a flat tuple of integers: one number, or a list in which one-element Tensors have become lists."""
    if isinstance(values, tuple | list | range):
        return tuple(n for part in values for n in whole_numbers(part))
    if is_free_size(values):  # a size that is free in a saved program, or what is computed from it
        return (values,)
    if not isinstance(values, int | np.integer):
        raise IntegerError(
            "an integer is needed",
            received=f"{type(values).__name__} {values!r:.60}",
            allowed="an integer, a list or a Tensor of integers",
            fix="int(...) where a fraction is to be cut off",
        )
    return (int(values),)


def whole_number(value: TensorLike) -> int:
    """A setting that is one integer, also where it came as a Tensor of one element."""
    if isinstance(value, int):
        return value
    return whole_numbers(freeze(value))[0]


@view_of(reshaped)
@operation
def reshape(x: Array, shape: Whole, name: str | None = None) -> Array:
    """The same elements in another shape: 0 keeps the size of that axis, one -1 takes what is left."""
    sizes = list(whole_numbers(shape))
    for index, size in enumerate(sizes):
        if size == 0:
            if index >= x.ndim and not x.size:
                continue
            if index >= x.ndim:
                raise ShapeError(
                    "0 keeps the size of an axis that the input does not have",
                    where="paddle.reshape",
                    received=f"shape {sizes} for an input of shape {list(x.shape)}",
                )
            sizes[index] = x.shape[index]
    known = math.prod(size for size in sizes if size != -1)
    free = sizes.count(-1)
    if free > 1 or any(size < -1 for size in sizes):
        raise ShapeError(
            "at most one size can be -1", where="paddle.reshape", received=f"shape {list(sizes)}"
        )
    rest = x.size % known if free and known else 0
    if (x.size != known) if not free else known == 0 or (rest != 0 and not is_free_size(rest)):
        raise ShapeError(
            "the shapes have different numbers of elements",
            where="paddle.reshape",
            received=f"an input of shape {list(x.shape)} ({x.size} elements), shape {list(sizes)}",
        )
    if free and not known:
        sizes[sizes.index(-1)] = 0
    return jnp.reshape(x, sizes)


@operation
def _bitcast(x: Array, dtype: str) -> Array:
    old, new = x.dtype.itemsize, to_numpy(dtype).itemsize
    if new > old:
        if not x.ndim or x.shape[-1] % (new // old):
            raise ShapeError(
                "the last axis does not hold whole elements of the new type",
                where="paddle.view",
                received=f"{x.dtype} {list(x.shape)} as {dtype}",
                allowed=f"a last axis that is a multiple of {new // old}",
            )
        x = x.reshape(*x.shape[:-1], x.shape[-1] // (new // old), new // old)
    out = lax.bitcast_convert_type(x, to_numpy(dtype))
    return out.reshape(*x.shape[:-1], -1) if new < old and x.ndim else out


def view(x: Tensor, shape_or_dtype: DTypeLike | Sequence[int | Tensor], name: str | None = None) -> Tensor:
    """The elements in another shape (as `reshape`), or a copy of the same bytes as another type."""
    if isinstance(shape_or_dtype, str | Dtype | np.dtype | type):
        return _bitcast(x, to_numpy(shape_or_dtype).name)
    return reshape(x, shape_or_dtype)


def tolist(x: Tensor) -> Any:
    """The values as nested Python lists."""
    return x.tolist()


def view_as(x: Tensor, other: Tensor, name: str | None = None) -> Tensor:
    """`x` in the shape of `other`."""
    return reshape(x, other.shape)


def _permuted(
    old: Sizes, strides: Sizes, new: Sizes, /, perm: Whole, name: str | None = None
) -> tuple[list[int], int]:
    return [strides[axis] for axis in whole_numbers(freeze(perm))], 0


@view_of(_permuted)
@operation
def transpose(x: Array, perm: Whole, name: str | None = None) -> Array:
    """Axis i of the result is axis perm[i] of `x`."""
    order = tuple(normalize_axis(axis, x.ndim, "paddle.transpose") for axis in whole_numbers(perm))
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(
            "perm must name every axis once",
            where="paddle.transpose",
            received=f"perm {list(order)} for an input of shape {list(x.shape)}",
        )
    return jnp.transpose(x, order)


@view_of(reversed_axes)
@operation
def t(input: Array, name: str | None = None) -> Array:
    """A matrix transposed; what has fewer dimensions as it is."""
    if input.ndim > 2:
        raise ShapeError(
            "t() takes at most two dimensions",
            where="paddle.t",
            received=f"shape {list(input.shape)}",
            fix="use transpose(x, perm)",
        )
    return input.T


def _moved(
    old: Sizes, strides: Sizes, new: Sizes, /, source: Whole, destination: Whole, name: str | None = None
) -> tuple[list[int], int]:
    sources, targets = ([n % len(old) for n in whole_numbers(freeze(p))] for p in (source, destination))
    order = [axis for axis in range(len(old)) if axis not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return [strides[axis] for axis in order], 0


@view_of(_moved)
@operation
def moveaxis(x: Array, source: Whole, destination: Whole, name: str | None = None) -> Array:
    """Axes of `source` go to the places `destination`; the others keep their order."""
    sources, targets = whole_numbers(source), whole_numbers(destination)
    where, lists = "paddle.moveaxis", f"{sources} to {targets} of {x.ndim} axes"
    require(len(sources) == len(targets), "as many places as axes", where, lists, AssertedError)
    require(
        all(-x.ndim <= a < x.ndim for a in (*sources, *targets)),
        "axes that there are",
        where,
        lists,
        AssertedError,
    )
    require(
        len(set(targets)) == len(targets) and len(set(sources)) == len(sources),
        "each axis once",
        where,
        lists,
    )
    return jnp.moveaxis(x, sources, targets)


@view_of(reshaped)
@operation
def squeeze(x: Array, axis: Whole = None, name: str | None = None) -> Array:
    """Without the axes of size 1, all or those named; an axis of another size stays."""
    axes = axes_of(None if axis is None else whole_numbers(axis), x.ndim, "paddle.squeeze")
    return jnp.squeeze(x, tuple({a for a in axes if x.shape[a] == 1}))


@view_of(reshaped)
@operation
def unsqueeze(x: Array, axis: Whole, name: str | None = None) -> Array:
    """With new axes of size 1 at these places, put in one after the other."""
    for place in whole_numbers(axis):
        x = jnp.expand_dims(x, normalize_axis(place, x.ndim + 1, "paddle.unsqueeze"))
    return x


@view_of(reshaped)
@operation
def flatten(x: Array, start_axis: int = 0, stop_axis: int = -1, name: str | None = None) -> Array:
    """The axes from `start_axis` to `stop_axis` as one."""
    if x.ndim == 0:
        for axis in (start_axis, stop_axis):
            require(axis in (0, -1), "the axis of a 0-D Tensor is 0 or -1", "paddle.flatten", axis)
        return x.reshape(1)
    start = normalize_axis(whole_number(start_axis), x.ndim, "paddle.flatten")
    stop = normalize_axis(whole_number(stop_axis), x.ndim, "paddle.flatten")
    if stop < start:
        raise ShapeError(
            "stop_axis comes before start_axis",
            where="paddle.flatten",
            received=f"start_axis={start_axis}, stop_axis={stop_axis} for shape {list(x.shape)}",
        )
    return x.reshape(*x.shape[:start], math.prod(x.shape[start : stop + 1]), *x.shape[stop + 1 :])


@view_of(reshaped)
@operation
def unflatten(x: Array, axis: int, shape: Whole, name: str | None = None) -> Array:
    """One axis as several of this shape, of which one size may be -1."""
    place = normalize_axis(whole_number(axis), x.ndim, "paddle.unflatten")
    sizes = list(whole_numbers(shape))
    size, known = x.shape[place], math.prod(s for s in sizes if s != -1)
    if sizes.count(-1) == 1 and known and size % known == 0:
        sizes[sizes.index(-1)] = size // known
    if -1 in sizes or math.prod(sizes) != size:
        raise ShapeError(
            "the sizes do not make up the axis",
            where="paddle.unflatten",
            received=f"shape {sizes} for axis {axis} of {size} elements",
        )
    return x.reshape(*x.shape[:place], *sizes, *x.shape[place + 1 :])


@operation
def expand(x: Array, shape: Whole, name: str | None = None) -> Array:
    """Repeated along the axes of size 1, and along new leading ones; -1 keeps a size."""
    sizes = list(whole_numbers(shape))
    new = len(sizes) - x.ndim
    for index, size in enumerate(sizes):
        old = x.shape[index - new] if index >= new else None
        if size == -1 and old is not None:
            sizes[index] = old
    fits = (
        new >= 0
        and (x.size == 0 or 0 not in sizes)
        and len(sizes) <= _MOST_AXES
        and all(old in (1, size) for old, size in zip(x.shape, sizes[new:], strict=True))
    )
    if not fits or -1 in sizes:
        raise ShapeError(
            "only axes of size 1 and new leading axes can be expanded",
            where="paddle.expand",
            received=f"an input of shape {list(x.shape)}, shape {list(whole_numbers(shape))}",
        )
    return jnp.broadcast_to(x, sizes)


broadcast_to = expand


@operation
def _expand_like(x: Array, y: Array) -> Array:
    return jnp.broadcast_to(x, y.shape)


@checked
def expand_as(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """`x` expanded to the shape of `y`."""
    shape = y.shape
    return expand(x, shape) if -1 not in shape else _expand_like(x, y)  # -1: known when a program runs


@operation
def _broadcast_tensors(input: Arrays) -> tuple[Array, ...]:
    return tuple(jnp.broadcast_arrays(*input))


@checked
def broadcast_tensors(input: Sequence[Tensor], name: str | None = None) -> list[Tensor]:
    """All in the shape that they broadcast to."""
    require(len(input) > 0, "one Tensor at least", "paddle.broadcast_tensors", "none")
    kinds = {x.dtype.name for x in input}
    require(len(kinds) == 1, "Tensors of one type", "paddle.broadcast_tensors", ", ".join(sorted(kinds)))
    return list(_broadcast_tensors(input))


def broadcast_shape(x_shape: Sequence[int], y_shape: Sequence[int]) -> list[int]:
    """The shape that the two shapes broadcast to; -1 is a size that is not known, and fits any other.

    Raises:
        ShapeError: they do not.
    """
    x_sizes, y_sizes = tuple(x_shape), tuple(y_shape)
    count = max(len(x_sizes), len(y_sizes))
    pairs = list(zip(*[(1,) * (count - len(s)) + s for s in (x_sizes, y_sizes)], strict=True))
    if any(x != y and x != 1 and y != 1 and -1 not in (x, y) for x, y in pairs):
        raise ShapeError(
            "the shapes do not broadcast",
            where="paddle.broadcast_shape",
            received=f"{list(x_shape)} and {list(y_shape)}",
            allowed="equal sizes, or 1, from the last axis on",
        )
    return [int(y if x in (1, -1) and y != 1 else x) for x, y in pairs]


@operation
def tile(x: Array, repeat_times: Whole, name: str | None = None) -> Array:
    """Repeated as a whole, so many times along each axis (counted from the last)."""
    times = whole_numbers(repeat_times)
    require(all(n > 0 for n in times), "as many times as a number above 0", "paddle.tile", times)
    return jnp.tile(x, times)


@operation
def flip(x: Array, axis: Whole, name: str | None = None) -> Array:
    """In reverse order along these axes."""
    return jnp.flip(x, axes_of(whole_numbers(axis), x.ndim, "paddle.flip")) if whole_numbers(axis) else x


reverse = flip


@operation
def roll(x: Array, shifts: Whole, axis: Whole = None, name: str | None = None) -> Array:
    """Moved by so many places along the axes (None: along the flattened elements), round the end to the start."""
    if axis is None:
        return jnp.roll(x, whole_numbers(shifts)[0])
    return jnp.roll(x, whole_numbers(shifts), axes_of(whole_numbers(axis), x.ndim, "paddle.roll"))


@operation
def rot90(x: Array, k: int = 1, axes: Whole = (0, 1), name: str | None = None) -> Array:
    """Turned by k quarters in the plane of two axes, from the first to the second."""
    plane = whole_numbers(axes)
    if len(plane) != 2 or len({normalize_axis(a, x.ndim, "paddle.rot90") for a in plane}) != 2:
        raise ShapeError("a plane has two axes", where="paddle.rot90", received=f"axes {list(plane)}")
    return jnp.rot90(x, whole_number(k), (plane[0], plane[1]))


@operation
def _repeat(x: Array, repeats: int, axis: int | None = None) -> Array:
    return jnp.repeat(x, repeats, axis)


@operation(name="take")
def parts_at(x: Array, places: Array, axis: int | None = None) -> Array:
    """The parts along an axis (None: the elements, flattened) at places that are known to exist."""
    return jnp.take(x, places, axis)


@reads_values
@checked
def repeat_interleave(
    x: Tensor, repeats: TensorLike, axis: int | None = None, name: str | None = None
) -> Tensor:
    """Each element along an axis (None: of all, flattened) so many times; `repeats` is a number or one for each."""
    if isinstance(repeats, Tensor) and repeats.size > 1:
        counts = repeats.numpy().reshape(-1)
        size = x.size if axis is None else x.shape[normalize_axis(axis, x.ndim, "paddle.repeat_interleave")]
        if counts.size != size:
            raise ShapeError(
                "one number of repeats is needed for each element of the axis",
                where="paddle.repeat_interleave",
                received=f"{counts.size} repeats for {size} elements",
            )
        return parts_at(x, np.repeat(np.arange(size), counts), axis)
    return _repeat(x, whole_number(repeats), axis)


@operation
def as_complex(x: Array, name: str | None = None) -> Array:
    """Complex numbers of the pairs along the last axis."""
    if not x.ndim or x.shape[-1] != 2 or x.dtype not in INEXACT:
        raise ShapeError(
            "complex numbers are made of pairs of fractions along the last axis",
            where="paddle.as_complex",
            received=f"{x.dtype} {list(x.shape)}",
            allowed="float32 or float64, a last axis of size 2",
        )
    return lax.complex(x[..., 0], x[..., 1])


@operation
def as_real(x: Array, name: str | None = None) -> Array:
    """Complex numbers as pairs along a new last axis."""
    return jnp.stack((x.real, x.imag), -1)


def _strided(
    old: Sizes,
    strides: Sizes,
    new: Sizes,
    /,
    shape: Whole,
    stride: Whole,
    offset: int = 0,
    name: str | None = None,
) -> tuple[Sizes, int] | None:
    in_order = tuple(strides) == contiguous_strides(old)
    return (whole_numbers(freeze(stride)), offset) if in_order else None


@view_of(_strided)
@operation
def as_strided(x: Array, shape: Whole, stride: Whole, offset: int = 0, name: str | None = None) -> Array:
    """Element (i, j, ...) is number `offset + i * stride[0] + j * stride[1] + ...` of the flattened elements."""
    sizes, strides = whole_numbers(shape), whole_numbers(stride)
    if len(sizes) != len(strides):  # Paddle reads memory of other things as the rest
        raise ShapeError(
            "stride has one number for each dimension of shape",
            where="paddle.as_strided",
            received=f"shape {list(sizes)}, stride {list(strides)}",
        )
    places = np.full((), offset)
    for size, step in zip(sizes, strides, strict=True):
        places = places[..., None] + np.arange(size) * step
    if places.size and (places.max() >= x.size or places.min() < 0):
        raise ShapeError(
            "the strides lead out of the input",
            where="paddle.as_strided",
            received=f"shape {list(sizes)}, stride {list(strides)}, offset {offset} of {x.size} elements",
        )
    return x.reshape(-1)[places]


def _windowed(
    old: Sizes, strides: Sizes, new: Sizes, /, axis: int, size: int, step: int, name: str | None = None
) -> tuple[list[int], int]:
    steps, position = list(strides or [1]), axis % max(len(old), 1)
    return (
        [*steps[:position], steps[position] * step, *steps[position + 1 :], steps[position]] if old else steps
    ), 0


@view_of(_windowed)
@operation
def unfold(x: Array, axis: int, size: int, step: int, name: str | None = None) -> Array:
    """Windows of `size` every `step` places along an axis: [..., windows, ..., size]."""
    place = normalize_axis(axis, x.ndim, "paddle.unfold")
    length = x.shape[place] if x.ndim else 1
    if size > length or step < 1:
        raise ShapeError(
            "no window fits",
            where="paddle.unfold",
            received=f"size {size}, step {step} on an axis of {length}",
        )
    if x.ndim == 0:
        return x.reshape(1)[:size]
    starts = np.arange(0, length - size + 1, step)
    windows = jnp.take(x, starts[:, None] + np.arange(size), place)
    return jnp.moveaxis(windows, place + 1, -1)


def _at_least(x: Tensor, ndim: int) -> Tensor:
    if x.ndim >= ndim:
        return x
    if x.ndim == 0:
        return reshape(x, [1] * ndim)
    return unsqueeze(x, 0) if ndim == 2 else unsqueeze(x, [0, 2] if x.ndim == 1 else -1)


def _each_at_least(inputs: tuple[object, ...], ndim: int) -> Tensor | list[Tensor]:
    outs = [_at_least(x if isinstance(x, Tensor) else Tensor(x), ndim) for x in inputs]
    return outs[0] if len(outs) == 1 else outs


def atleast_1d(*inputs: object, name: str | None = None) -> Tensor | list[Tensor]:
    """Tensors of one dimension at least; a list of them where several are given."""
    return _each_at_least(inputs, 1)


def atleast_2d(*inputs: object, name: str | None = None) -> Tensor | list[Tensor]:
    """Tensors of two dimensions at least: [n] becomes [1, n]."""
    return _each_at_least(inputs, 2)


def atleast_3d(*inputs: object, name: str | None = None) -> Tensor | list[Tensor]:
    """Tensors of three dimensions at least: [n] becomes [1, n, 1], [m, n] becomes [m, n, 1]."""
    return _each_at_least(inputs, 3)
