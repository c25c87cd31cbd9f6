"""Transformer: an encoder and a decoder of attention, that writes one text for another, such as a translation.

Paper: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762
Reference: PaddleNLP paddlenlp/transformers/transformer/modeling.py (`TransformerModel`)
Differs: as upstream, and unlike the paper, normalisation stands before attention and feed-forward parts
    (`normalize_before`), and the sines and cosines of positions stand side by side. Unlike upstream's, these are not
    trained, and padding is known from a mask, not by the number of a token.
Weights: upstream's names; with `weight_sharing` its files hold the shared tables a second time, as the target's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError, ShapeError
from framework.nn import functional as F
from framework.nn import initializer as I
from nlp.contracts import Step, Tokens
from zoo.layers.variants import check_variant

Caches = list[tuple[jax.Array, jax.Array]]
"""Of each layer of the decoder the keys and values [N * K, max_length, heads, D] so far."""


class Size(NamedTuple):
    """What a variant says. Each entry can be set in the config as well."""

    hidden_size: int
    num_heads: int
    num_layers: int
    """Of the encoder, and of the decoder."""
    feed_forward: int
    dropout: float


# Table 3 of the paper: the rows "base" and "big". "small" is ours, for some ten thousand sentences.
VARIANTS = {
    "small": Size(256, 4, 2, 512, 0.1),
    "base": Size(512, 8, 6, 2048, 0.1),
    "big": Size(1024, 16, 6, 4096, 0.3),
}


@dataclass(frozen=True)
class TransformerConfig:
    """A row of VARIANTS; what is not None replaces an entry of it.

    Attributes:
        vocab_size: Of the source; token numbers are below it.
        target_vocab_size: None: that of the source.
        max_length: Positions: no text has more tokens, with those that begin and end it.
        weight_sharing: One table embeds source and target and scores the target's words. It needs one vocabulary.
        pad_id: Its embedding is zero. Upstream's own models take `bos_id` for it, which is then zero, too.
        bos_id, eos_id: What begins a target, and what ends it. These defaults are those of `Tokenizer.train`.
    """

    vocab_size: int
    target_vocab_size: int | None = None
    variant: str = "base"
    hidden_size: int | None = None
    num_heads: int | None = None
    num_layers: int | None = None
    feed_forward: int | None = None
    dropout: float | None = None
    max_length: int = 256
    weight_sharing: bool = True
    normalize_before: bool = True
    pad_id: int = 0
    bos_id: int = 2
    eos_id: int = 3

    @property
    def target_size(self) -> int:
        return self.vocab_size if self.target_vocab_size is None else self.target_vocab_size

    @property
    def size(self) -> Size:
        """The row of VARIANTS with this config's own entries."""
        changed = {name: getattr(self, name) for name in Size._fields if getattr(self, name) is not None}
        return VARIANTS[self.variant]._replace(**changed)

    def __post_init__(self) -> None:
        check_variant("Transformer", self.variant, VARIANTS)
        size, smallest = self.size, min(self.vocab_size, self.target_size)
        special = (self.pad_id, self.bos_id, self.eos_id)
        checks = {
            "sizes": (min(*size[:4], self.max_length) > 0, "1 or more"),
            "num_heads": (
                size.num_heads < 1 or size.hidden_size % size.num_heads == 0,
                "a divisor of hidden_size",
            ),
            "dropout": (0 <= size.dropout < 1, "from 0, below 1"),
            "pad_id, bos_id, eos_id": (
                min(special) >= 0 and max(special) < smallest,
                "tokens of both vocabularies",
            ),
            "weight_sharing": (
                not self.weight_sharing or self.vocab_size == self.target_size,
                "one vocabulary, or weight_sharing: false",
            ),
        }
        for name, (is_right, allowed) in checks.items():
            if not is_right:
                raise ConfigError(
                    "a setting of the network is out of range",
                    where=f"Transformer.{name}",
                    received=f"{size}, {self}",
                    allowed=allowed,
                )


