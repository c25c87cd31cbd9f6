"""PP-LCNetV2: PP-LCNet with re-parameterised depthwise convolutions, split 1x1 convolutions and a shortcut.

Paper: none; upstream describes it in PaddleClas docs/en/models/PP-LCNetV2_en.md
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/pp_lcnet_v2.py
Differs: nothing in the function computed; the deploy form folds every normalisation.
Weights: `state_dict()` has upstream's names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import numpy as np

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn.reparam import Arrays, centred, deploy_state, prefixed
from zoo.contracts import Feature
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.squeeze_excite import SqueezeExcite
from zoo.layers.stages import collect_maps
from zoo.layers.variants import VariantConfig, scaled_width
from zoo.layers.wide_head import WideHead

_KAIMING = nn.initializer.KaimingNormal()


class Stage(NamedTuple):
    """Width at scale 1. `split` puts half the width between two 1x1 convolutions."""

    width: int
    kernel_size: int = 3
    split: bool = False
    branches: bool = False
    squeeze: bool = False
    shortcut: bool = False


STEM_WIDTHS = (32, 64)
STAGES = (
    Stage(128),
    Stage(256),
    Stage(512, 5, split=True, branches=True, squeeze=True),
    Stage(1024, 5, branches=True, shortcut=True),
)
HEAD_WIDTH = 1280


class Size(NamedTuple):
    """`depths` are the blocks of each stage.

    `params` of 1000 classes; with the running statistics they are the values in PaddleClas 2.6's checkpoints.
    """

    scale: float
    depths: tuple[int, int, int, int]
    params: int


# PPLCNetV2_small, _base and _large of the reference
VARIANTS: dict[str, Size] = {
    "pplcnetv2_small": Size(0.75, (2, 2, 4, 2), 4_193_448),
    "pplcnetv2_base": Size(1.0, (2, 2, 6, 2), 6_800_360),
    "pplcnetv2_large": Size(1.25, (2, 2, 8, 2), 10_716_840),
}


@dataclass(frozen=True)
class PPLCNetV2Config(VariantConfig[Size], table=VARIANTS):
    """`deploy` builds the form with one convolution in place of the branches."""

    variant: str = "pplcnetv2_base"
    num_classes: int = 1000
    deploy: bool = False


def _conv(in_channels: int, out_channels: int, kernel_size: int, deploy: bool, stride: int = 1) -> ConvBN:
    options = ConvBNOptions(initializer=_KAIMING, norm_decay=0.0, deploy=deploy)
    return ConvBN(in_channels, out_channels, kernel_size, stride, act=F.relu, options=options)


class DepthwiseSeparable(nn.Layer):
    """Depthwise convolution with the stride, maybe squeeze-and-excitation, one or two 1x1 convolutions, a shortcut.

    With `branches` the depthwise convolution is a sum of normalised ones of the odd sizes up to `kernel_size`, where
    that of 1x1 needs a stride of 1. Checkpoints of the training form hold the deploy form's convolution `dw_conv` too,
    which nothing uses.
    """

    def __init__(
        self, stage: Stage, in_channels: int, out_channels: int, stride: int = 1, deploy: bool = False
    ) -> None:
        super().__init__()
        self.stage, self.deploy = stage, deploy
        self.shortcut = stage.shortcut and stride == 1 and in_channels == out_channels
        options = ConvBNOptions(groups=in_channels, initializer=_KAIMING, norm_decay=0.0)
        kernel = stage.kernel_size
        if stage.branches:
            attr = nn.ParamAttr(trainable=deploy)
            attrs = {"weight_attr": attr, "bias_attr": attr, "groups": in_channels}
            self.dw_conv = nn.Conv2D(in_channels, in_channels, kernel, stride, kernel // 2, **attrs)
            if not deploy:
                sizes = [size for size in range(kernel, 0, -2) if size > 1 or stride == 1]
                convs = [ConvBN(in_channels, in_channels, size, stride, options=options) for size in sizes]
                self.dw_conv_list = nn.LayerList(convs)
        else:
            options = replace(options, deploy=deploy)
            self.dw_conv = ConvBN(in_channels, in_channels, kernel, stride, act=F.relu, options=options)
        if stage.squeeze:
            self.se = SqueezeExcite(in_channels, slope=None)
        if stage.split:
            self.pw_conv_1 = _conv(in_channels, out_channels // 2, 1, deploy)
            self.pw_conv_2 = _conv(out_channels // 2, out_channels, 1, deploy)
        else:
            self.pw_conv = _conv(in_channels, out_channels, 1, deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        if not self.stage.branches:
            y = self.dw_conv(x)
        elif self.deploy:
            y = F.relu(self.dw_conv(x))
        else:
            first, *others = self.dw_conv_list
            y = first(x)
            for conv in others:
                y = y + conv(x)
            y = F.relu(y)
        if self.stage.squeeze:
            y = self.se(y)
        y = self.pw_conv_2(self.pw_conv_1(y)) if self.stage.split else self.pw_conv(y)
        return x + y if self.shortcut else y

    def deploy_state(self) -> Arrays:
        state: Arrays = {}
        for name, child in self.named_children():
            if not (self.stage.branches and name.startswith("dw_conv")):
                state.update(prefixed(name, deploy_state(child)))
        if self.stage.branches:
            folded = [conv.fuse() for conv in self.dw_conv_list]
            state["dw_conv.weight"] = np.sum([centred(w, self.stage.kernel_size) for w, _ in folded], axis=0)
            state["dw_conv.bias"] = np.sum([bias for _, bias in folded], axis=0)
        return state


@register("model", config=PPLCNetV2Config)
@register("backbone", config=PPLCNetV2Config)
class PPLCNetV2(WideHead[PPLCNetV2Config]):
    """[N, H, W, 3] -> logits [N, num_classes], or the maps at strides 4, 8, 16 and 32."""

    def __init__(self, config: PPLCNetV2Config) -> None:
        super().__init__(config)
        scale, depths, _ = VARIANTS[config.variant]
        deploy = config.deploy
        first, width = (scaled_width(value, scale) for value in STEM_WIDTHS)
        self.stem = nn.Sequential(
            _conv(3, first, 3, deploy, stride=2), DepthwiseSeparable(Stage(64), first, width, deploy=deploy)
        )
        self.stages = nn.LayerList()
        widths = []
        for stage, depth in zip(STAGES, depths):
            blocks = nn.Sequential()
            out_channels = scaled_width(stage.width, scale)
            for number in range(depth):
                stride = 2 if number == 0 else 1
                blocks.append(DepthwiseSeparable(stage, width, out_channels, stride, deploy))
                width = out_channels
            self.stages.append(blocks)
            widths.append(width)
        self.features = tuple(Feature(*pair) for pair in zip(widths, (4, 8, 16, 32)))
        if config.num_classes:
            self.add_head(width, HEAD_WIDTH, config.num_classes, F.relu)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.stem(x)  # [N, H/2, W/2, C]
        return collect_maps(x, self.stages)  # [N, H/4, W/4, C1] to [N, H/32, W/32, C4]
