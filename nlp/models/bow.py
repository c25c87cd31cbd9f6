"""BOW: a bag of words, the sum of their vectors, under two layers.

Paper: https://arxiv.org/abs/1607.01759 (the simplest of the kind)
Reference: PaddleNLP examples/sentiment_analysis (`BoWModel`, on `BoWEncoder` of paddlenlp.seq2vec)
Differs: dropout, 0 by default.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from nlp.contracts import Tokens
from nlp.layers.token_embedding import check_network, embed


@dataclass(frozen=True)
class BOWConfig:
    """`hidden_size` and `fc_hidden_size` are those of the layers behind the sum."""

    vocab_size: int
    num_classes: int = 2
    embedding_dim: int = 128
    hidden_size: int = 128
    fc_hidden_size: int = 96
    dropout: float = 0.0

    def __post_init__(self) -> None:
        sizes = (self.vocab_size, self.num_classes, self.embedding_dim, self.hidden_size, self.fc_hidden_size)
        check_network("BOW", sizes, self.dropout)


@register("model", config=BOWConfig)
class BOW(nn.Model[BOWConfig]):
    """A TextClassifier."""

    def __init__(self, config: BOWConfig) -> None:
        super().__init__(config)
        self.embedder = nn.Embedding(config.vocab_size, config.embedding_dim)
        self.dropout = nn.Dropout(config.dropout)
        self.fc1 = nn.Linear(config.embedding_dim, config.hidden_size)
        self.fc2 = nn.Linear(config.hidden_size, config.fc_hidden_size)
        self.output_layer = nn.Linear(config.fc_hidden_size, config.num_classes)

    def forward(self, tokens: Tokens) -> jax.Array:
        x = embed(self.embedder, tokens.ids)
        x = F.tanh(self.dropout(jnp.where(tokens.mask[..., None], x, 0).sum(axis=1)))
        x = F.tanh(self.fc1(x))
        return self.output_layer(F.tanh(self.fc2(self.dropout(x))))
