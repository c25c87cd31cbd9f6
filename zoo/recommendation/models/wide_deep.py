"""Wide & Deep: a linear model beside a perceptron on vectors.

Paper: Cheng et al. 2016, https://arxiv.org/abs/1606.07792
Reference: PaddleRec models/rank/wide_deep/net.py
Differs: PaddleRec's wide part sees the 13 numbers alone; here it has a weight of each id too (`wide_embedding`), as the
    paper's, whose crosses are ids like others. PaddleRec draws the table from U(-1, 1) and trains its row 0; both are
    so with `paddlerec`. The paper trains the wide part with FTRL, PaddleRec all with Adam.
Weights: `state_dict()` has the names of PaddleRec's rec.pdparams.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import initializer as I
from zoo.contracts import Contract
from zoo.recommendation.contracts import Features
from zoo.recommendation.layers import ClickConfig, add_linears, lookup, run_linears, table


@dataclass(frozen=True)
class WideDeepConfig(ClickConfig):
    """`fc_sizes` of the perceptron."""

    fc_sizes: tuple[int, ...] = (512, 256, 128, 32)


@register("model", config=WideDeepConfig)
class WideDeep(nn.Model[WideDeepConfig]):
    """A Ranker."""

    contract = Contract(tested_in=("tests/golden/test_recommendation.py",))

    def __init__(self, config: WideDeepConfig) -> None:
        super().__init__(config)
        if config.dense_input_dim:
            init = I.TruncatedNormal(std=1 / math.sqrt(config.dense_input_dim))
            self.wide_part = nn.Linear(config.dense_input_dim, 1, weight_attr=init)
        if config.paddlerec:
            rows, width = config.sparse_feature_number, config.sparse_feature_dim
            self.embedding = config.make_table(rows, width, I.Uniform())
        else:
            self.embedding = table(config)
            self.wide_embedding = table(config, 1)
        width = config.num_field * config.sparse_feature_dim + config.dense_input_dim
        add_linears(self, (width, *config.fc_sizes, 1))

    def forward(self, features: Features) -> jax.Array:
        vectors = lookup(self.embedding, features)
        x = jnp.concatenate([vectors.reshape(vectors.shape[0], -1), features.dense], axis=1)
        logits = run_linears(self, x, len(self.config.fc_sizes) + 1)[:, 0]
        if self.config.dense_input_dim:
            logits = logits + self.wide_part(features.dense)[:, 0]
        if not self.config.paddlerec:
            logits = logits + lookup(self.wide_embedding, features).sum(axis=(1, 2))
        return logits
