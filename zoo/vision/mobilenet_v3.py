"""MobileNetV3: inverted residuals with squeeze-and-excitation and hard swish, and its two forms in PP-OCR.

Paper: Howard et al. 2019, https://arxiv.org/abs/1905.02244, tables 1 and 2
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/mobilenet_v3.py,
    PaddlePaddle/PaddleOCR ppocr/modeling/backbones/{det,rec}_mobilenet_v3.py, and for `output_stride`
    PaddlePaddle/PaddleSeg paddleseg/models/backbones/mobilenetv3.py
Differs: every unit has an expansion, also where it keeps the width; the hard sigmoid has slope 0.2; the last layer is
    as wide at every scale, and for the small size too. All as in PaddleClas; `original` is the paper's form.
Weights: `state_dict()` has upstream's names; the classifier takes those of PaddleDetection too, and with `original`
    those of paddle.vision and torchvision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.core.errors import ShapeError
from framework.hub.names import Names
from framework.nn import functional as F
from zoo.contracts import Contract, Feature
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.squeeze_excite import SqueezeExcite
from zoo.layers.stages import collect_maps, dilate_strides, stage_ends
from zoo.layers.variants import VariantConfig, scaled_width
from zoo.layers.wide_head import WideHead

Stride = int | tuple[int, int]
Table = Literal["large", "small"]

_ACTIVATIONS = {"relu": F.relu, "hardswish": F.hardswish}
_SE_SLOPE = 0.2
_NORM_LEAVES = ("weight", "bias", "_mean", "_variance")


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
UNITS: dict[Table, tuple[Unit, ...]] = {
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
LAST_WIDTH: dict[Table, int] = {"large": 960, "small": 576}
HEAD_WIDTH = 1280  # at every scale
ORIGINAL_HEAD_WIDTH: dict[Table, int] = {"large": 1280, "small": 1024}  # at scale 1


class Size(NamedTuple):
    """`params` of 1000 classes; with the running statistics they are the values in PaddleClas 2.6's checkpoints."""

    table: Table
    scale: float
    params: int


# Paper, section 6.1.2, and 0.35 to 1.25 as upstream trained them
VARIANTS: dict[str, Size] = {
    "mobilenetv3_small_x0_35": Size("small", 0.35, 1_665_954),
    "mobilenetv3_small_x0_5": Size("small", 0.5, 1_902_536),
    "mobilenetv3_small_x0_75": Size("small", 0.75, 2_375_106),
    "mobilenetv3_small_x1_0": Size("small", 1.0, 2_939_958),
    "mobilenetv3_small_x1_25": Size("small", 1.25, 3_627_370),
    "mobilenetv3_large_x0_35": Size("large", 0.35, 2_104_328),
    "mobilenetv3_large_x0_5": Size("large", 0.5, 2_673_422),
    "mobilenetv3_large_x0_75": Size("large", 0.75, 3_912_248),
    "mobilenetv3_large_x1_0": Size("large", 1.0, 5_480_206),
    "mobilenetv3_large_x1_25": Size("large", 1.25, 7_443_308),
}


@dataclass(frozen=True)
class MobileNetV3Config(VariantConfig[Size], table=VARIANTS):
    """`output_stride` 8 or 16 dilates the units behind that stride instead of striding: for segmentation.

    `form` is that of the features where there are no classes, see MobileNetV3. In lines the four strides of the units
    are `vertical_strides`, and 1 horizontally. `squeeze` False leaves squeeze-and-excitation out, as PP-OCRv3 does.
    `original` is the paper's form as in paddle.vision and torchvision: no expansion where it would keep the width, a
    hard sigmoid of slope 1/6, a head of two linear layers. `deploy` folds the normalisations into convolutions.
    """

    variant: str = "mobilenetv3_large_x1_0"
    num_classes: int = 1000
    output_stride: int = 32
    form: Literal["image", "page", "line"] = "image"
    vertical_strides: tuple[int, int, int, int] = (2, 2, 2, 2)
    squeeze: bool = True
    original: bool = False
    deploy: bool = False


