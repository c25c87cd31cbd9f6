"""MultiHeadAttention and the Transformer with Paddle's names: q_proj, k_proj, v_proj, out_proj, linear1, norm1, ...

Source: Vaswani et al. 2017. Sequences are [N, T, C].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework.core.errors import ShapeError
from framework.core.types import PyTree
from framework.nn import functional as F
from framework.nn.common import Linear
from framework.nn.containers import LayerList
from framework.nn.functional.attention import additive_mask, write_keys_values
from framework.nn.layer import AttrLike, Layer
from framework.nn.leaf_layers import Dropout
from framework.nn.norm import LayerNorm

Attrs = AttrLike | Sequence[AttrLike]  # one for all modules, or one for each

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
        mixed, weights = F.attention_with_weights(q, k, v, attn_mask, self.dropout, training=self.training)
        out = self.out_proj(mixed.reshape(*mixed.shape[:2], self.embed_dim))
        extra = ((weights,) if self.need_weights else ()) + ((cache,) if cache is not None else ())
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


def _per_module(attr: Attrs, count: int) -> list[AttrLike]:
    """Paddle's weight_attr: one for all modules, or a list with one for each."""
    if attr is None or isinstance(attr, AttrLike):
        return [attr] * count
    if len(attr) != count:
        raise ShapeError("one attr for each module", received=f"{len(attr)} attrs", allowed=f"1 or {count}")
    return list(attr)


class _Block(Layer):
    """What encoder and decoder layers share: attentions and a feed-forward part, and the residual order."""

    _attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Attrs = None,
        bias_attr: Attrs = None,
    ) -> None:
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        super().__init__()
        self._config = config
        if activation not in _ACTIVATIONS:
            raise ShapeError(
                "unknown activation",
                where=type(self).__name__,
                received=repr(activation),
                allowed=", ".join(_ACTIVATIONS),
            )
        self.activation, self.normalize_before = _ACTIVATIONS[activation], normalize_before
        parts = len(self._attentions) + 1
        weights, biases = _per_module(weight_attr, parts), _per_module(bias_attr, parts)
        attn = dropout if attn_dropout is None else attn_dropout
        for name, weight, bias in zip(self._attentions, weights, biases):
            attention = MultiHeadAttention(d_model, nhead, attn, weight_attr=weight, bias_attr=bias)
            self.add_sublayer(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, weights[-1], biases[-1])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[-1], biases[-1])
        for number in range(1, parts + 1):
            self.add_sublayer(f"norm{number}", LayerNorm(d_model))
        for number in range(1, parts + 1):
            self.add_sublayer(f"dropout{number}", Dropout(dropout))

    def _residual(
        self, x: jax.Array, norm: Layer, dropout: Layer, inner: Callable[[jax.Array], jax.Array]
    ) -> jax.Array:
        if self.normalize_before:
            return x + dropout(inner(norm(x)))
        return norm(x + dropout(inner(x)))

    def _attend(
        self,
        x: jax.Array,
        norm: Layer,
        dropout: Layer,
        attention: Layer,
        mask: jax.Array | None,
        cache: PyTree,
        memory: jax.Array | None = None,
    ) -> tuple[jax.Array, PyTree]:
        """The residual of an attention over `memory`, or over x itself, and the new cache where there is one."""
        new_cache = cache

        def attend(x: jax.Array) -> jax.Array:
            nonlocal new_cache
            over = x if memory is None else memory
            out = attention(x, over, over, mask, cache)
            if cache is None:
                return out
            new_cache = out[-1]
            return out[0]

        return self._residual(x, norm, dropout, attend), new_cache

    def _feed_forward(self, x: jax.Array) -> jax.Array:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Block):
    """Self-attention and a feed-forward part, each with a residual; `normalize_before` puts the norms first."""

    _attentions = ("self_attn",)

    def forward(self, src: jax.Array, src_mask: jax.Array | None = None, cache: PyTree = None) -> PyTree:
        """src [N, T, d_model]; with a cache the result is (output, new cache)."""
        x, new_cache = self._attend(src, self.norm1, self.dropout1, self.self_attn, src_mask, cache)
        x = self._residual(x, self.norm2, self.dropout2, self._feed_forward)
        return x if cache is None else (x, new_cache)

    def gen_cache(self, src: jax.Array) -> MultiHeadAttention.Cache:
        return self.self_attn.gen_cache(src)


