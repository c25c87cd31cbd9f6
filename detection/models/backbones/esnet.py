"""ESNet, the searched backbone of the first PicoDet: shuffled halves, squeeze-and-excitation in every block.

Paper: Yu et al. 2021, https://arxiv.org/abs/2111.00902, section 3.1
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/backbones/esnet.py
Differs: nothing in the function computed. It has no classifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Backbone, Feature
from zoo.layers.conv_bn import Activation, ConvBN, ConvBNOptions
from zoo.layers.squeeze_excite import SqueezeExcite
from zoo.layers.stages import collect_maps
from zoo.layers.variants import VariantConfig, scaled_width

STEM_WIDTH = 24
STAGES = ((128, 3), (256, 7), (512, 3))  # width at scale 1, blocks


class Size(NamedTuple):
    """Multiplier of all widths, and the inner widths of the 13 blocks."""

    scale: float
    ratios: tuple[float, ...]


_RATIOS = (0.875, 0.5, 1.0, 0.625, 0.5, 0.75, 0.625, 0.625, 0.5, 0.625, 1.0, 0.625, 0.75)
# `scale` and `channel_ratio` of configs/picodet/legacy_model/picodet_{s,m,l}_*_coco.yml
VARIANTS: dict[str, Size] = {
    "esnet_x0_75": Size(0.75, (0.875, 0.5, 0.5, 0.5, 0.625, 0.5, 0.625, *(0.5,) * 6)),
    "esnet_x1_0": Size(1.0, _RATIOS),
    "esnet_x1_25": Size(1.25, _RATIOS),
}


@dataclass(frozen=True)
class ESNetConfig(VariantConfig[Size], table=VARIANTS):
    """`deploy` folds the normalisations into convolutions."""

    variant: str = "esnet_x0_75"
    deploy: bool = False


def _conv(
    in_channels: int,
    out_channels: int,
    kernel_size: int = 1,
    stride: int = 1,
    act: Activation | None = F.hardswish,
    deploy: bool = False,
) -> ConvBN:
    """A 1x1 convolution, or a depthwise one where the kernel is larger and the width stays."""
    groups = in_channels if kernel_size > 1 and in_channels == out_channels else 1
    start, names = nn.initializer.KaimingNormal(), ("_conv", "_batch_norm")
    options = ConvBNOptions(groups=groups, initializer=start, names=names, deploy=deploy)
    return ConvBN(in_channels, out_channels, kernel_size, stride, act=act, options=options)


class ShuffleBlock(nn.Layer):
    """Half of the channels pass, half are convolved; then the halves are shuffled."""

    def __init__(self, mid_channels: int, out_channels: int, deploy: bool) -> None:
        super().__init__()
        mid, half = mid_channels // 2, out_channels // 2
        self._conv_pw = _conv(half, mid, deploy=deploy)
        self._conv_dw = _conv(mid, mid, 3, act=None, deploy=deploy)
        self._se = SqueezeExcite(2 * mid)
        self._conv_linear = _conv(2 * mid, half, deploy=deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        passed, x = jnp.split(x, 2, axis=-1)
        x = self._conv_pw(x)
        x = self._conv_linear(self._se(jnp.concatenate([x, self._conv_dw(x)], axis=-1)))
        return F.channel_shuffle(jnp.concatenate([passed, x], axis=-1), 2)


class HalvingBlock(nn.Layer):
    """Two branches of stride 2, mixed by a depthwise separable convolution."""

    def __init__(self, in_channels: int, mid_channels: int, out_channels: int, deploy: bool) -> None:
        super().__init__()
        mid, half = mid_channels // 2, out_channels // 2
        self._conv_dw_1 = _conv(in_channels, in_channels, 3, 2, act=None, deploy=deploy)
        self._conv_linear_1 = _conv(in_channels, half, deploy=deploy)
        self._conv_pw_2 = _conv(in_channels, mid, deploy=deploy)
        self._conv_dw_2 = _conv(mid, mid, 3, 2, act=None, deploy=deploy)
        self._se = SqueezeExcite(mid)
        self._conv_linear_2 = _conv(mid, half, deploy=deploy)
        self._conv_dw_mv1 = _conv(out_channels, out_channels, 3, deploy=deploy)
        self._conv_pw_mv1 = _conv(out_channels, out_channels, deploy=deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        one = self._conv_linear_1(self._conv_dw_1(x))
        two = self._conv_linear_2(self._se(self._conv_dw_2(self._conv_pw_2(x))))
        return self._conv_pw_mv1(self._conv_dw_mv1(jnp.concatenate([one, two], axis=-1)))


@register("backbone", config=ESNetConfig)
class ESNet(Backbone[ESNetConfig]):
    """[N, H, W, 3] -> the maps at strides 8, 16 and 32."""

    def __init__(self, config: ESNetConfig) -> None:
        super().__init__(config)
        deploy = config.deploy
        scale, ratios = VARIANTS[config.variant]
        self._conv1 = _conv(3, STEM_WIDTH, 3, 2, deploy=deploy)
        ratio, width, features = iter(ratios), STEM_WIDTH, []
        self.names, self.ends = [], []
        for stage, (full, blocks) in enumerate(STAGES, start=2):
            out_channels = scaled_width(full, scale, 16)
            for block in range(1, blocks + 1):
                mid = scaled_width(int(out_channels * next(ratio)), 1.0, 8)
                new_block = (
                    HalvingBlock(width, mid, out_channels, deploy)
                    if block == 1
                    else ShuffleBlock(mid, out_channels, deploy)
                )
                self.names.append(f"{stage}_{block}")
                self.add_sublayer(self.names[-1], new_block)
            self.ends.append(len(self.names) - 1)
            width = out_channels
            features.append(Feature(width, 2 ** (stage + 1)))
        self.features = tuple(features)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        # [N, H/4, W/4, C], then [N, H/8, W/8, C1] to [N, H/32, W/32, C3]
        x = F.max_pool2d(self._conv1(x), 3, 2, 1)
        return collect_maps(x, (getattr(self, name) for name in self.names), self.ends)
