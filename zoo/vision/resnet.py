"""ResNet and ResNet-vd: residual blocks of plain convolutions, the vd form with a deep stem and pooled shortcuts.

Paper: ResNet, https://arxiv.org/abs/1512.03385, table 1; vd is ResNet-D of https://arxiv.org/abs/1812.01187, section 4;
    ResNeXt, https://arxiv.org/abs/1611.05431; wide: https://arxiv.org/abs/1605.07146
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/resnet.py; dilation as in PaddleSeg's
    paddleseg/models/backbones/resnet_vd.py; ResNeXt and wide as in paddle.vision.models.resnet
Differs: nothing in the function computed. torchvision keeps the former dilation in the first block of a dilated stage.
Weights: `state_dict()` has the names of PaddleClas; those of paddle.vision, torchvision, timm (its `d` models are vd),
    PaddleDetection and PaddleSeg are accepted too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Backbone, Feature
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.stages import collect_maps
from zoo.layers.variants import check_variant

WIDTHS = (64, 128, 256, 512)
OUTPUT_STRIDES = (8, 16, 32)


class Size(NamedTuple):
    """`depths` are blocks of each stage; `groups` and `base_width` widen the 3x3 convolution of a bottleneck.

    `params` without the running statistics.
    """

    depths: tuple[int, int, int, int]
    params: int
    bottleneck: bool = True
    vd: bool = False
    groups: int = 1
    base_width: int = 64

    @property
    def expansion(self) -> int:
        return 4 if self.bottleneck else 1


# ResNet paper, table 1; depth 200 is NET_CONFIG of the reference; ResNeXt's table 1, and paddle.vision's and
# torchvision's wider and deeper ones. `params`: counted in PaddleClas 2.6, from `resnext50_32x4d` on in paddle.vision
# 2.6.2, `resnext101_32x8d` in torchvision 0.28.
VARIANTS: dict[str, Size] = {
    "resnet18": Size((2, 2, 2, 2), 11_693_736, bottleneck=False),
    "resnet34": Size((3, 4, 6, 3), 21_801_896, bottleneck=False),
    "resnet50": Size((3, 4, 6, 3), 25_557_032),
    "resnet101": Size((3, 4, 23, 3), 44_549_160),
    "resnet152": Size((3, 8, 36, 3), 60_192_808),
    "resnet18_vd": Size((2, 2, 2, 2), 11_712_968, bottleneck=False, vd=True),
    "resnet34_vd": Size((3, 4, 6, 3), 21_821_128, bottleneck=False, vd=True),
    "resnet50_vd": Size((3, 4, 6, 3), 25_576_264, vd=True),
    "resnet101_vd": Size((3, 4, 23, 3), 44_568_392, vd=True),
    "resnet152_vd": Size((3, 8, 36, 3), 60_212_040, vd=True),
    "resnet200_vd": Size((3, 12, 48, 3), 74_738_504, vd=True),
    "resnext50_32x4d": Size((3, 4, 6, 3), 25_028_904, groups=32, base_width=4),
    "resnext50_64x4d": Size((3, 4, 6, 3), 45_192_488, groups=64, base_width=4),
    "resnext101_32x4d": Size((3, 4, 23, 3), 44_177_704, groups=32, base_width=4),
    "resnext101_64x4d": Size((3, 4, 23, 3), 83_455_272, groups=64, base_width=4),
    "resnext101_32x8d": Size((3, 4, 23, 3), 88_791_336, groups=32, base_width=8),
    "resnext152_32x4d": Size((3, 8, 36, 3), 59_951_400, groups=32, base_width=4),
    "resnext152_64x4d": Size((3, 8, 36, 3), 114_971_944, groups=64, base_width=4),
    "wide_resnet50_2": Size((3, 4, 6, 3), 68_883_240, base_width=128),
    "wide_resnet101_2": Size((3, 4, 23, 3), 126_886_696, base_width=128),
}


@dataclass(frozen=True)
class ResNetConfig:
    """`output_stride` 16 or 8 dilates the last one or two stages instead of striding: semantic segmentation.

    `multi_grid` multiplies the dilation of each block of the last stage (DeepLabV3: 1, 2, 4). `project_first=False`
    leaves out the projection in the first block of ResNet-18 and 34, where no shape changes: torchvision, timm and
    paddle.vision have none, PaddleClas and PaddleDetection have one. What loads weights takes the form that they have.
    """

    variant: str = "resnet50"
    num_classes: int = 1000
    output_stride: int = 32
    multi_grid: tuple[int, ...] = (1, 1, 1)
    project_first: bool = True
    in_channels: int = 3


class Block(nn.Layer):
    """`relu(branch(x) + shortcut(x))`: two 3x3 convolutions, or 1x1, 3x3, 1x1; a shortcut that projects or copies.

    In vd the shortcut averages 2x2 pixels where the branch has a stride, and a half window at an odd edge counts whole.
    """

    def __init__(
        self, size: Size, in_channels: int, width: int, stride: int, dilation: int, projects: bool
    ) -> None:
        super().__init__()
        self.bottleneck = size.bottleneck
        self.pools = size.vd and stride == 2
        out_channels, options = width * size.expansion, ConvBNOptions(dilation=dilation)
        self.shortcut = (in_channels, out_channels, 1, 1 if self.pools else stride)
        if size.bottleneck:
            inner = width * size.base_width // 64 * size.groups
            self.conv0 = ConvBN(in_channels, inner, 1, act=F.relu)
            # The stride is in the 3x3, as everywhere but in the paper.
            options = replace(options, groups=size.groups)
            self.conv1 = ConvBN(inner, inner, 3, stride, act=F.relu, options=options)
            self.conv2 = ConvBN(inner, out_channels, 1)
        else:
            self.conv0 = ConvBN(in_channels, width, 3, stride, act=F.relu, options=options)
            self.conv1 = ConvBN(width, width, 3, options=options)
        self.projects = False
        self.project(projects)

    def project(self, projects: bool) -> None:
        """Give the shortcut its projection, or take it away."""
        if projects != self.projects:
            self.projects = projects
            if projects:
                self.short = ConvBN(*self.shortcut)
            else:
                del self.short

    def forward(self, x: jax.Array) -> jax.Array:
        y = self.conv1(self.conv0(x))
        if self.bottleneck:
            y = self.conv2(y)
        if self.pools:
            x = F.avg_pool2d(x, 2, ceil_mode=True)
        return F.relu(y + (self.short(x) if self.projects else x))


@register("model", config=ResNetConfig)
@register("backbone", config=ResNetConfig)
class ResNet(Backbone[ResNetConfig]):
    """[N, H, W, in_channels] -> logits [N, num_classes], or maps at strides 4 to 32, none above `output_stride`.

    Raises:
        ConfigError: the variant or the output stride is unknown, or `multi_grid` is shorter than the last stage.
    """

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        check_variant("ResNet", config.variant, VARIANTS)
        size = VARIANTS[config.variant]
        if config.output_stride not in OUTPUT_STRIDES:
            raise ConfigError(
                "ResNet has no such output stride",
                received=config.output_stride,
                allowed=", ".join(map(str, OUTPUT_STRIDES)),
            )
        if len(config.multi_grid) < size.depths[-1]:
            raise ConfigError(
                "multi_grid has too few numbers",
                received=config.multi_grid,
                allowed=f"one for each of the {size.depths[-1]} blocks of the last stage of {config.variant}",
            )
        if size.vd:
            stem = (
                ConvBN(config.in_channels, 32, 3, 2, act=F.relu),
                ConvBN(32, 32, 3, act=F.relu),
                ConvBN(32, 64, 3, act=F.relu),
            )
        else:
            stem = (ConvBN(config.in_channels, 64, 7, 2, act=F.relu),)
        self.stem = nn.Sequential(*stem)
        self.blocks = nn.Sequential()
        features, ends = [], []
        channels, total_stride, dilation = 64, 4, 1
        for stage, (width, depth) in enumerate(zip(WIDTHS, size.depths)):
            stride = 1
            if stage > 0 and total_stride < config.output_stride:
                stride = 2
            elif stage > 0:
                dilation *= 2
            total_stride *= stride
            for number in range(depth):
                projects = number == 0 and (config.project_first or stage > 0 or size.bottleneck)
                grid = config.multi_grid[number] if stage == 3 else 1
                self.blocks.append(Block(size, channels, width, stride, dilation * grid, projects))
                channels, stride = width * size.expansion, 1
            ends.append(len(self.blocks) - 1)
            features.append(Feature(channels, total_stride))
        self.ends, self.features = tuple(ends), tuple(features)
        if config.num_classes:
            bound = 1 / math.sqrt(channels)
            self.fc = nn.Linear(channels, config.num_classes, I.Uniform(-bound, bound))

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.stem(x)  # [N, H/2, W/2, 64]
        x = F.max_pool2d(x, 3, stride=2, padding=1, pad_value=0.0)  # 0 is the least that ReLU gives
        return collect_maps(x, self.blocks, self.ends)

    def fit_weights(self, names: Collection[str]) -> None:
        """The first block of ResNet-18 and 34 projects if the weights say so, see `project_first`."""
        projects = "blocks.0.short.conv.weight" in names
        if not VARIANTS[self.config.variant].bottleneck and "blocks.0.conv0.conv.weight" in names:
            self.blocks[0].project(projects)
            self.config = dataclasses.replace(self.config, project_first=projects)

    def state_aliases(self) -> dict[str, str]:
        return self._spell(range(len(SPELLINGS)))

    def official_names(self, suite: str) -> dict[str, str]:
        """Names of paddle.vision, PaddleDetection or PaddleSeg to ours, which are PaddleClas's."""
        return self._spell([SPELLINGS.index(suite)]) if suite in SPELLINGS else {}

    def _spell(self, columns: Iterable[int]) -> dict[str, str]:
        aliases = {}
        for ours, theirs in _spellings(VARIANTS[self.config.variant]):
            for conv, norm in (theirs[column] for column in columns):
                aliases[f"{conv}.weight"] = f"{ours}.conv.weight"
                for leaf in ("weight", "bias", "_mean", "_variance"):
                    aliases[f"{norm}.{leaf}"] = f"{ours}.bn.{leaf}"
        return aliases


