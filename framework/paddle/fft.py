"""`paddle.fft`: discrete Fourier transforms. `norm` is 'backward' (the inverse divides by n), 'forward' or 'ortho'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.dtypes import default_numpy, to_numpy_or
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.ops.promotion import as_float

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Sizes = Sequence[int] | None
_INVERSE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _checked(x: jax.Array, n: Any, norm: str, where: str, real: bool = False) -> jax.Array:
    """The input as floating-point or complex numbers."""
    sizes = n if isinstance(n, tuple | list) else (n,)
    if norm not in _INVERSE:
        raise ShapeError("unknown norm", where=where, received=repr(norm), allowed=", ".join(_INVERSE))
    if any(size is not None and size < 1 for size in sizes):
        raise ShapeError("a length is at least 1", where=where, received=f"{n}")
    if real and jnp.iscomplexobj(x):
        raise ShapeError(
            "real numbers", where=where, received=str(x.dtype), fix="use the transform without r"
        )
    return as_float(x)


def _axes(x: jax.Array, s: Sizes, axes: Sizes) -> tuple[int, ...]:
    if axes is not None:
        return tuple(axes)
    return tuple(range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim))


@operation
def fft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The transform along an axis, cut or filled with zeros to the length n."""
    return jnp.fft.fft(_checked(x, n, norm, "paddle.fft.fft"), n, axis, norm)


@operation
def ifft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The inverse of `fft`."""
    return jnp.fft.ifft(_checked(x, n, norm, "paddle.fft.ifft"), n, axis, norm)


@operation
def rfft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The first n // 2 + 1 terms of the transform of real numbers; the others are their conjugates."""
    return jnp.fft.rfft(_checked(x, n, norm, "paddle.fft.rfft", real=True), n, axis, norm)


@operation
def irfft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The n real numbers whose `rfft` is `x`; n is twice the length less two unless it is given."""
    return jnp.fft.irfft(_checked(x, n, norm, "paddle.fft.irfft"), n, axis, norm)


@operation
def hfft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The real transform of n numbers of which the second half are conjugates of the first, which is given."""
    return jnp.fft.hfft(_checked(x, n, norm, "paddle.fft.hfft"), n, axis, norm)


@operation
def ihfft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The inverse of `hfft`."""
    return jnp.fft.ihfft(_checked(x, n, norm, "paddle.fft.ihfft", real=True), n, axis, norm)


@operation
def fftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """`fft` along several axes: all, or as many last ones as `s` has lengths."""
    return jnp.fft.fftn(_checked(x, s, norm, "paddle.fft.fftn"), s, _axes(x, s, axes), norm)


@operation
def ifftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """The inverse of `fftn`."""
    return jnp.fft.ifftn(_checked(x, s, norm, "paddle.fft.ifftn"), s, _axes(x, s, axes), norm)


@operation
def rfftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """`rfft` along the last of several axes, then `fft` along the others."""
    return jnp.fft.rfftn(_checked(x, s, norm, "paddle.fft.rfftn", real=True), s, _axes(x, s, axes), norm)


@operation
def irfftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """The inverse of `rfftn`."""
    return jnp.fft.irfftn(_checked(x, s, norm, "paddle.fft.irfftn"), s, _axes(x, s, axes), norm)


@operation
def hfftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """`fft` along all but the last of several axes, then `hfft` along that."""
    x = jnp.conj(_checked(x, s, norm, "paddle.fft.hfftn"))
    return jnp.fft.irfftn(x, s, _axes(x, s, axes), _INVERSE[norm])


@operation
def ihfftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """The inverse of `hfftn`."""
    x = _checked(x, s, norm, "paddle.fft.ihfftn", real=True)
    return jnp.conj(jnp.fft.rfftn(x, s, _axes(x, s, axes), _INVERSE[norm]))


def _plane(axes: Any, where: str) -> Sequence[int]:
    if axes is None or len(axes) != 2:
        raise ShapeError("two axes", where=where, received=f"axes={axes}")
    return axes


def fft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`fftn` along two axes."""
    return fftn(x, s, _plane(axes, "paddle.fft.fft2"), norm)


def ifft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`ifftn` along two axes."""
    return ifftn(x, s, _plane(axes, "paddle.fft.ifft2"), norm)


def rfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`rfftn` along two axes."""
    return rfftn(x, s, _plane(axes, "paddle.fft.rfft2"), norm)


def irfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`irfftn` along two axes."""
    return irfftn(x, s, _plane(axes, "paddle.fft.irfft2"), norm)


def hfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`hfftn` along two axes."""
    return hfftn(x, s, _plane(axes, "paddle.fft.hfft2"), norm)


def ihfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`ihfftn` along two axes."""
    return ihfftn(x, s, _plane(axes, "paddle.fft.ihfft2"), norm)


def fftfreq(n: int, d: float = 1.0, dtype: object = None, name: str | None = None) -> Tensor:
    """The frequencies of the terms of `fft` of n samples that are `d` apart."""
    with x64():
        return wrap(jnp.fft.fftfreq(n, d).astype(to_numpy_or(dtype, default_numpy())))


def rfftfreq(n: int, d: float = 1.0, dtype: object = None, name: str | None = None) -> Tensor:
    """The frequencies of the terms of `rfft` of n samples that are `d` apart."""
    with x64():
        return wrap(jnp.fft.rfftfreq(n, d).astype(to_numpy_or(dtype, default_numpy())))


@operation
def fftshift(x: Array, axes: int | Sizes = None, name: str | None = None) -> Array:
    """With the term of frequency 0 in the middle of these axes (None: all)."""
    return jnp.fft.fftshift(x, axes)


@operation
def ifftshift(x: Array, axes: int | Sizes = None, name: str | None = None) -> Array:
    """The inverse of `fftshift`."""
    return jnp.fft.ifftshift(x, axes)
