"""SASRec and BERT4Rec: attention over the items that a user took, in one direction and in both.

Paper: Kang and McAuley 2018, https://arxiv.org/abs/1808.09781; Sun et al. 2019, https://arxiv.org/abs/1904.06690
Reference: RecBole recbole/model/sequential_recommender/{sasrec,bert4rec}.py (structure and sizes); PaddleRec has
    SASRec's kin TiSASRec alone
Differs: as RecBole, blocks normalise behind the sum and have GELU, where SASRec's paper normalises the queries before
    and has ReLU; the task's loss is the softmax over all items, with which SASRec is on a par with BERT4Rec
    (https://arxiv.org/abs/2309.07602), and `loss_name: bce` is the paper's. Items stand at the end of a window.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Contract


@dataclass(frozen=True)
class SASRecConfig:
    """Sizes are RecBole's.

    Attributes:
        num_items: Without padding.
        max_length: Items of a window.
        dropout, attention_dropout: Of vectors and of attention.
    """

    num_items: int
    hidden_size: int = 64
    inner_size: int = 256
    num_layers: int = 2
    num_heads: int = 2
    max_length: int = 50
    dropout: float = 0.5
    attention_dropout: float = 0.5

    def __post_init__(self) -> None:
        sizes = (
            self.num_items,
            self.hidden_size,
            self.inner_size,
            self.num_layers,
            self.num_heads,
            self.max_length,
        )
        if min(sizes) < 1 or self.hidden_size % self.num_heads:
            raise ConfigError(
                "a size of the network is out of range",
                where=type(self).__name__.removesuffix("Config"),
                received=f"{sizes}",
                allowed="sizes from 1, hidden_size a multiple of num_heads",
            )


@dataclass(frozen=True)
class BERT4RecConfig(SASRecConfig):
    """See SASRecConfig; the table has one row more, for hidden items."""


def _linear(width_in: int, width_out: int) -> nn.Linear:
    return nn.Linear(width_in, width_out, weight_attr=I.Normal(std=0.02))


class Block(nn.Layer):
    """Attention and a feed-forward part of [N, T, D], each added and normalised."""

    def __init__(self, config: SASRecConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_heads
        self.query, self.key, self.value = (_linear(width, width) for _ in range(3))
        self.dense, self.dense_1, self.dense_2 = (
            _linear(width, width),
            _linear(width, config.inner_size),
            _linear(config.inner_size, width),
        )
        self.norm_1, self.norm_2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.dropout = nn.Dropout(config.dropout)
        self.attention_dropout = nn.Dropout(config.attention_dropout)

    def forward(self, x: jax.Array, hidden: jax.Array) -> jax.Array:
        count, length, width = x.shape
        query, key, value = (
            layer(x).reshape(count, length, self.heads, -1) for layer in (self.query, self.key, self.value)
        )
        scores = jnp.einsum("nqhd,nkhd->nhqk", query, key) / (width // self.heads) ** 0.5
        weights = self.attention_dropout(F.softmax(jnp.where(hidden, -1e9, scores)))
        y = jnp.einsum("nhqk,nkhd->nqhd", weights, value).reshape(count, length, width)
        x = self.norm_1(x + self.dropout(self.dense(y)))
        return self.norm_2(x + self.dropout(self.dense_2(F.gelu(self.dense_1(x)))))


class SequenceEncoder(nn.Layer):
    """Items [N, T] to vectors [N, T, D]: the table, positions, and blocks."""

    def __init__(self, config: SASRecConfig, rows: int, causal: bool) -> None:
        super().__init__()
        init = I.Normal(std=0.02)
        self.causal, self.max_length = causal, config.max_length
        self.item_embedding = nn.Embedding(rows, config.hidden_size, 0, weight_attr=init)
        self.position_embedding = nn.Embedding(config.max_length, config.hidden_size, weight_attr=init)
        self.layer_norm = nn.LayerNorm(config.hidden_size, 1e-12)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.LayerList([Block(config) for _ in range(config.num_layers)])

    def forward(self, items: jax.Array) -> jax.Array:
        length = items.shape[1]
        positions = self.position_embedding.weight[self.max_length - length :]
        x = self.dropout(self.layer_norm(self.item_embedding(items) + positions))
        hidden = (items == 0)[:, None, None, :]
        if self.causal:
            hidden = hidden | ~jnp.tril(jnp.ones((length, length), bool))
        for layer in self.layers:
            x = layer(x, hidden)
        return x


@register("model", config=SASRecConfig)
class SASRec(nn.Model[SASRecConfig]):
    """A SequenceModel."""

    contract = Contract(tested_in=("tests/unit/zoo/recommendation/test_sequences.py",))

    def __init__(self, config: SASRecConfig) -> None:
        super().__init__(config)
        self.encoder = SequenceEncoder(config, config.num_items + 1, causal=True)

    def forward(self, items: jax.Array) -> jax.Array:
        return self.encoder(items)

    def item_vectors(self) -> jax.Array:
        """[V + 1, D], tied to the table."""
        return self.encoder.item_embedding.weight


@register("model", config=BERT4RecConfig)
class BERT4Rec(nn.Model[BERT4RecConfig]):
    """A SequenceModel that sees both directions; `masked` of NextItem hides items for it."""

    contract = Contract(tested_in=("tests/unit/zoo/recommendation/test_sequences.py",))

    def __init__(self, config: BERT4RecConfig) -> None:
        super().__init__(config)
        self.encoder = SequenceEncoder(config, config.num_items + 2, causal=False)

    def forward(self, items: jax.Array) -> jax.Array:
        return self.encoder(items)

    def item_vectors(self) -> jax.Array:
        """[V + 2, D], tied to the table; the last row is that of hidden items."""
        return self.encoder.item_embedding.weight
