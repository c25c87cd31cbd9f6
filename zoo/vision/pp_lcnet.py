"""PP-LCNet: depthwise separable blocks with hard swish, squeeze-and-excitation at the end and one wide last layer.

Paper: https://arxiv.org/abs/2109.15099, table 1
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/pp_lcnet.py
Differs: nothing in the function computed.
Weights: part of the orientation classifiers of PP-OCRv5; names within the backbone are upstream's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.layers.conv_bn import ConvBN
from zoo.layers.squeeze_excite import SqueezeExcite
from zoo.layers.width import scaled_width

_DROPOUT = 0.2


class Block(NamedTuple):
    """Width behind the block at scale 1."""

    kernel_size: int
    width: int
    squeeze: bool = False


STEM_WIDTH = 16
# Paper, table 1. The first block of each stage but `blocks2` has the stage's stride.
STAGES: dict[str, tuple[Block, ...]] = {
    "blocks2": (Block(3, 32),),
    "blocks3": (Block(3, 64), Block(3, 64)),
    "blocks4": (Block(3, 128), Block(3, 128)),
    "blocks5": (Block(3, 256), *(Block(5, 256),) * 5),
    "blocks6": (Block(5, 512, squeeze=True), Block(5, 512, squeeze=True)),
}


@dataclass(frozen=True)
class PPLCNetConfig:
    """`strides` are (vertical, horizontal) of the stem and of `blocks3` to `blocks6`.

    `last_channels` pools over the image and widens to this many channels; None gives the map before that.
    """

    scale: float = 1.0
    strides: tuple[tuple[int, int], ...] = ((2, 2), (2, 2), (2, 2), (2, 2), (2, 2))
    last_channels: int | None = 1280


class DepthwiseSeparable(nn.Layer):
    """Depthwise convolution with the stride, maybe squeeze-and-excitation, 1x1 convolution."""

    def __init__(
        self,
        block: Block,
        in_channels: int,
        out_channels: int,
        stride: tuple[int, int] = (1, 1),
        deploy: bool = False,
    ) -> None:
        super().__init__()
        own = {"act": F.hardswish, "deploy": deploy}
        self.squeeze = block.squeeze
        self.dw_conv = ConvBN(in_channels, in_channels, block.kernel_size, stride, groups=in_channels, **own)
        if block.squeeze:
            self.se = SqueezeExcite(in_channels)
        self.pw_conv = ConvBN(in_channels, out_channels, 1, **own)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.dw_conv(x)
        return self.pw_conv(self.se(x) if self.squeeze else x)


@register("backbone", config=PPLCNetConfig)
class PPLCNet(nn.Layer):
    """[N, H, W, 3] -> [N, 1, 1, out_channels], or the last map when `last_channels` is None."""

    def __init__(self, config: PPLCNetConfig, deploy: bool = False) -> None:
        super().__init__()
        stem_stride, *strides = config.strides
        width = scaled_width(STEM_WIDTH, config.scale)
        self.conv1 = ConvBN(3, width, 3, stem_stride, act=F.hardswish, deploy=deploy)
        for (name, blocks), stride in zip(STAGES.items(), ((1, 1), *strides), strict=True):
            stage = nn.Sequential()
            for block in blocks:
                out_channels = scaled_width(block.width, config.scale)
                stage.append(DepthwiseSeparable(block, width, out_channels, stride, deploy))
                width, stride = out_channels, (1, 1)
            self.add_sublayer(name, stage)
        self.widens = config.last_channels is not None
        self.out_channels = width
        if config.last_channels is not None:
            self.out_channels = config.last_channels
            self.last_conv = nn.Conv2D(width, self.out_channels, 1, bias_attr=False)
            # In this mode inference multiplies by 0.8: official weights expect it.
            self.dropout = nn.Dropout(_DROPOUT, mode="downscale_in_infer")

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.conv1(x)
        for name in STAGES:
            x = getattr(self, name)(x)
        if self.widens:
            x = self.dropout(F.hardswish(self.last_conv(F.global_avg_pool2d(x))))
        return x
