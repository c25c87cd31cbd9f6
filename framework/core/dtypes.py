"""Numbers: 32-bit inside by default, 64-bit integers narrowed with a range check, and the precision of dots.

Paddle's labels are int64. JAX without x64 would narrow them silently; `narrow` does it with a check.
`precision_scope("bfloat16")` makes matrix products take bfloat16 operands and accumulate in float32; everything else
stays float32: that is inference on a CPU. `Autocast` is the policy of training in low precision, where activations
are low too; framework/amp opens its scope and framework/nn/functional/autocast.py applies it.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from framework.core.errors import ShapeError
from framework.core.lazy import LazyModule

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
else:
    jax = LazyModule("jax")
    jnp = LazyModule("jax.numpy")

Precision = Literal["float32", "bfloat16"]

_precision: contextvars.ContextVar[Precision] = contextvars.ContextVar("oar_precision", default="float32")


def wide_type(dtype: np.dtype) -> np.dtype:
    """The type in which sums over values of `dtype` are taken: float32, and float64 for float64."""
    return dtype if dtype == np.float64 else np.dtype(np.float32)


def precision() -> Precision:
    """The precision in which matrix products run here: set by `precision_scope`."""
    return _precision.get()


@contextlib.contextmanager
def precision_scope(value: Precision) -> Iterator[None]:
    """Within the block dots take operands of this precision; results and everything else stay float32."""
    if value not in ("float32", "bfloat16"):
        raise ShapeError("unknown precision", received=repr(value), allowed="'float32' or 'bfloat16'")
    token = _precision.set(value)
    try:
        yield
    finally:
        _precision.reset(token)


@dataclass(frozen=True)
class Autocast:
    """Which operations run in low precision; a value that hashes, so it can key a compilation.

    level O1: operations that are mostly products cast their inputs to `dtype`. O2: parameters are read in `dtype` as
    well, but for layers with `float32_parameters`. Arrays that are kept (parameters, buffers) stay float32 in both.
    `white` and `black` are the names of functionals that the user moved to low precision or to float32.
    """

    level: Literal["O1", "O2"]
    dtype: Literal["bfloat16", "float16"]
    white: frozenset[str] = frozenset()
    black: frozenset[str] = frozenset()

    def parameter(self, value: jax.Array) -> jax.Array:
        """A parameter as operations see it."""
        return value.astype(self.dtype) if self.level == "O2" and value.dtype == jnp.float32 else value


_autocast: contextvars.ContextVar[Autocast | None] = contextvars.ContextVar("oar_autocast", default=None)


def autocast() -> Autocast | None:
    """The policy of low precision here: set by `amp.auto_cast`; None outside of it."""
    return _autocast.get()


@contextlib.contextmanager
def autocast_scope(value: Autocast | None) -> Iterator[None]:
    """Within the block operations follow this policy; None switches it off."""
    token = _autocast.set(value)
    try:
        yield
    finally:
        _autocast.reset(token)


def enable_x64() -> None:
    """Let arrays be 64-bit wide in this process (int64, float64). Call it before the first array is made."""
    jax.config.update("jax_enable_x64", True)


def fits_int32(array: np.ndarray) -> bool:
    """Whether 32 bits with a sign hold all integers of an array."""
    limits = np.iinfo(np.int32)
    return not array.size or bool(array.min() >= limits.min and array.max() <= limits.max)


def narrow(array: np.ndarray, where: object = None) -> np.ndarray:
    """`array` in the widest type that JAX keeps: float64 becomes float32, int64 becomes int32 when it fits.

    Raises:
        ShapeError: an integer lies outside int32, which would wrap around silently.
    """
    array = np.asarray(array)
    if (
        array.dtype.kind not in "fiuc"
        or jax.config.jax_enable_x64  # type: ignore[attr-defined]
        or array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1) < 8
    ):
        return array
    if array.dtype.kind in "iu":
        low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
        if not fits_int32(array):
            raise ShapeError(
                "an integer does not fit into 32 bits",
                where=where,
                received=f"{array.dtype} values from {array.min()} to {array.max()}",
                allowed=f"{low} to {high}",
                fix="call framework.enable_x64() before the first array is made",
            )
        return array.astype(np.int32)
    return array.astype({"f": np.float32, "c": np.complex64}[array.dtype.kind])
