"""Comparisons, logical and bitwise operations. Results are bool except for the bitwise ones."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ShapeError, require
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.promotion import pair
from framework.paddle.ops.rows import named

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


def _comparison(name: str, sign: str, function: Callable[[Any, Any], Any]) -> Callable[..., Tensor]:
    def compare(x: Array, y: Array, name: str | None = None) -> Array:
        return function(*pair(x, y))

    return operation(differentiable=False)(named(compare, name, f"x {sign} y, element by element."))


equal = _comparison("equal", "==", operator.eq)
not_equal = _comparison("not_equal", "!=", operator.ne)
less_than = _comparison("less_than", "<", operator.lt)
less_equal = _comparison("less_equal", "<=", operator.le)
greater_than = _comparison("greater_than", ">", operator.gt)
greater_equal = _comparison("greater_equal", ">=", operator.ge)


@operation(differentiable=False)
def equal_all(x: Array, y: Array, name: str | None = None) -> Array:
    """Whether shapes and all elements are equal."""
    return jnp.array_equal(*pair(x, y))


def _tolerance(value: Array | float, name: str) -> Array | float:
    """A number, or the one of an array in float64."""
    if not hasattr(value, "dtype") or isinstance(value, np.generic):
        return value
    array = jnp.asarray(value)
    holds = array.size == 1 and array.dtype == np.float64
    require(
        holds, "rtol and atol are one number of float64 each", f"paddle.{name}", f"{array.dtype}{array.shape}"
    )
    return array.reshape(())


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
    return jnp.isclose(x, y, _tolerance(rtol, "isclose"), _tolerance(atol, "isclose"), equal_nan)


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
    return jnp.all(jnp.isclose(x, y, _tolerance(rtol, "allclose"), _tolerance(atol, "allclose"), equal_nan))


def _into(out: Tensor | None, result: Tensor) -> Tensor:
    if out is None:
        return result
    out._value, out._version = result._value, out._version + 1
    return out


def _check_whole(x: Array, where: str) -> None:
    if x.dtype.kind not in "iub":
        raise ShapeError(
            "only integers and bool have bits", where=where, received=str(x.dtype), fix="astype('int64')"
        )


def _binary(name: str, function: Callable[[Any, Any], Any], doc: str) -> Callable[..., Tensor]:
    @operation(differentiable=False, name=name)
    def compute(x: Array, y: Array) -> Array:
        if name.startswith("bitwise"):
            x, y = pair(x, y)
            _check_whole(x, f"paddle.{name}")
        return function(x, y)

    def call(x: Tensor, y: Tensor, out: Tensor | None = None, name: str | None = None) -> Tensor:
        return _into(out, compute(x, y))

    return named(checked(call), name, doc)


def _unary(name: str, function: Callable[[Any], Any], doc: str) -> Callable[..., Tensor]:
    @operation(differentiable=False, name=name)
    def compute(x: Array) -> Array:
        if name.startswith("bitwise"):
            _check_whole(x, f"paddle.{name}")
        return function(x)

    def call(x: Tensor, out: Tensor | None = None, name: str | None = None) -> Tensor:
        return _into(out, compute(x))

    return named(checked(call), name, doc)


logical_and = _binary("logical_and", jnp.logical_and, "Whether both elements are true (not 0).")
logical_or = _binary("logical_or", jnp.logical_or, "Whether one element or both are true.")
logical_xor = _binary("logical_xor", jnp.logical_xor, "Whether exactly one element is true.")
logical_not = _unary("logical_not", jnp.logical_not, "Whether the element is false (0).")
bitwise_and = _binary("bitwise_and", jnp.bitwise_and, "The bits that both have.")
bitwise_or = _binary("bitwise_or", jnp.bitwise_or, "The bits that one or both have.")
bitwise_xor = _binary("bitwise_xor", jnp.bitwise_xor, "The bits that exactly one has.")
bitwise_not = _unary("bitwise_not", jnp.bitwise_not, "The bits that are not set.")


def is_tensor(x: object) -> bool:
    """Whether this is a paddle.Tensor."""
    return isinstance(x, Tensor)


@checked
def is_empty(x: Tensor, name: str | None = None) -> Tensor:
    """bool []: whether there are no elements."""
    return Tensor(np.bool_(x.size == 0))
