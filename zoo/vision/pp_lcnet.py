"""PP-LCNet: depthwise separable blocks with hard swish, squeeze-and-excitation at the end and one wide last layer.

Paper: https://arxiv.org/abs/2109.15099, table 1
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/pp_lcnet.py
Differs: nothing in the function computed.
Weights: `state_dict()` of the classifier has upstream's names, which PaddleDetection has too; the backbone is part of
    the orientation classifiers of PP-OCRv5, where names within it are upstream's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Feature
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.squeeze_excite import SqueezeExcite
from zoo.layers.stages import collect_maps
from zoo.layers.variants import ScaledSize, VariantConfig, scaled_width
from zoo.layers.wide_head import WideHead

_KAIMING = nn.initializer.KaimingNormal()


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


# Paper, table 2. With the running statistics `params` are the values in PaddleClas 2.6's checkpoints.
VARIANTS: dict[str, ScaledSize] = {
    "pplcnet_x0_25": ScaledSize(0.25, 1_521_184),
    "pplcnet_x0_35": ScaledSize(0.35, 1_643_090),
    "pplcnet_x0_5": ScaledSize(0.5, 1_879_576),
    "pplcnet_x0_75": ScaledSize(0.75, 2_357_008),
    "pplcnet_x1_0": ScaledSize(1.0, 2_952_520),
    "pplcnet_x1_5": ScaledSize(1.5, 4_499_832),
    "pplcnet_x2_0": ScaledSize(2.0, 6_521_512),
    "pplcnet_x2_5": ScaledSize(2.5, 9_017_560),
}


@dataclass(frozen=True)
class PPLCNetConfig(VariantConfig[ScaledSize], table=VARIANTS):
    """`strides` are (vertical, horizontal) of the stem and of `blocks3` to `blocks6`.

    `pool` keeps the wide layer of the classifier as the only feature where there are no classes. `deploy` folds the
    normalisations into convolutions.
    """

    variant: str = "pplcnet_x1_0"
    num_classes: int = 1000
    strides: tuple[tuple[int, int], ...] = ((2, 2),) * 5
    pool: bool = False
    deploy: bool = False


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
        point = ConvBNOptions(initializer=_KAIMING, norm_decay=0.0, deploy=deploy)
        depth, conv = replace(point, groups=in_channels), partial(ConvBN, act=F.hardswish)
        self.squeeze = block.squeeze
        self.dw_conv = conv(in_channels, in_channels, block.kernel_size, stride, options=depth)
        if block.squeeze:
            self.se = SqueezeExcite(in_channels)
        self.pw_conv = conv(in_channels, out_channels, 1, options=point)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.dw_conv(x)
        return self.pw_conv(self.se(x) if self.squeeze else x)


@register("model", config=PPLCNetConfig)
@register("backbone", config=PPLCNetConfig)
class PPLCNet(WideHead[PPLCNetConfig]):
    """[N, H, W, 3] -> logits [N, num_classes], or the maps of `blocks3` to `blocks6`: at strides 4, 8, 16 and 32.

    With `pool` and without classes: one map [N, 1, 1, 1280].
    """

    def __init__(self, config: PPLCNetConfig) -> None:
        super().__init__(config)
        scale, deploy = VARIANTS[config.variant].scale, config.deploy
        stem, *others = config.strides
        width = scaled_width(STEM_WIDTH, scale)
        options = ConvBNOptions(initializer=_KAIMING, norm_decay=0.0, deploy=deploy)
        self.conv1 = ConvBN(3, width, 3, stem, act=F.hardswish, options=options)
        features, (down, along) = [], stem
        for (name, blocks), stride in zip(STAGES.items(), ((1, 1), *others), strict=True):
            down, along = down * stride[0], along * stride[1]
            stage = nn.Sequential()
            for block in blocks:
                out_channels = scaled_width(block.width, scale)
                stage.append(DepthwiseSeparable(block, width, out_channels, stride, deploy))
                width, stride = out_channels, (1, 1)
            self.add_sublayer(name, stage)
            features.append(Feature(width, down if down == along else (down, along)))
        self.pools = config.pool and not config.num_classes
        self.features = (Feature(HEAD_WIDTH, 0),) if self.pools else tuple(features[1:])
        if config.num_classes or config.pool:
            self.add_head(width, HEAD_WIDTH, config.num_classes, F.hardswish)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.blocks2(self.conv1(x))  # [N, H/2, W/2, C], then [N, H/4, W/4, C1] to [N, H/32, W/32, C4]
        maps = collect_maps(x, (self.blocks3, self.blocks4, self.blocks5, self.blocks6))
        return (self.widen(maps[-1]),) if self.pools else maps
