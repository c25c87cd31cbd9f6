"""Spread and order statistics."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.checked import tensors_only
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ShapeError, require
from framework.paddle._kernel.free_sizes import is_free_size
from framework.paddle.ops.promotion import as_float, axes_of, is_integer

__all__ = ["median", "nanmedian", "nanquantile", "quantile", "std", "var"]

Axis = int | tuple[int, ...] | None


def _variance(x: Array, axis: Axis, unbiased: bool, keepdim: bool, where: str) -> Array:
    require(not jnp.issubdtype(x.dtype, jnp.integer), "x is a fraction", where, x.dtype)
    axes = axes_of(axis, x.ndim, where)
    x = as_float(x)
    count = math.prod(x.shape[a] for a in axes)
    deviation = x - jnp.mean(x, axes, keepdims=True)
    total = jnp.sum(deviation * deviation, axes, keepdims=keepdim)
    divisor = count - 1 if unbiased and (is_free_size(count) or count > 1) else count
    return total / jnp.asarray(divisor, x.dtype)


@operation
def var(
    x: Array, axis: Axis = None, unbiased: bool = True, keepdim: bool = False, name: str | None = None
) -> Array:
    """The variance: squared deviations over n - 1, over n where not `unbiased`; 0 of one element."""
    return _variance(x, axis, unbiased, keepdim, "paddle.var")


@operation
def std(
    x: Array, axis: Axis = None, unbiased: bool = True, keepdim: bool = False, name: str | None = None
) -> Array:
    """The standard deviation: the root of `var`. Its gradient is 0 where all elements are equal."""
    variance = _variance(x, axis, unbiased, keepdim, "paddle.std")
    zero = variance == 0  # where the root has no gradient
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, variance)))


def _last_axis(x: Array, axis: Axis, where: str) -> tuple[Array, tuple[int, ...]]:
    """The axes of a statistic as one last axis, and which they were."""
    if x.size == 0:
        raise ShapeError("no elements have no order", where=where, received=f"shape {list(x.shape)}")
    axes = axes_of(axis, x.ndim, where)
    rest = [a for a in range(x.ndim) if a not in axes]
    moved = jnp.transpose(x, (*rest, *axes))
    return moved.reshape(*[x.shape[a] for a in rest], -1), axes


def _keep(values: Array, axes: tuple[int, ...], keepdim: bool, first: int = 0) -> Array:
    return jnp.expand_dims(values, [a + first for a in sorted(axes)]) if keepdim and axes else values


@tensors_only("x")
@operation
def median(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """The middle of the sorted elements, the mean of two for an even count; NaN if one is."""
    line, axes = _last_axis(x, axis, "paddle.median")
    line = as_float(line)
    count = line.shape[-1]
    ordered = jnp.sort(line, -1)
    middle = (ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2
    known = ~jnp.isnan(line).any(-1)
    return _keep(jnp.where(known, middle, jnp.asarray(jnp.nan, line.dtype)), axes, keepdim)


@tensors_only("x")
@operation
def nanmedian(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """The median of what is not NaN; NaN where there is nothing else. Of integers it is an integer."""
    require(not isinstance(axis, tuple) or len(axis) > 0, "axis is not empty", "paddle.nanmedian", axis)
    line, axes = _last_axis(x, axis, "paddle.nanmedian")
    values = as_float(line)
    ordered = jnp.sort(values, -1)  # NaN comes last
    count = jnp.sum(~jnp.isnan(values), -1, keepdims=True)
    low, high = (jnp.maximum(count - 1, 0) // 2, count // 2)
    pick = jnp.take_along_axis
    middle = (pick(ordered, low, -1) + pick(ordered, jnp.minimum(high, values.shape[-1] - 1), -1)) / 2
    middle = jnp.where(count == 0, jnp.asarray(jnp.nan, values.dtype), middle)  # which has no gradient
    return _keep(middle[..., 0].astype(x.dtype if is_integer(x) else middle.dtype), axes, keepdim)


def _check_levels(q: Array, where: str) -> None:
    levels = np.asarray(q if isinstance(q, int | float | list | tuple) else 0.5)  # of arrays the values count
    if levels.size == 0 or levels.min() < 0 or levels.max() > 1:
        raise ShapeError(
            "q must be between 0 and 1", where=where, received=str(q), allowed="a number, or a list"
        )


def _quantile(x: Array, q: Array, axis: Axis, keepdim: bool, ignore_nan: bool, where: str) -> Array:
    _check_levels(q, where)
    line, axes = _last_axis(x, axis, where)
    line = line if line.dtype == np.float64 else line.astype(jnp.float64)
    levels = jnp.asarray(q).astype(line.dtype)
    ordered = jnp.sort(line, -1)
    known = jnp.sum(~jnp.isnan(line), -1, keepdims=True)
    count = known if ignore_nan else jnp.full_like(known, line.shape[-1])
    at = levels.reshape(-1) * (jnp.maximum(count, 1) - 1).astype(levels.dtype)  # [..., Q]
    low, high = jnp.floor(at), jnp.ceil(at)
    below, above = (jnp.take_along_axis(ordered, i.astype(jnp.int64), -1) for i in (low, high))
    values = below + (at - low) * (above - below)
    if not ignore_nan:
        values = jnp.where(known == line.shape[-1], values, jnp.asarray(jnp.nan, values.dtype))
    values = jnp.moveaxis(values, -1, 0)
    values = _keep(values, axes, keepdim, 1)
    return values if levels.ndim else values[0]


@tensors_only("x")
@operation
def quantile(x: Array, q: Any, axis: Axis = None, keepdim: bool = False) -> Array:
    """float64: the elements below which a share `q` lies, between neighbours linearly; one for each of a list of q in
    front. NaN if an element is."""
    return _quantile(x, q, axis, keepdim, False, "paddle.quantile")


@tensors_only("x")
@operation
def nanquantile(x: Array, q: Any, axis: Axis = None, keepdim: bool = False) -> Array:
    """`quantile` of what is not NaN."""
    return _quantile(x, q, axis, keepdim, True, "paddle.nanquantile")
