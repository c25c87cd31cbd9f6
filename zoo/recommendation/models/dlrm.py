"""DLRM: the products of all pairs of vectors, with a perceptron below and above.

Paper: Naumov et al. 2019, https://arxiv.org/abs/1906.00091
Reference: PaddleRec models/rank/dlrm/net.py
Differs: PaddleRec has batch normalisation behind each ReLU, and both on the two logits of its output too; in the paper,
    and here unless `paddlerec` is set, there is none, and one logit. The logit of `paddlerec` is the second less the
    first, which has the probability of upstream's softmax. PaddleRec's config says SGD .1, its code takes Adam .1.
Weights: `state_dict()` has the names of PaddleRec's rec.pdparams.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Contract
from zoo.recommendation.contracts import Features
from zoo.recommendation.layers import ClickConfig, lookup, table


@dataclass(frozen=True)
class DLRMConfig(ClickConfig):
    """Names and values of PaddleRec's config_bigdata.yaml.

    Attributes:
        bot_layer_sizes: Of the perceptron of the numbers; the last is `sparse_feature_dim`.
        top_layer_sizes: Of the one above; the last is 1, with `paddlerec` 2.
        self_interaction: Whether a vector's product with itself counts.
    """

    sparse_feature_dim: int = 16
    bot_layer_sizes: tuple[int, ...] = (512, 256, 64, 16)
    top_layer_sizes: tuple[int, ...] = (512, 256, 1)
    self_interaction: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        outputs = 2 if self.paddlerec else 1
        if self.bot_layer_sizes[-1:] != (self.sparse_feature_dim,) or self.top_layer_sizes[-1:] != (outputs,):
            raise ConfigError(
                "the perceptrons do not fit",
                where="DLRM",
                received=f"bot_layer_sizes {list(self.bot_layer_sizes)}, top_layer_sizes {list(self.top_layer_sizes)}",
                allowed=f"the last of them {self.sparse_feature_dim}, the width of the vectors, and {outputs}",
            )
        if self.dense_input_dim < 1:
            raise ConfigError(
                "DLRM needs numbers", where="DLRM.dense_input_dim", received=0, allowed="1 or more"
            )


class MLP(nn.Layer):
    """dense_0, … with ReLU, and with `normed` norm_0, … behind each; else the last has no ReLU where `open_end`."""

    def __init__(self, sizes: tuple[int, ...], normed: bool, open_end: bool) -> None:
        super().__init__()
        self.count, self.normed, self.open_end = len(sizes) - 1, normed, open_end
        for number, (before, after) in enumerate(itertools.pairwise(sizes)):
            init = I.TruncatedNormal(std=1 / math.sqrt(before))
            setattr(self, f"dense_{number}", nn.Linear(before, after, weight_attr=init))
            if normed:
                setattr(self, f"norm_{number}", nn.BatchNorm1D(after))

    def forward(self, x: jax.Array) -> jax.Array:
        for number in range(self.count):
            x = getattr(self, f"dense_{number}")(x)
            if self.normed:
                x = getattr(self, f"norm_{number}")(F.relu(x))
            elif not self.open_end or number < self.count - 1:
                x = F.relu(x)
        return x


@register("model", config=DLRMConfig)
class DLRM(nn.Model[DLRMConfig]):
    """A Ranker."""

    contract = Contract(tested_in=("tests/golden/test_recommendation.py",))

    def __init__(self, config: DLRMConfig) -> None:
        super().__init__(config)
        self.bot_mlp = MLP((config.dense_input_dim, *config.bot_layer_sizes), config.paddlerec, False)
        vectors = config.num_field + 1
        self.pairs = np.triu_indices(vectors, 0 if config.self_interaction else 1)
        width = len(self.pairs[0]) + config.sparse_feature_dim
        self.top_mlp = MLP((width, *config.top_layer_sizes), config.paddlerec, True)
        if config.paddlerec:
            rows = config.sparse_feature_number
            self.embedding = config.make_table(rows, config.sparse_feature_dim, I.TruncatedNormal())
        else:
            self.embedding = table(config)

    def forward(self, features: Features) -> jax.Array:
        bottom = self.bot_mlp(features.dense)
        vectors = jnp.concatenate([lookup(self.embedding, features), bottom[:, None]], axis=1)
        products = vectors @ vectors.swapaxes(1, 2)
        rows, columns = self.pairs
        y = self.top_mlp(jnp.concatenate([bottom, products[:, rows, columns]], axis=1))
        return y[:, 1] - y[:, 0] if self.config.paddlerec else y[:, 0]
