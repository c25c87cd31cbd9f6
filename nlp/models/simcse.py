"""SimCSE: an embedding for each text, so that texts of one meaning have a high cosine.

Paper: Gao et al. 2021, https://arxiv.org/abs/2104.08821
Reference: PaddleNLP slm/examples/text_matching/simcse (`SimCSE`)
Differs: the loss is the task's, `InBatchNegatives`.
Weights: PaddleNLP's; its name for the encoder, `ptm`, is understood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import Kind, register
from framework.nn import functional as F
from framework.nn import initializer as I
from nlp.contracts import Tokens
from nlp.layers.encoder_model import EncoderModel, check_head
from zoo.layers.text_encoder import TextEncoderConfig


@dataclass(frozen=True)
class SimCSEConfig:
    """`encoder` is a TextEncoder; `dropout` of the embeddings is the encoder's where None.

    `embedding_size` is its width: a linear layer makes it; where None the encoder's is taken.
    """

    encoder: Annotated[TextEncoderConfig, Kind("backbone")]
    embedding_size: int | None = None
    dropout: float | None = None

    def __post_init__(self) -> None:
        check_head(1 if self.embedding_size is None else self.embedding_size, self.dropout, "SimCSE")


@register("model", config=SimCSEConfig)
class SimCSE(EncoderModel[SimCSEConfig]):
    """A TextEmbedder, and a Matcher: the cosine. Without a pooler it reads the first token."""

    apart = True

    def __init__(self, config: SimCSEConfig) -> None:
        super().__init__(config, config.encoder, config.dropout)
        if config.embedding_size is not None:
            start = I.TruncatedNormal(std=0.02)
            self.emb_reduce_linear = nn.Linear(self.size.hidden_size, config.embedding_size, start)

    def embed(self, tokens: Tokens) -> jax.Array:
        x = self.first(tokens)
        if self.config.embedding_size is not None:
            x = self.emb_reduce_linear(x)
        return F.normalize(self.dropout(x).astype(jnp.float32), axis=-1)

    def forward(self, tokens: Tokens, pair: Tokens) -> jax.Array:
        """Cosines [N] float32 in [-1, 1]."""
        return (self.embed(tokens) * self.embed(pair)).sum(axis=-1)
