"""Attention on [N, T, heads, D]."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.core.rng import rng_scope
from framework.nn import functional as core
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.tensor import Tensor


@operation(name="scaled_dot_product_attention")
def _attention(query: Array, key: Array, value: Array, attn_mask: Array | None, is_causal: bool) -> Array:
    return core.scaled_dot_product_attention(query, key, value, attn_mask, 0.0, is_causal)


@operation(name="scaled_dot_product_attention")
def _attention_with_dropout(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    draw: Key,
    dropout_p: float,
    is_causal: bool,
) -> Array:
    with rng_scope(draw):
        return core.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    training: bool = True,
    name: str | None = None,
) -> Tensor:
    """softmax(q k' / sqrt(D) + mask) v of [N, T, heads, D]; a boolean mask says what is visible, another is added."""
    if dropout_p and training:
        return _attention_with_dropout(query, key, value, attn_mask, float(dropout_p), is_causal)
    return _attention(query, key, value, attn_mask, is_causal)


@operation
def sparse_attention(
    query: Array,
    key: Array,
    value: Array,
    sparse_csr_offset: Array,
    sparse_csr_columns: Array,
    key_padding_mask: Array | None = None,
    attn_mask: Array | None = None,
    name: str | None = None,
) -> Array:
    """Attention of [N, heads, T, D] where each query sees the keys that a CSR pattern names: offset [N, heads, T + 1],
    columns [N, heads, nnz]. The masks hide keys [N, T] or pairs [T, T] where they are 0. Computed dense."""
    length = query.shape[2]
    places = jnp.arange(sparse_csr_columns.shape[-1], dtype=sparse_csr_offset.dtype)

    def visible(offset: jax.Array, columns: jax.Array) -> jax.Array:
        rows = jnp.searchsorted(offset, places, side="right") - 1
        inside = places < offset[-1]
        return jnp.zeros((length, length), bool).at[rows, columns].max(inside, mode="drop")

    mask = jax.vmap(jax.vmap(visible))(sparse_csr_offset, sparse_csr_columns)
    if key_padding_mask is not None:
        mask = mask & (key_padding_mask != 0)[:, None, None, :]
    if attn_mask is not None:
        mask = mask & (attn_mask != 0)
    heads = [jnp.swapaxes(a, 1, 2) for a in (query, key, value)]
    return jnp.swapaxes(core.scaled_dot_product_attention(*heads, attn_mask=mask), 1, 2)
