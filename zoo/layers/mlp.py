"""The parts that vision transformers share: linear layers that start from a narrow normal distribution, and branches
that are left out at random in training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np

from framework import nn
from framework.nn import functional as F

Activation = Callable[[jax.Array], jax.Array]
LinearMaker = Callable[[int, int], nn.Linear]  # of the features before and behind it

NARROW = nn.initializer.TruncatedNormal(std=0.02)
"""Where weights, position embeddings and class tokens start. Source: the code of DeiT, which others took over."""


def narrow_linear(in_features: int, out_features: int, bias: bool = True) -> nn.Linear:
    """x [..., in_features] @ weight [in_features, out_features] + bias, the weight from `NARROW`."""
    return nn.Linear(in_features, out_features, weight_attr=NARROW, bias_attr=None if bias else False)


class MLP(nn.Layer):
    """Linear to `hidden` features, `act`, linear back, on the last axis; `names` are those of the linear layers."""

    def __init__(
        self,
        width: int,
        hidden: int,
        act: Activation = F.gelu,
        names: tuple[str, str] = ("fc1", "fc2"),
        linear: LinearMaker = narrow_linear,
    ) -> None:
        super().__init__()
        self.act, self.names = act, names
        self.add_sublayer(names[0], linear(width, hidden))
        self.add_sublayer(names[1], linear(hidden, width))

    def forward(self, x: jax.Array) -> jax.Array:
        first, second = (getattr(self, name) for name in self.names)
        return second(self.act(first(x)))


class DropPath(nn.Layer):
    """Zeroes whole samples of [N, ...] with probability `p` in training; what is kept is divided by 1 - p.

    Paper: Huang et al. 2016, https://arxiv.org/abs/1603.09382
    """

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: jax.Array) -> jax.Array:
        return F.dropout(x, self.p, axis=0, training=self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def drop_rates(last: float, depths: Sequence[int]) -> list[list[float]]:
    """The rate of every block, stage by stage: from 0 in the first block of all evenly up to `last` in the last."""
    rates = np.linspace(0.0, last, sum(depths)).tolist()
    ends = np.cumsum(depths).tolist()
    return [rates[end - depth : end] for end, depth in zip(ends, depths)]
