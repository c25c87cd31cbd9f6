"""DCN and DCNv2: layers that cross the input with itself, beside or below a perceptron.

Paper: Wang et al. 2017, https://arxiv.org/abs/1708.05123; Wang et al. 2020, https://arxiv.org/abs/2008.13535
Reference: PaddleRec models/rank/{dcn,dcn_v2}/net.py
Differs: PaddleRec's DCN has one w and b for all layers, its DCNv2 one set of gates for all layers; in the papers, and
    here unless `paddlerec` is set, each layer has its own. PaddleRec decays x * w in place of w: here the optimizer's
    `weight_decay` decays w. At batch 1 PaddleRec's mixture loses the axis of the batch.
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
from zoo.recommendation.layers import ClickConfig, add_linears, lookup, run_linears, table

_CONTRACT = Contract(tested_in=("tests/golden/test_recommendation.py",))


@dataclass(frozen=True)
class DCNConfig(ClickConfig):
    """`cross_num` crossing layers beside a perceptron of `fc_sizes`."""

    fc_sizes: tuple[int, ...] = (512, 256, 128)
    cross_num: int = 2


@register("model", config=DCNConfig)
class DCN(nn.Model[DCNConfig]):
    """A Ranker: x_{l+1} = x_0 (x_l . w_l) + b_l + x_l."""

    contract = _CONTRACT

    def __init__(self, config: DCNConfig) -> None:
        super().__init__(config)
        self.embedding = table(config)
        width = config.num_field * config.sparse_feature_dim + config.dense_input_dim
        shape = (width,) if config.paddlerec else (config.cross_num, width)
        init = I.TruncatedNormal(std=0.1 / math.sqrt(config.sparse_feature_dim))
        self.layer_w, self.layer_b = self.create_parameter(shape, init), self.create_parameter(shape, init)
        add_linears(self, (width, *config.fc_sizes))
        fan = config.fc_sizes[-1] + config.fields
        self.fc = nn.Linear(config.fc_sizes[-1] + width, 1, weight_attr=I.Normal(std=1 / math.sqrt(fan)))

    def forward(self, features: Features) -> jax.Array:
        vectors = lookup(self.embedding, features)
        x0 = x = jnp.concatenate([vectors.reshape(vectors.shape[0], -1), features.dense], axis=1)
        for number in range(self.config.cross_num):
            index = () if self.config.paddlerec else (number,)
            x = x0 * (x @ self.layer_w[index])[:, None] + self.layer_b[index] + x
        deep = run_linears(self, x0, len(self.config.fc_sizes), activate_last=True)
        return self.fc(jnp.concatenate([deep, x], axis=1))[:, 0]


@dataclass(frozen=True)
class DCNv2Config(ClickConfig):
    """Names and values of PaddleRec's config_bigdata.yaml.

    Attributes:
        is_Stacked: The perceptron reads what was crossed; else both read the input.
        use_low_rank_mixture: Matrices of rank `low_rank` of `num_experts` experts; else one full matrix a layer.
        dropout: Of the perceptron.
    """

    sparse_feature_number: int = 1_100_001
    sparse_feature_dim: int = 40
    fc_sizes: tuple[int, ...] = (768, 768)
    cross_num: int = 2
    is_Stacked: bool = True
    use_low_rank_mixture: bool = True
    low_rank: int = 256
    num_experts: int = 4
    dropout: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.cross_num, self.low_rank, self.num_experts) < 1 or not 0 <= self.dropout < 1:
            raise ConfigError(
                "a setting of the network is out of range",
                where="DCNv2",
                received=f"cross_num {self.cross_num}, low_rank {self.low_rank}, num_experts {self.num_experts}, "
                f"dropout {self.dropout}",
                allowed="numbers from 1, 0 <= dropout < 1",
            )


class CrossNetV2(nn.Layer):
    """x_{l+1} = x_0 * (W_l x_l + b_l) + x_l of [N, D]."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.cross_layers = nn.LayerList([nn.Linear(width, width) for _ in range(count)])

    def forward(self, x0: jax.Array) -> jax.Array:
        x = x0
        for layer in self.cross_layers:
            x = x + x0 * layer(x)
        return x


