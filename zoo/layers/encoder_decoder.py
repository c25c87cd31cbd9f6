"""What networks with an encoder and a decoder of texts share: the cache of a decoder that also sees a source text.

Paper: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn.functional.attention import additive_mask
from zoo.layers.decoder import Cache, write_cache
from zoo.layers.decoder_config import DecoderConfig, DecoderSize
from zoo.layers.pretrained_model import ConfigT, PretrainedModel

Attend = Callable[[jax.Array], jax.Array]


@dataclass(frozen=True)
class EncoderDecoderSize(DecoderSize):
    """What a variant says besides. `num_layers`, `num_heads` and `intermediate_size` are those of the encoder.

    Attributes:
        decoder_layers, decoder_heads, decoder_intermediate: 0: as the encoder's.
        start_id: The token that a text begins with in the decoder.
        forced_end_id: The token that a text ends with where it reaches the longest length; -1: none.
    """

    decoder_layers: int = 0
    decoder_heads: int = 0
    decoder_intermediate: int = 0
    start_id: int = 0
    forced_end_id: int = -1


@dataclass(frozen=True)
class EncoderDecoderConfig(DecoderConfig):
    """See DecoderConfig and EncoderDecoderSize."""

    size_type = EncoderDecoderSize

    decoder_layers: int | None = None
    decoder_heads: int | None = None
    decoder_intermediate: int | None = None
    start_id: int | None = None
    forced_end_id: int | None = None

    def size(self) -> EncoderDecoderSize:
        size = super().size()
        assert isinstance(size, EncoderDecoderSize)
        return size


class SourceCache(NamedTuple):
    """Of a layer of the decoder: its own keys and values [N, S, H, D], and those of the source [N, R, H, D]."""

    k: jax.Array
    v: jax.Array
    source_k: jax.Array
    source_v: jax.Array
    source_mask: jax.Array
    """[N, R] bool: where the source has tokens"""


class View(NamedTuple):
    """What the tokens of a call see."""

    target: jax.Array | None
    """What is added to the scores of the tokens of the target, broadcast to [N, H, T, S]; None: nothing"""
    source: jax.Array | None
    """[N, 1, 1, R] bool"""


class AttentionProjections(nn.Layer):
    """Queries, keys and values of [N, T, C] by heads, and the product behind the attention.

    Args:
        names: Of the layers of queries, keys, values and the output.
        scale: Of the scores; None: 1 / sqrt(depth).
    """

    def __init__(
        self,
        names: Sequence[str],
        layers: Sequence[nn.Linear],
        heads: int,
        dropout: float,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        self.names, self.heads, self.dropout, self.scale = tuple(names), heads, dropout, scale
        for name, layer in zip(names, layers, strict=True):
            setattr(self, name, layer)

    def _heads(self, name: str, x: jax.Array) -> jax.Array:
        return getattr(self, name)(x).reshape(*x.shape[:2], self.heads, -1)

    def queries(self, x: jax.Array) -> jax.Array:
        """[N, T, C] -> [N, T, H, D]"""
        return self._heads(self.names[0], x)

    def pairs(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Keys and values of [N, T, C], [N, T, H, D] each."""
        return self._heads(self.names[1], x), self._heads(self.names[2], x)

    def attend(self, q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array | None) -> jax.Array:
        """[N, T, C] of queries [N, T, H, D], keys and values [N, S, H, D]."""
        dropped = self.dropout if self.training else 0.0
        values = F.scaled_dot_product_attention(q, k, v, mask, dropped, False, self.training, self.scale)
        return getattr(self, self.names[3])(values.reshape(*values.shape[:2], -1))

    def forward(self, x: jax.Array, memory: jax.Array, mask: jax.Array | None) -> jax.Array:
        """What tokens x [N, T, C] take from `memory` [N, S, C]; `mask` is broadcast to [N, H, T, S]."""
        return self.attend(self.queries(x), *self.pairs(memory), mask)


class TargetBlock(nn.Layer):
    """Base of a block of the decoder: attention to the target, attention to the source, and a feed-forward part."""

    @property
    def target(self) -> AttentionProjections:
        """The attention to the target."""
        raise NotImplementedError(f"{type(self).__name__}.own")

    @property
    def source(self) -> AttentionProjections:
        """The attention to the source."""
        raise NotImplementedError(f"{type(self).__name__}.source")

    def run(self, x: jax.Array, target: Attend, source: Attend) -> jax.Array:
        """The parts on [N, T, C] in their order, with their norms; `target` and `source` attend."""
        raise NotImplementedError(f"{type(self).__name__}.run")

    def forward(self, x: jax.Array, memory: jax.Array, view: View) -> jax.Array:
        return self.run(
            x, lambda y: self.target(y, y, view.target), lambda y: self.source(y, memory, view.source)
        )

    def decode(
        self, x: jax.Array, positions: jax.Array, view: View, cache: SourceCache
    ) -> tuple[jax.Array, SourceCache]:
        """As `forward`, for tokens [N, T] at `positions` behind those of the cache; and the cache with them."""
        after = cache

        def target(y: jax.Array) -> jax.Array:
            nonlocal after
            k, v = self.target.pairs(y)
            k, v = write_cache(cache.k, k, positions), write_cache(cache.v, v, positions)
            after = cache._replace(k=k, v=v)
            return self.target.attend(
                self.target.queries(y), k.astype(y.dtype), v.astype(y.dtype), view.target
            )

        def source(y: jax.Array) -> jax.Array:
            k, v = cache.source_k.astype(y.dtype), cache.source_v.astype(y.dtype)
            return self.source.attend(self.source.queries(y), k, v, view.source)

        return self.run(x, target, source), after

    def start_cache(self, memory: jax.Array, mask: jax.Array, length: int) -> SourceCache:
        """Of a target of at most `length` tokens."""
        k, v = self.source.pairs(memory)
        empty = jnp.zeros((len(memory), length, *k.shape[2:]), k.dtype)
        return SourceCache(empty, empty, k, v, mask)


