"""The linear layers of vision transformers, which start from a narrow normal distribution."""

from __future__ import annotations

import jax

from framework import nn
from framework.nn import functional as F

NARROW = nn.initializer.TruncatedNormal(std=0.02)
"""Where weights, position embeddings and class tokens start. Source: the code of DeiT, which others took over."""


def narrow_linear(in_features: int, out_features: int, bias: bool = True) -> nn.Linear:
    """x [..., in_features] @ weight [in_features, out_features] + bias, the weight from `NARROW`."""
    return nn.Linear(in_features, out_features, weight_attr=NARROW, bias_attr=None if bias else False)


class Mlp(nn.Layer):
    """Linear to `hidden` channels, GELU, linear back, on the last axis."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = narrow_linear(channels, hidden)
        self.fc2 = narrow_linear(hidden, channels)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.fc2(F.gelu(self.fc1(x)))
