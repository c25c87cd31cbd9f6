"""Embedding, dropout, one-hot, padding, similarity and blocks: what is neither convolution nor activation.

Arrays are channels-last. Random functions take `key` and fall back to `framework.core.rng.next_key()`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import DTypeLike

from framework.core.dtypes import wide_type
from framework.core.errors import InputError, ShapeError, TraceError
from framework.core.rng import next_key
from framework.nn.functional.lowering import jitted

_CHANNELS_LAST = ("NLC", "NHWC", "NDHWC")


def check_data_format(data_format: str, where: str) -> None:
    """Refuse the channels-first formats that Paddle code may pass.

    Raises:
        ShapeError: `data_format` is not channels-last.
    """
    if data_format not in _CHANNELS_LAST:
        raise ShapeError(
            "activations are channels-last in Oar",
            where=where,
            received=f"data_format={data_format!r}",
            allowed=", ".join(_CHANNELS_LAST),
            fix="drop the argument and pass [N, H, W, C]; weights keep Paddle's layout",
        )


def transpose_hint(x: jax.Array, channels: int) -> str | None:
    """What to do with an array whose channels are on axis 1, as Paddle and torch have them; None when they are not."""
    if x.ndim < 3 or x.shape[1] != channels or x.shape[-1] == channels:
        return None
    axes = ", ".join(map(str, (0, *range(2, x.ndim), 1)))
    return f"activations are channels-last and these are channels-first: x.transpose({axes})"


# -- tables -------------------------------------------------------------------------------------------------------


def check_ids(values: np.ndarray, rows: int) -> None:
    """Raises: InputError, where an id names no row of a table of `rows`."""
    if values.size and (values.min() < 0 or values.max() >= rows):
        outside = np.unique(values[(values < 0) | (values >= rows)])
        raise InputError(
            "an id has no row in the table",
            where="embedding",
            received=", ".join(map(str, outside[:5])) + (" …" if len(outside) > 5 else ""),
            allowed=f"0 to {rows - 1}",
            fix="map what is unknown to an id of its own, or give the table more rows",
        )


def embedding(
    x: jax.Array, weight: jax.Array, padding_idx: int | None = None, sparse: bool = False
) -> jax.Array:
    """The rows of weight [V, D] that integer x [...] names -> [..., D]. `padding_idx` gives zeros, and no gradient.

    Gradients are dense, `sparse` or not.

    Raises:
        InputError: an id outside of [0, V), where ids have values; inside of programs such ids read the nearest row.
    """
    if not isinstance(x, Tracer) and jnp.issubdtype(x.dtype, jnp.integer):
        check_ids(np.asarray(x), weight.shape[0])
    return _embedding(x, weight, padding_idx, sparse)


@jitted("padding_idx", "sparse")
def _embedding(x: jax.Array, weight: jax.Array, padding_idx: int | None, sparse: bool) -> jax.Array:
    if not jnp.issubdtype(x.dtype, jnp.integer):
        raise ShapeError("embedding takes integers", received=str(x.dtype), allowed="an integer array")
    if padding_idx is not None:
        if not -weight.shape[0] <= padding_idx < weight.shape[0]:
            raise ShapeError(
                "padding_idx lies outside the table",
                received=padding_idx,
                allowed=f"{-weight.shape[0]} to {weight.shape[0] - 1}",
            )
        padding_idx %= weight.shape[0]
    rows = jnp.take(weight, x, axis=0, mode="clip")
    return rows if padding_idx is None else jnp.where((x == padding_idx)[..., None], 0, rows)


@jitted("num_classes", "dtype")
def one_hot(x: jax.Array, num_classes: int, dtype: DTypeLike = jnp.float32) -> jax.Array:
    """[...] integers -> [..., num_classes]; a label outside [0, num_classes) gives a row of zeros."""
    return jax.nn.one_hot(x, num_classes, dtype=dtype)


# -- dropout ------------------------------------------------------------------------------------------------------


def kept_share(key: jax.Array, p: float, shape: tuple[int, ...]) -> tuple[jax.Array, float]:
    """Which values of `shape` dropout keeps, and the probability of each to be kept.

    Random bits are what dropout costs on a CPU. 16 of them decide on a value, so half as many are drawn, and the
    probability is 1 - p to within 8e-6. Nearer to 0 or 1 than a hundredth it is 1 - p with all 32.
    """
    if not 0.01 <= p <= 0.99:
        return jax.random.bernoulli(key, 1 - p, shape), 1 - p
    width = shape[-1] if shape else 1
    drawn = jax.random.bits(key, (*shape[:-1], (width + 1) // 2), jnp.uint32)
    halves = jnp.concatenate([drawn & 0xFFFF, drawn >> 16], axis=-1)[..., :width].reshape(shape)
    dropped = round(p * 0x10000)
    return halves >= dropped, 1 - dropped / 0x10000


@jitted("p", "shape", "upscale")
def _dropout(x: jax.Array, key: jax.Array, p: float, shape: tuple[int, ...], upscale: bool) -> jax.Array:
    kept, share = kept_share(key, p, shape)
    return jnp.where(kept, x / share if upscale else x, 0).astype(x.dtype)


def dropout(
    x: jax.Array,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    mode: str = "upscale_in_train",
    key: jax.Array | None = None,
) -> jax.Array:
    """Zero each value with probability `p`. Along axes not in `axis` one draw is shared.

    upscale_in_train divides what is kept by 1 - p in training; downscale_in_infer multiplies by 1 - p in inference.
    """
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise ShapeError(
            "unknown dropout mode", received=repr(mode), allowed="upscale_in_train or downscale_in_infer"
        )
    if not 0 <= p <= 1:
        raise ShapeError("dropout: p is a probability", received=p, allowed="0 to 1")
    upscale = mode == "upscale_in_train"
    if not training:
        return x if upscale or p == 0 else x * (1 - p)
    if p == 0:
        return x
    if p == 1:
        return jnp.zeros_like(x)
    drawn = (
        range(x.ndim) if axis is None else {a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)}
    )
    shape = tuple(n if i in drawn else 1 for i, n in enumerate(x.shape))
    return _dropout(x, next_key() if key is None else key, float(p), shape, upscale)


def dropout2d(x: jax.Array, p: float = 0.5, training: bool = True, key: jax.Array | None = None) -> jax.Array:
    """Zero whole channels of x [N, H, W, C]."""
    return dropout(x, p, (0, x.ndim - 1), training, key=key)


dropout1d = dropout3d = dropout2d

# What a SELU gives far below zero: the values that alpha dropout puts in. Source: Klambauer et al. 2017.
_SELU_FLOOR = -1.6732632423543772 * 1.0507009873554805


def _alpha_dropout(
    x: jax.Array, p: float, drawn: tuple[int, ...], training: bool, key: jax.Array | None
) -> jax.Array:
    if not 0 <= p <= 1:
        raise ShapeError("alpha_dropout: p is a probability", received=p, allowed="0 to 1")
    if not training or p == 0:
        return x
    if p == 1:
        return jnp.zeros_like(x)
    shape = tuple(n if i in drawn else 1 for i, n in enumerate(x.shape))
    kept = jax.random.bernoulli(next_key() if key is None else key, 1 - p, shape)
    scale = ((1 - p) * (1 + p * _SELU_FLOOR**2)) ** -0.5
    return (jnp.where(kept, x, _SELU_FLOOR) * scale - scale * _SELU_FLOOR * p).astype(x.dtype)


def alpha_dropout(
    x: jax.Array, p: float = 0.5, training: bool = True, key: jax.Array | None = None
) -> jax.Array:
    """Replace values with probability `p` so that mean 0 and variance 1, as a SELU gives them, stay.

    Source: Klambauer et al. 2017.
    """
    return _alpha_dropout(x, p, tuple(range(x.ndim)), training, key)


def feature_alpha_dropout(
    x: jax.Array, p: float = 0.5, training: bool = True, key: jax.Array | None = None
) -> jax.Array:
    """`alpha_dropout` of whole channels of x [N, ..., C]."""
    return _alpha_dropout(x, p, (0, x.ndim - 1), training, key)


# -- padding ------------------------------------------------------------------------------------------------------

_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@jitted("edges", "mode", "value")
def _pad(x: jax.Array, edges: tuple[tuple[int, int], ...], mode: str, value: float) -> jax.Array:
    if mode == "constant":
        return jax.lax.pad(x, jnp.asarray(value, x.dtype), [(low, high, 0) for low, high in edges])
    return jnp.pad(x, edges, mode=_PAD_MODES[mode])


def pad(x: jax.Array, pad: int | Sequence[int], mode: str = "constant", value: float = 0.0) -> jax.Array:
    """Pad the spatial axes of a channels-last array in Paddle's order: the last spatial axis comes first.

    [left, right] for [N, T, C]; [left, right, top, bottom] for [N, H, W, C]; and [front, back] after those for
    [N, D, H, W, C]. Two numbers for each axis of x, with mode constant, pad every axis from the first to the last.
    One number pads all spatial edges. Negative numbers cut, with mode constant.

    Raises:
        ShapeError: unknown mode, a wrong count of numbers, or an edge that reflect or circular cannot fill.
    """
    if mode not in _PAD_MODES:
        raise ShapeError("unknown padding mode", received=repr(mode), allowed=", ".join(_PAD_MODES))
    spatial = x.ndim - 2
    numbers = [pad] * (2 * spatial) if isinstance(pad, int) else [int(p) for p in pad]
    edges = [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers) - 1, 2)]
    if mode == "constant" and len(numbers) == 2 * x.ndim:
        pass
    elif spatial > 0 and len(numbers) == 2 * spatial:
        edges = [(0, 0), *edges[::-1], (0, 0)]
    else:
        raise ShapeError(
            "pad: two numbers for each spatial axis",
            received=f"x {x.shape}, pad {list(numbers)}",
            allowed=f"{2 * max(spatial, 0)} numbers, or {2 * x.ndim} with mode constant",
        )
    limit = {"reflect": -1, "circular": 0}.get(mode)
    for size, edge in zip(x.shape, edges):
        if mode != "constant" and min(edge) < 0:
            raise ShapeError("pad: only mode constant cuts", received=edge, allowed="numbers from 0")
        if limit is not None and isinstance(size, int) and max(edge) > size + limit:
            raise ShapeError(
                f"pad: mode {mode} needs a larger axis",
                received=f"{edge} on an axis of {size}",
                allowed=f"up to {size + limit}",
            )
    return _pad(x, tuple(edges), mode, float(value))


def zeropad2d(x: jax.Array, padding: int | Sequence[int], data_format: str = "NHWC") -> jax.Array:
    """Zeros around x [N, H, W, C]: [left, right, top, bottom], or one number for all edges."""
    check_data_format(data_format, "zeropad2d")
    return pad(x, padding)


# -- similarity ---------------------------------------------------------------------------------------------------


@jitted("axis", "eps")
def cosine_similarity(x1: jax.Array, x2: jax.Array, axis: int = 1, eps: float = 1e-8) -> jax.Array:
    """x1 . x2 / max(|x1| |x2|, eps) along `axis`, whose default is Paddle's 1."""
    kind = jnp.result_type(x1, x2)
    x1, x2 = x1.astype(wide_type(x1.dtype)), x2.astype(wide_type(x2.dtype))  # float16 ends at 65504
    dot = (x1 * x2).sum(axis)
    squares = jnp.square(x1).sum(axis) * jnp.square(x2).sum(axis)
    return (dot * jax.lax.rsqrt(jnp.maximum(squares, float(eps) ** 2))).astype(kind)


