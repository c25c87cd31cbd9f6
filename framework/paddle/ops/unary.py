"""Elementwise functions of one Tensor. Integers answer in the default floating type where fractions can come out."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.methods import in_place, replace_value
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.promotion import as_float, is_integer

__all__ = [
    "abs",
    "acos",
    "acosh",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "clip",
    "conj",
    "cos",
    "cosh",
    "deg2rad",
    "exp",
    "expm1",
    "expm1_",
    "floor",
    "frac",
    "frexp",
    "increment",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "logit",
    "nan_to_num",
    "rad2deg",
    "reciprocal",
    "round",
    "rsqrt",
    "scale",
    "sgn",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "square_",
    "stanh",
    "tan",
    "tanh",
    "trunc",
]


@operation
def abs(x: Array, name: str | None = None) -> Array:
    """The absolute value; its gradient at 0 is 0."""
    return jnp.abs(x)


@operation
def acos(x: Array, name: str | None = None) -> Array:
    """The inverse cosine, radians."""
    return jnp.arccos(as_float(x))


@operation
def acosh(x: Array, name: str | None = None) -> Array:
    """The inverse hyperbolic cosine."""
    return jnp.arccosh(as_float(x))


@operation
def asin(x: Array, name: str | None = None) -> Array:
    """The inverse sine, radians."""
    return jnp.arcsin(as_float(x))


@operation
def asinh(x: Array, name: str | None = None) -> Array:
    """The inverse hyperbolic sine."""
    return jnp.arcsinh(as_float(x))


@operation
def atan(x: Array, name: str | None = None) -> Array:
    """The inverse tangent, radians."""
    return jnp.arctan(as_float(x))


@operation
def atanh(x: Array, name: str | None = None) -> Array:
    """The inverse hyperbolic tangent."""
    return jnp.arctanh(as_float(x))


@operation
def cos(x: Array, name: str | None = None) -> Array:
    """The cosine of radians."""
    return jnp.cos(as_float(x))


@operation
def cosh(x: Array, name: str | None = None) -> Array:
    """The hyperbolic cosine."""
    return jnp.cosh(as_float(x))


@operation
def sin(x: Array, name: str | None = None) -> Array:
    """The sine of radians."""
    return jnp.sin(as_float(x))


@operation
def sinh(x: Array, name: str | None = None) -> Array:
    """The hyperbolic sine."""
    return jnp.sinh(as_float(x))


@operation
def tan(x: Array, name: str | None = None) -> Array:
    """The tangent of radians."""
    return jnp.tan(as_float(x))


@operation
def tanh(x: Array, name: str | None = None) -> Array:
    """The hyperbolic tangent."""
    return jnp.tanh(as_float(x))


@operation
def sigmoid(x: Array, name: str | None = None) -> Array:
    """1 / (1 + exp(-x))."""
    return jax.nn.sigmoid(as_float(x))


@operation
def stanh(x: Array, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Array:
    """scale_b tanh(scale_a x)."""
    return scale_b * jnp.tanh(scale_a * as_float(x))


@operation
def exp(x: Array, name: str | None = None) -> Array:
    """e to the power of x."""
    return jnp.exp(as_float(x))


@operation
def expm1(x: Array, name: str | None = None) -> Array:
    """exp(x) - 1, exact for small x."""
    return jnp.expm1(as_float(x))


@operation
def log(x: Array, name: str | None = None) -> Array:
    """The natural logarithm."""
    return jnp.log(as_float(x))


@operation
def log2(x: Array, name: str | None = None) -> Array:
    """The logarithm to base 2."""
    return jnp.log2(as_float(x))


@operation
def log10(x: Array, name: str | None = None) -> Array:
    """The logarithm to base 10."""
    return jnp.log10(as_float(x))


@operation
def log1p(x: Array, name: str | None = None) -> Array:
    """log(1 + x), exact for small x."""
    return jnp.log1p(as_float(x))


@operation
def logit(x: Array, eps: float | None = None, name: str | None = None) -> Array:
    """log(x / (1 - x)); x is first clipped to [eps, 1 - eps], and is NaN outside [0, 1] where eps is None."""
    x = as_float(x)
    if eps:
        x = jnp.clip(x, eps, 1 - eps)
    return jnp.log(x / (1 - x))


@operation
def sqrt(x: Array, name: str | None = None) -> Array:
    """The square root."""
    return jnp.sqrt(as_float(x))


@operation
def rsqrt(x: Array, name: str | None = None) -> Array:
    """1 / sqrt(x)."""
    return jax.lax.rsqrt(as_float(x))


@operation
def square(x: Array, name: str | None = None) -> Array:
    """x * x."""
    return jnp.square(x)


@operation
def reciprocal(x: Array, name: str | None = None) -> Array:
    """1 / x."""
    return 1 / as_float(x)


def _whole_or(function: Any, x: Array) -> Array:
    """Rounding leaves integers as they are."""
    return x if is_integer(x) else function(x)


@operation
def ceil(x: Array, name: str | None = None) -> Array:
    """The next whole number upwards."""
    return _whole_or(jnp.ceil, x)


@operation
def floor(x: Array, name: str | None = None) -> Array:
    """The next whole number downwards."""
    return _whole_or(jnp.floor, x)


@operation
def trunc(input: Array, name: str | None = None) -> Array:
    """The next whole number towards 0."""
    return _whole_or(jnp.trunc, input)


@operation
def round(x: Array, name: str | None = None) -> Array:
    """The nearest whole number; halves go away from 0."""
    return _whole_or(lambda v: jnp.sign(v) * jnp.floor(jnp.abs(v) + 0.5), x)


@operation
def frac(x: Array, name: str | None = None) -> Array:
    """What is behind the point: x - trunc(x)."""
    return x - jax.lax.stop_gradient(_whole_or(jnp.trunc, x))


@operation
def sign(x: Array, name: str | None = None) -> Array:
    """-1, 0 or 1."""
    return jnp.sign(x)


@operation
def sgn(x: Array, name: str | None = None) -> Array:
    """-1, 0 or 1; for complex numbers x / |x|."""
    if x.dtype.kind != "c":
        return jnp.sign(x)
    nonzero = jnp.where(x == 0, jnp.ones((), x.dtype), x)  # sign() of jax has no gradient for complex numbers
    return jnp.where(x == 0, jnp.zeros((), x.dtype), nonzero / jnp.abs(nonzero).astype(x.dtype))


@operation
def angle(x: Array, name: str | None = None) -> Array:
    """The angle of complex numbers, radians; of real ones 0 or pi."""
    x = as_float(x)
    return jnp.angle(x).astype(x.real.dtype)


@operation
def conj(x: Array, name: str | None = None) -> Array:
    """The complex conjugate."""
    return jnp.conj(x) if x.dtype.kind == "c" else jnp.asarray(x)


@operation
def deg2rad(x: Array, name: str | None = None) -> Array:
    """Degrees in radians."""
    x = as_float(x)
    return x * jnp.asarray(np.pi / 180, x.dtype)


@operation
def rad2deg(x: Array, name: str | None = None) -> Array:
    """Radians in degrees."""
    x = as_float(x)
    return x * jnp.asarray(180 / np.pi, x.dtype)


@operation(differentiable=False)
def isnan(x: Array, name: str | None = None) -> Array:
    """Whether the element is not a number."""
    return jnp.isnan(x)


@operation(differentiable=False)
def isinf(x: Array, name: str | None = None) -> Array:
    """Whether the element is infinite."""
    return jnp.isinf(x)


@operation(differentiable=False)
def isfinite(x: Array, name: str | None = None) -> Array:
    """Whether the element is neither infinite nor NaN."""
    return jnp.isfinite(x)


@operation
def nan_to_num(
    x: Array,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    name: str | None = None,
) -> Array:
    """NaN and infinities replaced: by default 0 and the largest finite numbers of the type."""
    return jnp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


@operation
def clip(x: Array, min: Array | None = None, max: Array | None = None, name: str | None = None) -> Array:
    """x within [min, max]; a limit may be a number, a Tensor or None. On a limit the gradient is 0."""
    inside = jnp.ones((), bool)
    clipped = x
    if min is not None:
        low = jnp.asarray(min).astype(x.dtype)
        inside, clipped = inside & (x > low), jnp.maximum(clipped, low)
    if max is not None:
        high = jnp.asarray(max).astype(x.dtype)
        inside, clipped = inside & (x < high), jnp.minimum(clipped, high)
    return jnp.where(inside, x, jax.lax.stop_gradient(clipped))


@operation
def scale(
    x: Array,
    scale: Array | float = 1.0,
    bias: Array | float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Array:
    """scale x + bias, or scale (x + bias), in the type of x, to which scale and bias are cast first; `act` names an
    activation that follows."""
    factor, shift = (jnp.asarray(v).astype(x.dtype) for v in (scale, bias))
    factor, shift = (v.reshape(()) if v.size == 1 else v for v in (factor, shift))
    out = x * factor + shift if bias_after_scale else (x + shift) * factor
    return getattr(jax.nn, act)(out) if act else out


@operation
def _plus(x: Array, value: Array) -> Array:
    return x + jnp.asarray(value).astype(x.dtype)


def increment(x: Tensor, value: float = 1.0, name: str | None = None) -> Tensor:
    """Add `value` to `x`, a Tensor of one element, in place."""
    return replace_value(x, _plus(x, value))


@operation
def frexp(x: Array, name: str | None = None) -> tuple[Array, Array]:
    """(mantissa, exponent) with x = mantissa 2^exponent and 0.5 <= |mantissa| < 1; both of x's type."""
    mantissa, exponent = jnp.frexp(as_float(x))
    return mantissa, exponent.astype(mantissa.dtype)


expm1_ = in_place(expm1, "expm1_")
square_ = in_place(square, "square_")
