"""Elementwise functions with a derivative of their own: where jax's is wrong at a corner, or loses its digits.

A derivative that is made of the value cancels where the function is flat: jax takes that of expm1 as value + 1, which
is 0 from -17 on in float32, and that of x - tanh(x) as 1 - (1 - tanh(x)^2). That of abs it takes as 1 at zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from framework.nn.functional.lowering import platform

Function = Callable[[jax.Array], jax.Array]


def with_slope(function: Function, slope: Function) -> Function:
    """`function` of real numbers, whose derivative is `slope`."""
    sloped = jax.custom_jvp(function)

    @sloped.defjvp
    def _jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
        return sloped(*primals), tangents[0] * slope(*primals)

    return sloped


def rounded_once(function: Function) -> Function:
    """`function` of real numbers, which of 16 bits are computed in float32 and rounded once, in the gradient too.

    Step by step the gradient of hardswish in bfloat16 is off by a half near 3, and that of sigmoid is 0 from 5.6 on.
    Only x is kept for the gradient.
    """

    @jax.custom_vjp
    def low(x: jax.Array) -> jax.Array:
        return function(x.astype(jnp.float32)).astype(x.dtype)

    def backward(x: jax.Array, cotangent: jax.Array) -> tuple[jax.Array]:
        (slope,) = jax.vjp(function, x.astype(jnp.float32))[1](cotangent.astype(jnp.float32))
        return (slope.astype(x.dtype),)

    low.defvjp(lambda x: (low(x), x), backward)
    return lambda x: low(x) if x.dtype in (jnp.bfloat16, jnp.float16) else function(x)


_absolute = with_slope(jnp.abs, jnp.sign)
expm1 = with_slope(jnp.expm1, jnp.exp)
softsign = with_slope(lambda x: x / (1 + jnp.abs(x)), lambda x: jnp.square(1 / (1 + jnp.abs(x))))
tanhshrink = with_slope(lambda x: x - jnp.tanh(x), lambda x: jnp.square(jnp.tanh(x)))


def absolute(x: jax.Array) -> jax.Array:
    """|x|, with a gradient of 0 at zero, as in Paddle and torch."""
    return jnp.abs(x) if jnp.iscomplexobj(x) else _absolute(x)


def _half_angle(x: jax.Array) -> jax.Array:
    far = jnp.abs(x) > 1e8  # 1 / x is what is left of the angle beside pi / 2, and x * x may be infinite
    near = jnp.where(far, 1, x)
    outer = jnp.copysign(jnp.asarray(math.pi / 2, x.dtype), x) - 1 / jnp.where(far, x, 1)
    return jnp.where(far, outer, 2 * lax.atan2(near, 1 + jnp.sqrt(1 + near * near)))


_arctan = with_slope(_half_angle, lambda x: 1 / (1 + x * x))


def arctan(x: jax.Array) -> jax.Array:
    """The inverse tangent, radians.

    On CPUs by atan2 of half the angle: jaxlib 0.10.2's own arctan is silently wrong for 50 numbers and more on some
    CPUs (jax#39352), and on all that were tried with vectors of 512 bits.
    """
    if jnp.iscomplexobj(x) or platform() in ("graph", "other"):
        return jnp.arctan(x)
    return rounded_once(_arctan)(x)
