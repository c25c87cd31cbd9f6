"""Two texts, each read by one and the same encoder: a classifier compares the means of their tokens.

Paper: Sentence-BERT, Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084
Reference: PaddleNLP slm/examples/text_matching/sentence_transformers (`SentenceTransformer`)
Differs: nothing in the function computed.
Weights: PaddleNLP's; its name for the encoder, `ptm`, is understood.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn.functional.slopes import absolute
from nlp.contracts import Tokens
from nlp.layers.encoder_model import ClassifierConfig, EncoderModel


@dataclass(frozen=True)
class SentenceTransformerConfig(ClassifierConfig):
    """See ClassifierConfig. `dropout` is that of the encoder's tokens."""


@register("model", config=SentenceTransformerConfig)
class SentenceTransformer(EncoderModel[SentenceTransformerConfig]):
    """A Matcher."""

    apart = True

    def __init__(self, config: SentenceTransformerConfig) -> None:
        super().__init__(config, config.encoder, config.dropout)
        self.classifier = nn.Linear(3 * self.size.hidden_size, config.num_classes)

    def forward(self, tokens: Tokens, pair: Tokens) -> jax.Array:
        """Logits [N, num_classes] float32."""
        u, v = (self.mean(self.dropout(self.encode(text).hidden), text.mask) for text in (tokens, pair))
        return self.classifier(jnp.concatenate([u, v, absolute(u - v)], axis=-1)).astype(jnp.float32)
