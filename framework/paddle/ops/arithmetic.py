"""Elementwise arithmetic of two Tensors, or of a Tensor and a number."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle.ops.promotion import as_float, is_integer, pair

__all__ = [
    "add",
    "divide",
    "floor_divide",
    "floor_mod",
    "fmax",
    "fmin",
    "matmul",
    "maximum",
    "minimum",
    "mm",
    "mod",
    "multiply",
    "neg",
    "pow",
    "remainder",
    "subtract",
]


@operation
def add(x: Array, y: Array, name: str | None = None) -> Array:
    """x + y."""
    x, y = pair(x, y)
    return x | y if x.dtype == bool else x + y


@operation
def subtract(x: Array, y: Array, name: str | None = None) -> Array:
    """x - y."""
    x, y = pair(x, y)
    return x - y


@operation
def multiply(x: Array, y: Array, name: str | None = None) -> Array:
    """x * y, element by element."""
    x, y = pair(x, y)
    return x * y


@operation(name="divide")
def true_divide(x: Array, y: Array) -> Array:
    """x / y, as the operator: integers divide to the default floating type."""
    left, right = pair(x, y)
    if is_integer(left):  # as fractions before they meet: a negative number is no uint8
        left, right = as_float(x), as_float(y)
    return left / right


@operation
def divide(x: Array, y: Array, name: str | None = None) -> Array:
    """x / y; between integers the quotient is cut off towards 0, unlike that of the operator."""
    x, y = pair(x, y)
    if x.dtype == bool:
        return x & y
    return jax.lax.div(*jnp.broadcast_arrays(x, y)) if is_integer(x) else x / y


@operation(differentiable=False)
def floor_divide(x: Array, y: Array, name: str | None = None) -> Array:
    """The quotient rounded down, as Python does it: 2 // 0.2 is 9, since 0.2 is a little more than that as a number. Of
    integers divided by 0 it is -1."""
    x, y = pair(x, y)
    return x // y


@operation
def remainder(x: Array, y: Array, name: str | None = None) -> Array:
    """What is left of the division rounded down: it has the sign of y."""
    x, y = pair(x, y)
    return x % y


mod = floor_mod = remainder


@operation
def pow(x: Array, y: Array, name: str | None = None) -> Array:
    """x to the power of y; of integers to a negative power the fraction is cut off."""
    x, y = pair(x, y)
    if not is_integer(x):
        return jnp.power(x, y)
    power = jnp.power(x, jnp.abs(y))
    return jnp.where((y < 0) & (jnp.abs(power) != 1), jnp.zeros((), x.dtype), power)


@operation
def maximum(x: Array, y: Array, name: str | None = None) -> Array:
    """The greater of two elements; NaN wins. Of equal ones `y` gets the gradient."""
    x, y = pair(x, y)
    return jnp.where((x > y) | (x != x), x, y)


@operation
def minimum(x: Array, y: Array, name: str | None = None) -> Array:
    """The smaller of two elements; NaN wins. Of equal ones `y` gets the gradient."""
    x, y = pair(x, y)
    return jnp.where((x < y) | (x != x), x, y)


@operation
def fmax(x: Array, y: Array, name: str | None = None) -> Array:
    """The greater of two elements; NaN loses. Of equal ones `x` gets the gradient."""
    x, y = pair(x, y)
    return jnp.where((x >= y) | (y != y), x, y)


@operation
def fmin(x: Array, y: Array, name: str | None = None) -> Array:
    """The smaller of two elements; NaN loses. Of equal ones `x` gets the gradient."""
    x, y = pair(x, y)
    return jnp.where((x <= y) | (y != y), x, y)


@operation
def neg(x: Array, name: str | None = None) -> Array:
    """-x."""
    return -x


@operation
def matmul(
    x: Array, y: Array, transpose_x: bool = False, transpose_y: bool = False, name: str | None = None
) -> Array:
    """Matrix product over the last two axes, with broadcasting of the others; vectors as in numpy."""
    x, y = pair(x, y)
    if transpose_x and x.ndim > 1:
        x = jnp.swapaxes(x, -1, -2)
    if transpose_y and y.ndim > 1:
        y = jnp.swapaxes(y, -1, -2)
    return jnp.matmul(x, y)


@operation
def mm(input: Array, mat2: Array, name: str | None = None) -> Array:
    """Matrix product."""
    return jnp.matmul(*pair(input, mat2))
