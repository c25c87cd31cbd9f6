"""Sums, products and extremes up to each element, differences and areas."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.axes import normalize_axis
from framework.paddle._kernel.arguments import DTypeLike
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.dtypes import to_numpy
from framework.paddle._kernel.errors import OperandError, ShapeError, require
from framework.paddle.ops.promotion import as_float, cast_or_keep

__all__ = [
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "diff",
    "logcumsumexp",
    "trapezoid",
]


def _line(x: Array, axis: int | None, where: str) -> tuple[Array, int]:
    """The Tensor and the axis to go along: None flattens."""
    if axis is None:
        return x.reshape(-1), 0
    # A Tensor of one number may stand for the axis, and a number without axes is its own sum along 0 or -1.
    axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    return x, normalize_axis(axis, max(x.ndim, 1), where)


@operation
def cumsum(
    x: Array, axis: int | None = None, dtype: DTypeLike | None = None, name: str | None = None
) -> Array:
    """Sums up to each element along an axis, of the flattened Tensor where `axis` is None."""
    x, along = _line(cast_or_keep(x, dtype), axis, "paddle.cumsum")
    return jnp.cumsum(x, along, dtype=x.dtype) if x.ndim else x


@operation
def cumprod(
    x: Array, dim: int | None = None, dtype: DTypeLike | None = None, name: str | None = None
) -> Array:
    """Products up to each element along an axis, of the flattened Tensor where `dim` is None."""
    x, along = _line(cast_or_keep(x, dtype), dim, "paddle.cumprod")
    return jnp.cumprod(x, along, dtype=x.dtype) if x.ndim else x


@operation
def logcumsumexp(
    x: Array, axis: int | None = None, dtype: DTypeLike | None = None, name: str | None = None
) -> Array:
    """log of the cumulative sum of exp(x), without overflow."""
    x, along = _line(as_float(cast_or_keep(x, dtype)), axis, "paddle.logcumsumexp")
    return jax.lax.cumlogsumexp(x, along) if x.ndim else x


def _extremes(x: Array, axis: int | None, kind: Any, largest: bool, where: str) -> tuple[Array, Array]:
    require(kind in (np.int32, np.int64), "the indices are int32 or int64", where, kind)
    x, along = _line(x, axis, where)
    if x.ndim == 0:
        return x, jnp.zeros((), kind)
    best = jax.lax.stop_gradient((jax.lax.cummax if largest else jax.lax.cummin)(x, along))
    found = (x == best) | (jnp.isnan(x) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.zeros((), bool))
    count = jax.lax.broadcasted_iota(jnp.int64, x.shape, along)
    # The index of the latest element that is the extreme so far; the gradient goes there.
    index = jax.lax.cummax(jnp.where(found, count, 0), along)
    return jnp.take_along_axis(x, index, along), index.astype(kind)


@operation
def cummax(
    x: Array, axis: int | None = None, dtype: DTypeLike = "int64", name: str | None = None
) -> tuple[Array, Array]:
    """(largest elements up to each one, their indices): of equal ones the last."""
    return _extremes(x, axis, to_numpy(dtype), True, "paddle.cummax")


@operation
def cummin(
    x: Array, axis: int | None = None, dtype: DTypeLike = "int64", name: str | None = None
) -> tuple[Array, Array]:
    """(smallest elements up to each one, their indices): of equal ones the last."""
    return _extremes(x, axis, to_numpy(dtype), False, "paddle.cummin")


@operation
def diff(
    x: Array,
    n: int = 1,
    axis: int = -1,
    prepend: Array | None = None,
    append: Array | None = None,
    name: str | None = None,
) -> Array:
    """Differences of neighbours along an axis, `n` times; `prepend` and `append` are joined to it first."""
    require(n >= 1, "n is 1 or more", "paddle.diff", n)
    parts = [part for part in (prepend, x, append) if part is not None]
    joined = jnp.concatenate(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        along = normalize_axis(axis, joined.ndim, "paddle.diff")
        size = joined.shape[along]
        later = jax.lax.slice_in_dim(joined, 1, size, axis=along)
        earlier = jax.lax.slice_in_dim(joined, 0, size - 1, axis=along)
        joined = later ^ earlier if joined.dtype == bool else later - earlier
    return joined


_FRACTIONS = (np.float16, np.float32, np.float64, jnp.bfloat16)


def _areas(y: Array, x: Array | None, dx: Array | None, axis: int, where: str) -> tuple[Array, int]:
    """The area between each two neighbours, and the axis."""
    for name, samples in (("y", y), ("x", x)):
        if samples is not None:
            require(
                samples.dtype in _FRACTIONS, f"{name} is of fractions", where, samples.dtype, OperandError
            )
    if x is not None and dx is not None:
        raise ShapeError("give x or dx, not both", where=where, received="both")
    along = normalize_axis(axis, y.ndim, where)
    size = y.shape[along]
    later = jax.lax.slice_in_dim(y, 1, size, axis=along)
    earlier = jax.lax.slice_in_dim(y, 0, size - 1, axis=along)
    if x is None:
        step = jnp.asarray(1.0 if dx is None else dx).astype(y.dtype)
        step = step.reshape(()) if step.size == 1 else step
    elif x.ndim == 1:
        step = jnp.diff(x).astype(y.dtype).reshape([-1 if a == along else 1 for a in range(y.ndim)])
    else:
        step = jnp.diff(x, axis=axis).astype(y.dtype)
    return step * (later + earlier) / 2, along


@operation
def trapezoid(
    y: Array, x: Array | None = None, dx: Array | None = None, axis: int = -1, name: str | None = None
) -> Array:
    """The integral of samples `y` at points `x`, or `dx` (1) apart, by the trapezoidal rule."""
    areas, along = _areas(y, x, dx, axis, "paddle.trapezoid")
    return areas.sum(along)


@operation
def cumulative_trapezoid(
    y: Array, x: Array | None = None, dx: Array | None = None, axis: int = -1, name: str | None = None
) -> Array:
    """The integral up to each sample but the first, by the trapezoidal rule."""
    areas, along = _areas(y, x, dx, axis, "paddle.cumulative_trapezoid")
    return jnp.cumsum(areas, along)
