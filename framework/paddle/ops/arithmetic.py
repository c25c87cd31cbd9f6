"""Elementwise arithmetic of two Tensors, or of a Tensor and a number."""

from __future__ import annotations

import jax.numpy as jnp

from framework.paddle.dispatch import Array, operation
from framework.paddle.ops.promotion import as_float, pair

__all__ = [
    "add",
    "divide",
    "floor_divide",
    "floor_mod",
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


@operation
def divide(x: Array, y: Array, name: str | None = None) -> Array:
    """x / y; integers divide to the default floating type."""
    x, y = pair(x, y)
    return as_float(x) / as_float(y)


@operation(differentiable=False)
def floor_divide(x: Array, y: Array, name: str | None = None) -> Array:
    """The quotient rounded down."""
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
    """x to the power of y."""
    x, y = pair(x, y)
    return jnp.power(x, y)


@operation
def maximum(x: Array, y: Array, name: str | None = None) -> Array:
    """The greater of two elements; NaN wins."""
    return jnp.maximum(*pair(x, y))


@operation
def minimum(x: Array, y: Array, name: str | None = None) -> Array:
    """The smaller of two elements; NaN wins."""
    return jnp.minimum(*pair(x, y))


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
