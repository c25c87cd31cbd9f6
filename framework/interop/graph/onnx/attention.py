"""ONNX attention: Attention, RotaryEmbedding."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.dtypes import wide_type
from framework.core.errors import ShapeError
from framework.interop.graph.onnx.elementwise import element_type
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import device_type
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Array = jax.Array


def _heads(call: Call, x: Array, attribute: str) -> Array:
    """[N, T, heads * size] as [N, heads, T, size]; what has four axes stays."""
    if x.ndim == 4:
        return x
    heads = call.required(attribute)
    n, length, width = x.shape
    if width % heads:
        raise call.error("the heads do not divide the features", ShapeError, received=f"{width} by {heads}")
    return x.reshape(n, length, heads, width // heads).transpose(0, 2, 1, 3)


def _additive(mask: Array, keys: int, dtype: np.dtype) -> Array:
    """A mask to add; one that is shorter than the keys lets nothing through behind its end."""
    missing = keys - mask.shape[-1] if isinstance(mask.shape[-1], int) and isinstance(keys, int) else 0
    if mask.dtype == bool:
        mask = jnp.where(mask, 0, -jnp.inf).astype(dtype)
    return (
        jnp.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, missing)], constant_values=-jnp.inf)
        if missing > 0
        else mask
    )


@operator("Attention")
def _attention(
    call: Call, query: Array, key: Array, value: Array, mask: Array | None = None, past_key: Array | None = None,
    past_value: Array | None = None, lengths: Array | None = None,
) -> tuple[Array, ...]:  # fmt: skip
    """Queries [N, heads, T, size], or [N, T, heads * size]; the key and value heads are shared where they are fewer.

    Results: output, the keys and values with the past in front, and the scores at the stage that the node names.
    """
    flat = query.ndim == 3
    q, k = _heads(call, query, "q_num_heads"), _heads(call, key, "kv_num_heads")
    v = _heads(call, value, "kv_num_heads")
    dtype = q.dtype
    past = 0
    if past_key is not None and past_value is not None:
        k, v = jnp.concatenate([past_key, k], 2), jnp.concatenate([past_value, v], 2)
        past = past_key.shape[2]
    present = (k, v)
    code = call.attr("softmax_precision")
    wide = wide_type(dtype) if code is None else device_type(element_type(call, code))
    groups = q.shape[1] // k.shape[1]
    k, v = (jnp.repeat(x, groups, 1) if groups > 1 else x for x in (k, v))
    scale = call.attr("scale", 1 / np.sqrt(q.shape[-1]))
    root = jnp.asarray(math.sqrt(scale), dtype)
    scores = F.matmul(q * root, k * root, transpose_y=True)
    queries, keys = scores.shape[-2:]
    bias = None if mask is None else _additive(mask, keys, dtype)
    rows, columns = jnp.arange(queries)[:, None], jnp.arange(keys)[None]
    offset = jnp.asarray(past)  # keys in front of the first query
    if lengths is not None and past_key is None:
        offset = (lengths - queries)[:, None, None, None]
    left, right = call.attr("left_window_size", -1), call.attr("right_window_size", -1)
    for limit in (
        columns <= rows + offset if call.attr("is_causal") else None,
        columns >= rows + offset - left if left >= 0 else None,
        columns <= rows + offset + right if right >= 0 else None,
    ):
        if limit is not None:
            hidden = jnp.where(limit, 0, -jnp.inf).astype(dtype)
            bias = hidden if bias is None else bias.astype(dtype) + hidden
    if lengths is not None:
        hidden = jnp.where(columns[None, None] < lengths[:, None, None, None], 0, -jnp.inf).astype(dtype)
        bias = hidden if bias is None else bias.astype(dtype) + hidden
    cap = call.attr("softcap", 0.0)
    capped = cap * jnp.tanh(scores / cap) if cap else scores
    masked = capped if bias is None else capped + bias.astype(dtype)
    stages = [scores, capped, masked]
    top = masked.astype(wide).max(-1, keepdims=True)
    exponents = jnp.exp(masked.astype(wide) - jnp.where(jnp.isfinite(top), top, 0))
    total = exponents.sum(-1, keepdims=True)
    weights = (exponents / jnp.where(total == 0, 1, total)).astype(dtype)
    stages.append(weights)
    y = F.matmul(weights, v).astype(dtype)
    if flat:
        n, heads, length, size = y.shape
        y = y.transpose(0, 2, 1, 3).reshape(n, length, heads * size)
    return (y, *present, stages[call.attr("qk_matmul_output_mode", 0)])


@operator("RotaryEmbedding")
def _rotary(call: Call, x: Array, cos: Array, sin: Array, positions: Array | None = None) -> Array:
    """Pairs of features turned by the angles of their positions; x [N, heads, T, size] or [N, T, heads * size]."""
    shape = x.shape
    if x.ndim == 3:
        heads = call.required("num_heads")
        x = x.reshape(shape[0], shape[1], heads, -1).transpose(0, 2, 1, 3)
    rotated = call.attr("rotary_embedding_dim", 0) or x.shape[-1]
    if positions is not None:
        cos, sin = cos[positions], sin[positions]  # [N, T, turned / 2]
    cos, sin = cos[:, None, :, : rotated // 2], sin[:, None, :, : rotated // 2]
    y = turn(x, cos, sin, bool(call.attr("interleaved")))
    return y.transpose(0, 2, 1, 3).reshape(shape) if len(shape) == 3 else y


def turn(x: Array, cos: Array, sin: Array, interleaved: bool) -> Array:
    """The first features of x, twice as many as cosines [..., T, size / 2], turned pair by pair; the others stay."""
    rotated = 2 * cos.shape[-1]
    head, tail = x[..., :rotated], x[..., rotated:]
    if interleaved:
        pairs = head.reshape(*head.shape[:-1], rotated // 2, 2)
        a, b = pairs[..., 0], pairs[..., 1]
    else:
        a, b = jnp.split(head, 2, -1)
    first, second = cos * a - sin * b, sin * a + cos * b
    if interleaved:
        head = jnp.stack([first, second], -1).reshape(head.shape)
    else:
        head = jnp.concatenate([first, second], -1)
    return jnp.concatenate([head, tail], -1)
