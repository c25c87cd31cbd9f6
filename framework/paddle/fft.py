"""`paddle.fft`: discrete Fourier transforms. `norm` is 'backward' (the inverse divides by n), 'forward' or 'ortho'."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.dtypes import default_numpy, to_numpy_or
from framework.paddle._kernel.errors import KernelTypeError, ShapeError
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


def _checked(
    x: jax.Array, n: Sizes | int, axes: Sizes | int, norm: str, where: str, real: bool = False
) -> jax.Array:
    """The input as floating-point or complex numbers.

    Args:
        n: The length along an axis, or one for each of several; None: as it is.
        axes: The axis, or several; None: all, or the last ones.

    Raises:
        ShapeError: lengths, axes or `norm` do not fit.
        KernelTypeError: the values are bool, or complex where real ones are transformed.
    """
    if norm not in _INVERSE:
        raise ShapeError("unknown norm", where=where, received=repr(norm), allowed=", ".join(_INVERSE))
    sizes = n if isinstance(n, tuple | list) else (n,)
    if any(size is not None and (not isinstance(size, int) or size < 1) for size in sizes):
        raise ShapeError("a length is an integer of at least 1", where=where, received=f"{n}")
    places = () if axes is None else axes if isinstance(axes, tuple | list) else (axes,)
    if any(not isinstance(axis, int) or not -x.ndim <= axis < x.ndim for axis in places):
        raise ShapeError(
            "no such axis", where=where, received=f"{axes}", allowed=f"{-x.ndim} to {x.ndim - 1}"
        )
    if n is not None and axes is not None and len(sizes) != len(places):
        raise ShapeError("a length for each axis", where=where, received=f"{n} for the axes {axes}")
    if max(len(places), len(sizes)) > max(x.ndim, 1):
        raise ShapeError(
            "more axes than the input has", where=where, received=f"{n}, {axes}", allowed=f"{x.ndim}"
        )
    if x.dtype == bool or (real and jnp.iscomplexobj(x)):
        kind = "real numbers" if real else "numbers"
        raise KernelTypeError(
            kind, where=where, received=str(x.dtype), fix="cast it, or use the transform without r"
        )
    return as_float(x)


def _check_terms(x: jax.Array, n: Sizes | int, axes: Sizes | int, where: str) -> None:
    """Raises: ShapeError: one term along the last axis, of which no length of real numbers can be told."""
    last = -1 if axes is None else axes if isinstance(axes, int) else axes[-1]
    if n is None and x.shape[last] == 1:
        raise ShapeError(
            "one term is of no length", where=where, received=f"shape {x.shape}", fix="say the length"
        )


def _axes(x: jax.Array, s: Sizes, axes: Sizes) -> tuple[int, ...]:
    if axes is not None:
        return tuple(axes)
    return tuple(range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim))


@operation
def fft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The transform along an axis, cut or filled with zeros to the length n."""
    return jnp.fft.fft(_checked(x, n, axis, norm, "paddle.fft.fft"), n, axis, norm)


@operation
def ifft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The inverse of `fft`."""
    return jnp.fft.ifft(_checked(x, n, axis, norm, "paddle.fft.ifft"), n, axis, norm)


@operation
def rfft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The first n // 2 + 1 terms of the transform of real numbers; the others are their conjugates."""
    return jnp.fft.rfft(_checked(x, n, axis, norm, "paddle.fft.rfft", real=True), n, axis, norm)


@operation
def irfft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The n real numbers whose `rfft` is `x`; n is twice the length less two unless it is given."""
    x = _checked(x, n, axis, norm, "paddle.fft.irfft")
    _check_terms(x, n, axis, "paddle.fft.irfft")
    return jnp.fft.irfft(x, n, axis, norm)


@operation
def hfft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The real transform of n numbers of which the second half are conjugates of the first, which is given."""
    x = _checked(x, n, axis, norm, "paddle.fft.hfft")
    _check_terms(x, n, axis, "paddle.fft.hfft")
    return jnp.fft.hfft(x, n, axis, norm)


@operation
def ihfft(
    x: Array, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None
) -> Array:
    """The inverse of `hfft`."""
    return jnp.fft.ihfft(_checked(x, n, axis, norm, "paddle.fft.ihfft", real=True), n, axis, norm)


