"""Stochastic depth: in training, residual branches are left out at random.

Paper: Huang et al. 2016, https://arxiv.org/abs/1603.09382
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from framework import nn
from framework.nn import functional as F


class DropPath(nn.Layer):
    """Zeroes whole samples of [N, ...] with probability `p` in training; what is kept is divided by 1 - p."""

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
