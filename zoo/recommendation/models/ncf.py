"""NeuMF: the product of a user's and an item's vectors, and a perceptron on others.

Paper: He et al. 2017, https://arxiv.org/abs/1708.05031
Reference: PaddleRec models/recall/ncf/net.py (`NCF_NeuMF_Layer`)
Differs: the last layer is as wide as its input for any `fc_layers`; upstream's takes the third size, which is the same
    for its own.
Weights: `state_dict()` has the names of PaddleRec's rec.pdparams.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Contract
from zoo.recommendation.contracts import Features
from zoo.recommendation.tables import TableConfig


@dataclass(frozen=True)
class NeuMFConfig(TableConfig):
    """Rows of both tables (`tables` of EncodeFeatures), width of the product, sizes of the perceptron."""

    num_users: int = 6040
    num_items: int = 3706
    mf_dim: int = 8
    fc_layers: tuple[int, ...] = (64, 32, 16, 8)

    def __post_init__(self) -> None:
        if min(self.num_users, self.num_items, self.mf_dim, *self.fc_layers) < 1 or self.fc_layers[0] % 2:
            raise ConfigError(
                "a size of the network is out of range",
                where="NeuMF",
                received=f"{self.num_users}, {self.num_items}, mf_dim {self.mf_dim}, fc_layers {list(self.fc_layers)}",
                allowed="sizes from 1; the first layer is that of two vectors, and even",
            )


@register("model", config=NeuMFConfig)
class NeuMF(nn.Model[NeuMFConfig]):
    """A Ranker of pairs: the first sparse field is the user, the second the item."""

    contract = Contract(tested_in=("tests/golden/test_recommendation.py",))

    def __init__(self, config: NeuMFConfig) -> None:
        super().__init__(config)
        init, half = I.Normal(std=0.01), config.fc_layers[0] // 2
        self.MF_Embedding_User = config.make_table(config.num_users, config.mf_dim, init)
        self.MF_Embedding_Item = config.make_table(config.num_items, config.mf_dim, init)
        self.MLP_Embedding_User = config.make_table(config.num_users, half, init)
        self.MLP_Embedding_Item = config.make_table(config.num_items, half, init)
        for number, (before, after) in enumerate(zip(config.fc_layers, config.fc_layers[1:]), start=1):
            weights = I.TruncatedNormal(std=1 / math.sqrt(before))
            setattr(self, f"layer_{number}", nn.Linear(before, after, weight_attr=weights))
        self.prediction = nn.Linear(config.mf_dim + config.fc_layers[-1], 1)

    def forward(self, features: Features) -> jax.Array:
        user, item = features.sparse[:, 0], features.sparse[:, 1]
        product = self.MF_Embedding_User(user) * self.MF_Embedding_Item(item)
        x = jnp.concatenate([self.MLP_Embedding_User(user), self.MLP_Embedding_Item(item)], axis=1)
        for number in range(1, len(self.config.fc_layers)):
            x = F.relu(getattr(self, f"layer_{number}")(x))
        return self.prediction(jnp.concatenate([product, x], axis=1))[:, 0]
