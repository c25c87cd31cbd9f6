"""AutoInt: attention among the fields, and beside it a perceptron (AutoInt+).

Paper: Song et al. 2018, https://arxiv.org/abs/1810.11921
Reference: PaddleRec models/rank/autoint/net.py
Differs: PaddleRec puts ReLU on queries, keys, values and the residual path, where the paper has none; its perceptron
    has no activation behind the first layer. Both are so with `paddlerec` alone. Numbers are weighted ids (`weighted`
    of EncodeFeatures).
Weights: `state_dict()` has the names of PaddleRec's rec.pdparams.
"""

from __future__ import annotations

import itertools
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
from zoo.recommendation.layers import lookup
from zoo.recommendation.tables import TableConfig


@dataclass(frozen=True)
class AutoIntConfig(TableConfig):
    """Names and values of PaddleRec's config_bigdata.yaml; `sparse_feature_number` is its `feature_number`.

    Attributes:
        fc_sizes: Of the perceptron; none leaves it out.
        use_residual, scaling, head_num, attn_layer_sizes: Of the attention.
        use_wide: Adds the weight of each id.
        paddlerec: The network of PaddleRec's code where it differs from the paper.
    """

    sparse_feature_number: int = 998_961
    embedding_dim: int = 16
    num_field: int = 39
    fc_sizes: tuple[int, ...] = (400, 400, 400)
    attn_layer_sizes: tuple[int, ...] = (64, 64, 64)
    head_num: int = 2
    use_residual: bool = True
    scaling: bool = True
    use_wide: bool = False
    paddlerec: bool = False

    def __post_init__(self) -> None:
        if (
            self.head_num < 1
            or not self.attn_layer_sizes
            or any(n % self.head_num for n in self.attn_layer_sizes)
        ):
            raise ConfigError(
                "the heads do not divide the layers",
                where="AutoInt",
                received=f"attn_layer_sizes {list(self.attn_layer_sizes)}, head_num {self.head_num}",
                allowed="a layer, and sizes that are multiples of head_num",
            )


class Interacting(nn.Layer):
    """Self-attention over fields, [N, F, D] -> [N, F, size]."""

    def __init__(self, width: int, size: int, config: AutoIntConfig) -> None:
        super().__init__()
        self.config = config
        names = ("W_Query", "W_Key", "W_Value", *(("W_Res",) if config.use_residual else ()))
        for name in names:
            setattr(self, name, self.create_parameter((width, size), I.XavierUniform()))
        self.layer_norm = nn.LayerNorm(size, epsilon=1e-8)

    def forward(self, x: jax.Array) -> jax.Array:
        count, fields, _ = x.shape
        heads = self.config.head_num

        def project(weight: jax.Array) -> jax.Array:
            y = x @ weight
            return F.relu(y) if self.config.paddlerec else y

        query, key, value = (
            project(weight).reshape(count, fields, heads, -1)
            for weight in (self.W_Query, self.W_Key, self.W_Value)
        )
        scores = jnp.einsum("nihd,njhd->nhij", query, key)
        scores = scores / math.sqrt(query.shape[-1]) if self.config.scaling else scores
        y = jnp.einsum("nhij,njhd->nihd", F.softmax(scores), value).reshape(count, fields, -1)
        y = y + project(self.W_Res) if self.config.use_residual else y
        return self.layer_norm(F.relu(y))


class FieldEmbedding(nn.Layer):
    """The vectors of a row with the perceptron on them, under PaddleRec's name `emb_layer`."""

    def __init__(self, config: AutoIntConfig) -> None:
        super().__init__()
        self.config = config
        rows, width = config.sparse_feature_number, config.embedding_dim
        self.feature_embeddings = config.make_table(rows, width, I.Normal(std=0.01))
        if config.use_wide:
            self.feature_bias = config.make_table(rows, 1, I.Normal(std=0.001))
        sizes = (config.num_field * width, *config.fc_sizes)
        for number, (before, after) in enumerate(itertools.pairwise(sizes)):
            init = I.Normal(std=math.sqrt(2 / (before + after)))
            bias = init if config.paddlerec else None
            setattr(self, f"linear_{number}", nn.Linear(before, after, init, bias))
            if number:
                setattr(self, f"norm_{number}", nn.BatchNorm1D(after, momentum=0.99, epsilon=1e-3))
        if config.fc_sizes:
            init = I.Normal(std=math.sqrt(2 / (sizes[-1] + 1)))
            self.pred_dense = nn.Linear(sizes[-1], 1, init, I.Normal() if config.paddlerec else None)

    def forward(self, features: Features) -> tuple[jax.Array, jax.Array]:
        """(vectors [N, F, D], logits [N])."""
        vectors = lookup(self.feature_embeddings, features)
        logits = jnp.zeros(vectors.shape[0], jnp.float32)
        if self.config.use_wide:
            logits = logits + lookup(self.feature_bias, features).sum(axis=(1, 2))
        if self.config.fc_sizes:
            x = vectors.reshape(vectors.shape[0], -1)
            for number in range(len(self.config.fc_sizes)):
                x = getattr(self, f"linear_{number}")(x)
                x = getattr(self, f"norm_{number}")(x) if number else x
                x = F.relu(x) if number or not self.config.paddlerec else x
            logits = logits + self.pred_dense(x)[:, 0]
        return vectors, logits


@register("model", config=AutoIntConfig)
class AutoInt(nn.Model[AutoIntConfig]):
    """A Ranker."""

    contract = Contract(tested_in=("tests/golden/test_recommendation.py",))

    def __init__(self, config: AutoIntConfig) -> None:
        super().__init__(config)
        self.emb_layer = FieldEmbedding(config)
        sizes = (config.embedding_dim, *config.attn_layer_sizes)
        self.iteraction_layers = nn.LayerList(
            [Interacting(before, after, config) for before, after in itertools.pairwise(sizes)]
        )
        width = sizes[-1] * config.num_field
        bias = I.Normal() if config.paddlerec else None
        self.linear = nn.Linear(width, 1, I.Normal(std=math.sqrt(2 / (width + 1))), bias)

    def forward(self, features: Features) -> jax.Array:
        x, logits = self.emb_layer(features)
        for layer in self.iteraction_layers:
            x = layer(x)
        return logits + self.linear(x.reshape(x.shape[0], -1))[:, 0]
