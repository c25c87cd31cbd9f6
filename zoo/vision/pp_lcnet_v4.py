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
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import numpy as np

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn.reparam import Arrays, centred, fuse_conv_bn
from zoo.contracts import Feature
from zoo.layers.conv_bn import ConvBN
from zoo.layers.hg_stem import StemBlock
from zoo.layers.squeeze_excite import SqueezeExcite
from zoo.layers.text_row import pool_text_row
from zoo.layers.variants import check_variant
from zoo.layers.wide_head import WideHead

Stride = int | tuple[int, int]


class Stage(NamedTuple):
    """`blocks` has a letter for each block: "s" with squeeze-and-excitation, "-" without."""

    name: str
    width: int
    stride: Stride
    blocks: str


class Size(NamedTuple):
    """`stem` is (middle, out) channels."""

    stem: tuple[int, int]
    stages: tuple[Stage, ...]


def _det(stem: tuple[int, int], *widths: int) -> Size:
    plan = (
        ("blocks_s1", 1, "s-"),
        ("blocks_s2", 2, "-s-"),
        ("blocks_s3", 2, "-s-s-"),
        ("blocks_s4", 2, "-s-"),
    )
    return Size(stem, tuple(Stage(name, w, s, blocks) for w, (name, s, blocks) in zip(widths, plan)))


def _rec(stem: tuple[int, int], widths: tuple[int, ...], blocks: tuple[str, ...]) -> Size:
    strides: tuple[Stride, ...] = (1, 1, (2, 1), (2, 1))
    rows = zip(widths, strides, blocks)
    return Size(stem, tuple(Stage(f"blocks{i}", *row) for i, row in enumerate(rows, start=2)))


# NET_CONFIG_DET and NET_CONFIG_REC of the reference
SIZES: dict[str, Size] = {
    "det_tiny": _det((16, 32), 32, 48, 64, 160),
    "det_small": _det((24, 48), 48, 96, 192, 384),
    "det_medium": _det((64, 128), 128, 256, 512, 896),
    "rec_tiny": _rec((24, 48), (48, 48, 96, 160), ("s", "-", "-s-", "-s--")),
    "rec_small": _rec((48, 96), (96, 96, 192, 384), ("s", "--", "-s-s-s-", "-s-")),
    "rec_medium": _rec((64, 128), (128, 256, 512, 768), ("s", "--s", "-s-s-s-", "-s-")),
}

# Sizes of the classifier
VARIANTS: dict[str, str] = {f"pplcnetv4_{size}": f"det_{size}" for size in ("tiny", "small", "medium")}
SMALL = "pplcnetv4_tiny"
HEAD_WIDTH = 1280  # as in PP-LCNet

Variant = Literal["det_tiny", "det_small", "det_medium", "rec_tiny", "rec_small", "rec_medium"]


@dataclass(frozen=True)
class PPLCNetV4Config:
    """`det_*` gives four maps, `rec_*` one row of features: see PPLCNetV4."""

    variant: Variant


@dataclass(frozen=True)
class PPLCNetV4ClassifierConfig:
    """`deploy` builds the form with one convolution in place of the branches."""

    variant: str = "pplcnetv4_small"
    num_classes: int = 1000
    deploy: bool = False

    def __post_init__(self) -> None:
        check_variant("PPLCNetV4Classifier", self.variant, VARIANTS)


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
        self.conv = ConvBN(channels, channels, kernel_size, groups=channels)
        self.conv1 = nn.Conv2D(channels, channels, 1, groups=channels, bias_attr=False)
        self.bn = nn.BatchNorm2D(channels)

    def forward(self, x: jax.Array) -> jax.Array:
        if self.deploy:
            return self.reparam_conv(x)
        return self.bn(self.conv(x) + self.conv1(x) + x)

    def deploy_state(self) -> Arrays:
        weight, bias = self.conv.fused()
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
            self.dw_conv = ConvBN(channels, channels, 3, stride, groups=channels, deploy=deploy)
        if squeeze:
            self.se = SqueezeExcite(channels)
        self.keeps_shape, self.squeeze = keeps_shape, squeeze

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.rep_dw(x) if self.keeps_shape else self.dw_conv(x)
        return self.se(x) if self.squeeze else x