def _options(original: bool, deploy: bool) -> ConvBNOptions:
    plain = ConvBNOptions(deploy=deploy)
    return replace(plain, epsilon=0.001, momentum=0.99) if original else plain


class ResidualUnit(nn.Layer):
    """Inverted residual: 1x1 to more channels, depthwise with the stride, 1x1 back; a shortcut where the shape stays.

    A stride of (1, 1) rules the shortcut out, as upstream compares with the integer 1: the recogniser's first unit.
    """

    def __init__(
        self, unit: Unit, in_channels: int, scale: float, deploy: bool = False, original: bool = False
    ) -> None:
        super().__init__()
        mid, act = scaled_width(unit.expanded, scale), _ACTIVATIONS[unit.act]
        self.out_channels = scaled_width(unit.width, scale)
        self.shortcut = unit.stride == 1 and in_channels == self.out_channels
        self.squeeze = unit.squeeze
        self.expands = not original or mid != in_channels
        options = _options(original, deploy)
        if self.expands:
            self.expand_conv = ConvBN(in_channels, mid, 1, act=act, options=options)
        depth = replace(options, groups=mid, dilation=unit.dilation)
        self.bottleneck_conv = ConvBN(mid, mid, unit.kernel_size, unit.stride, act=act, options=depth)
        if unit.squeeze and original:
            self.mid_se = SqueezeExcite(mid, width=scaled_width(mid // 4, 1))
        elif unit.squeeze:
            self.mid_se = SqueezeExcite(mid, slope=_SE_SLOPE)
        self.linear_conv = ConvBN(mid, self.out_channels, 1, options=options)

    def forward(self, x: jax.Array) -> jax.Array:
        y = self.bottleneck_conv(self.expand_conv(x) if self.expands else x)
        y = self.linear_conv(self.mid_se(y) if self.squeeze else y)
        return x + y if self.shortcut else y


@register("model", config=MobileNetV3Config)
@register("backbone", config=MobileNetV3Config)
class MobileNetV3(WideHead[MobileNetV3Config]):
    """[N, H, W, 3] -> logits [N, num_classes], or maps.

    Form `image`: the maps at strides 4, 8, 16 and 32, or `output_stride` at most. `page`, of text detectors: the last
    map goes through the wide 1x1 convolution. `line`, of recognisers and text-line orientation classifiers: one map
    [N, H', W // 4, C], where H' is 1 for a height of 32 and the vertical strides (1, 2, 2, 2) of the recogniser, and
    for a height of 48 and those of the classifier, (2, 2, 2, 2).
    """

    state_renames = Names("zoo/weights/mobilenet_v3.yml", "MobileNetV3")

    # Smaller scales have two channels in the first squeeze: with the tests' weights ReLU cuts both.
    contract = Contract(compiled=("mobilenetv3_small_x1_0",))

    def __init__(self, config: MobileNetV3Config) -> None:
        super().__init__(config)
        self.form = "image" if config.num_classes else config.form
        table, scale, _ = VARIANTS[config.variant]
        width, last = scaled_width(STEM_WIDTH, scale), scaled_width(LAST_WIDTH[table], scale)
        conv = partial(ConvBN, act=F.hardswish, options=_options(config.original, config.deploy))
        self.add_sublayer("conv1" if self.form == "line" else "conv", conv(3, width, 3, 2))
        strides = [int(unit.stride) for unit in UNITS[table]]  # type: ignore[arg-type]
        ends = stage_ends(strides)
        vertical = iter(config.vertical_strides)
        units, widths = [], []
        for unit, (stride, dilation) in zip(UNITS[table], dilate_strides(strides, config.output_stride)):
            own_stride = (next(vertical), 1) if self.form == "line" and stride != 1 else stride
            squeeze = unit.squeeze and config.squeeze
            unit = unit._replace(stride=own_stride, dilation=dilation, squeeze=squeeze)
            units.append(ResidualUnit(unit, width, scale, config.deploy, config.original))
            width = units[-1].out_channels
            widths.append(width)
        self.features = tuple(
            Feature(widths[number], min(stride, config.output_stride)) for number, stride in ends.items()
        )
        if self.form == "page":
            units.append(conv(width, last, 1))
            starts = [0, *(number + 1 for number in ends)]
            starts[-1] = len(units)
            self.stages = tuple(f"stage{number}" for number in range(len(ends)))
            for name, (start, end) in zip(self.stages, pairwise(starts)):
                self.add_sublayer(name, nn.Sequential(*units[start:end]))
            self.features = (*self.features[:-1], Feature(last, self.features[-1].stride))
            return
        self.ends = ends
        self.blocks = nn.Sequential(*units)
        if self.form == "line":
            self.conv2 = conv(width, last, 1)
            self.features = (Feature(last, (4 * math.prod(config.vertical_strides), 4)),)
        elif config.num_classes:
            self.last_second_conv = conv(width, last, 1)
            if config.original:
                wide = scaled_width(ORIGINAL_HEAD_WIDTH[table], scale)
                self.classifier = nn.Sequential(
                    nn.Linear(last, wide),
                    nn.Hardswish(),
                    nn.Dropout(0.2),
                    nn.Linear(wide, config.num_classes),
                )
            else:
                self.add_head(last, HEAD_WIDTH, config.num_classes, F.hardswish)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        if self.form == "line":
            return (self._read(x),)
        x = self.conv(x)  # [N, H/2, W/2, C], then [N, H/4, W/4, C1] to [N, H/32, W/32, C4]
        if self.form == "page":
            return collect_maps(x, (getattr(self, name) for name in self.stages))
        return collect_maps(x, self.blocks, self.ends)

    def _read(self, x: jax.Array) -> jax.Array:
        x = self.conv2(self.blocks(self.conv1(x)))  # [N, 2 * H', W/2, C]
        if x.shape[1] < 2:
            raise ShapeError(
                "the image is too low for MobileNetV3",
                received=f"{x.shape[1]} row of features before the last pooling",
                allowed="at least 2",
                fix="resize the line to the height of the model: 32 for the recogniser, 48 for the classifier",
            )
        return F.max_pool2d(x, 2)

    def logits(self, x: jax.Array) -> jax.Array:
        x = self.last_second_conv(x)
        if self.config.original:
            return self.classifier(F.global_avg_pool2d(x)[:, 0, 0])
        return super().logits(x)

    def official_names(self, suite: str) -> dict[str, str]:
        """Names of paddle.vision to ours; other suites have ours."""
        return self._original_names(0) if suite == "paddle.vision" and self.config.original else {}

    def state_aliases(self) -> dict[str, str]:
        return self._original_names(0) | self._original_names(1) if self.config.original else {}

    def _original_names(self, column: int) -> dict[str, str]:
        """Names of paddle.vision (0) or torchvision (1) to ours."""
        last = len(self.blocks) + 1
        parts = [("conv", ("conv", "features.0")), ("last_second_conv", ("lastconv", f"features.{last}"))]
        squeezes = []
        for number, unit in enumerate(self.blocks):
            for place, (name, _) in enumerate(unit.named_children()):
                ours = f"blocks.{number}.{name}"
                theirs = (ours, f"features.{number + 1}.block.{place}")
                (squeezes if name == "mid_se" else parts).append((ours, theirs))
        names = {
            f"{theirs[column]}.{index}.{leaf}": f"{ours}.{part}.{leaf}"
            for ours, theirs in parts
            for index, part, leaves in ((0, "conv", ("weight",)), (1, "bn", _NORM_LEAVES))
            for leaf in leaves
        }
        return names | {
            f"{theirs[column]}.fc{i}.{leaf}": f"{ours}.conv{i}.{leaf}"
            for ours, theirs in squeezes
            for i in (1, 2)
            for leaf in ("weight", "bias")
        }
