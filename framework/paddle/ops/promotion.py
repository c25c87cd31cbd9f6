"""Paddle's types of results. Everything here runs under jax's trace, with 64-bit types on."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.axes import normalize_axis
from framework.paddle._kernel.dtypes import default_numpy, to_numpy

Number = bool | int | float | complex


def in_float64(function: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
    """The function of narrower real numbers computed in float64 and rounded once: where XLA's own of float32 is many
    units in the last place away (sinh 24, lgamma near 1 and 2 all of them)."""

    def compute(x: jax.Array) -> jax.Array:
        return function(x.astype(jnp.float64)).astype(x.dtype) if is_float(x) else function(x)

    return compute


def is_float(x: jax.Array) -> bool:
    """Whether the type is a floating-point one."""
    return jnp.issubdtype(x.dtype, jnp.floating)


def is_inexact(x: jax.Array) -> bool:
    """Whether the type is a floating-point or a complex one."""
    return jnp.issubdtype(x.dtype, jnp.inexact)


def is_integer(x: jax.Array) -> bool:
    """Whether the values are whole numbers; bool counts."""
    return x.dtype.kind in "iub"


def float_type(x: jax.Array) -> np.dtype:
    """The type in which a function with fractions answers: that of `x`, or the default for integers."""
    return x.dtype if is_inexact(x) else default_numpy()


def as_float(x: jax.Array) -> jax.Array:
    """`x` in `float_type(x)`."""
    return jnp.asarray(x).astype(float_type(jnp.asarray(x)))


def pair(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Both operands in the type of their result.

    A Python number takes the type of the Tensor, but a fraction makes integers the default floating type, and a
    complex number makes everything complex. Two Tensors: the wider of two floating types; floating before integer
    (2.6.2 casts the right operand to the type of the left one, with a warning; 3.x refuses); the left one's among
    integers of different types; complex before all.
    """
    x, y = jnp.asarray(x), jnp.asarray(y)
    if x.dtype == y.dtype and not (_weak(x) and _weak(y)):
        return _plain(x), _plain(y)
    if _weak(x) and _weak(y):
        kind = _of_numbers(jnp.result_type(x, y))
    elif _weak(y):
        kind = _with_number(x, y)
    elif _weak(x):
        kind = _with_number(y, x)
    else:
        kind = _of_tensors(x, y)
    return x.astype(kind), y.astype(kind)


def _weak(x: jax.Array) -> bool:
    return bool(getattr(x, "weak_type", False))


def _plain(x: jax.Array) -> jax.Array:
    return x.astype(x.dtype)


def _of_numbers(kind: np.dtype) -> np.dtype:
    return {"f": default_numpy(), "c": np.dtype(np.complex64)}.get(kind.kind, kind)


def _with_number(tensor: jax.Array, number: jax.Array) -> np.dtype:
    if number.dtype.kind == "c" and tensor.dtype.kind != "c":
        return np.dtype(np.complex128 if tensor.dtype == np.float64 else np.complex64)
    if number.dtype.kind == "f" and is_integer(tensor):
        return default_numpy()
    if tensor.dtype == np.bool_ and number.dtype.kind == "i":
        return np.dtype(np.int64)
    return tensor.dtype


def _of_tensors(x: jax.Array, y: jax.Array) -> np.dtype:
    if is_integer(x) and is_integer(y):
        return y.dtype if x.dtype == np.bool_ else x.dtype
    if is_integer(x):
        return y.dtype
    if is_integer(y):
        return x.dtype
    if "c" in (x.dtype.kind, y.dtype.kind):
        wide = {x.dtype, y.dtype} & {np.dtype(np.float64), np.dtype(np.complex128)}
        return np.dtype(np.complex128 if wide else np.complex64)
    if x.dtype.itemsize == y.dtype.itemsize:  # float16 and bfloat16
        return np.dtype(np.float32)
    return max(x.dtype, y.dtype, key=lambda kind: kind.itemsize)


def cast_or_keep(x: jax.Array, dtype: object) -> jax.Array:
    """`x` in this type, if one is named."""
    return x if dtype is None else x.astype(to_numpy(dtype))


def axes_of(axis: int | tuple[int, ...] | None, ndim: int, where: str) -> tuple[int, ...]:
    """Counted axes of a reduction: None and () mean all."""
    if axis is None or (isinstance(axis, tuple) and not axis):
        return tuple(range(ndim))
    if isinstance(axis, int):
        axis = (axis,)
    numbers = [
        n for a in axis for n in (a if isinstance(a, tuple) else (a,))
    ]  # one-element Tensors are tuples by now
    return tuple(normalize_axis(n, ndim, where) for n in numbers) if ndim else ()