@operation
def fftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """`fft` along several axes: all, or as many last ones as `s` has lengths."""
    return jnp.fft.fftn(_checked(x, s, axes, norm, "paddle.fft.fftn"), s, _axes(x, s, axes), norm)


@operation
def ifftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """The inverse of `fftn`."""
    return jnp.fft.ifftn(_checked(x, s, axes, norm, "paddle.fft.ifftn"), s, _axes(x, s, axes), norm)


@operation
def rfftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """`rfft` along the last of several axes, then `fft` along the others."""
    return jnp.fft.rfftn(
        _checked(x, s, axes, norm, "paddle.fft.rfftn", real=True), s, _axes(x, s, axes), norm
    )


@operation
def irfftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """The inverse of `rfftn`."""
    x = _checked(x, s, axes, norm, "paddle.fft.irfftn")
    _check_terms(x, s, axes, "paddle.fft.irfftn")
    return jnp.fft.irfftn(x, s, _axes(x, s, axes), norm)


@operation
def hfftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """`fft` along all but the last of several axes, then `hfft` along that."""
    x = jnp.conj(_checked(x, s, axes, norm, "paddle.fft.hfftn"))
    _check_terms(x, s, axes, "paddle.fft.hfftn")
    return jnp.fft.irfftn(x, s, _axes(x, s, axes), _INVERSE[norm])


@operation
def ihfftn(
    x: Array, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None
) -> Array:
    """The inverse of `hfftn`."""
    x = _checked(x, s, axes, norm, "paddle.fft.ihfftn", real=True)
    return jnp.conj(jnp.fft.rfftn(x, s, _axes(x, s, axes), _INVERSE[norm]))


def _plane(x: Tensor, s: Sizes, axes: Sizes, where: str) -> None:
    """Raises: ShapeError: `s` or `axes` are not two, or the input has fewer axes."""
    for name, pair in (("s", s), ("axes", axes)):
        if pair is not None and (not isinstance(pair, tuple | list) or len(pair) != 2):
            raise ShapeError(f"{name} are two integers", where=where, received=f"{name}={pair}")
    if x.ndim < 2:
        raise ShapeError("the input has two axes at least", where=where, received=f"shape {x.shape}")


def fft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`fftn` along two axes."""
    _plane(x, s, axes, "paddle.fft.fft2")
    return fftn(x, s, axes, norm)


def ifft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`ifftn` along two axes."""
    _plane(x, s, axes, "paddle.fft.ifft2")
    return ifftn(x, s, axes, norm)


def rfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`rfftn` along two axes."""
    _plane(x, s, axes, "paddle.fft.rfft2")
    return rfftn(x, s, axes, norm)


def irfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`irfftn` along two axes."""
    _plane(x, s, axes, "paddle.fft.irfft2")
    return irfftn(x, s, axes, norm)


def hfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`hfftn` along two axes."""
    _plane(x, s, axes, "paddle.fft.hfft2")
    return hfftn(x, s, axes, norm)


def ihfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """`ihfftn` along two axes."""
    _plane(x, s, axes, "paddle.fft.ihfft2")
    return ihfftn(x, s, axes, norm)


def _check_spacing(n: int, d: float, where: str) -> None:
    """Raises: ShapeError: there are no samples, or they are at one time."""
    if n * d == 0:
        raise ShapeError("d or n should not be 0", where=where, received=f"n={n}, d={d}")


def fftfreq(n: int, d: float = 1.0, dtype: object = None, name: str | None = None) -> Tensor:
    """The frequencies of the terms of `fft` of n samples that are `d` apart."""
    _check_spacing(n, d, "paddle.fft.fftfreq")
    with x64():
        return wrap(jnp.fft.fftfreq(n, d).astype(to_numpy_or(dtype, default_numpy())))


def rfftfreq(n: int, d: float = 1.0, dtype: object = None, name: str | None = None) -> Tensor:
    """The frequencies of the terms of `rfft` of n samples that are `d` apart."""
    _check_spacing(n, d, "paddle.fft.rfftfreq")
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