def sinusoids(length: int, width: int) -> np.ndarray:
    """[length, width] float32: sines, then cosines, of wavelengths from 2 pi to 10,000 * 2 pi.

    Source: section 3.5 of the paper; the order of tensor2tensor and of upstream.
    """
    scales = 10_000.0 ** -(np.arange(width // 2) / max(1, width // 2 - 1))
    angles = np.arange(length)[:, None] * scales
    waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return np.pad(waves, ((0, 0), (0, width % 2))).astype(np.float32)


class WordEmbedding(nn.Layer):
    """[...] int32 -> [..., width], of unit variance."""

    def __init__(self, vocab_size: int, width: int, pad_id: int) -> None:
        super().__init__()
        normal = nn.ParamAttr(initializer=I.Normal(0.0, width**-0.5))
        self.scale = width**0.5
        self.word_embedding = nn.Embedding(vocab_size, width, padding_idx=pad_id, weight_attr=normal)

    def forward(self, ids: jax.Array) -> jax.Array:
        return self.word_embedding(ids) * self.scale


class PositionalEmbedding(nn.Layer):
    """[...] int32 positions -> [..., width]."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.length = length
        self.pos_encoder = nn.Layer()  # the waves of positions, which are not trained
        self.pos_encoder.register_buffer("weight", jnp.asarray(sinusoids(length, width)))

    def forward(self, positions: jax.Array) -> jax.Array:
        return F.embedding(positions, self.pos_encoder.weight)


@register("model", config=TransformerConfig)
class Transformer(nn.Model[TransformerConfig]):
    """A SequenceToSequence: reads one text and writes another, token by token."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        size = config.size
        width = size.hidden_size
        self.src_word_embedding = WordEmbedding(config.vocab_size, width, config.pad_id)
        self.src_pos_embedding = PositionalEmbedding(config.max_length, width)
        if config.weight_sharing:
            self.state_renames = ((r"^trg_(word|pos)_embedding\.", r"src_\1_embedding."),)  # type: ignore[misc]
        else:
            self.trg_word_embedding = WordEmbedding(config.target_size, width, config.pad_id)
            self.trg_pos_embedding = PositionalEmbedding(config.max_length, width)
            self.linear = nn.Linear(width, config.target_size, bias_attr=False)
        self.dropout = nn.Dropout(size.dropout)
        sizes = (width, size.num_heads, size.feed_forward, size.dropout)
        first = config.normalize_before
        encoder = nn.TransformerEncoderLayer(*sizes, normalize_before=first)
        decoder = nn.TransformerDecoderLayer(*sizes, normalize_before=first)
        # What normalises behind its residuals needs no norm at the end.
        ends = [nn.LayerNorm(width) if first else None for _ in range(2)]
        self.transformer = nn.Transformer(
            width,
            size.num_heads,
            custom_encoder=nn.TransformerEncoder(encoder, size.num_layers, ends[0]),
            custom_decoder=nn.TransformerDecoder(decoder, size.num_layers, ends[1]),
        )

    def embed(self, ids: jax.Array, of_target: bool, first: jax.Array | int = 0) -> jax.Array:
        """[N, T] int32 whose first token is at position `first` -> [N, T, C]."""
        length = ids.shape[1]
        if isinstance(length, int) and length > self.config.max_length:
            raise ShapeError(
                "the text has more tokens than the model has positions",
                where="Transformer",
                received=length,
                allowed=f"max_length: {self.config.max_length}",
                fix="cut texts with Tokenize's max_length, or set model.max_length",
            )
        side = "trg" if of_target and not self.config.weight_sharing else "src"
        words = getattr(self, f"{side}_word_embedding")(ids)
        return self.dropout(words + getattr(self, f"{side}_pos_embedding")(jnp.arange(length) + first))

    def encode(self, tokens: Tokens) -> jax.Array:
        """[N, T, C]"""
        return self.transformer.encoder(self.embed(tokens.ids, False), tokens.mask[:, None, None])

    def score(self, hidden: jax.Array) -> jax.Array:
        """[..., C] -> logits [..., target_vocab_size] float32."""
        if not self.config.weight_sharing:
            return self.linear(hidden).astype(jnp.float32)
        words = self.src_word_embedding.word_embedding.weight
        return F.matmul(hidden, words, transpose_y=True).astype(jnp.float32)

    def forward(self, tokens: Tokens, target: Tokens) -> jax.Array:
        """Logits [N, S, target_vocab_size] of what follows each token of the target, which begins with `bos_id`."""
        memory = self.encode(tokens)  # [N, T, C]
        positions = jnp.arange(target.ids.shape[1])
        past = (positions[:, None] >= positions)[None, None]  # [1, 1, S, S]
        x = self.embed(target.ids, True)  # [N, S, C]
        return self.score(self.transformer.decoder(x, memory, past, tokens.mask[:, None, None]))

    def start(self, tokens: Tokens, beam_size: int, max_length: int) -> tuple[Step[Caches], Caches]:
        """See SequenceToSequence."""
        memory = _repeat(self.encode(tokens), beam_size)  # [N * K, T, C]
        visible = _repeat(tokens.mask, beam_size)[:, None, None]
        decoder = self.transformer.decoder
        read = [layer.gen_cache(memory)[1] for layer in decoder.layers]
        attention = nn.MultiHeadAttention
        empty = [
            layer.self_attn.gen_cache(memory, max_length, attention.FixedCache) for layer in decoder.layers
        ]

        def step(ids: jax.Array, place: jax.Array, state: Caches) -> tuple[jax.Array, Caches]:
            x = self.embed(ids[:, None], True, place)  # [N * K, 1, C]
            caches = [(attention.FixedCache(k, v, place), static) for (k, v), static in zip(state, read)]
            hidden, caches = decoder(x, memory, None, visible, caches)
            return self.score(hidden[:, 0]), [(own.k, own.v) for own, _ in caches]

        return step, [(own.k, own.v) for own in empty]


def _repeat(x: jax.Array, count: int) -> jax.Array:
    """[N, ...] -> [N * count, ...], each row `count` times in succession."""
    shape = x.shape
    return jnp.broadcast_to(x[:, None], (shape[0], count, *shape[1:])).reshape(shape[0] * count, *shape[1:])
