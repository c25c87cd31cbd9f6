"""Elementwise functions of one Tensor. Integers answer in the default floating type where fractions can come out."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.nn.functional.slopes import absolute, arctan
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import AssertedError, OperandError, require
from framework.paddle._kernel.methods import in_place, replace_value
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.promotion import as_float, in_float64, is_integer
from framework.paddle.ops.rows import elementwise

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

_of_floats = functools.partial(elementwise, floats=True)

abs = elementwise("abs", absolute, "The absolute value; its gradient at 0 is 0.")
acos = _of_floats("acos", jnp.arccos, "The inverse cosine, radians.")
acosh = _of_floats("acosh", jnp.arccosh, "The inverse hyperbolic cosine.")
asin = _of_floats("asin", jnp.arcsin, "The inverse sine, radians.")
asinh = _of_floats("asinh", jnp.arcsinh, "The inverse hyperbolic sine.")
atan = _of_floats("atan", arctan, "The inverse tangent, radians.")
atanh = _of_floats("atanh", jnp.arctanh, "The inverse hyperbolic tangent.")
cos = _of_floats("cos", jnp.cos, "The cosine of radians.")
cosh = _of_floats("cosh", in_float64(jnp.cosh), "The hyperbolic cosine.")
sin = _of_floats("sin", jnp.sin, "The sine of radians.")
sinh = _of_floats("sinh", in_float64(jnp.sinh), "The hyperbolic sine.")
tan = _of_floats("tan", jnp.tan, "The tangent of radians.")
tanh = _of_floats("tanh", jnp.tanh, "The hyperbolic tangent.")
sigmoid = _of_floats("sigmoid", jax.nn.sigmoid, "1 / (1 + exp(-x)).")


@operation
def stanh(x: Array, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Array:
    """scale_b tanh(scale_a x)."""
    return scale_b * jnp.tanh(scale_a * as_float(x))


exp = _of_floats("exp", jnp.exp, "e to the power of x.")
expm1 = _of_floats("expm1", jnp.expm1, "exp(x) - 1, exact for small x.")
log = _of_floats("log", jnp.log, "The natural logarithm.")
log2 = _of_floats("log2", jnp.log2, "The logarithm to base 2.")
log10 = _of_floats("log10", jnp.log10, "The logarithm to base 10.")
log1p = _of_floats("log1p", jnp.log1p, "log(1 + x), exact for small x.")


@operation
def logit(x: Array, eps: float | None = None, name: str | None = None) -> Array:
    """log(x / (1 - x)); x is first clipped to [eps, 1 - eps]. Where eps is None, it is NaN outside [0, 1], where the
    gradient is 0."""
    x = as_float(x)
    if eps:
        x = jnp.clip(x, eps, 1 - eps)
    return jnp.log(jnp.where((x >= 0) & (x <= 1), x / (1 - x), jnp.nan))


sqrt = _of_floats("sqrt", jnp.sqrt, "The square root.")
rsqrt = _of_floats("rsqrt", jax.lax.rsqrt, "1 / sqrt(x).")
square = elementwise("square", jnp.square, "x * x.")


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
    return _whole_or(jax.lax.round, x)


@operation
def frac(x: Array, name: str | None = None) -> Array:
    """What is behind the point: x - trunc(x)."""
    kinds = (np.int32, np.int64, np.float32, np.float64)
    require(x.dtype in kinds, "x is int32, int64, float32 or float64", "paddle.frac", x.dtype, OperandError)
    return x - jax.lax.stop_gradient(_whole_or(jnp.trunc, x))


sign = elementwise("sign", jnp.sign, "-1, 0 or 1.")


@operation
def sgn(x: Array, name: str | None = None) -> Array:
    """-1, 0 or 1; for complex numbers x / |x|."""
    require(
        x.dtype.kind in "fcV", "x is of fractions or complex numbers", "paddle.sgn", x.dtype, OperandError
    )
    if x.dtype.kind != "c":
        return jnp.sign(x)
    nonzero = jnp.where(x == 0, jnp.ones((), x.dtype), x)  # sign() of jax has no gradient for complex numbers
    return jnp.where(x == 0, jnp.zeros((), x.dtype), nonzero / jnp.abs(nonzero).astype(x.dtype))


@operation
def angle(x: Array, name: str | None = None) -> Array:
    """The angle of complex numbers, radians; of real ones 0 or pi."""
    x = as_float(x)
    if x.dtype.kind == "c":
        return jnp.angle(x).astype(x.real.dtype)
    flat = jax.lax.stop_gradient(x)
    return jnp.where(jnp.isnan(flat), flat, jnp.where(flat < 0, jnp.asarray(np.pi, x.dtype), 0))


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


_is = functools.partial(elementwise, differentiable=False)
isnan = _is("isnan", jnp.isnan, "Whether the element is not a number.")
isinf = _is("isinf", jnp.isinf, "Whether the element is infinite.")
isfinite = _is("isfinite", jnp.isfinite, "Whether the element is neither infinite nor NaN.")


@operation
def nan_to_num(
    x: Array,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    name: str | None = None,
) -> Array:
    """NaN and infinities replaced: by default 0 and the largest finite numbers of the type."""
    holds = jnp.issubdtype(x.dtype, jnp.floating)
    require(bool(holds), "x is a fraction", "paddle.nan_to_num", x.dtype, AssertedError)
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


@checked
def increment(x: Tensor, value: float = 1.0, name: str | None = None) -> Tensor:
    """Add `value` to `x`, a Tensor of one element, in place."""
    require(x.size in (1, -1), "x has one element", "paddle.increment", x.shape)
    if not x.stop_gradient and x._node is None and mode.recorder is None:  # a leaf stays one, as in Paddle
        x._value = _plus(x, value)._value
        return x
    return replace_value(x, _plus(x, value))


@operation
def frexp(x: Array, name: str | None = None) -> tuple[Array, Array]:
    """(mantissa, exponent) with x = mantissa 2^exponent and 0.5 <= |mantissa| < 1; both of x's type."""
    require(
        x.dtype in (np.float32, np.float64), "x is float32 or float64", "paddle.frexp", x.dtype, OperandError
    )
    mantissa, exponent = jnp.frexp(as_float(x))
    return mantissa, exponent.astype(mantissa.dtype)


expm1_ = in_place(expm1, "expm1_")
square_ = in_place(square, "square_")
