"""ONNX signal operators and random numbers: DFT, STFT, windows, mel weights, draws."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.rng import next_key
from framework.interop.graph.onnx.elementwise import element_type
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Item, Value, count, device_type, shape_of

OPERATORS: Table = {}
operator = registrar(OPERATORS)


@operator("DFT", static=(1, 2))
def _dft(call: Call, x: jax.Array, length: Item = None, axis: Item = None) -> jax.Array:
    """x [..., 1] (real) or [..., 2] (real, imaginary); the last axis of the result has two unless it is real."""
    at = (
        call.attr("axis", 1)
        if call.version < 20
        else -2
        if axis is None
        else int(call.number(axis, "the axis"))
    )
    position = call.axis(at, x.ndim)
    size = x.shape[position] if length is None else int(call.number(length, "dft_length"))
    count([n for n in (*x.shape[:position], size) if isinstance(n, int)], call.where)
    inverse, onesided = bool(call.attr("inverse")), bool(call.attr("onesided"))
    signal: jax.Array = lax.complex(x[..., 0], x[..., 1]) if x.shape[-1] == 2 else x[..., 0]
    if inverse and onesided:
        full = size if length is not None else 2 * (x.shape[position] - 1)
        return jnp.fft.irfft(signal, full, position)[..., None].astype(x.dtype)
    y = (jnp.fft.ifft if inverse else jnp.fft.fft)(signal, size, position)
    if onesided:
        y = jnp.take(y, jnp.arange(size // 2 + 1), position)
    return jnp.stack([y.real, y.imag], -1).astype(x.dtype)


@operator("STFT", static=(1, 3))
def _stft(
    call: Call, x: jax.Array, step: Item, window: jax.Array | None = None, length: Item = None
) -> jax.Array:
    """x [N, T, 1 or 2], or [N, T] as torch writes it -> [N, frames, bins, 2]."""
    x = x[..., None] if x.ndim == 2 else x
    hop = int(call.number(step, "frame_step"))
    if length is not None:
        size = int(call.number(length, "frame_length"))
    else:
        size = x.shape[1] if window is None else window.shape[0]
    signal: jax.Array = lax.complex(x[..., 0], x[..., 1]) if x.shape[-1] == 2 else x[..., 0]
    frames = (x.shape[1] - size) // hop + 1
    count([x.shape[0] if isinstance(x.shape[0], int) else 1, frames, size], call.where)
    frames_of = signal[:, np.arange(frames)[:, None] * hop + np.arange(size)]
    y = jnp.fft.fft(frames_of if window is None else frames_of * window)
    y = y[..., : size // 2 + 1] if call.attr("onesided", 1) else y
    return jnp.stack([y.real, y.imag], -1).astype(x.dtype)


@operator("HannWindow", "HammingWindow", "BlackmanWindow", style="values")
def _window(call: Call, size: Item) -> Item:
    length = int(call.number(size, "the size"))
    count([length], call.where)
    turns = 2 * np.pi * np.arange(length) / (length if call.attr("periodic", 1) else max(length - 1, 1))
    terms = {
        "HannWindow": (0.5, 0.5, 0.0),
        "HammingWindow": (25 / 46, 21 / 46, 0.0),
        "BlackmanWindow": (0.42, 0.5, 0.08),
    }[call.node.op]
    window = terms[0] - terms[1] * np.cos(turns) + terms[2] * np.cos(2 * turns)
    return window.astype(element_type(call, call.attr("output_datatype", 1)))


@operator("MelWeightMatrix", style="values")
def _mel_weights(call: Call, bands: Item, length: Item, rate: Item, low: Item, high: Item) -> Item:
    """[bins, bands] triangles that are even on the mel scale."""
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    count_of, size, hertz, bottom, top = (
        call.number(item, name) for item, name in zip((bands, length, rate, low, high), names)
    )
    bins = int(size) // 2 + 1
    count([bins, int(count_of)], call.where)
    mel_low, mel_high = (2595 * np.log10(1 + edge / 700) for edge in (bottom, top))
    step = (mel_high - mel_low) / (count_of + 2)
    edges = 700 * (10 ** ((np.arange(int(count_of) + 2) * step + mel_low) / 2595) - 1)
    edges = ((size + 1) * edges / hertz).astype(np.int64)
    weights = np.zeros((bins, int(count_of)))
    for band in range(int(count_of)):
        left, centre, right = edges[band : band + 3]
        if centre == left:
            weights[centre, band] = 1
        else:
            rise = np.arange(left, centre + 1)
            weights[rise, band] = (rise - left) / (centre - left)
        if right > centre:
            fall = np.arange(centre, right)
            weights[fall, band] = (right - fall) / (right - centre)
    return weights.astype(element_type(call, call.attr("output_datatype", 1)))


# -- random numbers -----------------------------------------------------------------------------------------------


def _key(call: Call) -> jax.Array:
    """The node's own seed where it has one, else the next key of the scope."""
    seed = call.attr("seed")
    return next_key() if seed is None else jax.random.key(int(np.float32(seed).view(np.int32)))


def _shape_and_type(call: Call, like: Item) -> tuple[tuple[int, ...], np.dtype]:
    shape = shape_of(like) if like is not None else tuple(call.required("shape"))
    count(shape, call.where)
    code = call.attr("dtype")
    if code is None:
        return shape, np.dtype(np.float32) if like is None else like.dtype  # type: ignore[union-attr]
    return shape, element_type(call, code)


@operator("RandomUniform", "RandomUniformLike", style="values")
def _uniform(call: Call, like: Item = None) -> Value:
    shape, dtype = _shape_and_type(call, like)
    draws = jax.random.uniform(_key(call), shape, minval=call.attr("low", 0.0), maxval=call.attr("high", 1.0))
    return Value.of(draws.astype(device_type(dtype)))


@operator("RandomNormal", "RandomNormalLike", style="values")
def _normal(call: Call, like: Item = None) -> Value:
    shape, dtype = _shape_and_type(call, like)
    draws = jax.random.normal(_key(call), shape) * call.attr("scale", 1.0) + call.attr("mean", 0.0)
    return Value.of(draws.astype(device_type(dtype)))


@operator("Bernoulli")
def _bernoulli(call: Call, x: jax.Array) -> jax.Array:
    code = call.attr("dtype")
    dtype = x.dtype if code is None else element_type(call, code)
    return jax.random.bernoulli(_key(call), x).astype(device_type(dtype))


@operator("Multinomial")
def _multinomial(call: Call, x: jax.Array) -> jax.Array:
    size = call.attr("sample_size", 1)
    draws = jax.random.categorical(_key(call), x[:, None], shape=(x.shape[0], size))
    return draws.astype(device_type(element_type(call, call.attr("dtype", 6))))
