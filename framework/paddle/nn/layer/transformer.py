"""MultiHeadAttention and the Transformer. Source: Vaswani et al. 2017. Sequences are [N, T, C]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from framework import paddle
from framework.core.errors import ShapeError
from framework.nn.functional.attention import attention_values, attention_weights
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.nn.common import Linear
from framework.paddle.nn.containers import LayerList
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.leaf_layers import Dropout
from framework.paddle.nn.norm import LayerNorm


def _attend(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array | None, thin: Any) -> Any:
    """q [N, Tq, E], k and v [N, heads, Tk, D] -> (out [N, Tq, heads * D], weights [N, heads, Tq, Tk])."""
    key, value = jnp.swapaxes(k, 1, 2), jnp.swapaxes(v, 1, 2)
    query = q.reshape(*q.shape[:2], *key.shape[2:]).astype(key.dtype)
    weights = thin(attention_weights(query, key, mask))
    return attention_values(weights, value).reshape(*q.shape[:2], -1), weights


@operation(name="attention")
def _attention(q: Array, k: Array, v: Array, mask: Array | None) -> tuple[Array, Array]:
    return _attend(q, k, v, mask, lambda weights: weights)


@operation(name="attention")
def _attention_dropout(
    q: Array, k: Array, v: Array, mask: Array | None, rate: Array, key: Key
) -> tuple[Array, Array]:
    def thin(weights: jax.Array) -> jax.Array:
        keep = jax.random.bernoulli(key, 1 - rate, weights.shape)
        return jnp.where(keep, weights / (1 - rate), 0).astype(weights.dtype)

    return _attend(q, k, v, mask, thin)


@operation(name="split_heads")
def _split_heads(x: Array, num_heads: int) -> Array:
    """[N, T, heads * D] -> [N, heads, T, D]."""
    return x.reshape(*x.shape[:2], num_heads, -1).transpose(0, 2, 1, 3)


class _Cache(NamedTuple):
    """Keys and values [N, heads, T, D] of the steps so far; each call appends its own."""

    k: Any
    v: Any


class _StaticCache(NamedTuple):
    """Keys and values [N, heads, T, D] of an encoder, computed once."""

    k: Any
    v: Any


class MultiHeadAttention(Layer):
    """Attention of `query` over `key` and `value` in `num_heads` subspaces of `embed_dim` together.

    `forward` returns the output [N, Tq, E]; with `need_weights` also the weights [N, heads, Tq, Tk], and with a cache
    also the new one. A mask of booleans or integers hides where it is 0, a floating one is added to the scores.
    """

    Cache = _Cache
    StaticCache = _StaticCache

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        kdim: int | None = None,
        vdim: int | None = None,
        need_weights: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ShapeError(
                "the heads do not divide the embedding",
                where="nn.MultiHeadAttention",
                received=f"embed_dim {embed_dim}, num_heads {num_heads}",
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr=bias_attr)
        self.k_proj = Linear(self.kdim, embed_dim, weight_attr, bias_attr=bias_attr)
        self.v_proj = Linear(self.vdim, embed_dim, weight_attr, bias_attr=bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr=bias_attr)

    def compute_kv(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values by head, [N, heads, T, D]."""
        return (
            _split_heads(self.k_proj(key), self.num_heads),
            _split_heads(self.v_proj(value), self.num_heads),
        )

    def gen_cache(self, key: Tensor, value: Tensor | None = None, type: Any = _Cache) -> Any:
        """A cache to begin with.

        Args:
            type: `StaticCache` of `key` and `value` (by default `key`); `Cache` of nothing, for the batch of `key`,
                or of `key` and `value` where both are given, [N, heads, T, D].
        """
        if type is _StaticCache:
            return _StaticCache(*self.compute_kv(key, key if value is None else value))
        if value is not None:
            return _Cache(key, value)
        empty = [key.shape[0], self.num_heads, 0, self.head_dim]
        return _Cache(paddle.zeros(empty, key.dtype), paddle.zeros(empty, key.dtype))

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        attn_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        key = query if key is None else key
        value = key if value is None else value
        q = self.q_proj(query)
        if isinstance(cache, _StaticCache):
            k, v = cache
        else:
            k, v = self.compute_kv(key, value)
        if isinstance(cache, _Cache):
            cache = _Cache(paddle.concat([cache.k, k], 2), paddle.concat([cache.v, v], 2))
            k, v = cache
        if self.training and self.dropout:
            out, weights = _attention_dropout(q, k, v, attn_mask, float(self.dropout))
        else:
            out, weights = _attention(q, k, v, attn_mask)
        results = [self.out_proj(out)]
        if self.need_weights:
            results.append(weights)
        if cache is not None:
            results.append(cache)
        return results[0] if len(results) == 1 else tuple(results)


