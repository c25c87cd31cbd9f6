"""BiGRU-CRF: an embedding, a bidirectional GRU and a linear-chain CRF over the tags.

Paper: https://arxiv.org/abs/1807.01882 (LAC, with characters); https://arxiv.org/abs/1508.01991
Reference: PaddleNLP taskflow/models/lexical_analysis_model.py (`BiGruCrf`)
Differs: dropout of the embedding and of the GRU's outputs, 0 by default; a token may be a sum of features, which with
    `direct` also score the tags by themselves, as in a linear CRF: what few sentences teach best. `feature_dropout`
    leaves whole features out.
Weights: the state dict of LAC holds its GRU and its transitions several times; the first names are ours, see nn.GRU.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import initializer as I
from nlp.contracts import Tokens
from nlp.layers.crf import LinearChainCRF
from nlp.layers.token_embedding import embed
from zoo.contracts import Contract


@dataclass(frozen=True)
class BiGRUCRFConfig:
    """The defaults are LAC's but for its vocabulary of 58,222 words and 57 tags.

    Attributes:
        vocab_size: Token ids, or features, are below it; 0 is padding.
        num_classes: Tags.
        crf_learning_rate: Factor of the learning rate for the transitions.
        direct: Add each feature's own score of each tag to the emissions.
        feature_dropout: Share of the tokens, or of their features, that training leaves out.
    """

    vocab_size: int
    num_classes: int
    embedding_dim: int = 128
    hidden_size: int = 128
    num_layers: int = 2
    dropout: float = 0.0
    crf_learning_rate: float = 0.2
    direct: bool = False
    feature_dropout: float = 0.0

    def __post_init__(self) -> None:
        sizes = (self.vocab_size, self.num_classes, self.embedding_dim, self.hidden_size, self.num_layers)
        if min(sizes) < 1 or not 0 <= self.dropout < 1 or not 0 <= self.feature_dropout < 1:
            raise ConfigError(
                "a setting of the network is out of range",
                where="BiGRUCRF",
                received=f"sizes {sizes}, dropout {self.dropout}, feature_dropout {self.feature_dropout}",
                allowed="sizes from 1, 0 <= dropout < 1 and 0 <= feature_dropout < 1",
            )


@register("model", config=BiGRUCRFConfig)
class BiGRUCRF(nn.Model[BiGRUCRFConfig]):
    """A Tagger whose tags are chosen together."""

    state_renames = ((r"^(?:crf_loss\.crf|viterbi_decoder)\.transitions$", "crf.transitions"),)

    contract = Contract(fields={"direct": True})

    def __init__(self, config: BiGRUCRFConfig) -> None:
        super().__init__(config)
        uniform = nn.ParamAttr(initializer=I.Uniform(-0.1, 0.1))
        self.word_embedding = nn.Embedding(config.vocab_size, config.embedding_dim, weight_attr=uniform)
        self.dropout = nn.Dropout(config.dropout)
        self.feature_dropout = nn.Dropout(config.feature_dropout)
        self.gru = nn.GRU(
            config.embedding_dim,
            config.hidden_size,
            config.num_layers,
            direction="bidirect",
            dropout=config.dropout,
        )
        self.fc = nn.Linear(2 * config.hidden_size, config.num_classes + 2)
        if config.direct:
            zeros = nn.ParamAttr(initializer=I.Constant(0.0))
            self.direct = nn.Embedding(config.vocab_size, config.num_classes + 2, weight_attr=zeros)
        self.crf = LinearChainCRF(config.num_classes, config.crf_learning_rate)

    def forward(self, tokens: Tokens) -> jax.Array:
        """Emissions [N, T, num_classes + 2]; the last two columns are LinearChainCRF's STOP and START."""
        weights = self.feature_dropout(jnp.ones(tokens.ids.shape, jnp.float32)) if self.training else None
        x = self.dropout(embed(self.word_embedding, tokens.ids, weights))
        x, _ = self.gru(x, sequence_length=tokens.mask.sum(axis=1))
        emissions = self.fc(self.dropout(x))
        return emissions + embed(self.direct, tokens.ids, weights) if self.config.direct else emissions

    def loss(self, tokens: Tokens, tags: jax.Array) -> jax.Array:
        return self.crf.loss(self(tokens), tags, tokens.mask).mean()

    def tag(self, tokens: Tokens) -> tuple[jax.Array, jax.Array]:
        """The probabilities are the CRF's marginals of the chosen tags."""
        emissions = self(tokens)
        tags, _ = self.crf.decode(emissions, tokens.mask)
        return tags, self.crf.marginals(emissions, tags, tokens.mask)
