"""Tensors from numbers, and from the sizes and values of other Tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.axes import normalize_axis
from framework.core.rng import array_of
from framework.paddle._kernel.arguments import DTypeLike, TensorLike
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, Arrays, freeze, operation
from framework.paddle._kernel.dtypes import default_numpy, to_numpy, to_numpy_or
from framework.paddle._kernel.errors import ArgumentTypeError, ShapeError, require
from framework.paddle._kernel.free_sizes import is_free_size
from framework.paddle._kernel.known_sizes import hold_integers
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.settings import takes_variables
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle._kernel.views import Rewriting
from framework.paddle._kernel.x64 import x64
from framework.paddle.ops.promotion import as_float, pair

__all__ = [
    "arange",
    "assign",
    "clone",
    "complex",
    "create_tensor",
    "diag",
    "diag_embed",
    "diagflat",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "polar",
    "to_tensor",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "zeros",
    "zeros_like",
]

Sizes = Sequence[int | Tensor] | Tensor | int
_SMALL = (
    1 << 14
)  # elements; below, handing over numpy's array is faster than compiling a program for the shape


def to_tensor(
    data: object, dtype: DTypeLike | None = None, place: object = None, stop_gradient: bool = True
) -> Tensor:
    """A Tensor of numbers, nested lists, a numpy or jax array, or another Tensor (a copy without history).

    Python's integers become int64, its floats the default type; arrays keep their type. `place` is accepted and has no
    effect: jax decides where arrays are.
    """
    return hold_integers(Tensor(data, dtype, place, stop_gradient), data)


def integers_of(shape: Sizes) -> tuple[int, ...]:
    """A shape as integers, unchecked."""
    frozen = freeze(shape)
    return tuple(_size(s) for s in (frozen if isinstance(frozen, tuple) else (frozen,)))


def _size(size: int | tuple[int, ...]) -> int:
    """Of a Tensor of shape [1] too, whose frozen form is a tuple; a size that is free in a saved program stays it."""
    if not isinstance(size, tuple) and is_free_size(size):
        return size
    return int(np.reshape(np.asarray(size), ()))


def sizes_of(shape: Sizes) -> tuple[int, ...]:
    """A shape as integers.

    Raises:
        ShapeError: a size is negative.
    """
    sizes = integers_of(shape)
    if any(not is_free_size(size) and size < 0 for size in sizes):
        raise ShapeError("a shape has no negative sizes", where="paddle", received=str(list(sizes)))
    return sizes


def filled(shape: tuple[int, ...], value: TensorLike, kind: np.dtype) -> Tensor:
    """A Tensor of one number everywhere; in static mode a variable, which begins anew each time the program runs."""
    if mode.recorder is not None and mode.check is not None:
        return _spread(np.asarray(value).astype(kind).item(), shape, kind)
    with x64():
        # a size that is free while a program is recorded cannot be compared
        if all(isinstance(size, int | np.integer) for size in shape) and math.prod(shape) <= _SMALL:
            numbers = np.full(shape, value, kind)
            return hold_integers(wrap(array_of(numbers)), numbers)
        return wrap(jax.lax.full(shape, np.asarray(value).astype(kind), kind))


@operation
def _spread(value: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    return jnp.broadcast_to(jnp.asarray(value).reshape(()).astype(dtype), shape)


@takes_variables
def full(
    shape: Sizes, fill_value: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor:
    """`fill_value` everywhere, in the default floating type unless `dtype` names another."""
    kind = to_numpy_or(dtype, default_numpy())
    if isinstance(fill_value, Tensor):
        return _spread(fill_value, sizes_of(shape), kind)
    return filled(sizes_of(shape), _number(fill_value), kind)


def _number(value: TensorLike) -> Any:
    return float(value) if isinstance(value, str) else value


@takes_variables
def zeros(shape: Sizes, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """0 everywhere."""
    return filled(sizes_of(shape), 0, to_numpy_or(dtype, default_numpy()))


@takes_variables
def ones(shape: Sizes, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """1 everywhere."""
    return filled(sizes_of(shape), 1, to_numpy_or(dtype, default_numpy()))


@checked
def empty(shape: Sizes, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """A Tensor whose values say nothing (they are zeros here)."""
    return zeros(shape, dtype)


def _like(x: Tensor, value: TensorLike, dtype: DTypeLike | None) -> Tensor:
    kind = to_numpy_or(dtype, x._value.dtype)
    if isinstance(value, Tensor):
        return _spread(value, tuple(x.shape), kind)
    return filled(tuple(x._value.shape), _number(value), kind)


@checked
def full_like(
    x: Tensor, fill_value: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor:
    """`fill_value` in the shape and, unless `dtype` says otherwise, the type of `x`."""
    return _like(x, fill_value, dtype)


def zeros_like(x: Tensor, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """0 in the shape and type of `x`."""
    return _like(x, 0, dtype)


def ones_like(x: Tensor, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """1 in the shape and type of `x`."""
    return _like(x, 1, dtype)


@checked
def empty_like(x: Tensor | np.ndarray, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """A Tensor like `x` whose values say nothing."""
    return _like(wrap(as_array(x)) if isinstance(x, np.ndarray) else x, 0, dtype)


@takes_variables
@checked
def arange(
    start: TensorLike = 0,
    end: TensorLike | None = None,
    step: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """start, start + step, … below `end` (above, for a negative step); `arange(n)` counts from 0.

    int64 when all numbers are whole ones, else the default floating type; the type of Tensors is kept.
    """
    if end is None:
        start, end = 0, start
    kind = to_numpy(dtype) if dtype is not None else _type_of_range(start, end, step)
    first, last, by = freeze(start), freeze(end), freeze(step)
    first, last, by = (part[0] if isinstance(part, tuple) else part for part in (first, last, by))
    if by == 0:
        raise ShapeError(
            "a range with step 0 has no end", where="paddle.arange", received=f"{first}, {last}, 0"
        )
    if any(map(is_free_size, (first, last, by))):
        return _range_of_free_size(first, last, by, kind)
    count = max(math.ceil((last - first) / by), 0)
    exact = np.arange(count, dtype=np.int64 if kind.kind in "iu" else np.float64)
    return wrap(as_array((first + exact * by).astype(kind)))


def _range_of_free_size(first: int, last: int, by: int, kind: np.dtype) -> Tensor:
    """A range whose ends are sizes that are free in a saved program."""
    with x64():
        positions = jnp.arange(-((first - last) // by))
        return wrap((jnp.asarray(first) + positions * jnp.asarray(by)).astype(kind))


def _type_of_range(*ends: object) -> np.dtype:
    for end in ends:
        if isinstance(end, Tensor | np.generic | np.ndarray) and not isinstance(end, float):
            return end._value.dtype if isinstance(end, Tensor) else np.dtype(end.dtype)
        if isinstance(end, float):
            return default_numpy()
    return np.dtype(np.int64)


@operation(differentiable=False)
def _linspace(start: Array, stop: Array, num: int, dtype: np.dtype) -> Array:
    wide = jnp.float32 if dtype in (np.float16, jnp.bfloat16) else jnp.float64
    first, last = jnp.asarray(start, wide).reshape(()), jnp.asarray(stop, wide).reshape(())
    return jnp.linspace(first, last, num).astype(dtype)


@takes_variables
@checked
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int | Tensor,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both included."""
    return _linspace(start, stop, _count(num), to_numpy_or(dtype, default_numpy()))


