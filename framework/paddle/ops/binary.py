"""Elementwise functions of two Tensors beyond arithmetic, and products that are defined by elements."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.checked import tensors_only
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle.ops.promotion import as_float, is_integer, pair

__all__ = [
    "addmm",
    "atan2",
    "gcd",
    "heaviside",
    "hypot",
    "inner",
    "kron",
    "lcm",
    "ldexp",
    "lerp",
    "logaddexp",
    "nextafter",
    "outer",
]


@operation
def atan2(x: Array, y: Array, name: str | None = None) -> Array:
    """The angle of the point (y, x), radians; float64 for integers."""
    x, y = pair(x, y)
    if is_integer(x):
        x, y = x.astype(jnp.float64), y.astype(jnp.float64)
    return jnp.arctan2(x, y)


@tensors_only("x", "y")
@operation
def hypot(x: Array, y: Array, name: str | None = None) -> Array:
    """sqrt(x^2 + y^2)."""
    x, y = pair(as_float(x), as_float(y))
    return jnp.sqrt(x * x + y * y)


@operation(differentiable=False)
def gcd(x: Array, y: Array, name: str | None = None) -> Array:
    """The greatest common divisor of integers."""
    return jnp.gcd(*pair(x, y))


@operation(differentiable=False)
def lcm(x: Array, y: Array, name: str | None = None) -> Array:
    """The least common multiple of integers."""
    return jnp.abs(jnp.lcm(*pair(x, y)))


@operation
def heaviside(x: Array, y: Array, name: str | None = None) -> Array:
    """0 where x < 0, 1 where x > 0, y where x is 0."""
    x, y = pair(x, y)
    one, zero = jnp.ones((), x.dtype), jnp.zeros((), x.dtype)
    return jnp.where(x == 0, y, jnp.where(x > 0, one, jnp.where(x < 0, zero, x)))


@tensors_only("x", "y")
@operation
def ldexp(x: Array, y: Array, name: str | None = None) -> Array:
    """x 2^y, in the default floating type for integers."""
    kind = x.dtype if x.dtype == np.float64 else jnp.promote_types(as_float(x).dtype, as_float(y).dtype)
    exponent = jnp.asarray(y).astype(kind)
    whole = jnp.clip(jnp.floor(exponent), -5000, 5000)  # exact, where exp2 is not
    half = jax.lax.stop_gradient(jnp.nan_to_num(whole)).astype(jnp.int32) // 2
    rest = jax.lax.stop_gradient(jnp.nan_to_num(whole)).astype(jnp.int32) - half
    one = jnp.ones((), kind)
    return x.astype(kind) * jnp.ldexp(one, half) * jnp.ldexp(one, rest) * jnp.exp2(exponent - whole)


@operation
def lerp(x: Array, y: Array, weight: Array, name: str | None = None) -> Array:
    """x + weight (y - x)."""
    x, y = pair(x, y)
    return x + jnp.asarray(weight).astype(x.dtype) * (y - x)


@operation
def logaddexp(x: Array, y: Array, name: str | None = None) -> Array:
    """log(exp(x) + exp(y)), without overflow."""
    x, y = jnp.broadcast_arrays(*pair(as_float(x), as_float(y)))
    larger = jnp.maximum(x, y)
    endless = jnp.isinf(
        larger
    )  # where jax's gradient is NaN (both -inf) or that of another number (one is inf)
    safe = jnp.logaddexp(*(jnp.where(endless, jnp.zeros((), x.dtype), v) for v in (x, y)))
    return jnp.where(endless, larger, safe)


@operation(differentiable=False)
def nextafter(x: Array, y: Array, name: str | None = None) -> Array:
    """The next number of the type from x towards y."""
    return jnp.nextafter(*pair(x, y))


@tensors_only("x", "y")
@operation
def inner(x: Array, y: Array, name: str | None = None) -> Array:
    """Sums of products over the last axes of both."""
    x, y = pair(x, y)
    return x * y if x.ndim == 0 or y.ndim == 0 else jnp.inner(x, y)


@tensors_only("x", "y")
@operation
def outer(x: Array, y: Array, name: str | None = None) -> Array:
    """[N, M]: each element of x times each of y, both flattened."""
    x, y = pair(x, y)
    return jnp.outer(x, y)


@operation
def kron(x: Array, y: Array, name: str | None = None) -> Array:
    """The Kronecker product: each element of x times the whole of y."""
    return jnp.kron(*pair(x, y))


@operation
def addmm(
    input: Array,
    x: Array,
    y: Array,
    beta: Array | float = 1.0,
    alpha: Array | float = 1.0,
    name: str | None = None,
) -> Array:
    """beta input + alpha x @ y, of matrices."""
    if not x.ndim == y.ndim == 2 or input.ndim not in (1, 2):
        raise ShapeError(
            "matrices are multiplied",
            where="paddle.addmm",
            received=f"input {list(input.shape)}, x {list(x.shape)}, y {list(y.shape)}",
            allowed="2 axes each; input may be one row",
        )
    product = jnp.matmul(x, y)
    factors = (jnp.asarray(v).astype(product.dtype) for v in (beta, alpha))
    return next(factors) * input + next(factors) * product
