"""CGNet: half a million weights. Its blocks join each place with its surroundings and weigh that by the whole image.

Paper: Wu et al. 2018, https://arxiv.org/abs/1811.08201
Reference: wutianyiRosun/CGNet model/CGNet.py
Differs: nothing in the function computed.
Weights: `state_dict()` has the authors' names, statistics and slopes in Paddle's spelling.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Contract

_STEM = 32
_WIDTHS, _DILATIONS, _REDUCTIONS = (64, 128), (2, 4), (8, 16)  # of the stages at strides 4 and 8
_EPSILON = 1e-3  # of the normalisations
PARAMS = 496_306  # of the default config; the paper, table 8, has 0.5 million


@dataclass(frozen=True)
class CGNetConfig:
    """`num_blocks` are the blocks of the two stages: the paper's M and N."""

    num_blocks: tuple[int, int] = (3, 21)
    num_classes: int = 19
    in_channels: int = 3


def _conv(
    in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, dilation: int = 1, groups: int = 1
) -> nn.Conv2D:
    """Keeps the size at stride 1."""
    shape = (in_channels, out_channels, kernel_size, stride, dilation * (kernel_size // 2), dilation)
    kaiming = nn.ParamAttr(initializer=nn.initializer.KaimingNormal())
    return nn.Conv2D(*shape, groups=groups, weight_attr=kaiming, bias_attr=False)


def _norm(channels: int) -> nn.BatchNorm2D:
    return nn.BatchNorm2D(channels, epsilon=_EPSILON)


def _norm_act(channels: int) -> nn.Sequential:
    return nn.Sequential(("bn", _norm(channels)), ("act", nn.PReLU(channels)))


def _conv_norm_act(in_channels: int, out_channels: int, kernel_size: int, stride: int = 1) -> nn.Sequential:
    conv = _conv(in_channels, out_channels, kernel_size, stride)
    return nn.Sequential(("conv", conv), ("bn", _norm(out_channels)), ("act", nn.PReLU(out_channels)))


def _depthwise(channels: int, dilation: int = 1) -> nn.Sequential:
    return nn.Sequential(("conv", _conv(channels, channels, 3, dilation=dilation, groups=channels)))


class Gate(nn.Layer):
    """Channels weighed by the mean over all pixels."""

    def __init__(self, channels: int, reduction: int) -> None:
        super().__init__()
        narrow = channels // reduction
        self.fc = nn.Sequential(
            nn.Linear(channels, narrow), nn.ReLU(), nn.Linear(narrow, channels), nn.Sigmoid()
        )

    def forward(self, x: jax.Array) -> jax.Array:
        return x * self.fc(F.global_avg_pool2d(x))


class Downsample(nn.Layer):
    """The context-guided block that begins a stage: half the size, `out_channels` wide."""

    def __init__(self, in_channels: int, out_channels: int, dilation: int, reduction: int) -> None:
        super().__init__()
        # upstream's name, whatever its kernel
        self.conv1x1 = _conv_norm_act(in_channels, out_channels, 3, stride=2)
        self.F_loc = _depthwise(out_channels)
        self.F_sur = _depthwise(out_channels, dilation)
        self.bn = _norm(2 * out_channels)
        self.act = nn.PReLU(2 * out_channels)
        self.reduce = nn.Sequential(("conv", _conv(2 * out_channels, out_channels, 1)))
        self.F_glo = Gate(out_channels, reduction)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.conv1x1(x)
        x = jnp.concatenate([self.F_loc(x), self.F_sur(x)], axis=-1)
        return self.F_glo(self.reduce(self.act(self.bn(x))))


class ContextGuidedBlock(nn.Layer):
    """A residual block whose halves are the place itself and its surroundings."""

    def __init__(self, channels: int, dilation: int, reduction: int) -> None:
        super().__init__()
        half = channels // 2
        self.conv1x1 = _conv_norm_act(channels, half, 1)
        self.F_loc = _depthwise(half)
        self.F_sur = _depthwise(half, dilation)
        self.bn_prelu = _norm_act(channels)
        self.F_glo = Gate(channels, reduction)

    def forward(self, x: jax.Array) -> jax.Array:
        y = self.conv1x1(x)
        y = jnp.concatenate([self.F_loc(y), self.F_sur(y)], axis=-1)
        return x + self.F_glo(self.bn_prelu(y))


@register("model", config=CGNetConfig)
class CGNet(nn.Model[CGNetConfig]):
    """Segmenter of segmentation/contracts.py, of one output. The smaller image stands beside each stage's input."""

    contract = Contract(inputs=("n", "h", "w", 3), image=(2, 61, 95, 3))

    def __init__(self, config: CGNetConfig) -> None:
        super().__init__(config)
        (middle, wide), channels = _WIDTHS, config.in_channels
        self.level1_0 = _conv_norm_act(channels, _STEM, 3, stride=2)
        self.level1_1 = _conv_norm_act(_STEM, _STEM, 3)
        self.level1_2 = _conv_norm_act(_STEM, _STEM, 3)
        self.b1 = _norm_act(_STEM + channels)
        self.level2_0 = Downsample(_STEM + channels, middle, _DILATIONS[0], _REDUCTIONS[0])
        self.level2 = _blocks(config.num_blocks[0] - 1, middle, _DILATIONS[0], _REDUCTIONS[0])
        self.bn_prelu_2 = _norm_act(2 * middle + channels)
        self.level3_0 = Downsample(2 * middle + channels, wide, _DILATIONS[1], _REDUCTIONS[1])
        self.level3 = _blocks(config.num_blocks[1] - 1, wide, _DILATIONS[1], _REDUCTIONS[1])
        self.bn_prelu_3 = _norm_act(2 * wide)
        self.classifier = nn.Sequential(nn.Sequential(("conv", _conv(2 * wide, config.num_classes, 1))))

    def forward(self, images: jax.Array) -> tuple[jax.Array, ...]:
        half = _halve(images)
        x = self.level1_2(self.level1_1(self.level1_0(images)))
        first = self.level2_0(self.b1(jnp.concatenate([x, half], axis=-1)))  # [N, H/4, W/4, 64]
        x = jnp.concatenate([self.level2(first), first, _halve(half)], axis=-1)
        first = self.level3_0(self.bn_prelu_2(x))  # [N, H/8, W/8, 128]
        x = self.bn_prelu_3(jnp.concatenate([first, self.level3(first)], axis=-1))
        logits = self.classifier(x).astype(jnp.float32)
        return (F.interpolate(logits, images.shape[1:3], mode="bilinear"),)


def _blocks(count: int, channels: int, dilation: int, reduction: int) -> nn.Sequential:
    return nn.Sequential(*(ContextGuidedBlock(channels, dilation, reduction) for _ in range(count)))


def _halve(x: jax.Array) -> jax.Array:
    """Rounded up, as the convolutions do it; what is filled in counts as 0."""
    return F.avg_pool2d(x, 3, stride=2, padding=1, exclusive=False)
