"""The encoder of RT-DETR: attention within the coarsest map only, then the maps are fused by convolutions.

Paper: RT-DETR, https://arxiv.org/abs/2304.08069, section 4.2
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/transformers/hybrid_encoder.py
Differs: on maps that are not square every pixel gets the position of its own row and column. The deploy form folds
    every normalisation.
Weights: the names of PaddleDetection
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from detection.layers.detr import PackedAttention, uniform_linear
from framework import nn
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.csp_pan import aggregate_paths
from zoo.vision.csp_resnet import RepVGGBlock

_HEADS, _BLOCKS = 8, 3


class EncoderLayer(nn.Layer):
    """Self-attention and a feed-forward part with GELU, each with a residual and a norm behind it."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.self_attn = PackedAttention(channels, _HEADS)
        self.linear1, self.linear2 = uniform_linear(channels, hidden), uniform_linear(hidden, channels)
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)

    def forward(self, x: jax.Array, position: jax.Array) -> jax.Array:
        """x [N, S, C], position [S, C] -> [N, S, C]."""
        placed = x + position
        x = self.norm1(x + self.self_attn(placed, placed, x))
        return self.norm2(x + self.linear2(F.gelu(self.linear1(x))))


class Encoder(nn.Layer):
    """The layers of one map."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.layers = nn.LayerList([EncoderLayer(channels, hidden)])

    def forward(self, x: jax.Array, position: jax.Array) -> jax.Array:
        for layer in self.layers:
            x = layer(x, position)
        return x


class CSPRepLayer(nn.Layer):
    """1x1 to `expansion` times the channels, RepVGG blocks beside a second 1x1, their sum, 1x1 back."""

    def __init__(self, in_channels: int, out_channels: int, expansion: float, deploy: bool) -> None:
        super().__init__()
        hidden = int(out_channels * expansion)
        self.conv1 = _conv(in_channels, hidden, 1, 1, deploy)
        self.conv2 = _conv(in_channels, hidden, 1, 1, deploy)
        self.bottlenecks = nn.Sequential(
            *(RepVGGBlock(hidden, use_alpha=False, deploy=deploy) for _ in range(_BLOCKS))
        )
        self.widens = hidden != out_channels
        if self.widens:
            self.conv3 = _conv(hidden, out_channels, 1, 1, deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.bottlenecks(self.conv1(x)) + self.conv2(x)
        return self.conv3(x) if self.widens else x


class HybridEncoder(nn.Layer):
    """Maps [N, H, W, C_i] at strides 8, 16 and 32, finest first -> maps of `channels` channels at the same strides."""

    def __init__(
        self, in_channels: Sequence[int], channels: int, hidden: int, expansion: float, deploy: bool = False
    ) -> None:
        super().__init__()
        steps = range(len(in_channels) - 1)
        options = ConvBNOptions(names=("0", "1"), deploy=deploy)
        self.input_proj = nn.LayerList([ConvBN(width, channels, 1, options=options) for width in in_channels])
        self.encoder = nn.LayerList([Encoder(channels, hidden)])
        self.lateral_convs = nn.LayerList([_conv(channels, channels, 1, 1, deploy) for _ in steps])
        self.fpn_blocks = nn.LayerList(
            [CSPRepLayer(2 * channels, channels, expansion, deploy) for _ in steps]
        )
        self.downsample_convs = nn.LayerList([_conv(channels, channels, 3, 2, deploy) for _ in steps])
        self.pan_blocks = nn.LayerList(
            [CSPRepLayer(2 * channels, channels, expansion, deploy) for _ in steps]
        )

    def forward(self, maps: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        *fine, x = (project(x) for project, x in zip(self.input_proj, maps, strict=True))
        position = sincos_positions(x.shape[1], x.shape[2], x.shape[3])
        x = self.encoder[0](x.reshape(x.shape[0], -1, x.shape[3]), position).reshape(x.shape)
        down = zip(self.lateral_convs, self.fpn_blocks, strict=True)
        return aggregate_paths((*fine, x), down, zip(self.downsample_convs, self.pan_blocks, strict=True))


def sincos_positions(height: int, width: int, channels: int, temperature: float = 10000.0) -> jax.Array:
    """[height * width, channels]: sines and cosines of the row, then of the column, a quarter each."""
    quarter = channels // 4
    rates = 1 / temperature ** (jnp.arange(quarter, dtype=jnp.float32) / quarter)
    row, column = (jnp.arange(size, dtype=jnp.float32)[:, None] * rates for size in (height, width))
    rows = jnp.concatenate([jnp.sin(row), jnp.cos(row)], axis=-1)[:, None]
    columns = jnp.concatenate([jnp.sin(column), jnp.cos(column)], axis=-1)[None]
    shape = (height, width, 2 * quarter)
    both = [jnp.broadcast_to(rows, shape), jnp.broadcast_to(columns, shape)]
    return jnp.concatenate(both, axis=-1).reshape(-1, channels)


def _conv(in_channels: int, out_channels: int, kernel: int, stride: int, deploy: bool) -> ConvBN:
    bound = 1 / math.sqrt(in_channels * kernel * kernel)
    options = ConvBNOptions(initializer=I.Uniform(-bound, bound), deploy=deploy)
    return ConvBN(in_channels, out_channels, kernel, stride, act=F.silu, options=options)
