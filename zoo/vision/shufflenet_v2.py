"""ShuffleNetV2: blocks that let half of the channels pass, filter the other half, and shuffle both.

Paper: Ma et al. 2018, https://arxiv.org/abs/1807.11164, table 5 and figure 3
Reference: paddle.vision.models.shufflenetv2; PaddleClas ppcls/arch/backbone/model_zoo/shufflenet_v2.py is the same
Differs: nothing in the function computed. The second stage of scale 2 has 224 channels as upstream, the paper has 244.
Weights: `state_dict()` has the names of paddle.vision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Backbone, Feature
from zoo.layers.conv_bn import Activation, ConvBN, ConvBNOptions
from zoo.layers.stages import collect_maps
from zoo.layers.variants import VariantConfig

STEM_WIDTH = 24
DEPTHS = (4, 8, 4)  # blocks of the stages
ACTIVATIONS: dict[str, Activation] = {"relu": F.relu, "swish": F.silu}


class Size(NamedTuple):
    """`widths` of the three stages, and `last` of the convolution before the pooling.

    `params` of 1000 classes, without the running statistics, counted in paddle.vision.
    """

    widths: tuple[int, int, int]
    last: int
    params: int
    act: Literal["relu", "swish"] = "relu"


# Paper, table 5; scales 0.25 and 0.33, and swish, as upstream trained them
VARIANTS: dict[str, Size] = {
    "shufflenet_v2_x0_25": Size((24, 48, 96), 512, 603_688),
    "shufflenet_v2_x0_33": Size((32, 64, 128), 512, 647_272),
    "shufflenet_v2_x0_5": Size((48, 96, 192), 1024, 1_366_792),
    "shufflenet_v2_x1_0": Size((116, 232, 464), 1024, 2_278_604),
    "shufflenet_v2_x1_5": Size((176, 352, 704), 1024, 3_503_624),
    "shufflenet_v2_x2_0": Size((224, 488, 976), 2048, 7_366_536),
    "shufflenet_v2_swish": Size((116, 232, 464), 1024, 2_278_604, "swish"),
}


@dataclass(frozen=True)
class ShuffleNetV2Config(VariantConfig[Size], table=VARIANTS):
    """`variant` is the scale of the widths, or swish at scale 1."""

    variant: str = "shufflenet_v2_x1_0"
    num_classes: int = 1000


def _conv(
    in_channels: int, out_channels: int, act: Activation, kernel_size: int = 1, stride: int = 1
) -> ConvBN:
    return ConvBN(
        in_channels, out_channels, kernel_size, stride, act=act, options=ConvBNOptions(names=("0", "1"))
    )


def _depthwise(channels: int, stride: int) -> ConvBN:
    return ConvBN(channels, channels, 3, stride, options=ConvBNOptions(groups=channels, names=("0", "1")))


def _shuffled(left: jax.Array, right: jax.Array) -> jax.Array:
    return F.channel_shuffle(jnp.concatenate([left, right], axis=-1), 2)


class ShuffleUnit(nn.Layer):
    """The first half of the channels passes, the second is filtered."""

    def __init__(self, channels: int, act: Activation) -> None:
        super().__init__()
        half = channels // 2
        self._conv_pw = _conv(half, half, act)
        self._conv_dw = _depthwise(half, 1)
        self._conv_linear = _conv(half, half, act)

    def forward(self, x: jax.Array) -> jax.Array:
        left, right = jnp.split(x, 2, axis=-1)
        return _shuffled(left, self._conv_linear(self._conv_dw(self._conv_pw(right))))


class DownUnit(nn.Layer):
    """Both branches see all channels and have the stride 2."""

    def __init__(self, in_channels: int, out_channels: int, act: Activation) -> None:
        super().__init__()
        half = out_channels // 2
        self._conv_dw_1 = _depthwise(in_channels, 2)
        self._conv_linear_1 = _conv(in_channels, half, act)
        self._conv_pw_2 = _conv(in_channels, half, act)
        self._conv_dw_2 = _depthwise(half, 2)
        self._conv_linear_2 = _conv(half, half, act)

    def forward(self, x: jax.Array) -> jax.Array:
        left = self._conv_linear_1(self._conv_dw_1(x))
        return _shuffled(left, self._conv_linear_2(self._conv_dw_2(self._conv_pw_2(x))))


@register("model", config=ShuffleNetV2Config)
@register("backbone", config=ShuffleNetV2Config)
class ShuffleNetV2(Backbone[ShuffleNetV2Config]):
    """[N, H, W, 3] -> logits [N, num_classes], or the maps of stem and stages at strides 4, 8, 16 and 32."""

    def __init__(self, config: ShuffleNetV2Config) -> None:
        super().__init__(config)
        size = VARIANTS[config.variant]
        act = ACTIVATIONS[size.act]
        self._conv1 = _conv(3, STEM_WIDTH, act, 3, 2)
        channels, self.blocks, ends = STEM_WIDTH, [], []
        for stage, (width, depth) in enumerate(zip(size.widths, DEPTHS, strict=True), start=2):
            for number in range(1, depth + 1):
                block = ShuffleUnit(width, act) if number > 1 else DownUnit(channels, width, act)
                self.add_sublayer(f"{stage}_{number}", block)
                self.blocks.append(f"{stage}_{number}")
            channels = width
            ends.append(len(self.blocks) - 1)
        self.ends = tuple(ends)
        self.features = tuple(Feature(width, 4 << i) for i, width in enumerate((STEM_WIDTH, *size.widths)))
        if config.num_classes:
            self._last_conv = _conv(channels, size.last, act)
            self._fc = nn.Linear(size.last, config.num_classes)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = F.max_pool2d(self._conv1(x), 3, 2, 1)  # [N, H/4, W/4, 24]
        return x, *collect_maps(x, [getattr(self, name) for name in self.blocks], self.ends)

    def logits(self, x: jax.Array) -> jax.Array:
        return self._fc(F.global_avg_pool2d(self._last_conv(x))[:, 0, 0])
