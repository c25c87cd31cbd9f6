"""Scaled dot-product attention on [N, T, heads, D], as Paddle lays it out."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.dtypes import precision, wide_type
from framework.core.errors import ShapeError
from framework.nn.functional.common import dropout
from framework.nn.functional.fused_attention import fused_attention, may_fuse
from framework.nn.functional.lowering import platform
from framework.nn.functional.products import product
from framework.nn.mesh_scope import current_mesh

KeysValues = tuple[jax.Array, jax.Array]  # [N, T, heads, D] each

HIDDEN = -1e9
"""What a masked score gets: finite, so that a row without any visible key yields a mean and not NaN."""


def additive_mask(mask: jax.Array) -> jax.Array:
    """A mask to add to scores: booleans and integers hide where they are false or 0, floats stay as they are, but for
    -inf, of which a row that hides every key would be NaN, in all gradients too."""
    if jnp.issubdtype(mask.dtype, jnp.floating):
        return jnp.maximum(mask.astype(wide_type(mask.dtype)), HIDDEN)
    return (mask.astype(jnp.float32) - 1) * -HIDDEN


@functools.partial(jax.jit, static_argnames=("is_causal", "low", "scale", "softcap"))
def _attention_weights(
    query: jax.Array,
    key: jax.Array,
    mask: jax.Array | None,
    is_causal: bool,
    low: bool,
    scale: float | None = None,
    softcap: float | None = None,
) -> jax.Array:
    """softmax(q k' * scale + mask) computed in the wide type, in the type of query. -> [N, H, Tq, Tk]."""
    out, wide = query.dtype, wide_type(query.dtype)
    query = query * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    rows, length, heads, depth = query.shape
    if heads == key.shape[2]:
        scores = product("nqhd,nkhd->nhqk", query, key, low, wide)
    else:  # groups of queries share keys, which are not repeated in memory
        query = query.reshape(rows, length, key.shape[2], -1, depth)
        scores = product("nqhgd,nkhd->nhgqk", query, key, low, wide).reshape(rows, heads, length, -1)
    if softcap is not None:
        scores = jnp.tanh(scores / softcap) * softcap
    if mask is not None:
        scores = scores + additive_mask(mask).astype(scores.dtype)
    if is_causal:
        shape = scores.shape[-2:]
        # Query i sees the keys up to i; with a cache the last query sees all keys.
        row = lax.broadcasted_iota(jnp.int32, shape, 0) + (shape[1] - shape[0])
        scores = jnp.where(row >= lax.broadcasted_iota(jnp.int32, shape, 1), scores, HIDDEN)
    return jax.nn.softmax(scores, -1).astype(out)


@functools.partial(jax.jit, static_argnames=("low",))
def _attention_values(weights: jax.Array, value: jax.Array, low: bool) -> jax.Array:
    """weights [N, H, Tq, Tk], value [N, Tk, KV, D] -> [N, Tq, H, D] in value's type."""
    rows, heads, length, keys = weights.shape
    weights, groups = weights.astype(value.dtype), value.shape[2]
    if heads == groups:
        return product("nhqk,nkhd->nqhd", weights, value, low)
    weights = weights.reshape(rows, groups, -1, length, keys)
    return product("nhgqk,nkhd->nqhgd", weights, value, low).reshape(rows, length, heads, -1)


def attention_weights(
    query: jax.Array, key: jax.Array, attn_mask: jax.Array | None = None, is_causal: bool = False
) -> jax.Array:
    """softmax(q k' / sqrt(D) + mask) in query's type: [N, Tq, H, D] and [N, Tk, H, D] -> [N, H, Tq, Tk]."""
    return _attention_weights(query, key, attn_mask, is_causal, precision() == "bfloat16")


def attention_values(weights: jax.Array, value: jax.Array) -> jax.Array:
    """What weights [N, H, Tq, Tk] take of value [N, Tk, H, D]: [N, Tq, H, D]."""
    return _attention_values(weights, value, precision() == "bfloat16")


def scaled_dot_product_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    attn_mask: jax.Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    training: bool = True,
    scale: float | None = None,
    softcap: float | None = None,
) -> jax.Array:
    """softmax(q k' * scale + mask) v. query [N, Tq, H, D], key and value [N, Tk, KV, D] -> [N, Tq, H, D].

    `attn_mask` broadcasts to [N, H, Tq, Tk]: booleans and integers say what is visible, floats, such as a bias of
    relative positions, are added. Source: Vaswani et al. 2017, equation 1.

    KV divides H: H / KV heads of queries in succession share a head of keys and values (Ainslie et al. 2023,
    https://arxiv.org/abs/2305.13245).

    Args:
        scale: By default 1 / sqrt(D).
        softcap: Scores s become softcap * tanh(s / softcap) before the mask, as in Gemma 2.

    Raises:
        ShapeError: the heads, D or the number of keys and values do not agree.
    """
    mesh = current_mesh()
    if mesh is not None and mesh.attention is not None:
        _check(query, key, value)
        if softcap is not None:
            raise ShapeError(
                "attention over divided tokens has no soft cap",
                where="scaled_dot_product_attention",
                received=f"softcap {softcap}",
                allowed="None",
                fix="leave the axis `sequence` of `parallel` at 1",
            )
        if scale is not None:
            query = query * (scale * math.sqrt(query.shape[-1]))
        groups = query.shape[2] // key.shape[2]
        if groups > 1:
            key, value = (jnp.repeat(one, groups, axis=2) for one in (key, value))
        return mesh.attention(query, key, value, attn_mask, dropout_p, is_causal, training)
    _check(query, key, value)
    low = precision() == "bfloat16"
    divides_well = mesh is None or mesh.has_whole_heads(key.shape[2])
    if platform() == "other" and divides_well and softcap is None and not (training and dropout_p):
        q, k, v = (
            one.astype(jnp.bfloat16) if low and one.dtype == jnp.float32 else one
            for one in (query, key, value)
        )
        if may_fuse(q, k, v, attn_mask, is_causal):
            fused = functools.partial(fused_attention, is_causal=is_causal, scale=scale)
            plain = functools.partial(_plain_attention, is_causal=is_causal, scale=scale)
            return lax.platform_dependent(q, k, v, attn_mask, cuda=fused, default=plain).astype(value.dtype)
    weights = _attention_weights(query, key, attn_mask, is_causal, low, scale, softcap)
    return attention_values(dropout(weights, dropout_p, training=training), value)


