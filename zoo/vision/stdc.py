"""STDC: blocks whose convolutions get narrower, the output being all their results side by side.

Paper: https://arxiv.org/abs/2104.13188
Reference: PaddleSeg paddleseg/models/backbones/stdcnet.py (blocks of type "cat"); classifier: MichaelFan01/STDC-Seg
    nets/stdcnet.py, the authors' code, as PaddleSeg has none
Differs: the authors' classifier holds a batch normalisation `bn` that it never calls, which is not here. The pooling in
    blocks of stride 2 leaves padding out of its averages, as PaddleSeg's does and the authors' does not.
Weights: PaddleSeg's PP_STDCNet1 and PP_STDCNet2, to be loaded with num_classes=0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Backbone, Feature
from zoo.layers.conv_bn import ConvBN
from zoo.layers.stages import collect_maps
from zoo.layers.variants import VariantConfig


class Size(NamedTuple):
    """Blocks of the stages at strides 8, 16 and 32; `params` without the running statistics."""

    blocks: tuple[int, int, int]
    params: int


# Paper, table 1: 8.44 and 12.47 million; exact: counted in the authors' nets/stdcnet.py without the unused `bn`
VARIANTS: dict[str, Size] = {"stdc1": Size((2, 2, 2), 8_441_504), "stdc2": Size((4, 5, 3), 12_471_968)}

_DROPOUT = 0.2


@dataclass(frozen=True)
class STDCConfig(VariantConfig[Size], table=VARIANTS):
    """`stdc1` is the smaller network. `width` are the channels at stride 4, which set all others; weights have 64."""

    variant: str = "stdc1"
    num_classes: int = 1000
    in_channels: int = 3
    width: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width < 2 or self.width % 2:
            raise ConfigError(
                "the width is halved", where="STDC", received=self.width, allowed="2, 4, 6, ..."
            )


class DenseConcat(nn.Layer):
    """1x1 to half of `out_channels`, then 3x3 to a quarter, an eighth and an eighth, all four concatenated.

    With `halve` a depthwise 3x3 of stride 2 stands behind the 1x1, and average pooling brings the 1x1's own share to
    that size.
    """

    def __init__(self, in_channels: int, out_channels: int, halve: bool) -> None:
        super().__init__()
        half = out_channels // 2
        self.conv_list = nn.LayerList([ConvBN(in_channels, half, 1, act=F.relu)])
        self.halve = halve
        if halve:
            depthwise = nn.Conv2D(half, half, 3, stride=2, padding=1, groups=half, bias_attr=False)
            self.avd_layer = nn.Sequential(depthwise, nn.BatchNorm2D(half))
        widths = (half, out_channels // 4, out_channels // 8, out_channels // 8)
        for before, width in pairwise(widths):
            self.conv_list.append(ConvBN(before, width, 3, act=F.relu))

    def forward(self, x: jax.Array) -> jax.Array:
        first, *others = self.conv_list
        x = share = first(x)
        if self.halve:
            x, share = self.avd_layer(x), F.avg_pool2d(x, 3, stride=2, padding=1)
        shares = [share]
        for conv in others:
            x = conv(x)
            shares.append(x)
        return jnp.concatenate(shares, axis=-1)


@register("model", config=STDCConfig)
@register("backbone", config=STDCConfig)
class STDC(Backbone[STDCConfig]):
    """Contract: zoo/contracts.py. `features` are the maps at strides 2, 4, 8, 16 and 32."""

    def __init__(self, config: STDCConfig) -> None:
        super().__init__(config)
        widths = [feature.channels for feature in self.features]
        blocks = nn.Sequential(
            ConvBN(config.in_channels, widths[0], 3, 2, act=F.relu),
            ConvBN(widths[0], widths[1], 3, 2, act=F.relu),
        )
        self.ends = [0, 1]  # numbers of the blocks that give the maps
        width = widths[1]
        for count, wider in zip(VARIANTS[config.variant].blocks, widths[2:]):
            for number in range(count):
                blocks.append(DenseConcat(width, wider, halve=number == 0))
                width = wider
            self.ends.append(len(blocks) - 1)
        self.add_sublayer("features", blocks)
        if config.num_classes:
            normal = I.Normal(0.0, 0.001)
            self.conv_last = ConvBN(width, width, 1, act=F.relu)
            self.fc = nn.Linear(width, width, weight_attr=normal, bias_attr=False)
            self.dropout = nn.Dropout(_DROPOUT)
            self.linear = nn.Linear(width, config.num_classes, weight_attr=normal, bias_attr=False)
        for _, parameter in self.named_parameters():
            if len(parameter.shape) == 4:  # He's scale by the outputs, as the authors train
                fan_out = parameter.shape[0] * math.prod(parameter.shape[2:])
                parameter.initializer = I.Normal(0.0, math.sqrt(2 / fan_out))

    @property
    def features(self) -> tuple[Feature, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Upstream's sublayer of the same name is reached through `named_children()`."""
        width = self.config.width
        widths = (width // 2, width, 4 * width, 8 * width, 16 * width)
        return tuple(Feature(channels, 2 << i) for i, channels in enumerate(widths))

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        blocks = dict(self.named_children())["features"]
        assert isinstance(blocks, nn.Sequential)
        return collect_maps(x, blocks, self.ends)

    def logits(self, x: jax.Array) -> jax.Array:
        x = F.global_avg_pool2d(jnp.square(self.conv_last(x)))[:, 0, 0]  # [N, 1024]
        return self.linear(self.dropout(F.relu(self.fc(x))))
