"""MobileNetV3: inverted residuals with squeeze-and-excitation and hard swish, and its two forms in PP-OCR.

Paper: Howard et al. 2019, https://arxiv.org/abs/1905.02244, tables 1 and 2
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/mobilenet_v3.py,
    PaddlePaddle/PaddleOCR ppocr/modeling/backbones/{det,rec}_mobilenet_v3.py, and for `output_stride`
    PaddlePaddle/PaddleSeg paddleseg/models/backbones/mobilenetv3.py
Differs: every unit has an expansion, also where it keeps the width; the hard sigmoid has slope 0.2; the last layer is
    as wide at every scale, and for the small size too. All as in Paddle.
Weights: `state_dict()` has upstream's names; the classifier takes those of PaddleDetection too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.core.errors import ShapeError
from framework.nn import functional as F
from zoo.contracts import Feature
from zoo.layers.conv_bn import ConvBN
from zoo.layers.squeeze_excite import SqueezeExcite
from zoo.layers.stages import dilated, stage_ends
from zoo.layers.variants import check_variant
from zoo.layers.wide_head import WideHead
from zoo.layers.width import scaled_width

Stride = int | tuple[int, int]
Size = Literal["large", "small"]

_ACTIVATIONS = {"relu": F.relu, "hardswish": F.hardswish}
_SE_SLOPE = 0.2


class Unit(NamedTuple):
    """One row of the paper's tables: widths at scale 1."""

    kernel_size: int
    expanded: int
    width: int
    squeeze: bool
    act: Literal["relu", "hardswish"]
    stride: Stride
    dilation: int = 1


STEM_WIDTH = 16
# Paper, table 1 (large) and table 2 (small)
UNITS: dict[Size, tuple[Unit, ...]] = {
    "large": (
        Unit(3, 16, 16, False, "relu", 1),
        Unit(3, 64, 24, False, "relu", 2),
        Unit(3, 72, 24, False, "relu", 1),
        Unit(5, 72, 40, True, "relu", 2),
        Unit(5, 120, 40, True, "relu", 1),
        Unit(5, 120, 40, True, "relu", 1),
        Unit(3, 240, 80, False, "hardswish", 2),
        Unit(3, 200, 80, False, "hardswish", 1),
        Unit(3, 184, 80, False, "hardswish", 1),
        Unit(3, 184, 80, False, "hardswish", 1),
        Unit(3, 480, 112, True, "hardswish", 1),
        Unit(3, 672, 112, True, "hardswish", 1),
        Unit(5, 672, 160, True, "hardswish", 2),
        Unit(5, 960, 160, True, "hardswish", 1),
        Unit(5, 960, 160, True, "hardswish", 1),
    ),
    "small": (
        Unit(3, 16, 16, True, "relu", 2),
        Unit(3, 72, 24, False, "relu", 2),
        Unit(3, 88, 24, False, "relu", 1),
        Unit(5, 96, 40, True, "hardswish", 2),
        Unit(5, 240, 40, True, "hardswish", 1),
        Unit(5, 240, 40, True, "hardswish", 1),
        Unit(5, 120, 48, True, "hardswish", 1),
        Unit(5, 144, 48, True, "hardswish", 1),
        Unit(5, 288, 96, True, "hardswish", 2),
        Unit(5, 576, 96, True, "hardswish", 1),
        Unit(5, 576, 96, True, "hardswish", 1),
    ),
}
LAST_WIDTH: dict[Size, int] = {"large": 960, "small": 576}
HEAD_WIDTH = 1280  # at every scale

# (table, scale); paper, section 6.1.2, and 0.35 to 1.25 as upstream trained them
VARIANTS: dict[str, tuple[Size, float]] = {
    "mobilenetv3_small_x0_35": ("small", 0.35),
    "mobilenetv3_small_x0_5": ("small", 0.5),
    "mobilenetv3_small_x0_75": ("small", 0.75),
    "mobilenetv3_small_x1_0": ("small", 1.0),
    "mobilenetv3_small_x1_25": ("small", 1.25),
    "mobilenetv3_large_x0_35": ("large", 0.35),
    "mobilenetv3_large_x0_5": ("large", 0.5),
    "mobilenetv3_large_x0_75": ("large", 0.75),
    "mobilenetv3_large_x1_0": ("large", 1.0),
    "mobilenetv3_large_x1_25": ("large", 1.25),
}
SMALL = "mobilenetv3_small_x0_35"

