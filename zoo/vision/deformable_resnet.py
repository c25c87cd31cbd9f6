"""ResNet whose later stages have deformable 3x3 convolutions: the backbone of DBNet++.

Paper: ResNet, https://arxiv.org/abs/1512.03385; DBNet++, https://arxiv.org/abs/2202.10304, section 4.2
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/backbones/det_resnet.py
Differs: nothing in the function computed. The deploy form folds the normalisations.
Weights: part of PaddleOCR's DB++; `state_dict()` has upstream's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Backbone, Contract, Feature
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.deformable import DeformableConvBN
from zoo.layers.stages import collect_maps
from zoo.layers.variants import VariantConfig

WIDTHS = (64, 128, 256, 512)
_EXPANSION = 4
_NAMES = ("_conv", "_batch_norm")


class Size(NamedTuple):
    """`depths` are blocks of each stage, `deformable` says of which the 3x3 convolutions are.

    `params`: counted in the reference, as upstream publishes those of whole detectors at most.
    """

    depths: tuple[int, int, int, int]
    deformable: tuple[bool, bool, bool, bool]
    params: int


# `dcn_stage` of det_r50_db++_icdar15.yml
_ALL_BUT_FIRST = (False, True, True, True)
VARIANTS: dict[str, Size] = {
    "resnet50_dcn": Size((3, 4, 6, 3), _ALL_BUT_FIRST, 24_379_295),
    "resnet101_dcn": Size((3, 4, 23, 3), _ALL_BUT_FIRST, 44_429_418),
}


@dataclass(frozen=True)
class DeformableResNetConfig(VariantConfig[Size], table=VARIANTS):
    """`depths` take the place of the variant's. `deploy` folds the normalisations into convolutions."""

    variant: str = "resnet50_dcn"
    depths: tuple[int, int, int, int] | None = None
    deploy: bool = False


class Block(nn.Layer):
    """`relu(branch(x) + shortcut(x))`: 1x1, 3x3 with the stride, 1x1; the first block's shortcut projects."""

    def __init__(
        self, in_channels: int, width: int, stride: int, projects: bool, deformable: bool, deploy: bool
    ) -> None:
        super().__init__()
        options = ConvBNOptions(names=_NAMES, deploy=deploy)
        middle = DeformableConvBN if deformable else ConvBN
        self.conv0 = ConvBN(in_channels, width, 1, act=F.relu, options=options)
        self.conv1 = middle(width, width, 3, stride, act=F.relu, options=options)
        self.conv2 = ConvBN(width, width * _EXPANSION, 1, options=options)
        self.projects = projects
        if projects:
            self.short = ConvBN(in_channels, width * _EXPANSION, 1, stride, options=options)

    def forward(self, x: jax.Array) -> jax.Array:
        y = self.conv2(self.conv1(self.conv0(x)))
        return F.relu((self.short(x) if self.projects else x) + y)


@register("backbone", config=DeformableResNetConfig)
class DeformableResNet(Backbone[DeformableResNetConfig]):
    """[N, H, W, 3] -> maps at strides 4, 8, 16 and 32."""

    contract = Contract(small={"depths": (1, 1, 1, 1)})

    def __init__(self, config: DeformableResNetConfig) -> None:
        super().__init__(config)
        size = config.parts
        self.conv = ConvBN(3, 64, 7, 2, act=F.relu, options=ConvBNOptions(names=_NAMES, deploy=config.deploy))
        channels, self.ends, self.names = 64, [], []
        for stage, (width, depth, deformable) in enumerate(zip(WIDTHS, size.depths, size.deformable)):
            for i in range(depth):
                # Letters, but numbers from the second block on in a third stage of more than ten
                name = f"res{stage + 2}" + (f"b{i}" if stage == 2 and depth > 10 and i else chr(ord("a") + i))
                stride = 2 if stage and i == 0 else 1
                self.add_sublayer(name, Block(channels, width, stride, i == 0, deformable, config.deploy))
                self.names.append(name)
                channels = width * _EXPANSION
            self.ends.append(len(self.names) - 1)
        self.features = tuple(Feature(w * _EXPANSION, s) for w, s in zip(WIDTHS, (4, 8, 16, 32)))

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.conv(x)  # [N, H/2, W/2, 64]
        x = F.max_pool2d(x, 3, stride=2, padding=1, pad_value=0.0)  # 0 is the least that ReLU gives
        return collect_maps(x, [getattr(self, name) for name in self.names], self.ends)
