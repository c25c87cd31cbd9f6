"""From the states of a text's tokens to its embedding: pooling, linear layers, length 1.

Papers: Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084, section 3; Muennighoff 2022,
https://arxiv.org/abs/2202.08904 (weighted mean)
Reference: Pooling, Dense and Normalize of sentence-transformers 6
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from framework import nn
from framework.core.errors import ConfigError
from framework.nn import functional as F

Pooling = Literal["cls", "mean", "pooler", "max", "mean_sqrt_len", "weighted_mean", "last"]

ACTIVATIONS = {
    "identity": lambda x: x,
    "tanh": jnp.tanh,
    "relu": F.relu,
    "gelu": F.gelu,
    "sigmoid": F.sigmoid,
    "silu": F.silu,
}
"""Of linear layers behind the pooling"""


@dataclass(frozen=True)
class DenseConfig:
    """A linear layer behind the pooling. `activation` is a key of ACTIVATIONS."""

    out_features: int
    bias: bool = True
    activation: str = "tanh"

    def __post_init__(self) -> None:
        if self.out_features < 1 or self.activation not in ACTIVATIONS:
            raise ConfigError(
                "a linear layer behind the pooling is out of range",
                where="dense",
                received=f"out_features {self.out_features}, activation {self.activation}",
                allowed=f"out_features from 1; {', '.join(ACTIVATIONS)}",
            )


def pool(hidden: jax.Array, mask: jax.Array, pooling: Pooling) -> jax.Array:
    """The states [N, T, D] of texts as one vector each, [N, D] float32.

    "cls" is the state of the first token, "last" that of the last real one; "mean" and "max" are over the real ones,
    "mean_sqrt_len" is their sum divided by the root of their number, and in "weighted_mean" token t weighs t + 1.

    Args:
        mask: [N, T] bool: False is padding, which stands at the end.
    """
    if pooling == "cls":
        return hidden[:, 0].astype(jnp.float32)
    hidden, real = hidden.astype(jnp.float32), mask[..., None]
    if pooling == "last":
        last = jnp.maximum(mask.sum(axis=1, dtype=jnp.int32) - 1, 0)
        return jnp.take_along_axis(hidden, last[:, None, None], axis=1)[:, 0]
    if pooling == "max":
        return jnp.where(real, hidden, -jnp.inf).max(axis=1)
    weights = real.astype(jnp.float32)
    if pooling == "weighted_mean":
        weights = weights * jnp.arange(1, mask.shape[1] + 1, dtype=jnp.float32)[None, :, None]
    total = jnp.where(real, hidden * weights, 0).sum(axis=1)
    count = jnp.maximum(weights.sum(axis=1), 1)
    return total / (jnp.sqrt(count) if pooling == "mean_sqrt_len" else count)


class EmbeddingHead(nn.LayerList):
    """The linear layers behind the pooling, [N, D] -> [N, D']."""

    def __init__(self, in_features: int, dense: tuple[DenseConfig, ...], normalized: bool) -> None:
        layers, width = [], in_features
        for one in dense:
            layers.append(nn.Linear(width, one.out_features, bias_attr=None if one.bias else False))
            width = one.out_features
        super().__init__(layers)
        self.activations, self.normalized = tuple(one.activation for one in dense), normalized

    def forward(self, x: jax.Array) -> jax.Array:
        for layer, activation in zip(self, self.activations):
            x = ACTIVATIONS[activation](layer(x))
        x = x.astype(jnp.float32)
        return F.normalize(x, axis=-1) if self.normalized else x