# The units of the large size with which the detector's maps at strides 8, 16 and 32 begin
_MAP_STARTS = (3, 6, 12)


@dataclass(frozen=True)
class MobileNetV3Config:
    """`output_stride` 8 or 16 dilates the units behind that stride instead of striding: for segmentation.

    `deploy` folds the normalisations into convolutions.
    """

    variant: str = "mobilenetv3_large_x1_0"
    num_classes: int = 1000
    output_stride: int = 32
    deploy: bool = False

    def __post_init__(self) -> None:
        check_variant("MobileNetV3", self.variant, VARIANTS)


@dataclass(frozen=True)
class MobileNetV3DetConfig:
    """MobileNetV3-Large. PP-OCRv3 leaves squeeze-and-excitation out."""

    scale: float = 0.5
    squeeze: bool = True


@dataclass(frozen=True)
class MobileNetV3RecConfig:
    """MobileNetV3-Small. Its four strides are `vertical_strides`, and 1 horizontally."""

    scale: float = 0.5
    vertical_strides: tuple[int, int, int, int] = (2, 2, 2, 2)


class ResidualUnit(nn.Layer):
    """Inverted residual: 1x1 to more channels, depthwise with the stride, 1x1 back; a shortcut where the shape stays.

    A stride of (1, 1) rules the shortcut out, as upstream compares with the integer 1: the recogniser's first unit.
    """

    def __init__(self, unit: Unit, in_channels: int, scale: float, deploy: bool = False) -> None:
        super().__init__()
        mid, act = scaled_width(unit.expanded, scale), _ACTIVATIONS[unit.act]
        self.out_channels = scaled_width(unit.width, scale)
        self.shortcut = unit.stride == 1 and in_channels == self.out_channels
        self.squeeze = unit.squeeze
        self.expand_conv = ConvBN(in_channels, mid, 1, act=act, deploy=deploy)
        self.bottleneck_conv = ConvBN(
            mid,
            mid,
            unit.kernel_size,
            unit.stride,
            groups=mid,
            act=act,
            deploy=deploy,
            dilation=unit.dilation,
        )
        if unit.squeeze:
            self.mid_se = SqueezeExcite(mid, slope=_SE_SLOPE)
        self.linear_conv = ConvBN(mid, self.out_channels, 1, deploy=deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        y = self.bottleneck_conv(self.expand_conv(x))
        y = self.linear_conv(self.mid_se(y) if self.squeeze else y)
        return x + y if self.shortcut else y


@register("model", config=MobileNetV3Config)
@register("backbone", config=MobileNetV3Config)
class MobileNetV3(WideHead):
    """[N, H, W, 3] -> logits [N, num_classes], or four maps at strides 4, 8, 16 and 32, or `output_stride` at most."""

    # PaddleDetection numbers the stem and the units together.
    state_renames = (
        (r"^conv1\.(?=conv|bn)", "conv."),
        *((rf"^conv{number + 2}\.", f"blocks.{number}.") for number in range(len(UNITS["large"]))),
    )

    def __init__(self, config: MobileNetV3Config) -> None:
        super().__init__()
        self.config = config
        size, scale = VARIANTS[config.variant]
        width = scaled_width(STEM_WIDTH, scale)
        own = {"act": F.hardswish, "deploy": config.deploy}
        self.conv = ConvBN(3, width, 3, 2, **own)
        strides = [int(unit.stride) for unit in UNITS[size]]  # type: ignore[arg-type]
        self.blocks = nn.Sequential()
        widths = []
        for unit, (stride, dilation) in zip(UNITS[size], dilated(strides, config.output_stride)):
            unit = unit._replace(stride=stride, dilation=dilation)
            self.blocks.append(layer := ResidualUnit(unit, width, scale, config.deploy))
            width = layer.out_channels
            widths.append(width)
        self.ends = stage_ends(strides)
        self.features = tuple(
            Feature(widths[number], min(stride, config.output_stride)) for number, stride in self.ends.items()
        )
        if config.num_classes:
            last = scaled_width(LAST_WIDTH[size], scale)
            self.last_second_conv = ConvBN(width, last, 1, **own)
            self.add_head(last, HEAD_WIDTH, config.num_classes, F.hardswish)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.conv(x)  # [N, H/2, W/2, C]
        maps = []
        for number, unit in enumerate(self.blocks):
            x = unit(x)
            if number in self.ends:
                maps.append(x)
        return tuple(maps)  # [N, H/4, W/4, C1] to [N, H/32, W/32, C4]

    def forward(self, x: jax.Array) -> jax.Array | tuple[jax.Array, ...]:
        maps = self.forward_features(x)
        return self.logits(self.last_second_conv(maps[-1])) if self.config.num_classes else maps


@register("backbone", config=MobileNetV3DetConfig)
class MobileNetV3Det(nn.Layer):
    """The detector's form: [N, H, W, 3] to the maps at strides 4, 8, 16 and 32. `out_channels` has their widths."""

    def __init__(self, config: MobileNetV3DetConfig, deploy: bool = False) -> None:
        super().__init__()
        width = scaled_width(STEM_WIDTH, config.scale)
        self.conv = ConvBN(3, width, 3, 2, act=F.hardswish, deploy=deploy)
        stages, widths = [nn.Sequential()], []
        for number, unit in enumerate(UNITS["large"]):
            if number in _MAP_STARTS:
                stages.append(nn.Sequential())
                widths.append(width)
            unit = unit._replace(squeeze=unit.squeeze and config.squeeze)
            stages[-1].append(layer := ResidualUnit(unit, width, config.scale, deploy))
            width = layer.out_channels
        last = scaled_width(LAST_WIDTH["large"], config.scale)
        stages[-1].append(ConvBN(width, last, 1, act=F.hardswish, deploy=deploy))
        for number, stage in enumerate(stages):
            self.add_sublayer(f"stage{number}", stage)
        self.out_channels = (*widths, last)

    def forward(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.conv(x)  # [N, H/2, W/2, C]
        maps = []
        for stage in (self.stage0, self.stage1, self.stage2, self.stage3):
            x = stage(x)
            maps.append(x)
        return tuple(maps)  # [N, H/4, W/4, C1] to [N, H/32, W/32, C4]


@register("backbone", config=MobileNetV3RecConfig)
class MobileNetV3Rec(nn.Layer):
    """The form of recogniser and angle classifier: [N, H, W, 3] -> [N, H', W // 4, out_channels].

    H' is 1 for a height of 32 and the vertical strides (1, 2, 2, 2) of the recogniser, and for a height of 48 and
    those of the classifier, (2, 2, 2, 2).
    """

    def __init__(self, config: MobileNetV3RecConfig, deploy: bool = False) -> None:
        super().__init__()
        width = scaled_width(STEM_WIDTH, config.scale)
        self.conv1 = ConvBN(3, width, 3, 2, act=F.hardswish, deploy=deploy)
        vertical = iter(config.vertical_strides)
        self.blocks = nn.Sequential()
        for unit in UNITS["small"]:
            if unit.stride != 1:
                unit = unit._replace(stride=(next(vertical), 1))
            self.blocks.append(layer := ResidualUnit(unit, width, config.scale, deploy))
            width = layer.out_channels
        self.out_channels = scaled_width(LAST_WIDTH["small"], config.scale)
        self.conv2 = ConvBN(width, self.out_channels, 1, act=F.hardswish, deploy=deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.conv2(self.blocks(self.conv1(x)))  # [N, 2 * H', W/2, out_channels]
        if x.shape[1] < 2:
            raise ShapeError(
                "the image is too low for MobileNetV3Rec",
                received=f"{x.shape[1]} row of features before the last pooling",
                allowed="at least 2",
                fix="resize the line to the height of the model: 32 for the recogniser, 48 for the classifier",
            )
        return F.max_pool2d(x, 2)