def _attrs(attr: Any, count: int) -> list[Any]:
    """What `weight_attr` says of each of `count` parts: one for all, or a list of one, or of as many."""
    given = list(attr) if isinstance(attr, list | tuple) else [attr]
    if len(given) == 1:
        return given * count
    if len(given) != count:
        raise ShapeError(
            "the list has neither one entry nor one for each part",
            where="weight_attr or bias_attr of a Transformer layer",
            received=len(given),
            allowed=f"1 or {count}",
        )
    return given


class _Block(Layer):
    """What encoder and decoder layers share: residual sub-layers with a norm before or after, and the MLP."""

    norms: int

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
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        # Copies of this layer, in an encoder or a decoder, are made from it.
        config = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__()
        self._config = config
        for name in ("d_model", "nhead", "dim_feedforward"):
            if config[name] <= 0:
                raise ShapeError(f"{name} is positive", where=type(self).__name__, received=config[name])
        self.normalize_before = normalize_before
        weights, biases = _attrs(weight_attr, self.norms), _attrs(bias_attr, self.norms)
        inner = dropout if attn_dropout is None else attn_dropout
        for number, name in enumerate(("self_attn", "cross_attn")[: self.norms - 1]):
            attrs = {"weight_attr": weights[number], "bias_attr": biases[number]}
            setattr(self, name, MultiHeadAttention(d_model, nhead, inner, **attrs))
        self.linear1 = Linear(d_model, dim_feedforward, weights[-1], bias_attr=biases[-1])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[-1], bias_attr=biases[-1])
        for number in range(1, self.norms + 1):
            setattr(self, f"norm{number}", LayerNorm(d_model))
        for number in range(1, self.norms + 1):
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.activation = getattr(F, activation)

    def _residual(self, x: Tensor, number: int, run: Callable[[Tensor], Tensor]) -> Tensor:
        """x + dropout(run(x)), with norm `number` of the input or of the result."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        if self.normalize_before:
            return x + dropout(run(norm(x)))
        return norm(x + dropout(run(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _with_cache(result: Any, cache: Any, kept: list[Any]) -> Any:
    """The output of an attention; the new cache goes to `kept`."""
    if cache is None:
        return result
    kept.append(result[-1])
    return result[0]


class TransformerEncoderLayer(_Block):
    """Self-attention and an MLP, each with a residual connection and a norm."""

    norms = 2
    self_attn: MultiHeadAttention

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Any = None) -> Any:
        """src [N, T, C]; with a cache (output, new cache)."""
        kept: list[Any] = []

        def attend(x: Tensor) -> Tensor:
            return _with_cache(self.self_attn(x, x, x, src_mask, cache), cache, kept)

        out = self._residual(self._residual(src, 1, attend), 2, self._feed_forward)
        return out if cache is None else (out, kept[0])

    def gen_cache(self, src: Tensor) -> Any:
        """An empty cache for the batch of `src`."""
        return self.self_attn.gen_cache(src, type=_Cache)


class TransformerDecoderLayer(_Block):
    """Self-attention, attention over the encoder's output and an MLP."""

    norms = 3
    self_attn: MultiHeadAttention
    cross_attn: MultiHeadAttention

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        """tgt [N, Tt, C], memory [N, Ts, C]; with a cache (output, (new cache, static cache))."""
        own, other = (None, None) if cache is None else cache
        kept: list[Any] = []

        def attend(x: Tensor) -> Tensor:
            return _with_cache(self.self_attn(x, x, x, tgt_mask, own), own, kept)

        def look(x: Tensor) -> Tensor:
            return _with_cache(self.cross_attn(x, memory, memory, memory_mask, other), other, kept)

        out = self._residual(self._residual(tgt, 1, attend), 2, look)
        out = self._residual(out, 3, self._feed_forward)
        return out if cache is None else (out, tuple(kept))

    def gen_cache(self, memory: Tensor) -> tuple[Any, Any]:
        """(an empty cache of its own steps, the keys and values of `memory`)."""
        own = self.self_attn.gen_cache(memory, type=_Cache)
        return own, self.cross_attn.gen_cache(memory, memory, type=_StaticCache)


