"""MultiHeadAttention and the Transformer. Source: Vaswani et al. 2017. Sequences are [N, T, C]."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from framework import paddle
from framework.nn import transformer_blocks as blocks
from framework.nn.functional.attention import attention_values, attention_weights
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.arguments import DTypeLike
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.errors import AssertedError
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.nn.common import Linear
from framework.paddle.nn.containers import LayerList
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.leaf_layers import Dropout
from framework.paddle.nn.norm import LayerNorm
from framework.paddle.nn.param_attr import ParamAttr

if TYPE_CHECKING:
    from framework.paddle.nn.param_attr import AttrLike


def _attend(
    q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array | None, thin: Any
) -> tuple[jax.Array, jax.Array]:
    """q [N, heads, Tq, D], k and v [N, heads, Tk, D] -> (out [N, Tq, heads * D], weights [N, heads, Tq, Tk])."""
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
    weights = thin(attention_weights(query.astype(key.dtype), key, mask))
    return attention_values(weights, value).reshape(*query.shape[:2], -1), weights


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


def _convert_attention_mask(attn_mask: Tensor | None, dtype: DTypeLike) -> Tensor | None:
    """A mask to add to scores, of one that is so already or says with 0 and False what is not attended to.

    Packages that derive from the layers below call it by this name.
    """
    if attn_mask is None or attn_mask.dtype == dtype:
        return attn_mask
    if attn_mask.is_floating_point():
        return attn_mask.astype(dtype)
    return (attn_mask.astype(dtype) - 1.0) * 1e9


def _convert_param_attr_to_list(param_attr: AttrLike | Sequence[AttrLike], n: int) -> list[ParamAttr | bool]:
    """One attribute for each of `n` layers: those of a list, else copies, whose names get numbers.

    Packages that derive from the layers below call it by this name.

    Raises:
        AssertionError: the list has another length.
    """
    if isinstance(param_attr, list | tuple):
        assert len(param_attr) == n, f"length of param_attr should be {n} when it is a list/tuple"
        return [ParamAttr._to_attr(one) for one in param_attr]
    attributes = [copy.deepcopy(ParamAttr._to_attr(param_attr)) for _ in range(n)]  # type: ignore[arg-type]
    for number, one in enumerate(attributes):
        if isinstance(one, ParamAttr) and one.name:
            one.name = f"{one.name}_{number}"
    return attributes


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
        weight_attr: AttrLike | Sequence[AttrLike] = None,
        bias_attr: AttrLike | Sequence[AttrLike] = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise AssertedError(
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

    def _prepare_qkv(
        self, query: Tensor, key: Tensor, value: Tensor, cache: object = None
    ) -> tuple[object, ...]:
        """Queries, keys and values by head, [N, heads, T, D]; with a cache also the new one.

        `forward` calls it, so that a layer that derives from this one turns its queries and keys by position here.
        """
        q = _split_heads(self.q_proj(query), self.num_heads)
        k, v = (cache.k, cache.v) if isinstance(cache, self.StaticCache) else self.compute_kv(key, value)
        if isinstance(cache, self.Cache):
            cache = self.Cache(paddle.concat([cache.k, k], 2), paddle.concat([cache.v, v], 2))
            k, v = cache
        return (q, k, v) if cache is None else (q, k, v, cache)

    def compute_kv(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values by head, [N, heads, T, D]."""
        return (
            _split_heads(self.k_proj(key), self.num_heads),
            _split_heads(self.v_proj(value), self.num_heads),
        )

    def gen_cache(self, key: Tensor, value: Tensor | None = None, type: object = _Cache) -> Any:
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
        cache: object = None,
    ) -> Any:
        key = query if key is None else key
        value = query if value is None else value  # not the key: Paddle's default
        q, k, v, *new_cache = self._prepare_qkv(query, key, value, cache)
        if self.training and self.dropout:
            out, weights = _attention_dropout(q, k, v, attn_mask, float(self.dropout))
        else:
            out, weights = _attention(q, k, v, attn_mask)
        results = [self.out_proj(out)]
        if self.need_weights:
            results.append(weights)
        results.extend(new_cache)
        return results[0] if len(results) == 1 else tuple(results)


_KINDS = blocks.Kinds(
    MultiHeadAttention, Linear, Dropout, LayerNorm, LayerList, lambda name, where: getattr(F, name)
)


class TransformerEncoderLayer(blocks.EncoderLayer, Layer):
    """Self-attention and an MLP, each with a residual connection and a norm."""

    kinds = _KINDS


class TransformerDecoderLayer(blocks.DecoderLayer, Layer):
    """Self-attention, attention over the encoder's output and an MLP."""

    kinds = _KINDS


class TransformerEncoder(blocks.Encoder, Layer):
    """A stack of encoder layers: the given one and copies of it with their own parameters."""

    kinds = _KINDS


class TransformerDecoder(blocks.Decoder, Layer):
    """A stack of decoder layers: the given one and copies of it with their own parameters."""

    kinds = _KINDS


@operation(name="triu", differentiable=False)
def _subsequent(length: int, dtype: str) -> Array:
    return jnp.triu(jnp.full((length, length), -jnp.inf, types.to_numpy(dtype)), 1)


class Transformer(blocks.EncoderDecoder, Layer):
    """An encoder of `src` and a decoder of `tgt` that looks at it; `forward` returns [N, Tt, d_model]."""

    parts = (TransformerEncoderLayer, TransformerEncoder, TransformerDecoderLayer, TransformerDecoder)

    def generate_square_subsequent_mask(self, length: int) -> Tensor:
        """[length, length]: 0 where a step may look, -inf at later ones."""
        return _subsequent(length, types.get_default_dtype())


_complete(__name__)
