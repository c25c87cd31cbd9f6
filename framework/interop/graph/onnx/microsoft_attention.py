"""Attention of com.microsoft, as ONNX Runtime's and optimum's optimisers write it, and what stands around it.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md (shapes, masks, defaults)
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.dtypes import wide_type
from framework.core.errors import ShapeError
from framework.interop.graph.onnx.attention import turn
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Item
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Array = jax.Array
DOMAIN = "com.microsoft."


def _split_heads(x: Array, heads: int) -> Array:
    """[N, T, heads * size] as [N, heads, T, size]."""
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def _join_heads(x: Array) -> Array:
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


def _attend(
    call: Call, q: Array, k: Array, v: Array, bias: Array | None, sink: Array | None = None
) -> tuple[Array, Array]:
    """softmax(q k' scale + bias) v of [N, heads, T, size], heads joined; and the scores in front of the softmax.

    A `sink` [heads] is one more score of each row, whose value is nothing.
    """
    if q.shape[1] != k.shape[1]:
        k, v = (jnp.repeat(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
    scale = call.attr("scale") or 1 / math.sqrt(q.shape[-1])
    scores = F.matmul(q * jnp.asarray(scale, q.dtype), k, transpose_y=True)
    if cap := call.attr("softcap", 0.0):
        scores = cap * jnp.tanh(scores / cap)
    scores = scores if bias is None else scores + bias.astype(scores.dtype)
    wide = scores.astype(wide_type(scores.dtype))
    if sink is not None:
        column = jnp.broadcast_to(sink.astype(wide.dtype)[:, None, None], (*wide.shape[:3], 1))
        wide = jnp.concatenate([wide, column], -1)
    weights = F.softmax(wide, -1)[..., : k.shape[2]].astype(v.dtype)
    return _join_heads(F.matmul(weights, v)), scores


def _hide(hidden: Array, filler: float) -> Array:
    return jnp.where(hidden, jnp.float32(filler), 0)


def _mask_bias(call: Call, mask: Array | None, batch: int, queries: int, keys: int) -> Array | None:
    """What a mask of any of ONNX Runtime's forms adds to the scores [N, heads, queries, keys].

    Forms: [N, keys], [N, queries, keys], [N, 1, most, most] of 1 and 0; [N] ends of the keys, [2N] ends and starts,
    [3N + 2] numbers of keys first.
    """
    filler, columns = call.attr("mask_filter_value", -10000.0), jnp.arange(keys)
    bias = None
    if mask is not None and mask.ndim == 1:
        hidden = columns >= mask[:batch, None]
        if mask.shape[0] == 2 * batch:
            hidden = hidden | (columns < mask[batch:, None])
        bias = _hide(hidden, filler)[:, None, None]
    elif mask is not None and mask.ndim in (2, 3, 4):
        visible = mask[:, None, None] if mask.ndim == 2 else mask[:, None] if mask.ndim == 3 else mask
        if mask.ndim == 4:
            visible = visible[:, :, keys - queries : keys, :keys]
        bias = _hide(visible == 0, filler)
    elif mask is not None:
        raise call.error("a mask of this form is not known", ShapeError, received=mask.shape)
    if call.attr("unidirectional"):
        later = columns[None] > jnp.arange(queries)[:, None] + keys - queries
        lowest = float(np.finfo(np.float32).min)
        causal = _hide(later, lowest)
        bias = causal if bias is None else jnp.maximum(bias + causal, lowest)
    return bias


def _sum(*terms: Array | None) -> Array | None:
    present = [term for term in terms if term is not None]
    return functools.reduce(jnp.add, present) if present else None


def _self_attention(
    call: Call, projected: Array, mask: Array | None, past: Array | None, added: Array | None
) -> tuple[Array | None, ...]:
    """Attention of queries, keys and values side by side in [N, T, width]; `past` is [2, N, heads, P, size]."""
    heads, sizes = call.required("num_heads"), call.ints("qkv_hidden_sizes")
    cuts = np.cumsum(sizes)[:2].tolist() if sizes else 3
    q, k, v = (_split_heads(x, heads) for x in jnp.split(projected, cuts, -1))
    if call.attr("do_rotary"):
        raise call.error(
            "an Attention that turns by angles of its own (do_rotary)", fix="export without do_rotary"
        )
    if past is not None:
        k, v = jnp.concatenate([past[0], k], 2), jnp.concatenate([past[1], v], 2)
    bias = _sum(_mask_bias(call, mask, q.shape[0], q.shape[2], k.shape[2]), added)
    present = jnp.stack([k, v]) if call.wants(1) else None
    return _attend(call, q, k, v, bias)[0], present


@operator(DOMAIN + "Attention", weights=(1, 2))
def _attention(
    call: Call, x: Array, weight: Array, bias: Array | None = None, mask: Array | None = None,
    past: Array | None = None, added: Array | None = None, length: Array | None = None,
) -> tuple[Array | None, ...]:  # fmt: skip
    projected = F.linear(x, weight)
    return _self_attention(call, projected if bias is None else projected + bias, mask, past, added)


@operator(DOMAIN + "QAttention")
def _quantised_attention(
    call: Call, x: Array, weight: Array, bias: Array, x_scale: Array, scale: Array, mask: Array | None = None,
    x_zero: Array | None = None, zero: Array | None = None, past: Array | None = None,
) -> tuple[Array | None, ...]:  # fmt: skip
    wide, kernel = (
        a.astype(jnp.float32) - (0 if z is None else z.astype(jnp.float32))
        for a, z in ((x, x_zero), (weight, zero))
    )
    return _self_attention(call, wide @ kernel * (x_scale * scale) + bias, mask, past, None)


@operator(DOMAIN + "MultiHeadAttention", weights=(3,))
def _multi_head(
    call: Call, query: Array, key: Array | None = None, value: Array | None = None, bias: Array | None = None,
    mask: Array | None = None, added: Array | None = None, past_key: Array | None = None,
    past_value: Array | None = None, *_: Array | None,
) -> tuple[Array | None, ...]:  # fmt: skip
    heads = call.required("num_heads")
    if query.ndim == 5:  # all three in one, [N, T, heads, 3, size]
        q, k, v = (query[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
    else:
        q = _split_heads(query, heads)
        if key is not None and key.ndim == 5:  # keys and values in one, [N, T, heads, 2, size]
            k, v = (key[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2))
        elif key is None or value is None:
            raise call.error("the keys or the values are missing", ShapeError)
        else:  # of a cross attention they come with their heads split
            k, v = (x if x.ndim == 4 else _split_heads(x, heads) for x in (key, value))
    if bias is not None:
        width, crossed = heads * q.shape[-1], key is not None and key.ndim == 4
        biases = jnp.split(bias, [width, 2 * width])
        q = q + _split_heads(biases[0][None, None], heads)
        if not crossed:
            k, v = (
                k + _split_heads(biases[1][None, None], heads),
                v + _split_heads(biases[2][None, None], heads),
            )
    if past_key is not None and past_value is not None:
        k, v = jnp.concatenate([past_key, k], 2), jnp.concatenate([past_value, v], 2)
    hidden = _mask_bias(call, mask, q.shape[0], q.shape[2], k.shape[2])
    y, scores = _attend(call, q, k, v, _sum(hidden, added))
    return y, k, v, scores


@operator(DOMAIN + "GroupQueryAttention", static=(6,))
def _group_query(
    call: Call, query: Array, key: Array | None, value: Array | None, past_key: Array | None,
    past_value: Array | None, last: Array, total: Item, cos: Array | None = None, sin: Array | None = None,
    positions: Array | None = None, added: Array | None = None, sink: Array | None = None, *rest: Array | None,
) -> tuple[Array | None, ...]:  # fmt: skip
    """The cache is as long as the longest sequence, or longer; new keys of an image of the batch follow its old ones.

    `last` [N] is the index of the last key of each, `total` the number of keys of the longest.
    """
    if any(item is not None for item in rest):
        raise call.error(
            "a cache of fewer bits, or queries that are normalised", fix="export it without them"
        )
    heads, shared = call.required("num_heads"), call.required("kv_num_heads")
    if key is None or value is None:
        size = query.shape[-1] // (heads + 2 * shared)
        query, key, value = jnp.split(query, [heads * size, (heads + shared) * size], -1)
    q, k, v = _split_heads(query, heads), _split_heads(key, shared), _split_heads(value, shared)
    queries, longest = q.shape[2], call.dims(total, "total_sequence_length")[0]
    ends = last.reshape(-1).astype(jnp.int32) + 1
    starts = jnp.zeros_like(ends) if queries == longest else ends - queries
    rows = starts[:, None] + jnp.arange(queries)  # where each query stands, [N, T]
    if call.attr("do_rotary"):
        if cos is None or sin is None:
            raise call.error("the angles are missing", ShapeError)
        at = rows if positions is None else positions
        cos, sin = cos[at][:, None], sin[at][:, None]
        q, k = (turn(x, cos, sin, bool(call.attr("rotary_interleaved"))) for x in (q, k))
    if past_key is not None and past_value is not None:
        k, v = _append(past_key, k, rows, longest), _append(past_value, v, rows, longest)
    columns = jnp.arange(k.shape[2])
    hidden = columns >= ends[:, None, None]
    if call.attr("causal", 1):
        hidden = hidden | (columns > rows[..., None])
    window = call.attr("local_window_size", -1)
    if window > 0:
        hidden = hidden | (columns <= rows[..., None] - window)
    bias = _hide(hidden, -math.inf)[:, None]
    if added is not None:
        missing = k.shape[2] - added.shape[-1]
        bias = bias + jnp.pad(added, ((0, 0), (0, 0), (0, 0), (0, max(missing, 0))))
    if sink is None and call.attr("smooth_softmax", 0) == 1:
        sink = jnp.zeros(heads)
    y, scores = _attend(call, q, k, v, bias, sink)
    return y, k, v, scores


def _append(past: Array, new: Array, rows: Array, longest: int) -> Array:
    """The cache [N, heads, size, features] with room for `longest`, and the new rows at their positions."""
    room = jnp.pad(past, ((0, 0), (0, 0), (0, max(longest - past.shape[2], 0)), (0, 0)))
    image = jnp.arange(past.shape[0])[:, None]
    return room.at[image, :, rows].set(new.transpose(0, 2, 1, 3), mode="drop")


@operator(DOMAIN + "RotaryEmbedding")
def _rotary(call: Call, x: Array, positions: Array, cos: Array, sin: Array) -> Array:
    """x [N, T, heads * size] or [N, heads, T, size]; one position is that of the first."""
    flat = x.ndim == 3
    if flat:
        heads = call.attr("num_heads", 0) or x.shape[-1] // (2 * cos.shape[-1])
        x = _split_heads(x, heads)
    if positions.size == 1:
        positions = positions.reshape(1, 1) + jnp.arange(x.shape[2])
    y = turn(x, cos[positions][:, None], sin[positions][:, None], bool(call.attr("interleaved")))
    return _join_heads(y) if flat else y


@operator(DOMAIN + "EmbedLayerNormalization", weights=(2, 3, 4, 5, 6))
def _embed(
    call: Call, ids: Array, segments: Array | None, words: Array, position_table: Array, types: Array | None,
    weight: Array, bias: Array, mask: Array | None = None, positions: Array | None = None,
) -> tuple[Array | None, ...]:  # fmt: skip
    """The sum of the tables' rows, normalised; the number of visible tokens; the sum."""
    rows = jnp.arange(ids.shape[1])[None] if positions is None else positions
    total = words[ids] + position_table[rows]
    if segments is not None and types is not None:
        total = total + types[segments]
    y = F.layer_norm(total, total.shape[-1:], weight, bias, call.attr("epsilon", 1e-12))
    ends = jnp.zeros(ids.shape[0], jnp.int32)
    if mask is not None and call.attr("mask_index_type", 1):
        ends = (mask != 0).sum(1, dtype=jnp.int32)
    return y, ends, total


@operator(DOMAIN + "QEmbedLayerNormalization")
def _quantised_embed(
    call: Call, ids: Array, segments: Array | None, *rest: Array | None
) -> tuple[Array | None, ...]:
    """As above with tables of 8 bits: words, positions, types, weight, bias, mask, then scales and zero points."""
    tables, mask, scales, zeros = rest[:5], rest[5], rest[6:11], rest[11:16]
    wide = [
        None if t is None or s is None or z is None else (t.astype(jnp.float32) - z.astype(jnp.float32)) * s
        for t, s, z in zip(tables, scales, zeros, strict=True)
    ]
    return OPERATORS[DOMAIN + "EmbedLayerNormalization"].run(call, ids, segments, *wide, mask)


@operator(DOMAIN + "RelativePositionBias", static=(1, 2), weights=(0,))
def _relative_bias(call: Call, table: Array, queries: Item, keys: Item) -> Array:
    """The rows of T5's table [buckets, heads] for every distance: [1, heads, queries, keys]."""
    count, most = table.shape[0], call.required("max_distance")
    rows, columns = (np.arange(int(call.number(n, "the length"))) for n in (queries, keys))
    distance, first = columns[None] - rows[:, None], 0
    if call.attr("is_bidirectional"):
        count //= 2
        first, distance = np.where(distance > 0, count, 0), np.abs(distance)
    else:
        distance = np.maximum(-distance, 0)
    exact = count // 2
    far = exact + np.log(np.maximum(distance, 1) / exact) / np.log(most / exact) * (count - exact)
    bucket = first + np.where(distance < exact, distance, np.minimum(far.astype(np.int64), count - 1))
    return table[bucket].transpose(2, 0, 1)[None]