SPELLINGS = ("paddle.vision", "paddledet", "paddleseg")
"""Whose names `_spellings` gives: torchvision's are paddle.vision's (timm's for vd), and PaddleSeg has vd only."""


def _spellings(size: Size) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each convolution with its normalisation by our name, and by the pairs of names in SPELLINGS."""

    def pairs(torch: tuple[str, str], det: str, seg: str) -> list[tuple[str, str]]:
        return [torch, (f"{det}.conv", f"{det}.norm"), (f"{seg}._conv", f"{seg}._batch_norm")]

    if size.vd:
        for i, torch in enumerate((("conv1.0", "conv1.1"), ("conv1.3", "conv1.4"), ("conv1.6", "bn1"))):
            yield f"stem.{i}", pairs(torch, f"conv1.conv1_{i + 1}", f"conv1_{i + 1}")
    else:
        det = "conv1.res_conv1" if size.groups > 1 else "conv1.conv1"
        yield "stem.0", pairs(("conv1", "bn1"), det, "conv1")
    places = [(stage, i) for stage, depth in enumerate(size.depths) for i in range(depth)]
    for number, (stage, i) in enumerate(places):
        # PaddleDetection letters the blocks, but numbers those of a third stage of more than ten: a, b1, b2, ...
        numbered = stage == 2 and size.depths[stage] > 10 and i > 0
        letter = f"b{i}" if numbered else chr(ord("a") + i)
        layer, res, seg = f"layer{stage + 1}.{i}", f"res{stage + 2}.res{stage + 2}{letter}", f"bb_{stage}_{i}"
        for j in range(3 if size.bottleneck else 2):
            torch = (f"{layer}.conv{j + 1}", f"{layer}.bn{j + 1}")
            yield f"blocks.{number}.conv{j}", pairs(torch, f"{res}.branch2{'abc'[j]}", f"{seg}.conv{j}")
        if i == 0:
            first = int(size.vd)  # behind the pooling, in timm even where that does nothing
            torch = (f"{layer}.downsample.{first}", f"{layer}.downsample.{first + 1}")
            det = f"{res}.short.conv" if size.vd and stage > 0 else f"{res}.short"
            yield f"blocks.{number}.short", pairs(torch, det, f"{seg}.short")
