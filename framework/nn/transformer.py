"""MultiHeadAttention and the Transformer with Paddle's names: q_proj, k_proj, v_proj, out_proj, linear1, norm1, ...

Source: Vaswani et al. 2017. Sequences are [N, T, C].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework.core.errors import ShapeError
from framework.core.types import PyTree
from framework.nn import functional as F
from framework.nn import transformer_blocks as blocks
from framework.nn.common import Linear
from framework.nn.containers import LayerList
from framework.nn.functional.attention import additive_mask, write_keys_values
from framework.nn.layer import AttrLike, Layer
from framework.nn.leaf_layers import Dropout
from framework.nn.norm import LayerNorm

_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "tanh": F.tanh}


class MultiHeadAttention(Layer):
    """Attention of `query` over `key` and `value` in `num_heads` subspaces.

    `forward` returns the output, or a tuple with the weights [N, heads, Tq, Tk] when `need_weights` and with the new
    cache when one is given. Masks are those of `functional.scaled_dot_product_attention`.
    """

    class Cache(NamedTuple):
        """Keys and values [N, T, heads, D] of earlier steps; each call appends its own."""

        k: jax.Array
        v: jax.Array

    class StaticCache(NamedTuple):
        """Keys and values [N, T, heads, D] of an encoder, projected once."""

        k: jax.Array
        v: jax.Array

    class FixedCache(NamedTuple):
        """Room for keys and values [N, T, heads, D], for compiled loops. A call writes its own from `place` on, an
        int32 []; each of its queries sees what stands up to its own place, where `attn_mask` allows it, too."""

        k: jax.Array
        v: jax.Array
        place: jax.Array | int

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        kdim: int | None = None,
        vdim: int | None = None,
        need_weights: bool = False,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ShapeError(
                "embed_dim divides into heads",
                where="MultiHeadAttention",
                received=f"embed_dim {embed_dim}, num_heads {num_heads}",
                allowed="a multiple of num_heads",
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(kdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(vdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def _heads(self, x: jax.Array) -> jax.Array:
        return x.reshape(*x.shape[:2], self.num_heads, self.head_dim)

    def compute_kv(self, key: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Projected keys and values, [N, T, heads, D] each."""
        return self._heads(self.k_proj(key)), self._heads(self.v_proj(value))

    def gen_cache(self, key: jax.Array, value: PyTree = None, type: type | None = None) -> PyTree:
        """For the batch of `key` an empty Cache, or FixedCache of `value` tokens, or a StaticCache of key and value."""
        if type is MultiHeadAttention.FixedCache:
            room = jnp.zeros((key.shape[0], value, self.num_heads, self.head_dim), key.dtype)
            return self.FixedCache(room, room, 0)
        if type is MultiHeadAttention.StaticCache:
            return self.StaticCache(*self.compute_kv(key, key if value is None else value))
        if value is not None:
            return self.Cache(key, value)
        empty = jnp.zeros((key.shape[0], 0, self.num_heads, self.head_dim), key.dtype)
        return self.Cache(empty, empty)

    def forward(
        self,
        query: jax.Array,
        key: jax.Array | None = None,
        value: jax.Array | None = None,
        attn_mask: jax.Array | None = None,
        cache: PyTree = None,
    ) -> PyTree:
        key = query if key is None else key
        value = query if value is None else value
        q = self._heads(self.q_proj(query))
        if isinstance(cache, self.StaticCache):
            k, v = cache
        else:
            k, v = self.compute_kv(key, value)
        if isinstance(cache, self.Cache):
            k, v = jnp.concatenate([cache.k, k], 1), jnp.concatenate([cache.v, v], 1)
            cache = self.Cache(k, v)
        elif isinstance(cache, self.FixedCache):
            cache, attn_mask = self._write(cache, k, v, attn_mask)
            k, v, _ = cache
        extra: tuple = () if cache is None else (cache,)
        if self.need_weights:
            mixed, weights = F.attention_with_weights(
                q, k, v, attn_mask, self.dropout, training=self.training
            )
            extra = (weights, *extra)
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask, self.dropout, training=self.training)
        out = self.out_proj(mixed.reshape(*mixed.shape[:2], self.embed_dim))
        return (out, *extra) if extra else out

    def _write(
        self, cache: FixedCache, k: jax.Array, v: jax.Array, attn_mask: jax.Array | None
    ) -> tuple[FixedCache, jax.Array]:
        """The cache with these keys and values, and the mask that hides what stands behind each query."""
        place, count, room = cache.place, k.shape[1], cache.k.shape[1]
        k, v = write_keys_values((cache.k, cache.v), (k, v), place)
        past = jnp.arange(room) <= (jnp.arange(count) + place)[:, None]  # [Tq, T]
        mask = past if attn_mask is None else additive_mask(attn_mask) + additive_mask(past)
        return self.FixedCache(k, v, place + count), mask


def _activation(name: str, where: str) -> Callable[[jax.Array], jax.Array]:
    if name not in _ACTIVATIONS:
        raise ShapeError(
            "unknown activation",
            where=where,
            received=repr(name),
            allowed=", ".join(_ACTIVATIONS),
        )
    return _ACTIVATIONS[name]


_KINDS = blocks.Kinds(MultiHeadAttention, Linear, Dropout, LayerNorm, LayerList, _activation)


class TransformerEncoderLayer(blocks.EncoderLayer, Layer):
    """Self-attention and a feed-forward part, each with a residual; `normalize_before` puts the norms first."""

    kinds = _KINDS


class TransformerDecoderLayer(blocks.DecoderLayer, Layer):
    """Self-attention, attention over the encoder's output and a feed-forward part, each with a residual."""

    kinds = _KINDS


class TransformerEncoder(blocks.Encoder, Layer):
    """`num_layers` encoder layers and an optional norm."""

    kinds = _KINDS


class TransformerDecoder(blocks.Decoder, Layer):
    """`num_layers` decoder layers and an optional norm."""

    kinds = _KINDS


class Transformer(blocks.EncoderDecoder, Layer):
    """Encoder and decoder, each ending in a LayerNorm."""

    parts = (TransformerEncoderLayer, TransformerEncoder, TransformerDecoderLayer, TransformerDecoder)

    @staticmethod
    def generate_square_subsequent_mask(length: int) -> jax.Array:
        """[length, length] to add to scores: 0 up to the query's own position, -inf beyond."""
        return jnp.where(jnp.tril(jnp.ones((length, length), bool)), 0.0, -jnp.inf)
