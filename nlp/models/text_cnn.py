"""TextCNN: convolutions of several widths over the tokens, and the largest value of each over the text.

Paper: https://arxiv.org/abs/1408.5882
Reference: PaddleNLP examples/sentiment_analysis/textcnn (`TextCNNModel`, on `CNNEncoder` of paddlenlp.seq2vec)
Differs: what is padded takes no part in the maximum, so a text's result does not depend on its batch; dropout, 0 by
    default.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from nlp.contracts import Tokens
from nlp.layers.token_embedding import embed


@dataclass(frozen=True)
class TextCNNConfig:
    """`widths` of the filters in tokens, `filters` of each width, `hidden_size` of the layer before the classifier."""

    vocab_size: int
    num_classes: int = 2
    embedding_dim: int = 128
    filters: int = 128
    widths: tuple[int, ...] = (1, 2, 3)
    hidden_size: int = 96
    dropout: float = 0.0

    def __post_init__(self) -> None:
        sizes = (self.vocab_size, self.num_classes, self.embedding_dim, self.filters, self.hidden_size)
        if min(sizes) < 1 or not self.widths or min(self.widths) < 1 or not 0 <= self.dropout < 1:
            raise ConfigError(
                "a setting of the network is out of range",
                where="TextCNN",
                received=f"sizes {sizes}, widths {self.widths}, dropout {self.dropout}",
                allowed="sizes and widths from 1, 0 <= dropout < 1",
            )


class WidthEncoder(nn.Layer):
    """[N, T, D] -> [N, len(widths) * filters]. Each convolution reads `width` tokens, `convs.<i>.weight` [filters, 1,
    width, D]; text that is shorter than the widest filter is padded with zeros."""

    def __init__(self, embedding_dim: int, filters: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.widths = widths
        self.convs = nn.LayerList([nn.Conv2D(1, filters, (width, embedding_dim)) for width in widths])

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        x = jnp.where(mask[..., None], x, 0)
        widest = max(self.widths)
        x = jnp.pad(x, ((0, 0), (0, widest - 1), (0, 0)))
        pooled = []
        for width, conv in zip(self.widths, self.convs):
            # A filter may begin at every token that leaves room for its width, and at the first one in any case.
            count = mask.shape[1]
            weight = conv.weight[:, 0]  # [filters, width, D]
            windows = [x[:, place : place + count] @ weight[:, place].T for place in range(width)]
            values = jnp.tanh(sum(windows[1:], windows[0]) + conv.bias)
            last = jnp.maximum(mask.sum(axis=1) - width, 0)
            begins = jnp.arange(count) <= last[:, None]
            pooled.append(jnp.where(begins[..., None], values, -1.0).max(axis=1))
        return jnp.concatenate(pooled, axis=-1)


@register("model", config=TextCNNConfig)
class TextCNN(nn.Model[TextCNNConfig]):
    """A TextClassifier."""

    def __init__(self, config: TextCNNConfig) -> None:
        super().__init__(config)
        self.embedder = nn.Embedding(config.vocab_size, config.embedding_dim)
        self.encoder = WidthEncoder(config.embedding_dim, config.filters, config.widths)
        self.dropout = nn.Dropout(config.dropout)
        self.fc = nn.Linear(config.filters * len(config.widths), config.hidden_size)
        self.output_layer = nn.Linear(config.hidden_size, config.num_classes)

    def forward(self, tokens: Tokens) -> jax.Array:
        x = self.dropout(embed(self.embedder, tokens.ids))
        x = F.tanh(self.fc(self.dropout(self.encoder(x, tokens.mask))))
        return self.output_layer(self.dropout(x))
