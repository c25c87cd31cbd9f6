"""xDeepFM: a compressed interaction network (CIN) beside a linear model and a perceptron.

Paper: Lian et al. 2018, https://arxiv.org/abs/1803.05170
Reference: PaddleRec models/rank/xdeepfm/net.py
Differs: weights of numbers begin as those of the table and row 0 is zeros, unless `paddlerec` is set. As upstream, maps
    have no activation and none is split, which the paper found best. L2 is the optimizer's `weight_decay`.
Weights: `state_dict()` has the names of PaddleRec's rec.pdparams, which has `cin.cin_linear` as `cin.cnn_fc` once more.
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
from zoo.recommendation.layers import DNN, ClickConfig, FirstOrder


@dataclass(frozen=True)
class XDeepFMConfig(ClickConfig):
    """`layer_sizes_cin` maps of each layer of the CIN, `layer_sizes_dnn` of the perceptron."""

    layer_sizes_cin: tuple[int, ...] = (200, 200, 200)
    layer_sizes_dnn: tuple[int, ...] = (400, 400)


class CIN(nn.Layer):
    """Maps X^k_h = sum_ij W_ij (X^{k-1}_i * X^0_j) of vectors [N, F, D], added up over D, to [N]."""

    def __init__(self, fields: int, sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.sizes, last = sizes, fields
        for number, size in enumerate(sizes):
            init = I.Normal(std=1 / math.sqrt(last * fields))
            kernel = nn.Conv2D(last * fields, size, 1, weight_attr=init, bias_attr=False)
            setattr(self, f"cnn_{number}", kernel)
            last = size
        total = sum(sizes)
        self.cin_linear = nn.Linear(total, 1, weight_attr=I.Normal(std=0.1 / math.sqrt(total)))

    def state_aliases(self) -> dict[str, str]:
        return {f"cnn_fc.{name}": f"cin_linear.{name}" for name in ("weight", "bias")}

    def forward(self, vectors: jax.Array) -> jax.Array:
        fields = vectors.shape[1]
        x, pooled = vectors, []
        for number, size in enumerate(self.sizes):
            weight = getattr(self, f"cnn_{number}").weight.reshape(size, fields, x.shape[1])
            # Two products in the place of all pairs [N, F, H, D]: that array is larger than the rest together.
            mixed = jnp.einsum("sfh,nhd->nsfd", weight, x)
            x = (mixed * vectors[:, None]).sum(axis=2)
            pooled.append(x.sum(axis=-1))
        return self.cin_linear(jnp.concatenate(pooled, axis=1))[:, 0]


@register("model", config=XDeepFMConfig)
class XDeepFM(nn.Model[XDeepFMConfig]):
    """A Ranker."""

    contract = Contract(tested_in=("tests/golden/test_recommendation.py",))

    def __init__(self, config: XDeepFMConfig) -> None:
        super().__init__(config)
        dense_value = 1.0 if config.paddlerec else None
        self.fm = FirstOrder(config, config.sparse_feature_dim, False, dense_value)
        self.cin = CIN(config.fields, config.layer_sizes_cin)
        self.dnn = DNN((config.fields * config.sparse_feature_dim, *config.layer_sizes_dnn, 1), gain=0.1)
        self.bias = self.create_parameter((1,), is_bias=True)

    def forward(self, features: Features) -> jax.Array:
        first, vectors = self.fm(features)
        deep = self.dnn(vectors.reshape(vectors.shape[0], -1))[:, 0]
        return first + self.bias + self.cin(vectors) + deep
