"""Sums, products, extremes and their kin over axes. An empty `axis` or None means all axes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.arguments import DTypeLike, Tensors
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, Arrays, operation
from framework.paddle._kernel.dtypes import to_numpy
from framework.paddle._kernel.errors import ShapeError, require
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.promotion import as_float, axes_of, is_integer

if TYPE_CHECKING:
    from framework.paddle._kernel.tensor import Tensor

__all__ = [
    "add_n",
    "all",
    "amax",
    "amin",
    "any",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "min",
    "nanmean",
    "nansum",
    "prod",
    "sum",
]

Axis = int | tuple[int, ...] | None


def _total_type(x: Array, dtype: DTypeLike | None) -> np.dtype:
    """The type of a sum of `x`: int64 for bool and int32."""
    if dtype is not None:
        return to_numpy(dtype)
    return np.dtype(np.int64) if x.dtype in (np.bool_, np.int32) else x.dtype


@operation
def sum(
    x: Array,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdim: bool = False,
    name: str | None = None,
) -> Array:
    """The sum; int64 for bool and int32."""
    kind = _total_type(x, dtype)
    return jnp.sum(x.astype(kind), axes_of(axis, x.ndim, "paddle.sum"), dtype=kind, keepdims=keepdim)


@operation
def nansum(
    x: Array,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdim: bool = False,
    name: str | None = None,
) -> Array:
    """The sum of what is not NaN."""
    kind = _total_type(x, dtype)
    known = x if is_integer(x) else jnp.where(jnp.isnan(x), jnp.zeros((), x.dtype), x)
    return jnp.sum(known.astype(kind), axes_of(axis, x.ndim, "paddle.nansum"), dtype=kind, keepdims=keepdim)


@operation
def mean(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """The mean; of integers it is an integer too, as in Paddle."""
    axes = axes_of(axis, x.ndim, "paddle.mean")
    return jnp.mean(as_float(x), axes, keepdims=keepdim).astype(x.dtype)


@operation
def nanmean(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """The mean of what is not NaN."""
    if is_integer(x):
        return jnp.mean(as_float(x), axes_of(axis, x.ndim, "paddle.nanmean"), keepdims=keepdim).astype(
            x.dtype
        )
    axes = axes_of(axis, x.ndim, "paddle.nanmean")
    known = ~jnp.isnan(x)
    total = jnp.sum(jnp.where(known, x, jnp.zeros((), x.dtype)), axes, keepdims=keepdim)
    return total / jnp.sum(known, axes, keepdims=keepdim).astype(x.dtype)


@operation
def prod(
    x: Array,
    axis: Axis = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Array:
    """The product."""
    kind = x.dtype if dtype is None else to_numpy(dtype)
    return jnp.prod(x.astype(kind), axes_of(axis, x.ndim, "paddle.prod"), dtype=kind, keepdims=keepdim)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def _extreme(x: Array, axes: tuple[int, ...], keepdim: bool, largest: bool) -> Array:
    return (jnp.max if largest else jnp.min)(x, axes, keepdims=keepdim)


@_extreme.defjvp
def _extreme_jvp(
    axes: tuple[int, ...], keepdim: bool, largest: bool, primals: Any, tangents: Any
) -> tuple[Array, Array]:
    """Every element that equals the extreme gets the whole gradient."""
    (x,), (tangent,) = primals, tangents
    best = _extreme(x, axes, True, largest)
    slope = jnp.sum(jnp.where(x == best, tangent, jnp.zeros((), x.dtype)), axes, keepdims=keepdim)
    return _extreme(x, axes, keepdim, largest), slope


def _not_empty(x: Array, where: str) -> None:
    if x.size == 0:
        raise ShapeError("there is no extreme of no elements", where=where, received=f"shape {list(x.shape)}")


@operation
def max(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """The largest element; the gradient goes to all that equal it, undivided."""
    _not_empty(x, "paddle.max")
    return _extreme(x, axes_of(axis, x.ndim, "paddle.max"), keepdim, True)


@operation
def min(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """The smallest element; the gradient goes to all that equal it, undivided."""
    _not_empty(x, "paddle.min")
    return _extreme(x, axes_of(axis, x.ndim, "paddle.min"), keepdim, False)


@operation
def amax(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """The largest element; the gradient is shared by all that equal it."""
    _not_empty(x, "paddle.amax")
    return jnp.max(x, axes_of(axis, x.ndim, "paddle.amax"), keepdims=keepdim)


@operation
def amin(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """The smallest element; the gradient is shared by all that equal it."""
    _not_empty(x, "paddle.amin")
    return jnp.min(x, axes_of(axis, x.ndim, "paddle.amin"), keepdims=keepdim)


@operation(differentiable=False)
def all(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """Whether all elements are true (not 0)."""
    return jnp.all(x, axes_of(axis, x.ndim, "paddle.all"), keepdims=keepdim)


@operation(differentiable=False)
def any(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """Whether an element is true (not 0)."""
    return jnp.any(x, axes_of(axis, x.ndim, "paddle.any"), keepdims=keepdim)


@operation(differentiable=False)
def count_nonzero(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """How many elements are not 0, int64."""
    axes = axes_of(axis, x.ndim, "paddle.count_nonzero")
    return jnp.sum(x != 0, axes, dtype=jnp.int64, keepdims=keepdim)


@operation
def logsumexp(x: Array, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Array:
    """log(sum(exp(x))), without overflow."""
    axes = axes_of(axis, x.ndim, "paddle.logsumexp")
    return jax.nn.logsumexp(as_float(x), axes, keepdims=keepdim)


@operation(name="sum")
def _add_n(inputs: Arrays) -> Array:
    total = inputs[0]
    for part in inputs[1:]:
        total = total + part
    return total


@checked
def add_n(inputs: Tensors, name: str | None = None) -> Tensor:
    """The sum of Tensors of one shape, element by element."""
    holds = isinstance(inputs, Tensor | list | tuple)
    require(holds, "a Tensor or a list of them", "paddle.add_n", type(inputs).__name__)
    return _add_n(list(inputs) if isinstance(inputs, list | tuple) else [inputs])
