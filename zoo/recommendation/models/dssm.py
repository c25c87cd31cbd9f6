"""DSSM: a tower for what is asked and one for what answers, compared by the cosine of their vectors.

Paper: Huang et al. 2013, https://doi.org/10.1145/2505515.2505665; Yi et al. 2019 (in-batch negatives, the scale of the
    cosine), https://doi.org/10.1145/3298689.3346996
Reference: PaddleRec models/match/dssm/net.py
Differs: PaddleRec's input is a vector of counts of letter trigrams (`similarity` takes it); here a user is the bag of
    the items of the history, divided by the root of their number, and an item is its own bag. Upstream has ReLU behind
    the last layer too (`fc_acts: [relu, relu, relu]`), the paper tanh behind all; its biases are drawn, and the loss
    has no temperature. Upstream draws `neg_num` negatives a pair before the training; `loss_name: in_batch` of NextItem
    takes the items of the other users of the batch.
Weights: `state_dict()` has the names of PaddleRec's rec.pdparams.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Contract

_ACTIVATIONS = {"relu": F.relu, "tanh": jnp.tanh}


@dataclass(frozen=True)
class DSSMConfig:
    """Names of PaddleRec's config.yaml; its `trigram_d` is num_items + 1 here.

    Attributes:
        num_items: Without padding.
        fc_sizes: Of each tower; the last is the width of the vectors.
        fc_acts: What is behind each layer.
        temperature: The cosine is divided by it.
    """

    num_items: int
    fc_sizes: tuple[int, ...] = (300, 300, 128)
    fc_acts: tuple[Literal["relu", "tanh", "none"], ...] = ("relu", "relu", "none")
    temperature: float = 0.1

    def __post_init__(self) -> None:
        if (
            min(self.num_items, *self.fc_sizes, len(self.fc_sizes)) < 1
            or len(self.fc_acts) != len(self.fc_sizes)
            or self.temperature <= 0
        ):
            raise ConfigError(
                "a setting of the network is out of range",
                where="DSSM",
                received=f"num_items {self.num_items}, fc_sizes {list(self.fc_sizes)}, fc_acts {list(self.fc_acts)}, "
                f"temperature {self.temperature}",
                allowed="sizes from 1, an activation for each, a temperature above 0",
            )


@register("model", config=DSSMConfig)
class DSSM(nn.Model[DSSMConfig]):
    """A SequenceModel: vectors of length 1, those of users divided by the temperature."""

    contract = Contract(tested_in=("tests/golden/test_recommendation.py",))

    def __init__(self, config: DSSMConfig) -> None:
        super().__init__(config)
        sizes = (config.num_items + 1, *config.fc_sizes)
        for tower in ("query", "pos"):
            for number, (before, after) in enumerate(itertools.pairwise(sizes)):
                layer = nn.Linear(before, after, weight_attr=I.XavierNormal())
                setattr(self, f"{tower}_linear_{number}", layer)

    def _finish(self, tower: str, x: jax.Array) -> jax.Array:
        """What comes behind the first product [..., fc_sizes[0]]: unit vectors."""
        for number, name in enumerate(self.config.fc_acts):
            layer = getattr(self, f"{tower}_linear_{number}")
            x = layer(x) if number else x + layer.bias
            x = _ACTIVATIONS[name](x) if name in _ACTIVATIONS else x
        # not of the norm: its derivative at a vector of zeros, as of padding, is no number
        return x * jax.lax.rsqrt(jnp.maximum(jnp.square(x).sum(axis=-1, keepdims=True), 1e-16))

    def similarity(self, query: jax.Array, answer: jax.Array) -> jax.Array:
        """Cosines [N] of two vectors of counts [N, num_items + 1]."""
        first = self._finish("query", query @ self.query_linear_0.weight)
        second = self._finish("pos", answer @ self.pos_linear_0.weight)
        return (first * second).sum(axis=-1)

    def forward(self, items: jax.Array) -> jax.Array:
        present = (items > 0)[..., None]
        rows = jnp.where(
            present, self.query_linear_0.weight[items], 0
        )  # a product with a bag, without the bag
        count = jnp.maximum(jnp.cumsum(present, axis=1), 1)
        return self._finish("query", jnp.cumsum(rows, axis=1) / jnp.sqrt(count)) / self.config.temperature

    def item_vectors(self) -> jax.Array:
        """[V + 1, D]."""
        return self._finish("pos", self.pos_linear_0.weight)
