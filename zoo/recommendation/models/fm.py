"""LR, FM and FFM: linear models of ids without products, with those of all pairs, and with a vector a pair of fields.

Paper: Rendle 2010 (FM), https://doi.org/10.1109/ICDM.2010.127; Juan et al. 2016 (FFM),
    https://doi.org/10.1145/2959100.2959134
Reference: PaddleRec models/rank/{logistic_regression,fm,ffm}/net.py
Differs: row 0 of the table is zeros, so that a missing value adds nothing; PaddleRec's FM and FFM train it, and
    `paddlerec` does. Weights of numbers begin as those of the table and not at 1, where one number alone decides
    about a row. LR has L1 in PaddleRec's layer; here it is the optimizer's `weight_decay`.
Weights: `state_dict()` has the names of PaddleRec's rec.pdparams.
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
from zoo.recommendation.contracts import Features
from zoo.recommendation.layers import ClickConfig, FirstOrder, lookup, second_order
from zoo.recommendation.tables import TableConfig

_CONTRACT = Contract(tested_in=("tests/golden/test_recommendation.py",))


@dataclass(frozen=True)
class LRConfig(TableConfig):
    """`num_field` ids a row, each with its weight of a table with `sparse_feature_number` + 1 rows."""

    sparse_feature_number: int = 1_086_460
    num_field: int = 39
    init_std: float = 1e-4

    def __post_init__(self) -> None:
        if min(self.sparse_feature_number, self.num_field) < 1 or self.init_std < 0:
            raise ConfigError(
                "a size of the network is out of range",
                where="LR",
                received=f"{self.sparse_feature_number}, {self.num_field}, init_std {self.init_std}",
                allowed="sizes from 1, init_std from 0",
            )


@register("model", config=LRConfig)
class LR(nn.Model[LRConfig]):
    """A Ranker: logistic regression of ids; numbers enter as weighted ids (`weighted` of EncodeFeatures)."""

    contract = _CONTRACT

    def __init__(self, config: LRConfig) -> None:
        super().__init__(config)
        init = I.TruncatedNormal(std=config.init_std)
        self.embedding = config.make_table(config.sparse_feature_number + 1, 1, init, 0)
        self.b_linear = self.create_parameter((1,), is_bias=True)

    def forward(self, features: Features) -> jax.Array:
        return lookup(self.embedding, features).sum(axis=(1, 2)) + self.b_linear


@dataclass(frozen=True)
class FMConfig(ClickConfig):
    """See ClickConfig."""


@register("model", config=FMConfig)
class FM(nn.Model[FMConfig]):
    """A Ranker: w0 + sum w_i x_i + the products of all pairs."""

    contract = _CONTRACT

    def __init__(self, config: FMConfig) -> None:
        super().__init__(config)
        dense_value = 1.0 if config.paddlerec else None
        self.fm = FirstOrder(config, config.sparse_feature_dim, False, dense_value)
        self.bias = self.create_parameter((1,), is_bias=True)

    def forward(self, features: Features) -> jax.Array:
        first, vectors = self.fm(features)
        return first + second_order(vectors) + self.bias


@dataclass(frozen=True)
class FFMConfig(ClickConfig):
    """See ClickConfig; the table is `num_field` + `dense_input_dim` times as wide."""


@register("model", config=FFMConfig)
class FFM(nn.Model[FFMConfig]):
    """A Ranker: as FM, where a value has another vector for each field that it meets."""

    contract = _CONTRACT

    def __init__(self, config: FFMConfig) -> None:
        super().__init__(config)
        dense_value = 1.0 if config.paddlerec else None
        self.ffm = FirstOrder(config, config.fields * config.sparse_feature_dim, False, dense_value)
        self.bias = self.create_parameter((1,), is_bias=True)

    def forward(self, features: Features) -> jax.Array:
        count = self.config.fields
        first, vectors = self.ffm(features)
        vectors = vectors.reshape(
            -1, count, count, self.config.sparse_feature_dim
        )  # [N, field, met field, D]
        pairs = (vectors * vectors.swapaxes(1, 2)).sum(axis=-1)
        upper = jnp.triu(jnp.ones((count, count), pairs.dtype), 1)
        return first + (pairs * upper).sum(axis=(1, 2)) + self.bias