class CrossNetMix(nn.Layer):
    """As CrossNetV2, where W_l is a mixture of experts U tanh(C tanh(V^T x)) by gates that read x_l."""

    def __init__(self, width: int, count: int, rank: int, experts: int, shared_gates: bool) -> None:
        super().__init__()
        self.count, self.experts, self.shared_gates = count, experts, shared_gates
        wide, square, init = (experts, width, rank), (experts, rank, rank), I.XavierNormal()
        for name, shape in (("U_list", wide), ("V_list", wide), ("C_list", square)):
            values = [self.create_parameter(shape, init) for _ in range(count)]
            setattr(self, name, nn.ParameterList(values))
        gates = experts * (1 if shared_gates else count)
        self.gating = nn.LayerList([nn.Linear(width, 1) for _ in range(gates)])
        self.bias = nn.ParameterList([self.create_parameter((width, 1), is_bias=True) for _ in range(count)])

    def forward(self, x0: jax.Array) -> jax.Array:
        x = x0
        for number in range(self.count):
            first = 0 if self.shared_gates else number * self.experts
            gates = [self.gating[first + expert](x) for expert in range(self.experts)]
            share = F.softmax(jnp.concatenate(gates, axis=1))  # [N, K]
            low = jnp.tanh(jnp.einsum("nd,kdr->nkr", x, self.V_list[number]))
            low = jnp.tanh(jnp.einsum("nkr,ksr->nks", low, self.C_list[number]))
            crossed = jnp.einsum("nkr,kdr->nkd", low, self.U_list[number]) + self.bias[number][:, 0]
            x = x0 * (share[..., None] * crossed).sum(axis=1) + x
        return x


class DeepCross(nn.Layer):
    """Holds the crossing layers under PaddleRec's name `crossNet`."""

    def __init__(self, config: DCNv2Config, width: int) -> None:
        super().__init__()
        mix = (config.cross_num, config.low_rank, config.num_experts, config.paddlerec)
        self.crossNet = (
            CrossNetMix(width, *mix) if config.use_low_rank_mixture else CrossNetV2(width, config.cross_num)
        )

    def forward(self, x: jax.Array) -> jax.Array:
        return self.crossNet(x)


class Perceptron(nn.Layer):
    """linear_0, …, each with ReLU and dropout."""

    def __init__(self, sizes: tuple[int, ...], dropout: float) -> None:
        super().__init__()
        self.count = len(sizes) - 1
        add_linears(self, sizes)
        self.drop_out = nn.Dropout(dropout)

    def forward(self, x: jax.Array) -> jax.Array:
        for number in range(self.count):
            x = self.drop_out(F.relu(getattr(self, f"linear_{number}")(x)))
        return x


@register("model", config=DCNv2Config)
class DCNv2(nn.Model[DCNv2Config]):
    """A Ranker."""

    contract = _CONTRACT

    def __init__(self, config: DCNv2Config) -> None:
        super().__init__(config)
        self.embedding = table(config)
        numbers, width = config.dense_input_dim, config.fields * config.sparse_feature_dim
        if numbers:
            self.dense_emb = nn.Linear(numbers, config.sparse_feature_dim * numbers)
        self.DeepCrossLayer_ = DeepCross(config, width)
        self.DNN_ = Perceptron((width, *config.fc_sizes), config.dropout)
        last = config.fc_sizes[-1]
        fan = last if config.is_Stacked else last + config.dense_input_dim * config.num_field
        last = last if config.is_Stacked else last + width
        self.fc = nn.Linear(last, 1, weight_attr=I.Normal(std=1 / math.sqrt(fan)))

    def forward(self, features: Features) -> jax.Array:
        vectors = lookup(self.embedding, features)
        x = vectors.reshape(vectors.shape[0], -1)
        if self.config.dense_input_dim:
            x = jnp.concatenate([x, self.dense_emb(features.dense)], axis=1)
        crossed = self.DeepCrossLayer_(x)
        if self.config.is_Stacked:
            return self.fc(self.DNN_(crossed))[:, 0]
        return self.fc(jnp.concatenate([self.DNN_(x), crossed], axis=1))[:, 0]
