"""LightGCN: vectors of users and items that are spread over the graph of who took what, and nothing else is learned.

Paper: He et al. 2020, https://arxiv.org/abs/2002.02126
Reference: PaddleRec models/graph/{lightgcn.yaml,models/layers.py} (name, `emb_size`); RecBole
    recbole/model/general_recommender/lightgcn.py (structure, names of the tables)
Differs: PaddleRec adds up sampled neighbours of one hop without dividing by degrees (`use_degree_norm: False`) and
    keeps a share of the vector itself, within a heterogeneous network on a parameter server; here is the paper's form:
    all neighbours, E' = D^-1/2 A D^-1/2 E, and the mean of layers 0 to num_layers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import initializer as I
from zoo.contracts import Contract


@dataclass(frozen=True)
class LightGCNConfig:
    """Sizes are the paper's.

    Attributes:
        num_users, num_items: Of the tables, the items without padding.
        num_edges: Pairs of user and item in the training data.
        emb_size: Width of the vectors.
        num_layers: Hops over which they are spread.
    """

    num_users: int
    num_items: int
    num_edges: int
    emb_size: int = 64
    num_layers: int = 3

    def __post_init__(self) -> None:
        sizes = (self.num_users, self.num_items, self.num_edges, self.emb_size, self.num_layers)
        if min(sizes) < 1:
            raise ConfigError(
                "a size of the network is out of range",
                where="LightGCN",
                received=", ".join(map(str, sizes)),
                allowed="num_users, num_items, num_edges, emb_size and num_layers from 1",
            )


@register("model", config=LightGCNConfig)
class LightGCN(nn.Model[LightGCNConfig]):
    """A GraphRecommender."""

    contract = Contract(tested_in=("tests/unit/zoo/recommendation/test_graph.py",))

    def __init__(self, config: LightGCNConfig) -> None:
        super().__init__(config)
        width, edges = config.emb_size, config.num_edges
        self.user_embedding = nn.Embedding(config.num_users, width, weight_attr=I.XavierUniform())
        self.item_embedding = nn.Embedding(config.num_items + 1, width, weight_attr=I.XavierUniform())
        self.register_buffer("edge_users", np.zeros(edges, np.int32))
        self.register_buffer("edge_items", np.zeros(edges, np.int32))
        self.register_buffer("edge_weights", np.zeros(edges, np.float32))

    def set_edges(self, edges: np.ndarray) -> None:
        """Take the graph: pairs [num_edges, 2] of a user's row and an item's, each once. Raises: ConfigError."""
        if len(edges) != self.config.num_edges:
            raise ConfigError(
                "the model and the data have different numbers of pairs",
                where="model.num_edges",
                received=self.config.num_edges,
                allowed=len(edges),
                fix=f"-o model.num_edges={len(edges)}",
            )
        users, items = np.asarray(edges, np.int32)[np.lexsort((edges[:, 1], edges[:, 0]))].T
        degrees = [np.bincount(rows)[rows] for rows in (users, items)]
        weights = (1 / np.sqrt(degrees[0].astype(np.float64) * degrees[1])).astype(np.float32)
        for name, value in (("edge_users", users), ("edge_items", items), ("edge_weights", weights)):
            self._buffers[name] = value

    def forward(self) -> tuple[jax.Array, jax.Array]:
        config, weights = self.config, self.edge_weights[:, None]
        users, items = self.user_embedding.weight, self.item_embedding.weight
        user_sum, item_sum = users, items
        for _ in range(config.num_layers):
            users, items = (
                jax.ops.segment_sum(
                    items[self.edge_items] * weights,
                    self.edge_users,
                    config.num_users,
                    indices_are_sorted=True,
                ),
                jax.ops.segment_sum(users[self.edge_users] * weights, self.edge_items, config.num_items + 1),
            )
            user_sum, item_sum = user_sum + users, item_sum + items
        return user_sum / (config.num_layers + 1), item_sum / (config.num_layers + 1)

    def initial_vectors(self, users: jax.Array, items: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.user_embedding(users), self.item_embedding(items)

    def is_edge(self, users: jax.Array, items: jax.Array) -> jax.Array:
        # A binary search for the item among the edges of the user, which are sorted by both.
        low = jnp.searchsorted(self.edge_users, users, side="left")
        end = jnp.searchsorted(self.edge_users, users, side="right")
        high = end
        for _ in range(math.ceil(math.log2(self.config.num_edges + 1))):
            middle = (low + high) // 2
            before = (low < high) & (self._item_at(middle) < items)
            low, high = jnp.where(before, middle + 1, low), jnp.where(before, high, middle)
        return (low < end) & (self._item_at(low) == items)

    def _item_at(self, edges: jax.Array) -> jax.Array:
        """Of the edges by their number; behind the last one that of the last."""
        return jnp.take(self.edge_items, edges, mode="clip")

    def has_items(self) -> jax.Array:
        return jnp.zeros(self.config.num_users, bool).at[self.edge_users].set(True)

    def seen_items(self, users: jax.Array) -> jax.Array:
        count = users.shape[0]
        positions = jnp.full(self.config.num_users, count, jnp.int32)
        positions = positions.at[users].set(jnp.arange(count, dtype=jnp.int32))
        mask = jnp.zeros((count + 1, self.config.num_items + 1), bool)
        return mask.at[positions[self.edge_users], self.edge_items].set(True)[positions[users]]
