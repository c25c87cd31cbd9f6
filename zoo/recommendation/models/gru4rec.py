"""GRU4Rec: a recurrent network over the items that a user took.

Paper: Hidasi et al. 2016, https://arxiv.org/abs/1511.06939; Tan et al. 2016, https://arxiv.org/abs/1606.08117
Reference: RecBole recbole/model/sequential_recommender/gru4rec.py (structure and sizes)
Differs: sequences are of users and not batched in parallel; the loss is the task's: the softmax over all items, as
    RecBole's, or `loss_name: bpr`.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import initializer as I
from zoo.contracts import Contract


@dataclass(frozen=True)
class GRU4RecConfig:
    """`num_items` without padding, widths of vectors and of the network."""

    num_items: int
    embedding_size: int = 64
    hidden_size: int = 128
    num_layers: int = 1
    dropout: float = 0.3

    def __post_init__(self) -> None:
        sizes = (self.num_items, self.embedding_size, self.hidden_size, self.num_layers)
        if min(sizes) < 1 or not 0 <= self.dropout < 1:
            raise ConfigError(
                "a setting of the network is out of range",
                where="GRU4Rec",
                received=f"{sizes}, dropout {self.dropout}",
                allowed="sizes from 1, 0 <= dropout < 1",
            )


@register("model", config=GRU4RecConfig)
class GRU4Rec(nn.Model[GRU4RecConfig]):
    """A SequenceModel."""

    contract = Contract(tested_in=("tests/unit/zoo/recommendation/test_sequences.py",))

    def __init__(self, config: GRU4RecConfig) -> None:
        super().__init__(config)
        rows = config.num_items + 1
        self.item_embedding = nn.Embedding(rows, config.embedding_size, 0, weight_attr=I.XavierNormal())
        self.emb_dropout = nn.Dropout(config.dropout)
        self.gru_layers = nn.GRU(config.embedding_size, config.hidden_size, config.num_layers)
        self.dense = nn.Linear(config.hidden_size, config.embedding_size)

    def forward(self, items: jax.Array) -> jax.Array:
        # The network must not run over the padding in front: it is put behind the items, and back.
        length = items.shape[1]
        padding = (items == 0).sum(axis=1, keepdims=True)
        steps = jnp.arange(length, dtype=padding.dtype)[None]
        items = jnp.take_along_axis(items, (steps + padding) % length, axis=1)
        hidden, _ = self.gru_layers(self.emb_dropout(self.item_embedding(items)))
        vectors = self.dense(hidden)
        return jnp.take_along_axis(vectors, ((steps - padding) % length)[..., None], axis=1)

    def item_vectors(self) -> jax.Array:
        """[V + 1, D], tied to the table."""
        return self.item_embedding.weight
