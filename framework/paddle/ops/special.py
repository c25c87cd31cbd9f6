"""Special functions: of the gamma family, Bessel functions, the error function."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
from jax.scipy import special

from framework.paddle._kernel.dispatch import Array, operation
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
digamma = _of_floats("digamma", in_float64(special.digamma), "The derivative of lgamma.")


@operation
def polygamma(x: Array, n: int, name: str | None = None) -> Array:
    """The n-th derivative of digamma."""
    x = as_float(x)
    if n == 0:
        return in_float64(special.digamma)(x)
    # n! zeta(n + 1, x) with the sign of (-1)^(n + 1)
    factor = float((-1) ** (n + 1) * math.factorial(n))

    def compute(x: Array) -> Array:
        far = jnp.isposinf(x)  # where zeta of jax is NaN
        return jnp.where(far, 0.0, factor * _zeta(n, jnp.where(far, 1.0, x)))

    return in_float64(compute)(x)


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


@operation
def multigammaln(x: Array, p: int, name: str | None = None) -> Array:
    """The logarithm of the gamma function of p dimensions."""
    x = as_float(x)
    shifts = jnp.arange(p, dtype=x.dtype) / 2
    constant = p * (p - 1) / 4 * jnp.log(jnp.pi).astype(x.dtype)
    return constant + in_float64(special.gammaln)(x[..., None] - shifts).sum(-1)


i0 = _of_floats("i0", in_float64(special.i0), "The modified Bessel function of order 0.")
i0e = _of_floats("i0e", in_float64(special.i0e), "exp(-|x|) i0(x).")
i1 = _of_floats("i1", in_float64(special.i1), "The modified Bessel function of order 1.")
i1e = _of_floats("i1e", in_float64(special.i1e), "exp(-|x|) i1(x).")
erf_ = in_place(erf, "erf_")
