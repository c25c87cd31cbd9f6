"""PP-LCNetV4: depthwise 3x3 token mixers that re-parameterise, and 1x1 channel mixers.

Paper: PP-OCRv6, https://arxiv.org/abs/2606.13108
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/backbones/rec_lcnetv4.py
Differs: nothing in the function computed. Upstream has no classifier: ours is the detector's form and the head of
    PP-LCNet, with GELU, which V4 has everywhere behind the stem.
Weights: part of the PP-OCRv6 detectors and recognisers; `state_dict()` has upstream's names, which the classifier
    shares but for its `last_conv` and `fc`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import jax
import numpy as np

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn.reparam import Arrays, centred, fuse_conv_bn
from zoo.contracts import Feature
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.hg_stem import StemBlock
from zoo.layers.squeeze_excite import SqueezeExcite
from zoo.layers.stages import collect_maps
from zoo.layers.text_row import FINE_ROW_STRIDE, TEXT_ROW_STRIDE, pool_rows, pool_text_row
from zoo.layers.variants import VariantConfig
from zoo.layers.wide_head import WideHead

Stride = int | tuple[int, int]


class Stage(NamedTuple):
    """`blocks` has a letter for each block: "s" with squeeze-and-excitation, "-" without."""

    name: str
    width: int
    stride: Stride
    blocks: str


class Plan(NamedTuple):
    """`stem` is (middle, out) channels. A simple stem is two convolutions in a row."""

    stem: tuple[int, int]
    stages: tuple[Stage, ...]
    simple_stem: bool = False


class Size(NamedTuple):
    """The network for images and that for text lines; `params` of 1000 classes, without the running statistics."""

    image: Plan
    line: Plan
    params: int


def _image(stem: tuple[int, int], *widths: int) -> Plan:
    rows = (
        ("blocks_s1", 1, "s-"),
        ("blocks_s2", 2, "-s-"),
        ("blocks_s3", 2, "-s-s-"),
        ("blocks_s4", 2, "-s-"),
    )
    return Plan(stem, tuple(Stage(name, w, s, blocks) for w, (name, s, blocks) in zip(widths, rows)))


def _line(
    stem: tuple[int, int], widths: tuple[int, ...], blocks: tuple[str, ...], simple_stem: bool = False
) -> Plan:
    strides: tuple[Stride, ...] = (1, 1, (2, 1), (2, 1))
    rows = zip(widths, strides, blocks)
    stages = tuple(Stage(f"blocks{i}", *row) for i, row in enumerate(rows, start=2))
    return Plan(stem, stages, simple_stem)


# NET_CONFIG_DET and NET_CONFIG_REC of the reference
VARIANTS: dict[str, Size] = {
    "pplcnetv4_tiny": Size(
        _image((16, 32), 32, 48, 64, 160),
        _line((24, 48), (48, 48, 96, 160), ("s", "-", "-s-", "-s--"), simple_stem=True),
        1_870_500,
    ),
    "pplcnetv4_small": Size(
        _image((24, 48), 48, 96, 192, 384),
        _line((48, 96), (96, 96, 192, 384), ("s", "--", "-s-s-s-", "-s-")),
        4_099_548,
    ),
    "pplcnetv4_medium": Size(
        _image((64, 128), 128, 256, 512, 896),
        _line((64, 128), (128, 256, 512, 768), ("s", "--s", "-s-s-s-", "-s-")),
        16_550_440,
    ),
}
HEAD_WIDTH = 1280  # as in PP-LCNet


@dataclass(frozen=True)
class PPLCNetV4Config(VariantConfig[Size], table=VARIANTS):
    """`form` is that of the features where there are no classes, see PPLCNetV4.

    `fine` keeps a column for every 4 pixels of a line 32 pixels high, in training as in eval, for small print and
    batches of any width; otherwise lines are 48 pixels high. `deploy` builds one convolution in place of the branches.
    """

    variant: str = "pplcnetv4_small"
    num_classes: int = 1000
    form: Literal["image", "line"] = "image"
    fine: bool = False
    deploy: bool = False


class RepDWConv(nn.Layer):
    """Depthwise convolution: `bn(bn(k x k) + 1x1 + identity)` in training, one biased k x k in deploy form."""

    def __init__(self, channels: int, kernel_size: int = 3, deploy: bool = False) -> None:
        super().__init__()
        self.deploy, self.kernel_size = deploy, kernel_size
        if deploy:
            self.reparam_conv = nn.Conv2D(
                channels, channels, kernel_size, padding=kernel_size // 2, groups=channels
            )
            return
        self.conv = ConvBN(channels, channels, kernel_size, options=ConvBNOptions(groups=channels))
        self.conv1 = nn.Conv2D(channels, channels, 1, groups=channels, bias_attr=False)
        self.bn = nn.BatchNorm2D(channels)

    def forward(self, x: jax.Array) -> jax.Array:
        if self.deploy:
            return self.reparam_conv(x)
        return self.bn(self.conv(x) + self.conv1(x) + x)

    def deploy_state(self) -> Arrays:
        weight, bias = self.conv.fuse()
        summed = weight + centred(np.asarray(self.conv1.weight) + 1, self.kernel_size)  # 1 is the identity
        weight, bias = fuse_conv_bn(summed, bias, self.bn)
        return {"reparam_conv.weight": weight, "reparam_conv.bias": bias}


class TokenMixer(nn.Layer):
    """Depthwise 3x3, re-parameterisable where the shape stays, and then maybe squeeze-and-excitation."""

    def __init__(
        self, channels: int, stride: Stride, keeps_shape: bool, squeeze: bool, deploy: bool = False
    ) -> None:
        super().__init__()
        if keeps_shape:
            self.rep_dw = RepDWConv(channels, deploy=deploy)
        else:
            options = ConvBNOptions(groups=channels, deploy=deploy)
            self.dw_conv = ConvBN(channels, channels, 3, stride, options=options)
        if squeeze:
            self.se = SqueezeExcite(channels)
        self.keeps_shape, self.squeeze = keeps_shape, squeeze

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.rep_dw(x) if self.keeps_shape else self.dw_conv(x)
        return self.se(x) if self.squeeze else x


class LCNetV4Block(nn.Layer):
    """Token mixer, then channel mixer with a residual where the shape stays."""

    def __init__(
        self, in_channels: int, out_channels: int, stride: Stride, squeeze: bool, deploy: bool = False
    ) -> None:
        super().__init__()
        self.residual = in_channels == out_channels and stride == 1
        self.token_mixer = TokenMixer(in_channels, stride, self.residual, squeeze, deploy)
        # A residual block starts as its token mixer alone.
        expand = ConvBNOptions(deploy=deploy)
        compress = replace(expand, gamma=0.0 if self.residual else 1.0)
        self.channel_mixer = nn.Sequential(  # to twice the channels and back
            ("expand", ConvBN(in_channels, 2 * in_channels, 1, act=F.gelu, options=expand)),
            ("compress", ConvBN(2 * in_channels, out_channels, 1, options=compress)),
        )

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.token_mixer(x)
        mixed = self.channel_mixer(x)
        return x + mixed if self.residual else mixed


@register("model", config=PPLCNetV4Config)
@register("backbone", config=PPLCNetV4Config)
class PPLCNetV4(WideHead[PPLCNetV4Config]):
    """[N, H, W, 3] -> logits [N, num_classes], or maps.

    Form `image`, of the PP-OCRv6 detectors too: the maps at strides 4, 8, 16 and 32. `line`, of its recognisers: one
    row [N, 1, T, C], where T is W // 8.
    """

    def __init__(self, config: PPLCNetV4Config) -> None:
        super().__init__(config)
        self.reads_lines = config.form == "line" and not config.num_classes
        size, deploy = VARIANTS[config.variant], config.deploy
        plan, stem = (size.line, "conv1") if self.reads_lines else (size.image, "stem")
        mid, width = plan.stem
        if plan.simple_stem:
            conv = functools.partial(ConvBN, stride=2, options=ConvBNOptions(deploy=deploy))
            self.add_sublayer(stem, nn.Sequential(conv(3, mid, 3), nn.GELU(), conv(mid, width, 3)))
        else:
            conv = functools.partial(ConvBN, act=F.relu, options=ConvBNOptions(deploy=deploy, norm_decay=0.0))
            self.add_sublayer(stem, StemBlock(mid, width, conv))
        features = []
        for stage, stride in zip(plan.stages, (4, 8, 16, 32)):
            blocks = nn.Sequential()
            for number, letter in enumerate(stage.blocks):
                first = stage.stride if number == 0 else 1
                blocks.append(LCNetV4Block(width, stage.width, first, letter == "s", deploy))
                width = stage.width
            self.add_sublayer(stage.name, blocks)
            features.append(Feature(width, stride))
        self.names = (stem, *(stage.name for stage in plan.stages))
        row = FINE_ROW_STRIDE if config.fine else TEXT_ROW_STRIDE
        self.features = (Feature(width, row),) if self.reads_lines else tuple(features)
        if config.num_classes:
            self.add_head(width, HEAD_WIDTH, config.num_classes, F.gelu)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        maps = collect_maps(x, (getattr(self, name) for name in self.names))
        if self.reads_lines and self.config.fine:  # [N, 2, W/4, C] -> [N, 1, W/4, C]
            return (pool_rows(maps[-1], 2, type(self).__name__),)
        if self.reads_lines:  # [N, 3, W/4, C] -> [N, 1, W/8, C]
            return (pool_text_row(maps[-1], self.training, type(self).__name__),)
        return maps[1:]  # [N, H/4, W/4, C1] to [N, H/32, W/32, C4]; the stem has stride 4
