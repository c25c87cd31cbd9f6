"""Comparisons, logical and bitwise operations. Results are bool except for the bitwise ones."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from framework.core.errors import ShapeError
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.promotion import pair

__all__ = [
    "allclose",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "equal",
    "equal_all",
    "greater_equal",
    "greater_than",
    "is_empty",
    "is_tensor",
    "isclose",
    "less_equal",
    "less_than",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
]


@operation(differentiable=False)
def equal(x: Array, y: Array, name: str | None = None) -> Array:
    """x == y, element by element."""
    x, y = pair(x, y)
    return x == y


@operation(differentiable=False)
def not_equal(x: Array, y: Array, name: str | None = None) -> Array:
    """x != y, element by element."""
    x, y = pair(x, y)
    return x != y


@operation(differentiable=False)
def less_than(x: Array, y: Array, name: str | None = None) -> Array:
    """x < y, element by element."""
    x, y = pair(x, y)
    return x < y


@operation(differentiable=False)
def less_equal(x: Array, y: Array, name: str | None = None) -> Array:
    """x <= y, element by element."""
    x, y = pair(x, y)
    return x <= y


@operation(differentiable=False)
def greater_than(x: Array, y: Array, name: str | None = None) -> Array:
    """x > y, element by element."""
    x, y = pair(x, y)
    return x > y


@operation(differentiable=False)
def greater_equal(x: Array, y: Array, name: str | None = None) -> Array:
    """x >= y, element by element."""
    x, y = pair(x, y)
    return x >= y


@operation(differentiable=False)
def equal_all(x: Array, y: Array, name: str | None = None) -> Array:
    """Whether shapes and all elements are equal."""
    return jnp.array_equal(*pair(x, y))


@operation(differentiable=False)
def isclose(
    x: Array,
    y: Array,
    rtol: Array | float = 1e-05,
    atol: Array | float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Array:
    """|x - y| <= atol + rtol |y|, element by element; NaN equals NaN where `equal_nan`."""
    x, y = pair(x, y)
    return jnp.isclose(x, y, rtol, atol, equal_nan)


@operation(differentiable=False)
def allclose(
    x: Array,
    y: Array,
    rtol: Array | float = 1e-05,
    atol: Array | float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Array:
    """Whether `isclose` holds everywhere."""
    x, y = pair(x, y)
    return jnp.all(jnp.isclose(x, y, rtol, atol, equal_nan))


@operation(differentiable=False, name="logical_and")
def _logical_and(x: Array, y: Array) -> Array:
    return jnp.logical_and(x, y)


@operation(differentiable=False, name="logical_or")
def _logical_or(x: Array, y: Array) -> Array:
    return jnp.logical_or(x, y)


@operation(differentiable=False, name="logical_xor")
def _logical_xor(x: Array, y: Array) -> Array:
    return jnp.logical_xor(x, y)


@operation(differentiable=False, name="logical_not")
def _logical_not(x: Array) -> Array:
    return jnp.logical_not(x)


def _bits(x: Array, y: Array, where: str) -> tuple[Array, Array]:
    x, y = pair(x, y)
    _whole(x, where)
    return x, y


def _whole(x: Array, where: str) -> None:
    if x.dtype.kind not in "iub":
        raise ShapeError(
            "only integers and bool have bits", where=where, received=str(x.dtype), fix="astype('int64')"
        )


@operation(differentiable=False, name="bitwise_and")
def _bitwise_and(x: Array, y: Array) -> Array:
    return jnp.bitwise_and(*_bits(x, y, "paddle.bitwise_and"))


@operation(differentiable=False, name="bitwise_or")
def _bitwise_or(x: Array, y: Array) -> Array:
    return jnp.bitwise_or(*_bits(x, y, "paddle.bitwise_or"))


@operation(differentiable=False, name="bitwise_xor")
def _bitwise_xor(x: Array, y: Array) -> Array:
    return jnp.bitwise_xor(*_bits(x, y, "paddle.bitwise_xor"))


@operation(differentiable=False, name="bitwise_not")
def _bitwise_not(x: Array) -> Array:
    _whole(x, "paddle.bitwise_not")
    return jnp.bitwise_not(x)


def _into(out: Tensor | None, result: Tensor) -> Tensor:
    if out is None:
        return result
    out._value, out._version = result._value, out._version + 1
    return out


def logical_and(x: Tensor, y: Tensor, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """Whether both elements are true (not 0)."""
    return _into(out, _logical_and(x, y))


def logical_or(x: Tensor, y: Tensor, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """Whether one element or both are true."""
    return _into(out, _logical_or(x, y))


def logical_xor(x: Tensor, y: Tensor, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """Whether exactly one element is true."""
    return _into(out, _logical_xor(x, y))


def logical_not(x: Tensor, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """Whether the element is false (0)."""
    return _into(out, _logical_not(x))


def bitwise_and(x: Tensor, y: Tensor, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """The bits that both have."""
    return _into(out, _bitwise_and(x, y))


def bitwise_or(x: Tensor, y: Tensor, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """The bits that one or both have."""
    return _into(out, _bitwise_or(x, y))


def bitwise_xor(x: Tensor, y: Tensor, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """The bits that exactly one has."""
    return _into(out, _bitwise_xor(x, y))


def bitwise_not(x: Tensor, out: Tensor | None = None, name: str | None = None) -> Tensor:
    """The bits that are not set."""
    return _into(out, _bitwise_not(x))


def is_tensor(x: object) -> bool:
    """Whether this is a paddle.Tensor."""
    return isinstance(x, Tensor)


def is_empty(x: Tensor, name: str | None = None) -> Tensor:
    """bool []: whether there are no elements."""
    return Tensor(np.bool_(x.size == 0))