@jitted("epsilon")
def label_smooth(label: jax.Array, prior_dist: jax.Array | None = None, epsilon: float = 0.1) -> jax.Array:
    """(1 - epsilon) * label + epsilon * prior for one-hot labels [..., K]; the prior is uniform unless given."""
    epsilon = float(epsilon)
    prior = 1 / label.shape[-1] if prior_dist is None else prior_dist
    return (1 - epsilon) * label + epsilon * prior


@jitted("p", "epsilon", "keepdim")
def pairwise_distance(
    x: jax.Array, y: jax.Array, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False
) -> jax.Array:
    """The p-norm of x - y + epsilon over the last axis; p may be 0, which counts, and inf or -inf."""
    gap, p = jnp.abs(x - y + float(epsilon)), float(p)
    if p == 0:
        return (gap != 0).sum(-1, keepdims=keepdim).astype(gap.dtype)
    if math.isinf(p):
        return gap.max(-1, keepdims=keepdim) if p > 0 else gap.min(-1, keepdims=keepdim)
    total = jnp.square(gap).sum(-1, keepdims=keepdim) if p == 2 else (gap**p).sum(-1, keepdims=keepdim)
    safe = jnp.where(total == 0, 1, total)  # a finite gradient, 0, where both are equal
    return jnp.where(total == 0, 0, jnp.sqrt(safe) if p == 2 else safe ** (1 / p))


