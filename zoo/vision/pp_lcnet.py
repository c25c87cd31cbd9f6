"""PP-LCNet: depthwise separable blocks with hard swish, squeeze-and-excitation at the end and one wide last layer.

Paper: https://arxiv.org/abs/2109.15099, table 1
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/pp_lcnet.py
Differs: nothing in the function computed.
Weights: `state_dict()` of the classifier has upstream's names, which PaddleDetection has too; the backbone is part of
    the orientation classifiers of PP-OCRv5, where names within it are upstream's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Feature
from zoo.layers.conv_bn import ConvBN
from zoo.layers.squeeze_excite import SqueezeExcite
from zoo.layers.variants import check_variant
from zoo.layers.wide_head import WideHead
from zoo.layers.width import scaled_width

_KAIMING = nn.initializer.KaimingNormal()
_HALVING = ((2, 2),) * 5


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
HEAD_WIDTH = 1280  # at every scale

# Width multipliers; paper, table 2
VARIANTS: dict[str, float] = {
    "pplcnet_x0_25": 0.25,
    "pplcnet_x0_35": 0.35,
    "pplcnet_x0_5": 0.5,
    "pplcnet_x0_75": 0.75,
    "pplcnet_x1_0": 1.0,
    "pplcnet_x1_5": 1.5,
    "pplcnet_x2_0": 2.0,
    "pplcnet_x2_5": 2.5,
}
SMALL = "pplcnet_x0_25"


@dataclass(frozen=True)
class PPLCNetClassifierConfig:
    """`deploy` folds the normalisations into convolutions."""

    variant: str = "pplcnet_x1_0"
    num_classes: int = 1000
    deploy: bool = False

    def __post_init__(self) -> None:
        check_variant("PPLCNetClassifier", self.variant, VARIANTS)


@dataclass(frozen=True)
class PPLCNetConfig:
    """`strides` are (vertical, horizontal) of the stem and of `blocks3` to `blocks6`.

    `last_channels` pools over the image and widens to this many channels; None gives the map before that.
    """

    scale: float = 1.0
    strides: tuple[tuple[int, int], ...] = _HALVING
    last_channels: int | None = HEAD_WIDTH


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
        own = {"act": F.hardswish, "initializer": _KAIMING, "deploy": deploy}
        self.squeeze = block.squeeze
        self.dw_conv = ConvBN(in_channels, in_channels, block.kernel_size, stride, groups=in_channels, **own)
        if block.squeeze:
            self.se = SqueezeExcite(in_channels)
        self.pw_conv = ConvBN(in_channels, out_channels, 1, **own)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.dw_conv(x)
        return self.pw_conv(self.se(x) if self.squeeze else x)


class _Stages(WideHead):
    """The convolutions of every form; `maps` are what `blocks3` to `blocks6` give, and `widths` their channels."""

    def __init__(self, scale: float, strides: tuple[tuple[int, int], ...], deploy: bool) -> None:
        super().__init__()
        stem_stride, *others = strides
        width = scaled_width(STEM_WIDTH, scale)
        self.conv1 = ConvBN(3, width, 3, stem_stride, act=F.hardswish, initializer=_KAIMING, deploy=deploy)
        widths = []
        for (name, blocks), stride in zip(STAGES.items(), ((1, 1), *others), strict=True):
            stage = nn.Sequential()
            for block in blocks:
                out_channels = scaled_width(block.width, scale)
                stage.append(DepthwiseSeparable(block, width, out_channels, stride, deploy))
                width, stride = out_channels, (1, 1)
            self.add_sublayer(name, stage)
            widths.append(width)
        self.widths = tuple(widths[1:])

    def maps(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.blocks2(self.conv1(x))
        maps = []
        for stage in (self.blocks3, self.blocks4, self.blocks5, self.blocks6):
            x = stage(x)
            maps.append(x)
        return tuple(maps)


@register("model", config=PPLCNetClassifierConfig)
@register("backbone", config=PPLCNetClassifierConfig)
class PPLCNetClassifier(_Stages):
    """[N, H, W, 3] -> logits [N, num_classes], or the maps at strides 4, 8, 16 and 32."""

    def __init__(self, config: PPLCNetClassifierConfig) -> None:
        super().__init__(VARIANTS[config.variant], _HALVING, config.deploy)
        self.config = config
        self.features = tuple(Feature(*pair) for pair in zip(self.widths, (4, 8, 16, 32)))
        if config.num_classes:
            self.add_head(self.widths[-1], HEAD_WIDTH, config.num_classes, F.hardswish)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        return self.maps(x)  # [N, H/4, W/4, C1] to [N, H/32, W/32, C4]

    def forward(self, x: jax.Array) -> jax.Array | tuple[jax.Array, ...]:
        maps = self.maps(x)
        return self.logits(maps[-1]) if self.config.num_classes else maps


@register("backbone", config=PPLCNetConfig)
class PPLCNet(_Stages):
    """The form of text: [N, H, W, 3] -> [N, 1, 1, out_channels], or the last map when `last_channels` is None."""

    def __init__(self, config: PPLCNetConfig, deploy: bool = False) -> None:
        super().__init__(config.scale, config.strides, deploy)
        self.widens = config.last_channels is not None
        self.out_channels = self.widths[-1]
        if config.last_channels is not None:
            self.add_head(self.out_channels, config.last_channels, 0, F.hardswish)
            self.out_channels = config.last_channels

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.maps(x)[-1]
        return self.widened(x) if self.widens else x
