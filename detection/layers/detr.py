"""Parts that RT-DETR and DINO share: attention with packed projections, the decoder layer, boxes as logits.

Paper: DINO, https://arxiv.org/abs/2203.03605; RT-DETR, https://arxiv.org/abs/2304.08069
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/layers.py, transformers/dino_transformer.py and utils.py
Weights: the names of PaddleDetection

Boxes are cxcywh in 0 to 1 of the input here; as logits they have no bounds, and layers add corrections to them.
"""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp

from detection.layers.deformable_attention import MSDeformableAttention, ShapesHW
from framework import nn
from framework.nn import functional as F
from framework.nn import initializer as I

PRIOR_BIAS = -math.log((1 - 0.01) / 0.01)
"""Biases of class logits start at a probability of 0.01. Source: https://arxiv.org/abs/1708.02002, section 4.1"""
_SMALLEST = 1e-5


def logit(x: jax.Array) -> jax.Array:
    """The inverse of the sigmoid, x and 1 - x not below 1e-5."""
    x = jnp.clip(x, 0, 1)
    return jnp.log(jnp.maximum(x, _SMALLEST) / jnp.maximum(1 - x, _SMALLEST))


def to_corners(boxes: jax.Array) -> jax.Array:
    """[..., 4] cxcywh to xyxy."""
    half = boxes[..., 2:] / 2
    return jnp.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], axis=-1)


def to_centers(boxes: jax.Array) -> jax.Array:
    """[..., 4] xyxy to cxcywh."""
    return jnp.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], axis=-1)


def uniform_linear(in_features: int, out_features: int, bias: float | None = None) -> nn.Linear:
    """Weight and bias start uniform within 1/sqrt(in_features), the bias at `bias` where one is given."""
    bound = 1 / math.sqrt(in_features)
    start = I.Uniform(-bound, bound)
    return nn.Linear(in_features, out_features, start, start if bias is None else I.Constant(bias))


class MLP(nn.Layer):
    """`num_layers` linear layers with ReLU between them. `zero` starts the last one at 0."""

    def __init__(
        self, in_features: int, hidden: int, out_features: int, num_layers: int, zero: bool = False
    ) -> None:
        super().__init__()
        widths = [in_features, *[hidden] * (num_layers - 1), out_features]
        self.layers = nn.LayerList(
            [uniform_linear(near, far) for near, far in itertools.pairwise(widths[:-1])]
        )
        start = I.Constant(0.0)
        last = nn.Linear(hidden, out_features, start) if zero else uniform_linear(hidden, out_features)
        self.layers.append(last)

    def forward(self, x: jax.Array) -> jax.Array:
        *inner, last = self.layers
        for layer in inner:
            x = F.relu(layer(x))
        return last(x)


class PackedAttention(nn.Layer):
    """Multi-head attention whose projections of query, key and value are one weight [C, 3 C].

    `mask` broadcasts to [N, heads, Q, K]; False hides.
    """

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.in_proj_weight = self.create_parameter((embed_dim, 3 * embed_dim))
        self.in_proj_bias = self.create_parameter((3 * embed_dim,), is_bias=True)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(
        self, query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array | None = None
    ) -> jax.Array:
        weights, biases = jnp.split(self.in_proj_weight, 3, axis=1), jnp.split(self.in_proj_bias, 3)
        q, k, v = (
            F.linear(x, weight, bias).reshape(*x.shape[:2], self.num_heads, -1)
            for x, weight, bias in zip((query, key, value), weights, biases)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, mask)
        return self.out_proj(mixed.reshape(query.shape))


class DecoderLayer(nn.Layer):
    """Queries attend to one another, to places of the image around their boxes, and pass a feed-forward part."""

    def __init__(self, channels: int, num_heads: int, hidden: int, num_levels: int, num_points: int) -> None:
        super().__init__()
        self.self_attn = PackedAttention(channels, num_heads)
        self.norm1 = nn.LayerNorm(channels)
        self.cross_attn = MSDeformableAttention(channels, num_heads, num_levels, num_points)
        self.norm2 = nn.LayerNorm(channels)
        self.linear1 = nn.Linear(channels, hidden)
        self.linear2 = nn.Linear(hidden, channels)
        self.norm3 = nn.LayerNorm(channels)

    def forward(
        self,
        x: jax.Array,
        position: jax.Array,
        boxes: jax.Array,
        memory: jax.Array,
        shapes_hw: ShapesHW,
        mask: jax.Array | None,
    ) -> jax.Array:
        """x and position [N, Q, C], boxes [N, Q, 4], memory [N, S, C], mask [Q, Q] -> [N, Q, C]."""
        placed = x + position
        x = self.norm1(x + self.self_attn(placed, placed, x, mask))
        x = self.norm2(x + self.cross_attn(x + position, boxes[:, :, None], memory, shapes_hw))
        return self.norm3(x + self.linear2(F.relu(self.linear1(x))))