class TransformerDecoderLayer(_Block):
    """Self-attention, attention over the encoder's output and a feed-forward part, each with a residual."""

    _attentions = ("self_attn", "cross_attn")

    def forward(
        self,
        tgt: jax.Array,
        memory: jax.Array,
        tgt_mask: jax.Array | None = None,
        memory_mask: jax.Array | None = None,
        cache: PyTree = None,
    ) -> PyTree:
        """tgt [N, T, d_model], memory [N, S, d_model]; with a cache pair the result is (output, new pair)."""
        growing, static = (None, None) if cache is None else cache
        x, new_cache = self._attend(tgt, self.norm1, self.dropout1, self.self_attn, tgt_mask, growing)
        x, _ = self._attend(x, self.norm2, self.dropout2, self.cross_attn, memory_mask, static, memory)
        x = self._residual(x, self.norm3, self.dropout3, self._feed_forward)
        return x if cache is None else (x, (new_cache, static))

    def gen_cache(self, memory: jax.Array) -> tuple[PyTree, PyTree]:
        """(empty self-attention cache, projected keys and values of the memory)."""
        static = self.cross_attn.gen_cache(memory, memory, MultiHeadAttention.StaticCache)
        return self.self_attn.gen_cache(memory), static


class _Stack(Layer):
    """What the two stacks of layers share."""

    def __init__(self, layer: _Block, num_layers: int, norm: Layer | None) -> None:
        super().__init__()
        # Of one class and configuration, each with its own initial values.
        self.layers = LayerList([layer, *(type(layer)(**layer._config) for _ in range(num_layers - 1))])
        self.num_layers = num_layers
        self.norm = norm

    def _run(self, x: jax.Array, inputs: tuple[jax.Array | None, ...], cache: PyTree) -> PyTree:
        caches = []
        for i, layer in enumerate(self.layers):
            if cache is None:
                x = layer(x, *inputs)
            else:
                x, new = layer(x, *inputs, cache[i])
                caches.append(new)
        x = x if self.norm is None else self.norm(x)
        return x if cache is None else (x, caches)

    def gen_cache(self, x: jax.Array) -> list[PyTree]:
        """A cache for each layer, of the encoder's input or the decoder's memory."""
        return [layer.gen_cache(x) for layer in self.layers]


class TransformerEncoder(_Stack):
    """`num_layers` encoder layers and an optional norm."""

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Layer | None = None
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src: jax.Array, src_mask: jax.Array | None = None, cache: PyTree = None) -> PyTree:
        """src [N, T, d_model]; with a list of caches the result is (output, new caches)."""
        return self._run(src, (src_mask,), cache)


class TransformerDecoder(_Stack):
    """`num_layers` decoder layers and an optional norm."""

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Layer | None = None
    ) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: jax.Array,
        memory: jax.Array,
        tgt_mask: jax.Array | None = None,
        memory_mask: jax.Array | None = None,
        cache: PyTree = None,
    ) -> PyTree:
        """tgt [N, T, d_model], memory [N, S, d_model]; with a list of caches the result is (output, new caches)."""
        return self._run(tgt, (memory, tgt_mask, memory_mask), cache)


class Transformer(Layer):
    """Encoder and decoder, each ending in a LayerNorm."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Attrs = None,
        bias_attr: Attrs = None,
        custom_encoder: Layer | None = None,
        custom_decoder: Layer | None = None,
    ) -> None:
        super().__init__()
        shared = (dropout, activation, attn_dropout, act_dropout, normalize_before)
        if custom_encoder is None:
            first = TransformerEncoderLayer(d_model, nhead, dim_feedforward, *shared, weight_attr, bias_attr)
            custom_encoder = TransformerEncoder(first, num_encoder_layers, LayerNorm(d_model))
        if custom_decoder is None:
            last = TransformerDecoderLayer(d_model, nhead, dim_feedforward, *shared, weight_attr, bias_attr)
            custom_decoder = TransformerDecoder(last, num_decoder_layers, LayerNorm(d_model))
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead = d_model, nhead

    def forward(
        self,
        src: jax.Array,
        tgt: jax.Array,
        src_mask: jax.Array | None = None,
        tgt_mask: jax.Array | None = None,
        memory_mask: jax.Array | None = None,
    ) -> jax.Array:
        """src [N, S, d_model], tgt [N, T, d_model] -> [N, T, d_model]."""
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)

    @staticmethod
    def generate_square_subsequent_mask(length: int) -> jax.Array:
        """[length, length] to add to scores: 0 up to the query's own position, -inf beyond."""
        return jnp.where(jnp.tril(jnp.ones((length, length), bool)), 0.0, -jnp.inf)
