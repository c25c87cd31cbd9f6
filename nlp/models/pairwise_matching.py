"""How well a title fits a query, from what an encoder makes of both in one row: learnt from which of two fits better.

Reference: PaddleNLP slm/examples/text_matching/ernie_matching (`PairwiseMatching`)
Differs: the loss is the task's, `PairwiseRanking`. Upstream's `PointwiseMatching` is our SequenceClassifier.
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
from nlp.contracts import Tokens
from nlp.layers.encoder_model import EncoderModel, check_head
from zoo.layers.text_encoder import TextEncoderConfig


@dataclass(frozen=True)
class PairwiseMatchingConfig:
    """`encoder` is a TextEncoder; `dropout` before the score is the encoder's where None."""

    encoder: Annotated[TextEncoderConfig, Kind("backbone")]
    dropout: float | None = None

    def __post_init__(self) -> None:
        check_head(1, self.dropout, "PairwiseMatching")


@register("model", config=PairwiseMatchingConfig)
class PairwiseMatching(EncoderModel[PairwiseMatchingConfig]):
    """Reads two texts in one row. Without a pooler it reads the first token."""

    def __init__(self, config: PairwiseMatchingConfig) -> None:
        super().__init__(config, config.encoder, config.dropout)
        self.similarity = nn.Linear(self.size.hidden_size, 1)

    def forward(self, tokens: Tokens) -> jax.Array:
        """[N] float32 in [0, 1]"""
        return F.sigmoid(self.similarity(self.dropout(self.first(tokens)))[:, 0].astype(jnp.float32))
