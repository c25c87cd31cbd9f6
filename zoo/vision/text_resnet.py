"""ResNet-vd for lines of text 32 pixels high: its strides halve the height and, but for two poolings, keep the width.

Paper: CRNN, https://arxiv.org/abs/1507.05717; vd is ResNet-D of https://arxiv.org/abs/1812.01187, section 4
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/backbones/rec_resnet_vd.py
Differs: nothing in the function computed. The deploy form folds the normalisations.
Weights: part of PP-OCR server v2.0 and of PaddleOCR's CRNN; `state_dict()` has upstream's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Backbone, Contract, Feature
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.variants import VariantConfig

WIDTHS = (64, 128, 256, 512)
_NAMES = ("_conv", "_batch_norm")
_ROW_STRIDE = (32, 4)


class Size(NamedTuple):
    """`depths` are blocks of each stage. `params`: counted in the reference, as upstream publishes none."""

    depths: tuple[int, int, int, int]
    params: int
    bottleneck: bool = False


VARIANTS: dict[str, Size] = {
    "text_resnet18_vd": Size((2, 2, 2, 2), 11_199_968),
    "text_resnet34_vd": Size((3, 4, 6, 3), 21_308_128),
    "text_resnet50_vd": Size((3, 4, 6, 3), 23_527_264, bottleneck=True),
}


@dataclass(frozen=True)
class TextResNetConfig(VariantConfig[Size], table=VARIANTS):
    """`deploy` folds the normalisations into convolutions."""

    variant: str = "text_resnet34_vd"
    deploy: bool = False


class Block(nn.Layer):
    """`relu(branch(x) + shortcut(x))`: two 3x3 convolutions, or 1x1, 3x3, 1x1; a shortcut that projects or copies.

    `stride` is (vertical, horizontal); where it is not (1, 1) the shortcut averages as many pixels first.
    """

    def __init__(
        self,
        in_channels: int,
        width: int,
        stride: tuple[int, int],
        bottleneck: bool,
        projects: bool,
        deploy: bool,
    ) -> None:
        super().__init__()
        self.bottleneck, self.projects, self.stride = bottleneck, projects, stride
        options = ConvBNOptions(names=_NAMES, deploy=deploy)
        out_channels = 4 * width if bottleneck else width
        if bottleneck:
            self.conv0 = ConvBN(in_channels, width, 1, act=F.relu, options=options)
            self.conv1 = ConvBN(width, width, 3, stride, act=F.relu, options=options)
            self.conv2 = ConvBN(width, out_channels, 1, options=options)
        else:
            self.conv0 = ConvBN(in_channels, width, 3, stride, act=F.relu, options=options)
            self.conv1 = ConvBN(width, width, 3, options=options)
        if projects:
            self.short = ConvBN(in_channels, out_channels, 1, options=options)

    def forward(self, x: jax.Array) -> jax.Array:
        y = self.conv1(self.conv0(x))
        if self.bottleneck:
            y = self.conv2(y)
        if self.stride != (1, 1):
            x = F.avg_pool2d(x, self.stride, ceil_mode=True)
        return F.relu((self.short(x) if self.projects else x) + y)


@register("backbone", config=TextResNetConfig)
class TextResNet(Backbone[TextResNetConfig]):
    """[N, 32, W, 3] -> one row [N, 1, W // 4, C]."""

    contract = Contract(inputs=("n", 32, "8*w", 3))

    def __init__(self, config: TextResNetConfig) -> None:
        super().__init__(config)
        size = VARIANTS[config.variant]
        conv = partial(ConvBN, act=F.relu, options=ConvBNOptions(names=_NAMES, deploy=config.deploy))
        self.conv1_1, self.conv1_2, self.conv1_3 = conv(3, 32, 3), conv(32, 32, 3), conv(32, 64, 3)
        self.names, channels = [], 64
        for stage, (width, depth) in enumerate(zip(WIDTHS, size.depths)):
            for i in range(depth):
                stride = (2, 1) if stage and i == 0 else (1, 1)
                block = Block(channels, width, stride, size.bottleneck, i == 0, config.deploy)
                self.names.append(f"bb_{stage}_{i}")
                self.add_sublayer(self.names[-1], block)
                channels = 4 * width if size.bottleneck else width
        self.features = (Feature(channels, _ROW_STRIDE),)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.conv1_3(self.conv1_2(self.conv1_1(x)))  # [N, H, W, 64]
        x = F.max_pool2d(x, 3, stride=2, padding=1, pad_value=0.0)  # 0 is the least that ReLU gives
        for name in self.names:
            x = getattr(self, name)(x)
        return (F.max_pool2d(x, 2),)  # [N, H/32, W/4, C]
