"""Signals as overlapping frames, and their transforms over short times."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import AssertedError, ShapeError
from framework.paddle._kernel.tensor import Tensor

METHODS_ONLY = ("istft", "stft")


def _frames(x: jax.Array, length: int, hop: int) -> jax.Array:
    """[..., seq] to [..., frames, length]."""
    starts = np.arange(0, x.shape[-1] - length + 1, hop)
    return x[..., starts[:, None] + np.arange(length)]


def _overlap(x: jax.Array, hop: int) -> jax.Array:
    """[..., frames, length] to [..., (frames - 1) * hop + length], frames added where they overlap."""
    count, length = x.shape[-2:]
    places = np.arange(count)[:, None] * hop + np.arange(length)
    return jnp.zeros((*x.shape[:-2], (count - 1) * hop + length), x.dtype).at[..., places].add(x)


def _end(axis: int, where: str) -> None:
    if axis not in (0, -1):
        raise ShapeError("the first or the last axis", where=where, received=f"axis={axis}", allowed="0, -1")


@operation
def frame(x: Array, frame_length: int, hop_length: int, axis: int = -1, name: str | None = None) -> Array:
    """Frames that begin every `hop_length` places: [..., seq] to [..., frame_length, frames], or along axis 0
    [seq, ...] to [frames, frame_length, ...]."""
    _end(axis, "paddle.signal.frame")
    if hop_length < 1 or not 0 < frame_length <= x.shape[axis]:
        raise ShapeError(
            "no frame fits",
            where="paddle.signal.frame",
            received=f"frame_length={frame_length}, hop_length={hop_length} for shape {list(x.shape)}",
        )
    if axis == -1:
        return jnp.swapaxes(_frames(x, frame_length, hop_length), -1, -2)
    frames = _frames(jnp.moveaxis(x, 0, -1), frame_length, hop_length)
    return jnp.moveaxis(frames, (-2, -1), (0, 1))


@operation
def overlap_add(x: Array, hop_length: int, axis: int = -1, name: str | None = None) -> Array:
    """The sum of frames, each `hop_length` places after the one before; the inverse shapes of `frame`."""
    _end(axis, "paddle.signal.overlap_add")
    if x.ndim < 2 or hop_length < 1:
        raise ShapeError(
            "frames of two dimensions at least",
            where="paddle.signal.overlap_add",
            received=f"shape {list(x.shape)}, hop_length={hop_length}",
        )
    if axis == -1:
        return _overlap(jnp.swapaxes(x, -1, -2), hop_length)
    return jnp.moveaxis(_overlap(jnp.moveaxis(x, (0, 1), (-2, -1)), hop_length), -1, 0)


def _lengths(
    n_fft: int, hop_length: int | None, win_length: int | None, window: jax.Array | None, where: str
) -> tuple[int, int]:
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if hop < 1 or not 0 < width <= n_fft or (window is not None and window.shape != (width,)):
        raise AssertedError(
            "hop_length is at least 1, win_length at most n_fft, and the window has win_length elements",
            where=where,
            received=f"n_fft={n_fft}, hop_length={hop}, win_length={width}, window "
            + (f"of shape {list(window.shape)}" if window is not None else "None"),
        )
    return hop, width


def _window(window: jax.Array | None, width: int, n_fft: int, dtype: np.dtype) -> jax.Array:
    """The window (None: ones) in the middle of n_fft places."""
    window = jnp.ones(width, dtype) if window is None else window
    left = (n_fft - width) // 2
    return jnp.pad(window, (left, n_fft - width - left))


@operation
def stft(
    x: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool = True,
    name: str | None = None,
) -> Array:
    """The transforms of the windows of a signal: [seq] or [batch, seq] to [..., n_fft // 2 + 1, frames], or n_fft terms
    with onesided=False, as complex signals need. `center` puts frame t around sample t * hop_length."""
    where = "paddle.signal.stft"
    hop, width = _lengths(n_fft, hop_length, win_length, window, where)
    if x.ndim not in (1, 2) or n_fft > x.shape[-1] or pad_mode not in ("reflect", "constant"):
        raise AssertedError(
            "a signal of one or two dimensions, at least n_fft long; pad_mode 'reflect' or 'constant'",
            where=where,
            received=f"shape {list(x.shape)}, n_fft={n_fft}, pad_mode={pad_mode!r}",
        )
    weights = _window(window, width, n_fft, x.dtype)
    if center:
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode=pad_mode)
    frames = _frames(x, n_fft, hop) * weights
    norm = "ortho" if normalized else "backward"
    if jnp.iscomplexobj(frames) and onesided:
        raise AssertedError(
            "a complex signal or window has two sides",
            where=where,
            received="onesided=True",
            fix="onesided=False",
        )
    terms = jnp.fft.rfft(frames, norm=norm) if onesided else jnp.fft.fft(frames, norm=norm)
    return jnp.swapaxes(terms, -1, -2)


@operation
def _istft(
    x: Array,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Array | None,
    center: bool,
    normalized: bool,
    onesided: bool,
    length: int | None,
    return_complex: bool,
) -> tuple[Array, Array]:
    where = "paddle.signal.istft"
    hop, width = _lengths(n_fft, hop_length, win_length, window, where)
    terms = n_fft // 2 + 1 if onesided else n_fft
    if x.ndim not in (2, 3) or not jnp.iscomplexobj(x) or x.shape[-2] != terms or hop > width:
        raise AssertedError(
            f"complex terms [..., {terms}, frames], and hop_length at most win_length",
            where=where,
            received=f"{x.dtype} {list(x.shape)}, hop_length={hop}, win_length={width}, onesided={onesided}",
        )
    if return_complex == onesided and return_complex:
        raise AssertedError(
            "a complex signal has two sides",
            where=where,
            received="onesided=True, return_complex=True",
            fix="onesided=False",
        )
    if window is not None and jnp.iscomplexobj(window) and not return_complex:
        raise AssertedError(
            "a complex window gives a complex signal",
            where=where,
            received=f"a window of {window.dtype}, return_complex=False",
            fix="return_complex=True, onesided=False",
        )
    weights = _window(window, width, n_fft, x.real.dtype)
    x, norm = jnp.swapaxes(x, -1, -2), "ortho" if normalized else "backward"
    if return_complex:
        frames = jnp.fft.ifft(x, norm=norm)
    else:
        frames = jnp.fft.irfft(x[..., : n_fft // 2 + 1], n_fft, norm=norm)
    out = _overlap(frames * weights, hop)
    total = _overlap(jnp.tile(weights * weights, (x.shape[-2], 1)), hop)
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else out.shape[-1] - start
    out, total = out[..., start:stop], total[start:stop]
    return out / total, jnp.min(jnp.abs(total))


@checked
def istft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool = True,
    length: int | None = None,
    return_complex: bool = False,
    name: str | None = None,
) -> Tensor:
    """The signal whose `stft` is nearest to `x` [..., terms, frames]; `length` cuts it.

    Raises:
        ShapeError: the squared windows add up to 0 somewhere, so that the signal is not determined.
    """
    out, least = _istft(
        x, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex
    )
    if not isinstance(least._value, Tracer) and float(least) < 1e-11:
        raise ShapeError(
            "the squared windows add up to 0 somewhere: the signal is not determined there",
            where="paddle.signal.istft",
            received=f"n_fft={n_fft}, hop_length={hop_length}, win_length={win_length}",
            fix="a window without zeros at its ends, or center=True",
        )
    return out
