"""MobileNetV1Enhance: MobileNetV1 with hard swish, 5x5 kernels and squeeze-and-excitation at the end, for text lines.

Paper: PP-OCRv3, https://arxiv.org/abs/2206.03001; MobileNet, https://arxiv.org/abs/1704.04861
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/backbones/rec_mv1_enhance.py
Differs: nothing in the function computed.
Weights: part of the PP-OCRv3 recognisers; `state_dict()` has upstream's names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.core.errors import ShapeError
from framework.nn import functional as F
from zoo.contracts import Backbone, Contract, Feature
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.squeeze_excite import SqueezeExcite
from zoo.layers.text_row import TEXT_ROW_STRIDE
from zoo.layers.variants import VariantConfig

Stride = int | tuple[int, int]

_NAMES = ("_conv", "_batch_norm")


class Block(NamedTuple):
    """Width behind the block at scale 1."""

    kernel_size: int
    width: int
    stride: Stride = 1
    squeeze: bool = False


STEM_WIDTH = 32
BLOCKS = (
    Block(3, 64),
    Block(3, 128),
    Block(3, 128),
    Block(3, 256, (2, 1)),
    Block(3, 256),
    Block(3, 512, (2, 1)),
    *(Block(5, 512),) * 5,
    Block(5, 1024, (2, 1), squeeze=True),
    Block(5, 1024, (1, 2), squeeze=True),
)


class Size(NamedTuple):
    """`params` without the running statistics."""

    scale: float
    params: int


# As PP-OCRv3 has it: the last stride is (1, 2) and the last pooling an average
VARIANTS: dict[str, Size] = {"mobilenetv1_enhance_x0_5": Size(0.5, 1_016_160)}


@dataclass(frozen=True)
class MobileNetV1EnhanceConfig(VariantConfig[Size], table=VARIANTS):
    """It reads text lines and has no classifier. `deploy` folds the normalisations into convolutions."""

    variant: str = "mobilenetv1_enhance_x0_5"
    deploy: bool = False


class DepthwiseSeparable(nn.Layer):
    """Depthwise convolution with the stride, maybe squeeze-and-excitation, 1x1 convolution."""

    def __init__(self, block: Block, in_channels: int, out_channels: int, deploy: bool = False) -> None:
        super().__init__()
        conv = partial(ConvBN, act=F.hardswish)
        point = ConvBNOptions(names=_NAMES, norm_decay=0.0, deploy=deploy)
        depth = replace(point, groups=in_channels)
        self.squeeze = block.squeeze
        self._depthwise_conv = conv(in_channels, in_channels, block.kernel_size, block.stride, options=depth)
        if block.squeeze:
            self._se = SqueezeExcite(in_channels)
        self._pointwise_conv = conv(in_channels, out_channels, 1, options=point)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self._depthwise_conv(x)
        return self._pointwise_conv(self._se(x) if self.squeeze else x)


@register("backbone", config=MobileNetV1EnhanceConfig)
class MobileNetV1Enhance(Backbone[MobileNetV1EnhanceConfig]):
    """[N, 48, W, 3] -> one row of features [N, 1, W // 8, C]."""

    contract = Contract(inputs=("n", 48, "8*w", 3))

    def __init__(self, config: MobileNetV1EnhanceConfig) -> None:
        super().__init__(config)
        scale, deploy = VARIANTS[config.variant].scale, config.deploy
        width = int(STEM_WIDTH * scale)
        options = ConvBNOptions(names=_NAMES, norm_decay=0.0, deploy=deploy)
        self.conv1 = ConvBN(3, width, 3, 2, act=F.hardswish, options=options)
        self.block_list = nn.Sequential()
        for block in BLOCKS:
            out_channels = int(block.width * scale)
            self.block_list.append(DepthwiseSeparable(block, width, out_channels, deploy))
            width = out_channels
        self.features = (Feature(width, TEXT_ROW_STRIDE),)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array]:
        x = self.block_list(self.conv1(x))  # [N, 3, W/4, C]
        if x.shape[1] not in (2, 3):
            raise ShapeError(
                "MobileNetV1Enhance reads text lines of one height",
                received=f"{x.shape[1]} rows of features before the last pooling",
                allowed="3, from an image 48 pixels high",
                fix="resize the line to a height of 48",
            )
        return (F.avg_pool2d(x, 2),)
