"""MobileNetV2: inverted residuals with linear bottlenecks.

Paper: Sandler et al. 2018, https://arxiv.org/abs/1801.04381, table 2
Reference: paddle.vision.models.mobilenetv2
Differs: nothing in the function computed.
Weights: `state_dict()` has the names of paddle.vision, which are torchvision's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Backbone, Feature
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.stages import collect_maps, stage_ends
from zoo.layers.variants import ScaledSize, VariantConfig, scaled_width

# The scales that PaddleClas trained; parameters counted in paddle.vision
VARIANTS: dict[str, ScaledSize] = {
    "mobilenetv2_x0_25": ScaledSize(0.25, 1_519_112),
    "mobilenetv2_x0_5": ScaledSize(0.5, 1_968_680),
    "mobilenetv2_x0_75": ScaledSize(0.75, 2_636_424),
    "mobilenetv2_x1_0": ScaledSize(1.0, 3_504_872),
    "mobilenetv2_x1_5": ScaledSize(1.5, 6_858_152),
    "mobilenetv2_x2_0": ScaledSize(2.0, 11_258_088),
}


class Stage(NamedTuple):
    """One row of the paper's table: widths at scale 1, the stride of the first block."""

    expansion: int
    width: int
    depth: int
    stride: int


# Paper, table 2
STEM_WIDTH, LAST_WIDTH = 32, 1280
STAGES = (
    Stage(1, 16, 1, 1),
    Stage(6, 24, 2, 2),
    Stage(6, 32, 3, 2),
    Stage(6, 64, 4, 2),
    Stage(6, 96, 3, 1),
    Stage(6, 160, 3, 2),
    Stage(6, 320, 1, 1),
)


@dataclass(frozen=True)
class MobileNetV2Config(VariantConfig[ScaledSize], table=VARIANTS):
    """`variant` is the scale of all widths."""

    variant: str = "mobilenetv2_x1_0"
    num_classes: int = 1000


def _conv(in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, groups: int = 1) -> ConvBN:
    options = ConvBNOptions(groups=groups, names=("0", "1"))
    return ConvBN(in_channels, out_channels, kernel_size, stride, act=F.relu6, options=options)


class InvertedResidual(nn.Layer):
    """1x1 to more channels, depthwise 3x3 with the stride, 1x1 back without activation; a shortcut where the shape
    stays."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, expansion: int) -> None:
        super().__init__()
        mid = in_channels * expansion
        self.shortcut = stride == 1 and in_channels == out_channels
        self.conv = nn.Sequential() if expansion == 1 else nn.Sequential(_conv(in_channels, mid, 1))
        self.conv.append(_conv(mid, mid, 3, stride, groups=mid))
        self.conv.append(nn.Conv2D(mid, out_channels, 1, bias_attr=False))
        self.conv.append(nn.BatchNorm2D(out_channels))

    def forward(self, x: jax.Array) -> jax.Array:
        return x + self.conv(x) if self.shortcut else self.conv(x)


@register("model", config=MobileNetV2Config)
@register("backbone", config=MobileNetV2Config)
class MobileNetV2(Backbone[MobileNetV2Config]):
    """[N, H, W, 3] -> logits [N, num_classes], or the maps at strides 4, 8, 16 and 32."""

    def __init__(self, config: MobileNetV2Config) -> None:
        super().__init__(config)
        scale = VARIANTS[config.variant].scale
        width = scaled_width(STEM_WIDTH, scale)
        layers = nn.Sequential(_conv(3, width, 3, 2))
        strides, widths = [2], [width]
        for stage in STAGES:
            for number in range(stage.depth):
                strides.append(1 if number else stage.stride)
                widths.append(scaled_width(stage.width, scale))
                layers.append(InvertedResidual(widths[-2], widths[-1], strides[-1], stage.expansion))
        self.ends = stage_ends(strides, stem_stride=1)
        self.maps = tuple(Feature(widths[number], stride) for number, stride in self.ends.items())
        if config.num_classes:
            last = scaled_width(LAST_WIDTH, max(1.0, scale))
            layers.append(_conv(widths[-1], last, 1))
            self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, config.num_classes))
        self.add_sublayer("features", layers)

    @property
    def features(self) -> tuple[Feature, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Upstream's sublayer of the same name is reached through `named_children()`."""
        return self.maps

    @property
    def layers(self) -> nn.Sequential:
        """The stem, the blocks, and with classes the last 1x1 convolution."""
        layers = dict(self.named_children())["features"]
        assert isinstance(layers, nn.Sequential)
        return layers

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        return collect_maps(x, list(self.layers)[: max(self.ends) + 1], self.ends)

    def logits(self, x: jax.Array) -> jax.Array:
        x = self.layers[-1](x)  # [N, H/32, W/32, 1280]
        return self.classifier(F.global_avg_pool2d(x)[:, 0, 0])