class _Stack(Layer):
    """`num_layers` layers like the given one, and a norm at the end."""

    def __init__(self, layer: Any, num_layers: int, norm: Layer | None) -> None:
        super().__init__()
        copies = [type(layer)(**layer._config) for _ in range(num_layers - 1)]
        self.layers = LayerList([layer, *copies])
        self.num_layers, self.norm = num_layers, norm

    def _run(self, x: Tensor, cache: Any, call: Callable[[Layer, Tensor, Any], Any]) -> Any:
        caches = []
        for index, layer in enumerate(self.layers):
            if cache is None:
                x = call(layer, x, None)
            else:
                x, new = call(layer, x, cache[index])
                caches.append(new)
        if self.norm is not None:
            x = self.norm(x)
        return x if cache is None else (x, caches)


class TransformerEncoder(_Stack):
    """A stack of encoder layers: the given one and copies of it with their own parameters."""

    def __init__(self, encoder_layer: Any, num_layers: int, norm: Layer | None = None) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Any = None) -> Any:
        def call(layer: Layer, x: Tensor, own: Any) -> Any:
            return layer(x, src_mask=src_mask) if own is None else layer(x, src_mask=src_mask, cache=own)

        return self._run(src, cache, call)

    def gen_cache(self, src: Tensor) -> list[Any]:
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoder(_Stack):
    """A stack of decoder layers: the given one and copies of it with their own parameters."""

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Layer | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        def call(layer: Layer, x: Tensor, own: Any) -> Any:
            return layer(x, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, cache=own)

        return self._run(tgt, cache, call)

    def gen_cache(self, memory: Tensor, do_zip: bool = False) -> list[Any]:
        """One pair for each layer; with `do_zip` all own caches, then all static ones."""
        caches = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*caches, strict=True)) if do_zip else caches


@operation(name="triu", differentiable=False)
def _subsequent(length: int, dtype: str) -> Array:
    return jnp.triu(jnp.full((length, length), -jnp.inf, types.to_numpy(dtype)), 1)


def _for_parts(attr: Any, where: str) -> tuple[Any, Any]:
    """The `attr` of encoder layers (self-attention, MLP) and decoder layers (self-, cross-attention, MLP)."""
    if not isinstance(attr, list | tuple):
        return attr, attr
    if not 1 <= len(attr) <= 3:
        raise ShapeError("the list has one to three entries", where=where, received=len(attr))
    first, last = attr[0], attr[-1]
    return [first, last], list(attr) if len(attr) == 3 else [first, first, last]


class Transformer(Layer):
    """An encoder of `src` and a decoder of `tgt` that looks at it; `forward` returns [N, Tt, d_model]."""

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
        weight_attr: Any = None,
        bias_attr: Any = None,
        custom_encoder: Layer | None = None,
        custom_decoder: Layer | None = None,
    ) -> None:
        super().__init__()
        weights = _for_parts(weight_attr, "nn.Transformer(weight_attr)")
        biases = _for_parts(bias_attr, "nn.Transformer(bias_attr)")
        common = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout)
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*common, normalize_before, weights[0], biases[0])
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, LayerNorm(d_model))
        self.encoder = custom_encoder
        if custom_decoder is None:
            last = TransformerDecoderLayer(*common, normalize_before, weights[1], biases[1])
            custom_decoder = TransformerDecoder(last, num_decoder_layers, LayerNorm(d_model))
        self.decoder = custom_decoder
        self.d_model, self.nhead = d_model, nhead

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        memory = self.encoder(src, src_mask=src_mask)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask)

    def generate_square_subsequent_mask(self, length: int) -> Tensor:
        """[length, length]: 0 where a step may look, -inf at later ones."""
        return _subsequent(length, types.get_default_dtype())
