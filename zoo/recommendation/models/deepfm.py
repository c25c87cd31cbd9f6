"""DeepFM: FM and a perceptron on the same vectors.

Paper: Guo et al. 2017, https://arxiv.org/abs/1703.04247
Reference: PaddleRec models/rank/deepfm/net.py
Differs: PaddleRec saves `bias` and never adds it; it is added here unless `paddlerec` is set.
Weights: `state_dict()` has the names of PaddleRec's rec.pdparams.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax

from framework import nn
from framework.config import register
from zoo.contracts import Contract
from zoo.recommendation.contracts import Features
from zoo.recommendation.layers import DNN, ClickConfig, FirstOrder, second_order


@dataclass(frozen=True)
class DeepFMConfig(ClickConfig):
    """`fc_sizes` of the perceptron."""

    fc_sizes: tuple[int, ...] = (400, 400, 400)


@register("model", config=DeepFMConfig)
class DeepFM(nn.Model[DeepFMConfig]):
    """A Ranker."""

    contract = Contract(tested_in=("tests/golden/test_recommendation.py",))

    def __init__(self, config: DeepFMConfig) -> None:
        super().__init__(config)
        self.fm = FirstOrder(config, config.sparse_feature_dim, True, None)
        self.dnn = DNN((config.fields * config.sparse_feature_dim, *config.fc_sizes, 1))
        self.bias = self.create_parameter((1,), is_bias=True)

    def forward(self, features: Features) -> jax.Array:
        first, vectors = self.fm(features)
        deep = self.dnn(vectors.reshape(vectors.shape[0], -1))[:, 0]
        logits = first + second_order(vectors) + deep
        return logits if self.config.paddlerec else logits + self.bias
