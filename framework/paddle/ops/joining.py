"""Operations that put Tensors together and take them apart."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from framework.core.axes import normalize_axis
from framework.paddle._kernel.arguments import Integers
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, Arrays, freeze, operation
from framework.paddle._kernel.errors import OperandError, ShapeError, require
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.settings import takes_variables
from framework.paddle._kernel.tensor import Tensor
from framework.paddle._kernel.views import Sizes, leave_storage, share_storage
from framework.paddle.ops.indexing import getitem
from framework.paddle.ops.shaping import whole_number, whole_numbers

__all__ = [
    "chunk",
    "concat",
    "crop",
    "multiplex",
    "slice",
    "split",
    "stack",
    "strided_slice",
    "unbind",
    "unstack",
    "vsplit",
]


def _one_type(x: Arrays, where: str) -> None:
    require(bool(x), "a list of Tensors is needed", where, "an empty list", OperandError)
    kinds = [str(part.dtype) for part in x]
    if len(set(kinds)) > 1:
        raise ShapeError(
            "the Tensors have different types", where=where, received=", ".join(kinds), fix="cast them to one"
        )


@operation
def concat(x: Arrays, axis: int = 0, name: str | None = None) -> Array:
    """One after the other along an axis that exists."""
    _one_type(x, "paddle.concat")
    kept = [part for part in x if part.shape != (0,)] or x  # an empty Tensor [0] goes with every shape
    ndim = kept[0].ndim
    place = normalize_axis(whole_number(axis), ndim, "paddle.concat")
    shapes = [list(part.shape) for part in kept]
    if ndim == 0 or any(
        len(s) != ndim or s[:place] + s[place + 1 :] != shapes[0][:place] + shapes[0][place + 1 :]
        for s in shapes
    ):
        raise ShapeError(
            "all sizes but that of the axis must be equal",
            where="paddle.concat",
            received=f"shapes {shapes}, axis {axis}",
            fix="use stack for a new axis" if ndim == 0 else None,
        )
    return jnp.concatenate(kept, place)


@operation
def stack(x: Arrays, axis: int = 0, name: str | None = None) -> Array:
    """Side by side along a new axis."""
    _one_type(x, "paddle.stack")
    shapes = [list(part.shape) for part in x]
    if any(s != shapes[0] for s in shapes):
        raise ShapeError("all shapes must be equal", where="paddle.stack", received=f"shapes {shapes}")
    return jnp.stack(x, normalize_axis(whole_number(axis), x[0].ndim + 1, "paddle.stack"))


@operation
def _split(x: Array, ends: Sequence[int], axis: int) -> tuple[Array, ...]:
    return tuple(jnp.split(x, list(ends), axis))


def _parts(x: Tensor, num_or_sections: Integers, axis: Integers, where: str) -> list[Tensor]:
    axis = normalize_axis(whole_number(axis), x.ndim, where)
    size = x.shape[axis] if x.ndim else 0
    if isinstance(num_or_sections, int | np.integer):
        count = int(num_or_sections)
        if count < 1 or size % count or not x.ndim:
            raise ShapeError(
                "the axis cannot be split into equal parts",
                where=where,
                received=f"{count} parts of axis {axis} with {size} elements",
                fix=None if where == "paddle.chunk" else "give the sizes of the parts",
            )
        sizes = [size // count] * count
    else:
        sizes = list(whole_numbers(freeze(num_or_sections)))
        if sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = size - sum(sizes) - 1
        if sum(sizes) != size or min(sizes) < 0:
            raise ShapeError(
                "the sizes do not add up to the axis",
                where=where,
                received=f"{num_or_sections} for axis {axis} with {size} elements",
                allowed="sizes that add up, one of them -1 at most",
            )
    return list(_split(x, tuple(int(end) for end in np.cumsum(sizes)[:-1]), axis))


@takes_variables
@checked
def split(x: Tensor, num_or_sections: Integers, axis: Integers = 0, name: str | None = None) -> list[Tensor]:
    """So many equal parts along an axis, or parts of these sizes, of which one may be -1."""
    return _parts(x, num_or_sections, axis, "paddle.split")


def vsplit(x: Tensor, num_or_sections: Integers, name: str | None = None) -> list[Tensor]:
    """`split` along the first of two or more axes."""
    if x.ndim < 2:
        raise ShapeError("two dimensions at least", where="paddle.vsplit", received=f"shape {x.shape}")
    return _parts(x, num_or_sections, 0, "paddle.vsplit")


@takes_variables
@checked
def chunk(x: Tensor, chunks: int, axis: Integers = 0, name: str | None = None) -> list[Tensor]:
    """So many equal parts along an axis."""
    return _parts(x, whole_number(chunks), axis, "paddle.chunk")


@operation
def _unbind(x: Array, axis: int) -> tuple[Array, ...]:
    return tuple(jnp.moveaxis(x, axis, 0)[i] for i in range(x.shape[axis]))


@takes_variables
@checked
def unbind(input: Tensor, axis: int = 0) -> list[Tensor]:
    """The parts along an axis, without it."""
    axis = normalize_axis(whole_number(axis), input.ndim, "paddle.unbind")
    if not input.ndim:
        raise ShapeError("a Tensor of no dimensions has no parts", where="paddle.unbind", received="shape []")
    outs = list(_unbind(input, axis))
    if mode.recorder is None:
        for index, out in enumerate(outs):
            share_storage(input, out, _at_position, (axis, index))
    return outs


def _at_position(old: Sizes, strides: Sizes, new: Sizes, /, axis: int, index: int) -> tuple[Sizes, int]:
    return (*strides[:axis], *strides[axis + 1 :]), index * strides[axis]


def unstack(x: Tensor, axis: int = 0, num: int | None = None) -> list[Tensor]:
    """The parts along an axis, without it; `num` says how many are expected."""
    parts = list(map(leave_storage, unbind(x, axis)))  # as in Paddle, which copies here
    if num is not None and num != len(parts):
        raise ShapeError(
            "the axis has another size", where="paddle.unstack", received=f"num={num} for {len(parts)} parts"
        )
    return parts


def _of_axes(
    x: Tensor, axes: Sequence[int], starts: Integers, ends: Integers, strides: Integers, where: str
) -> tuple[object, ...]:
    chosen: list[Any] = [builtins.slice(None)] * x.ndim
    for axis, start, end, stride in zip(
        axes, *(whole_numbers(freeze(part)) for part in (starts, ends, strides)), strict=True
    ):
        last = None if stride < 0 and end == -1 else end
        chosen[normalize_axis(axis, x.ndim, where)] = builtins.slice(start, last, stride)
    return tuple(chosen)


@takes_variables
def slice(input: Tensor, axes: Sequence[int], starts: Integers, ends: Integers) -> Tensor:
    """From starts[i] to before ends[i] along axes[i]; negative numbers count from the end, ends may lie beyond it."""
    where = "paddle.slice"
    require(isinstance(axes, list | tuple) and len(axes) > 0, "axes is a list, and not empty", where, axes)
    return getitem(input, _of_axes(input, axes, starts, ends, [1] * len(axes), "paddle.slice"))


@takes_variables
@checked
def strided_slice(
    x: Tensor,
    axes: Sequence[int],
    starts: Integers,
    ends: Integers,
    strides: Integers,
    name: str | None = None,
) -> Tensor:
    """`slice` with a step, which may be negative: then an end of -1 means down to the first element."""
    steps, stops = whole_numbers(freeze(strides)), list(whole_numbers(freeze(ends)))
    for index, (axis, step, stop) in enumerate(zip(axes, steps, stops, strict=True)):
        if step < 0 and stop < -1:  # -1 alone means: down to the first element
            stops[index] = max(stop + x.shape[axis], 0)
    return getitem(x, _of_axes(x, axes, starts, stops, steps, "paddle.strided_slice"))


@takes_variables
@checked
def crop(
    x: Tensor, shape: Integers | None = None, offsets: Integers | None = None, name: str | None = None
) -> Tensor:
    """The part of this shape that begins at `offsets`; -1 as a size means: to the end."""
    sizes = x.shape if shape is None else whole_numbers(freeze(shape))
    starts = [0] * x.ndim if offsets is None else whole_numbers(freeze(offsets))
    if len(sizes) != x.ndim or len(starts) != x.ndim:
        raise ShapeError(
            "a size and an offset are needed for each axis",
            where="paddle.crop",
            received=f"shape {list(sizes)}, offsets {list(starts)} for an input of shape {x.shape}",
        )
    holds = all(size > 0 or size == -1 for size in sizes)
    require(holds, "sizes are above 0, or -1", "paddle.crop", list(sizes))
    ends = [None if size == -1 else start + size for start, size in zip(starts, sizes, strict=True)]
    if any(
        start < 0 or (end is not None and end > old != -1)
        for start, end, old in zip(starts, ends, x.shape, strict=True)
    ):
        raise ShapeError(
            "the part lies outside the input",
            where="paddle.crop",
            received=f"shape {list(sizes)}, offsets {list(starts)} for an input of shape {x.shape}",
        )
    slices = tuple(builtins.slice(start, end) for start, end in zip(starts, ends, strict=True))
    return leave_storage(getitem(x, slices))  # as in Paddle, which copies here


@operation
def _multiplex(inputs: Arrays, index: Array) -> Array:
    rows = index.reshape(-1)[: inputs[0].shape[0]]  # fewer than rows: those after them are left out
    return jnp.stack(inputs)[rows, jnp.arange(len(rows))]


@checked
def multiplex(inputs: Sequence[Tensor], index: Tensor, name: str | None = None) -> Tensor:
    """Row i of the result is row i of inputs[index[i]]."""
    require(len(inputs) > 1, "two inputs at least", "paddle.multiplex", len(inputs))
    return _multiplex(inputs, index)
