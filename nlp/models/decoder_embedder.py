"""An embedding for each text from a decoder: the state of its last token, as Qwen3-Embedding, gte-Qwen2 and E5-mistral.

Papers: Wang et al. 2024, https://arxiv.org/abs/2401.00368; Zhang et al. 2025, https://arxiv.org/abs/2506.05176
Reference: sentence-transformers' Transformer, Pooling and Normalize on AutoModel
Differs: texts are padded at the end, not at the beginning; with a mask that is the same.
Weights: of a decoder of zoo.decoder; its `lm_head` is left out.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import build
from nlp.contracts import Tokens
from nlp.layers.embedding_head import DenseConfig, EmbeddingHead, Pooling, pool
from zoo.layers.decoder import Decoder
from zoo.layers.decoder_config import DecoderConfig


class DecoderEmbedder(nn.Layer):
    """A TextEmbedder.

    Args:
        decoder: Its words should be tied: no scores of words are needed.
        causal: A token sees those before it; else all of the text, as those of gte-Qwen2 do.
    """

    def __init__(
        self,
        decoder: DecoderConfig,
        pooling: Pooling,
        dense: tuple[DenseConfig, ...],
        normalized: bool,
        causal: bool = True,
    ) -> None:
        super().__init__()
        self.causal = causal
        self.decoder: Decoder = build(decoder)
        self.pooling: Pooling = pooling
        self.dense = EmbeddingHead(self.decoder.size.hidden_size, dense, normalized)

    @property
    def vocab_size(self) -> int:
        """Numbers of tokens are below it."""
        return self.decoder.size.vocab_size

    @property
    def max_tokens(self) -> int:
        """The longest text that the model was made for."""
        return self.decoder.size.longest_text

    def embed(self, tokens: Tokens) -> jax.Array:
        """[N, D] float32"""
        return self.dense(pool(self.hidden(tokens), tokens.mask, self.pooling))

    def hidden(self, tokens: Tokens) -> jax.Array:
        """[N, T, C] behind the last norm"""
        if self.causal:
            return self.decoder.hidden(tokens.ids)
        positions = jnp.arange(tokens.ids.shape[1])[None]
        at = self.decoder.see_segments(positions, None)
        mask = tokens.mask[:, None, None, :]  # [N, 1, 1, T]
        at = at._replace(mask=mask, near=None if at.near is None else mask)
        stack = self.decoder.stack
        x = self.decoder.embed(tokens.ids, positions)
        return stack.normalize(nn.run_blocks(stack.blocks(), x, at))

    def forward(self, tokens: Tokens) -> jax.Array:
        return self.embed(tokens)
