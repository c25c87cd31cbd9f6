"""Two texts, each read by one and the same encoder: a classifier compares the means of their tokens.

Paper: Sentence-BERT, Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084
Reference: PaddleNLP slm/examples/text_matching/sentence_transformers (`SentenceTransformer`)
Differs: nothing in the function computed.
Weights: PaddleNLP's; its name for the encoder, `ptm`, is understood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import Kind, register
from nlp.contracts import Tokens
from nlp.layers.encoder_model import EncoderModel, check_head
from zoo.layers.text_encoder import TextEncoderConfig


@dataclass(frozen=True)
class SentenceTransformerConfig:
    """`encoder` is a TextEncoder; `dropout` of its tokens is the encoder's where None."""

    encoder: Annotated[TextEncoderConfig, Kind("backbone")]
    num_classes: int = 2
    dropout: float | None = None

    def __post_init__(self) -> None:
        check_head(self.num_classes, self.dropout, "SentenceTransformer")


@register("model", config=SentenceTransformerConfig)
class SentenceTransformer(EncoderModel):
    """A Matcher."""

    apart = True

    def __init__(self, config: SentenceTransformerConfig) -> None:
        super().__init__(config.encoder, config.dropout)
        self.config = config
        self.classifier = nn.Linear(3 * self.size.hidden_size, config.num_classes)

    def forward(self, tokens: Tokens, pair: Tokens) -> jax.Array:
        """Logits [N, num_classes] float32."""
        u, v = (self.mean(self.dropout(self.encode(text).hidden), text.mask) for text in (tokens, pair))
        return self.classifier(jnp.concatenate([u, v, jnp.abs(u - v)], axis=-1)).astype(jnp.float32)