@jitted()
def bilinear(x1: jax.Array, x2: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    """x1' W[o] x2 + bias for each output o. x1 [N, I], x2 [N, J], weight [O, I, J], bias [1, O] -> [N, O]."""
    if x1.ndim != 2 or x2.ndim != 2 or weight.shape[1:] != (x1.shape[1], x2.shape[1]):
        raise ShapeError(
            "bilinear: inputs and weight do not agree",
            received=f"x1 {x1.shape}, x2 {x2.shape}, weight {weight.shape}",
            allowed="[N, I], [N, J], [O, I, J]",
        )
    y = jnp.einsum("ni,oij,nj->no", x1, weight, x2)
    return y if bias is None else y + bias.reshape(1, -1)


def sequence_mask(x: jax.Array, maxlen: int | None = None, dtype: DTypeLike = "int32") -> jax.Array:
    """1 where a position is below the length: x [...] integers -> [..., maxlen].

    Without `maxlen` it is the largest length, which under jit must be given. Paddle's default dtype is int64.
    """
    if maxlen is None:
        if isinstance(x, Tracer):
            raise TraceError(
                "sequence_mask: under a trace the largest length is not known",
                received="maxlen=None",
                allowed="sequence_mask(lengths, maxlen=…)",
            )
        maxlen = int(x.max()) if x.size else 0
    inside = jnp.arange(maxlen, dtype=x.dtype) < x[..., None]
    return inside.astype(jax.dtypes.canonicalize_dtype(dtype))


def gather_tree(ids: jax.Array, parents: jax.Array) -> jax.Array:
    """The sequences of a beam search from its end to its start: ids and parents [T, N, beams] -> [T, N, beams]."""
    if ids.ndim != 3 or ids.shape != parents.shape:
        raise ShapeError(
            "gather_tree: ids and parents have one shape",
            received=f"ids {ids.shape}, parents {parents.shape}",
            allowed="[T, N, beams] each",
        )

    def step(beam: jax.Array, both: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        word, parent = (jnp.take_along_axis(array, beam, 1) for array in both)
        return parent, word

    start = jnp.broadcast_to(jnp.arange(ids.shape[2], dtype=parents.dtype), ids.shape[1:])
    return jax.lax.scan(step, start, (ids, parents), reverse=True)[1]