@operation(differentiable=False)
def _logspace(start: Array, stop: Array, base: Array, num: int, dtype: np.dtype) -> Array:
    first, last = (jnp.asarray(end, jnp.float64).reshape(()) for end in (start, stop))
    powers = jnp.power(jnp.asarray(base, jnp.float64).reshape(()), jnp.linspace(first, last, num))
    return powers.astype(dtype)


@takes_variables
@checked
def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int | Tensor,
    base: TensorLike = 10.0,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """`num` numbers from base^start to base^stop whose logarithms are evenly spaced."""
    return _logspace(start, stop, base, _count(num), to_numpy_or(dtype, default_numpy()))


def _count(num: int | Tensor) -> int:
    return integers_of(num)[0]


@takes_variables
@checked
def eye(
    num_rows: int, num_columns: int | None = None, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor:
    """1 on the diagonal of a matrix, 0 elsewhere."""
    kind = to_numpy_or(dtype, default_numpy())
    sizes = (num_rows, num_rows if num_columns is None else num_columns)
    if any(isinstance(size, float | str) for size in sizes) or min(map(_count, sizes)) < 0:
        raise ArgumentTypeError(
            "sizes are integers from 0", where="paddle.eye", received=sizes, allowed="integers from 0"
        )
    if any(is_free_size(size) for size in sizes):
        with x64():
            return wrap(jnp.eye(*map(_count, sizes), dtype=kind))
    return wrap(as_array(np.eye(*map(_count, sizes), dtype=kind)))


@operation(name="assign")
def _assign(x: Array) -> Array:
    return jnp.asarray(x)


def assign(x: TensorLike, output: Tensor | None = None) -> Tensor:
    """A copy of a Tensor, an array or numbers; into `output` if one is given. Gradients flow through.

    Raises:
        TypeError: another value, or an array of a type that Paddle does not assign.
    """
    copy = _assign(x if isinstance(x, Tensor) else to_tensor(_assignable(x)))
    if output is None:
        return copy
    with Rewriting(output):
        output._value, output._version = copy._value, output._version + 1
        output._node, output._index = copy._node, copy._index
        if copy._node is not None:
            output.stop_gradient = False
    return output


def _assignable(x: object) -> object:
    """Numbers as they are given; float64 of numpy becomes float32, and a number a vector, as in Paddle."""
    if isinstance(x, jax.Array):
        return x
    if not isinstance(x, np.ndarray | np.generic | list | tuple | float | int):
        raise ArgumentTypeError(
            "neither a Tensor nor numbers",
            where="paddle.assign",
            received=type(x).__name__,
            allowed="a Tensor, an array, a list or a number",
        )
    if isinstance(x, list | tuple) and any(isinstance(one, Tensor) for one in x):
        if mode.recorder is None:
            return x
        raise ArgumentTypeError(
            "a list of variables", where="paddle.assign", allowed="a variable", fix="call paddle.stack first"
        )
    array = np.asarray([x] if isinstance(x, bool | int | float) else x)  # a number becomes a vector of one
    array = array.astype(np.float32) if array.dtype == np.float64 else array
    if array.dtype not in (np.bool_, np.float32, np.int32, np.int64):
        raise ArgumentTypeError(
            "an array of another type",
            where="paddle.assign",
            received=array.dtype.name,
            allowed="bool, float32, float64, int32, int64",
            fix="make a Tensor of it: paddle.to_tensor(x)",
        )
    return array


def clone(x: Tensor, name: str | None = None) -> Tensor:
    """A copy of `x`; gradients flow through."""
    return _assign(x)


def create_tensor(dtype: DTypeLike | None, name: str | None = None, persistable: bool = False) -> Tensor:
    """A Tensor of one element, to be assigned to."""
    tensor = filled((), 0, to_numpy(dtype))
    tensor.persistable = persistable
    if name is not None:
        tensor.name = name
    return tensor


@operation
def diag(x: Array, offset: int = 0, padding_value: Array | float = 0, name: str | None = None) -> Array:
    """A matrix with the vector `x` on a diagonal and `padding_value` elsewhere, or a diagonal of the matrix `x`."""
    x = x.reshape(-1) if x.ndim == 0 else x
    if x.ndim not in (1, 2):
        raise ShapeError(
            "a vector or a matrix is taken",
            where="paddle.diag",
            received=f"shape {list(x.shape)}",
            fix="paddle.diagonal",
        )
    if x.ndim == 2:
        return jnp.diagonal(x, offset)
    padding = jnp.asarray(padding_value).astype(x.dtype)
    size = x.shape[0] + abs(offset)
    rows = jnp.arange(x.shape[0]) + max(-offset, 0)
    return jnp.full((size, size), padding).at[rows, rows + offset].set(x)


@operation
def diagflat(x: Array, offset: int = 0, name: str | None = None) -> Array:
    """A matrix with the elements of `x` on a diagonal."""
    return jnp.diagflat(x, offset)


@operation
def diag_embed(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Matrices over the axes `dim1` and `dim2` with the last axis of `input` on a diagonal."""
    first = normalize_axis(dim1, input.ndim + 1, "paddle.diag_embed")
    second = normalize_axis(dim2, input.ndim + 1, "paddle.diag_embed")
    require(first != second, "two different axes", "paddle.diag_embed", f"{dim1} and {dim2}")
    count = input.shape[-1]
    size = count + abs(offset)
    rows = jnp.arange(count) + max(-offset, 0)
    out = jnp.zeros((*input.shape[:-1], size, size), input.dtype)
    out = out.at[..., rows, rows + offset].set(input)
    return jnp.moveaxis(out, (-2, -1), (first, second))


@operation
def tril(x: Array, diagonal: int = 0, name: str | None = None) -> Array:
    """`x` with zeros above a diagonal of its last two axes."""
    _check_triangle("tril", x, diagonal)
    return jnp.tril(x, diagonal)


@operation
def triu(x: Array, diagonal: int = 0, name: str | None = None) -> Array:
    """`x` with zeros below a diagonal of its last two axes."""
    _check_triangle("triu", x, diagonal)
    return jnp.triu(x, diagonal)


def _check_triangle(name: str, x: jax.Array, diagonal: object) -> None:
    """In the words that Paddle's users know."""
    if x.ndim < 2:
        raise ShapeError(f"x shape in {name} must be at least 2-D", received=str(x.shape))
    if not isinstance(diagonal, int | np.integer):
        raise ArgumentTypeError(f"diagonal in {name} must be a python Int", received=repr(diagonal))


def tril_indices(row: int, col: int, offset: int = 0, dtype: DTypeLike | None = "int64") -> Tensor:
    """[2, N]: rows and columns of the elements on and below a diagonal of a row x col matrix."""
    _check_sizes("tril_indices", row, col, offset)
    return wrap(as_array(np.stack(np.tril_indices(row, offset, col)), dtype))


def triu_indices(
    row: int, col: int | None = None, offset: int = 0, dtype: DTypeLike | None = "int64"
) -> Tensor:
    """[2, N]: rows and columns of the elements on and above a diagonal of a row x col matrix."""
    col = row if col is None else col
    _check_sizes("triu_indices", row, col, offset)
    return wrap(as_array(np.stack(np.triu_indices(row, offset, col)), dtype))


def _check_sizes(name: str, row: int, col: int, offset: int) -> None:
    if not all(isinstance(n, int) for n in (row, col, offset)) or row < 0 or col < 0:
        raise ArgumentTypeError(
            "a size or a diagonal is no integer, or a size is negative",
            where=f"paddle.{name}",
            received=f"row {row!r}, col {col!r}, offset {offset!r}",
            allowed="integers, row and col from 0",
        )


@operation
def _meshgrid(inputs: Arrays) -> tuple[Array, ...]:
    return tuple(jnp.meshgrid(*[x.reshape(-1) for x in inputs], indexing="ij"))


def meshgrid(*args: Tensor | Sequence[Tensor], **kwargs: object) -> list[Tensor]:
    """The coordinates of a grid: the i-th result has the i-th vector along its i-th axis."""
    inputs = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    return list(_meshgrid(list(inputs)))


@operation
def complex(real: Array, imag: Array, name: str | None = None) -> Array:
    """real + i imag."""
    return jax.lax.complex(*jnp.broadcast_arrays(*pair(as_float(real), as_float(imag))))


@operation
def polar(abs: Array, angle: Array, name: str | None = None) -> Array:
    """The complex number of this absolute value and this angle in radians."""
    size, turn = jnp.broadcast_arrays(*pair(as_float(abs), as_float(angle)))
    return jax.lax.complex(size * jnp.cos(turn), size * jnp.sin(turn))
