"""What a Tensor is: its type, shape, parts; and changing its type."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.dtypes import to_numpy
from framework.paddle._kernel.errors import ArgumentTypeError, KernelTypeError, require
from framework.paddle._kernel.free_sizes import is_free_size
from framework.paddle._kernel.known_sizes import hold_sizes
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor, as_array, wrap

__all__ = [
    "cast",
    "imag",
    "is_complex",
    "is_floating_point",
    "is_integer",
    "numel",
    "rank",
    "real",
    "shape",
]


@operation(name="cast")
def _cast(x: Array, dtype: np.dtype) -> Array:
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    return x.astype(dtype)


@checked
def cast(x: Tensor, dtype: object) -> Tensor:
    """`x` in another type; fractions are cut off towards 0."""
    return _cast(x, to_numpy(dtype))


def _complex(x: Array, name: str) -> None:
    require(jnp.iscomplexobj(x), "the Tensor is complex", f"paddle.{name}", x.dtype, KernelTypeError)


@operation
def real(x: Array, name: str | None = None) -> Array:
    """The real part of complex numbers."""
    _complex(x, "real")
    return jnp.real(x)


@operation
def imag(x: Array, name: str | None = None) -> Array:
    """The imaginary part of complex numbers."""
    _complex(x, "imag")
    return jnp.imag(x)


@checked
def rank(input: Tensor) -> Tensor:
    """int32 []: the number of dimensions."""
    return wrap(as_array(np.int32(input.ndim)))


def _has_unknown_sizes(x: Tensor) -> bool:
    """Whether some of its sizes are those of what is fed: in a static program, or one saved with free sizes."""
    if isinstance(x._value, Symbol):
        return -1 in x._value.known
    return any(map(is_free_size, x.shape))


@operation(name="shape", differentiable=False)
def _shape(x: Array) -> Array:
    return jnp.stack([jnp.asarray(size, jnp.int32) for size in x.shape])


@operation(name="numel", differentiable=False)
def _numel(x: Array) -> Array:
    return jnp.asarray(x.size, jnp.int64)


@checked
def shape(input: Tensor) -> Tensor:
    """int32 [ndim]: the sizes."""
    if _has_unknown_sizes(input):
        return hold_sizes(_shape(input), input.shape)
    return hold_sizes(wrap(as_array(np.array(input.shape, np.int32))), input.shape)


@checked
def numel(x: Tensor, name: str | None = None) -> Tensor:
    """int64 []: the number of elements."""
    if isinstance(x, Tensor) and _has_unknown_sizes(x):
        return hold_sizes(_numel(x), [math.prod(x.shape)])
    return hold_sizes(wrap(as_array(np.int64(x.size))), [x.size])


def _type_of(x: Tensor, function: str) -> np.dtype:
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(
            "the argument must be a Tensor",
            where=f"paddle.{function}",
            received=type(x).__name__,
            fix="make one by paddle.to_tensor",
        )
    return x._value.dtype


def is_complex(x: Tensor) -> bool:
    """Whether the type is a complex one. Raises: ArgumentTypeError: `x` is no Tensor."""
    return _type_of(x, "is_complex").kind == "c"


def is_floating_point(x: Tensor) -> bool:
    """Whether the type is a floating-point one. Raises: ArgumentTypeError: `x` is no Tensor."""
    return bool(jnp.issubdtype(_type_of(x, "is_floating_point"), jnp.floating))


def is_integer(x: Tensor) -> bool:
    """Whether the type is a whole-number one; bool is none. Raises: ArgumentTypeError: `x` is no Tensor."""
    return _type_of(x, "is_integer").kind in "iu"
