"""ResNet for 32x32 images: three stages of basic blocks, shortcuts without parameters.

Paper: https://arxiv.org/abs/1512.03385, section 4.2
Reference: github.com/akamaster/pytorch_resnet_cifar10 resnet.py
Differs: nothing in the function computed.
Weights: `state_dict()` has the names of the reference's checkpoints in Paddle's spelling: convert them with
    `framework.interop.weights.match.from_torch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Backbone, Feature
from zoo.layers.variants import VariantConfig

WIDTHS = (16, 32, 64)


class Size(NamedTuple):
    """`blocks` of each stage: n of the paper's 6n + 2 layers; `params` of 10 classes."""

    blocks: int
    params: int


# Paper, table 6
VARIANTS: dict[str, Size] = {
    "resnet20": Size(3, 269_722),
    "resnet32": Size(5, 464_154),
    "resnet44": Size(7, 658_586),
    "resnet56": Size(9, 853_018),
    "resnet110": Size(18, 1_727_962),
}


@dataclass(frozen=True)
class CifarResNetConfig(VariantConfig[Size], table=VARIANTS):
    """CIFAR-10 has 10 classes, CIFAR-100 has 100."""

    variant: str = "resnet20"
    num_classes: int = 10


class BasicBlock(nn.Layer):
    """`relu(branch(x) + x)`; where the shape changes, every second pixel of x with zero channels around (option A)."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.stride, self.missing = stride, out_channels - in_channels
        self.conv1 = nn.Conv2D(in_channels, out_channels, 3, stride, 1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(out_channels)
        self.conv2 = nn.Conv2D(out_channels, out_channels, 3, 1, 1, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(out_channels)

    def forward(self, x: jax.Array) -> jax.Array:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        x = x[:, :: self.stride, :: self.stride]
        half = self.missing // 2
        return F.relu(y + jnp.pad(x, ((0, 0), (0, 0), (0, 0), (half, half))))


@register("model", config=CifarResNetConfig)
@register("backbone", config=CifarResNetConfig)
class CifarResNet(Backbone[CifarResNetConfig]):
    """[N, H, W, 3] -> logits [N, num_classes], or maps at strides 1, 2 and 4."""

    def __init__(self, config: CifarResNetConfig) -> None:
        super().__init__(config)
        self.conv1 = nn.Conv2D(3, WIDTHS[0], 3, padding=1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(WIDTHS[0])
        channels = WIDTHS[0]
        for stage, width in enumerate(WIDTHS):
            blocks = nn.Sequential()
            for number in range(VARIANTS[config.variant].blocks):
                blocks.append(BasicBlock(channels, width, 2 if stage > 0 and number == 0 else 1))
                channels = width
            self.add_sublayer(f"layer{stage + 1}", blocks)
        self.features = tuple(Feature(width, 2**stage) for stage, width in enumerate(WIDTHS))
        if config.num_classes:
            self.linear = nn.Linear(channels, config.num_classes, I.KaimingNormal())

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        first = self.layer1(F.relu(self.bn1(self.conv1(x))))  # [N, H, W, 16]
        second = self.layer2(first)  # [N, H/2, W/2, 32]
        return first, second, self.layer3(second)  # [N, H/4, W/4, 64]

    def logits(self, x: jax.Array) -> jax.Array:
        return self.linear(F.global_avg_pool2d(x)[:, 0, 0])