class ChannelMixer(nn.Layer):
    """1x1 to twice the channels, GELU, 1x1 to `out_channels`."""

    def __init__(self, in_channels: int, out_channels: int, gamma: float, deploy: bool = False) -> None:
        super().__init__()
        self.expand = ConvBN(in_channels, 2 * in_channels, 1, act=F.gelu, deploy=deploy)
        self.compress = ConvBN(2 * in_channels, out_channels, 1, gamma=gamma, deploy=deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.compress(self.expand(x))


class LCNetV4Block(nn.Layer):
    """Token mixer, then channel mixer with a residual where the shape stays."""

    def __init__(
        self, in_channels: int, out_channels: int, stride: Stride, squeeze: bool, deploy: bool = False
    ) -> None:
        super().__init__()
        self.residual = in_channels == out_channels and stride == 1
        self.token_mixer = TokenMixer(in_channels, stride, self.residual, squeeze, deploy)
        # A residual block starts as its token mixer alone.
        gamma = 0.0 if self.residual else 1.0
        self.channel_mixer = ChannelMixer(in_channels, out_channels, gamma, deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.token_mixer(x)
        mixed = self.channel_mixer(x)
        return x + mixed if self.residual else mixed


class _Stages(WideHead):
    """The convolutions of every form; `maps` are what the four stages give, and `widths` their channels."""

    def __init__(self, size: Size, stem: str, simple: bool, deploy: bool) -> None:
        super().__init__()
        mid, width = size.stem
        if simple:
            layers = (ConvBN(3, mid, 3, 2, deploy=deploy), nn.GELU(), ConvBN(mid, width, 3, 2, deploy=deploy))
            self.add_sublayer(stem, nn.Sequential(*layers))
        else:
            conv = functools.partial(ConvBN, act=F.relu, deploy=deploy)
            self.add_sublayer(stem, StemBlock(mid, width, conv))
        for stage in size.stages:
            blocks = nn.Sequential()
            for number, letter in enumerate(stage.blocks):
                stride = stage.stride if number == 0 else 1
                blocks.append(LCNetV4Block(width, stage.width, stride, letter == "s", deploy))
                width = stage.width
            self.add_sublayer(stage.name, blocks)
        self.names = (stem, *(stage.name for stage in size.stages))
        self.widths = tuple(stage.width for stage in size.stages)

    def maps(self, x: jax.Array) -> tuple[jax.Array, ...]:
        maps = []
        for name in self.names:
            x = getattr(self, name)(x)
            maps.append(x)
        return tuple(maps[1:])  # the stem has stride 4


@register("model", config=PPLCNetV4ClassifierConfig)
@register("backbone", config=PPLCNetV4ClassifierConfig)
class PPLCNetV4Classifier(_Stages):
    """[N, H, W, 3] -> logits [N, num_classes], or the maps at strides 4, 8, 16 and 32."""

    def __init__(self, config: PPLCNetV4ClassifierConfig) -> None:
        super().__init__(SIZES[VARIANTS[config.variant]], "stem", False, config.deploy)
        self.config = config
        self.features = tuple(Feature(*pair) for pair in zip(self.widths, (4, 8, 16, 32)))
        if config.num_classes:
            self.add_head(self.widths[-1], HEAD_WIDTH, config.num_classes, F.gelu)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        return self.maps(x)  # [N, H/4, W/4, C1] to [N, H/32, W/32, C4]

    def forward(self, x: jax.Array) -> jax.Array | tuple[jax.Array, ...]:
        maps = self.maps(x)
        return self.logits(maps[-1]) if self.config.num_classes else maps


@register("backbone", config=PPLCNetV4Config)
class PPLCNetV4(_Stages):
    """The backbone of PP-OCRv6, for [N, H, W, 3].

    `det_*`: returns the maps at strides 4, 8, 16 and 32, and `out_channels` has their widths.
    `rec_*`: returns one row [N, 1, T, C]; T is W // 8 in eval and 40 in training. `out_channels` is C.
    """

    def __init__(self, config: PPLCNetV4Config, deploy: bool = False) -> None:
        detects = config.variant.startswith("det")
        stem = "stem" if detects else "conv1"
        super().__init__(SIZES[config.variant], stem, config.variant == "rec_tiny", deploy)
        self.detects = detects
        self.out_channels = self.widths if self.detects else self.widths[-1]

    def forward(self, x: jax.Array) -> tuple[jax.Array, ...] | jax.Array:
        maps = self.maps(x)
        if self.detects:
            return maps  # [N, H/4, W/4, C1] to [N, H/32, W/32, C4]
        return pool_text_row(maps[-1], self.training, type(self).__name__)  # [N, 3, W/4, C] -> [N, 1, W/8, C]