def _plain_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    mask: jax.Array | None,
    is_causal: bool,
    scale: float | None,
) -> jax.Array:
    """As `fused_attention`."""
    return _attention_values(_attention_weights(query, key, mask, is_causal, False, scale), value, False)


def attention_with_weights(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    attn_mask: jax.Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    training: bool = True,
) -> tuple[jax.Array, jax.Array]:
    """As `scaled_dot_product_attention`, with the weights before dropout, [N, H, Tq, Tk] in query's type."""
    _check(query, key, value)
    weights = attention_weights(query, key, attn_mask, is_causal)
    return attention_values(dropout(weights, dropout_p, training=training), value), weights


def _check(query: jax.Array, key: jax.Array, value: jax.Array) -> None:
    """Raises: ShapeError."""
    shared = query.ndim == key.ndim == 4 and key.shape[2] > 0 and query.shape[2] % key.shape[2] == 0
    if not shared or query.shape[3] != key.shape[3]:
        raise ShapeError(
            "attention: query and key do not agree",
            received=f"query {query.shape}, key {key.shape}",
            allowed="[N, T, heads, D] with the same D, and heads of keys that divide those of queries",
        )
    if value.ndim != 4 or value.shape[1:3] != key.shape[1:3]:
        raise ShapeError(
            "attention: as many values as keys",
            received=f"key {key.shape}, value {value.shape}",
            allowed="[N, Tk, heads, D] each",
        )


def write_keys_values(cache: KeysValues, new: KeysValues, start: jax.Array | int) -> KeysValues:
    """The cache [N, T, heads, D] with the keys and values of new tokens [N, S, heads, D] from token `start` on."""
    keys, values = (
        lax.dynamic_update_slice_in_dim(old, one.astype(old.dtype), start, axis=1)
        for old, one in zip(cache, new)
    )
    return keys, values
