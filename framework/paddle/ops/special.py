"""Special functions: of the gamma family, Bessel functions, the error function."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy import special

from framework.nn.functional.slopes import with_slope
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import AssertedError, require
from framework.paddle._kernel.methods import in_place
from framework.paddle.ops.promotion import as_float, in_float64
from framework.paddle.ops.rows import elementwise

__all__ = [
    "digamma",
    "erf",
    "erf_",
    "erfinv",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "lgamma",
    "multigammaln",
    "polygamma",
]

_of_floats = functools.partial(elementwise, floats=True)

erf = _of_floats("erf", special.erf, "The error function.")
erfinv = _of_floats("erfinv", in_float64(special.erfinv), "The inverse of the error function.")
lgamma = _of_floats("lgamma", in_float64(special.gammaln), "The logarithm of |gamma(x)|.")


@operation
def polygamma(x: Array, n: int, name: str | None = None) -> Array:
    """The n-th derivative of digamma."""
    x = as_float(x)
    return in_float64(functools.partial(_polygamma, n))(x)


def _polygamma(n: int, x: Array) -> Array:
    if n == 0:
        return special.digamma(x)
    # n! zeta(n + 1, x) with the sign of (-1)^(n + 1), and for negative x, where zeta of jax is wrong, by reflection:
    # (-1)^n f(1 - x) - f(x) is the n-th derivative of pi cot(pi x).
    far, negative = jnp.isposinf(x), x < 0
    safe = jnp.where(far, 1.0, jnp.where(negative, 1 - x, x))
    right = float((-1) ** (n + 1) * math.factorial(n)) * _zeta(n, safe)
    slope: Callable[[Array], Array] = _cotangent
    for _ in range(n):
        slope = functools.partial(_derivative, slope)
    offset = x - jnp.round(x)  # cot has the period 1, and poles
    pole = negative & (offset == 0)
    left = (-1) ** n * right - slope(jnp.where(negative & ~pole, offset, 0.5))
    left = jnp.where(pole, jnp.inf if n % 2 else jnp.nan, left)
    return jnp.where(far, 0.0, jnp.where(negative, left, right))


def _cotangent(x: Array) -> Array:
    return jnp.pi * jnp.cos(jnp.pi * x) / jnp.sin(jnp.pi * x)


def _derivative(function: Callable[[Array], Array], x: Array) -> Array:
    return jax.jvp(function, (x,), (jnp.ones_like(x),))[1]


def _zeta(n: int, x: Array) -> Array:
    """zeta(n + 1, x), whose derivative for x is -(n + 1) zeta(n + 2, x)."""

    @jax.custom_jvp
    def zeta(x: Array) -> Array:
        return special.zeta(jnp.asarray(n + 1.0, x.dtype), x)

    @zeta.defjvp
    def _slope(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        (x,), (tangent,) = primals, tangents
        return zeta(x), -(n + 1.0) * _zeta(n + 1, x) * tangent

    return zeta(x)


digamma = _of_floats(
    "digamma",
    in_float64(with_slope(special.digamma, functools.partial(_polygamma, 1))),
    "The derivative of lgamma.",
)


@operation
def multigammaln(x: Array, p: int, name: str | None = None) -> Array:
    """The logarithm of the gamma function of p dimensions."""
    require(p >= 1, "p is 1 or more", "paddle.multigammaln", p, AssertedError)
    x = as_float(x)
    shifts = jnp.arange(p, dtype=x.dtype) / 2
    constant = p * (p - 1) / 4 * jnp.log(jnp.pi).astype(x.dtype)
    return constant + in_float64(special.gammaln)(x[..., None] - shifts).sum(-1)


i0 = _of_floats(
    "i0", in_float64(with_slope(special.i0, special.i1)), "The modified Bessel function of order 0."
)
i0e = _of_floats("i0e", in_float64(special.i0e), "exp(-|x|) i0(x).")
i1 = _of_floats("i1", in_float64(special.i1), "The modified Bessel function of order 1.")
i1e = _of_floats("i1e", in_float64(special.i1e), "exp(-|x|) i1(x).")
erf_ = in_place(erf, "erf_")