class EncoderDecoder(PretrainedModel[ConfigT], Generic[ConfigT]):
    """Base of the networks that write a text from a source text.

    `forward` is for training and evaluation; to generate, `encode` the source, `start_cache`, and `decode` from
    `size.start_id` on.
    """

    def encode(self, ids: jax.Array, mask: jax.Array | None = None) -> jax.Array:
        """The source ids [N, R] int32 -> memory [N, R, hidden_size]; `mask` [N, R] bool is False at padding."""
        raise NotImplementedError(f"{type(self).__name__}.encode")

    def target_blocks(self) -> Sequence[TargetBlock]:
        """Those of the decoder."""
        raise NotImplementedError(f"{type(self).__name__}.target_blocks")

    def embed_target(self, ids: jax.Array, positions: jax.Array) -> jax.Array:
        """Tokens [N, T] at positions [N or 1, T] -> [N, T, hidden_size]"""
        raise NotImplementedError(f"{type(self).__name__}.embed_target")

    def normalize_target(self, x: jax.Array) -> jax.Array:
        """What stands behind the last block of the decoder."""
        return x

    def target_bias(self, positions: jax.Array, length: int) -> jax.Array | None:
        """What is added to the scores of tokens at positions [N or 1, T] for those of the target before them:
        [N or 1, H, T, length]; None: nothing."""
        return None

    def forward(self, ids: jax.Array, decoder_ids: jax.Array, mask: jax.Array | None = None) -> jax.Array:
        """Logits [N, T, vocab_size] float32 of what follows each token of the target.

        Args:
            ids: [N, R] int32, the source; `mask` [N, R] bool is False where it is padding.
            decoder_ids: [N, T] int32, the target behind `size.start_id`.
        """
        return self.logits(self.hidden(ids, decoder_ids, mask))

    def hidden(self, ids: jax.Array, decoder_ids: jax.Array, mask: jax.Array | None = None) -> jax.Array:
        """[N, T, hidden_size] behind the decoder. See `forward`."""
        if ids.ndim != 2 or decoder_ids.ndim != 2:
            raise ShapeError(
                "a source and a target of one id a token",
                where=type(self).__name__,
                received=f"{ids.shape}, {decoder_ids.shape}",
                allowed="[N, R], [N, T]",
            )
        memory = self.encode(ids, mask)
        positions = jnp.arange(decoder_ids.shape[1])[None]
        view = self._view(positions, decoder_ids.shape[1], mask)
        x = self.embed_target(decoder_ids, positions)
        for block in self.target_blocks():
            x = block(x, memory, view)
        return self.normalize_target(x)

    def _view(self, positions: jax.Array, length: int, mask: jax.Array | None) -> View:
        visible = (jnp.arange(length) <= positions[..., None])[:, None]  # [N or 1, 1, T, S]
        bias = self.target_bias(positions, length)
        if bias is not None:
            visible = bias + additive_mask(visible)
        return View(visible, None if mask is None else mask[:, None, None])

    def start_cache(self, memory: jax.Array, mask: jax.Array | None, length: int) -> Cache:
        """The cache of a target of at most `length` tokens for the source that `encode` gave `memory` [N, R,
        hidden_size] of; `mask` [N, R] bool is False at padding."""
        mask = jnp.ones(memory.shape[:2], bool) if mask is None else mask
        return tuple(block.start_cache(memory, mask, length) for block in self.target_blocks())

    def decode(self, ids: jax.Array, positions: jax.Array, cache: Cache) -> tuple[jax.Array, Cache]:
        """Hidden states [N, T, hidden_size] of tokens of the target, at their positions in the cache. See
        `Decoder.decode`."""
        first = cache[0]
        assert isinstance(first, SourceCache)
        view = self._view(positions, first.k.shape[1], first.source_mask)
        x, layers = self.embed_target(ids, positions), []
        for block, layer in zip(self.target_blocks(), cache, strict=True):
            x, layer = block.decode(x, positions, view, layer)
            layers.append(layer)
        return self.normalize_target(x), tuple(layers)
