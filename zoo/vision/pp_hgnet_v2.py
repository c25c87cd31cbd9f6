"""PP-HGNetV2: blocks that join the outputs of all their layers, light ones in the last two stages.

Paper: none; RT-DETR, https://arxiv.org/abs/2304.08069, builds on it, and upstream describes it in PaddleClas
    docs/zh_CN/models/ImageNet1k/PP-HGNetV2.md
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/pp_hgnet_v2.py; for text
    PaddlePaddle/PaddleOCR ppocr/modeling/backbones/rec_pphgnetv2.py
Differs: nothing in the function computed. The line form of every size strides as upstream's B4, the one size that
    recognisers use.
Weights: `state_dict()` has upstream's names. L, X and H of RT-DETR are B4, B5 and B6.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn.reparam import Arrays
from zoo.contracts import Feature
from zoo.layers.affine import Affine
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.hg_stem import StemBlock
from zoo.layers.stages import collect_maps
from zoo.layers.text_row import LINE_STRIDES, TEXT_ROW_STRIDE, pool_text_row
from zoo.layers.variants import VariantConfig
from zoo.layers.wide_head import WideHead

_KAIMING = nn.initializer.KaimingNormal()
# The affines learn at a hundredth of the rate (`lab_lr` of the reference).
_AFFINE_RATE = 0.01
HEAD_WIDTH = 2048


class Stage(NamedTuple):
    """Channels of the layers within a block, channels behind it, and number of blocks."""

    mid: int
    out: int
    blocks: int


class Size(NamedTuple):
    """`stem` is (middle, out) channels, `layers` are those of each block. The affine helps the smaller sizes.

    `params` of 1000 classes; with the running statistics they are the values in PaddleClas 2.6's checkpoints.
    """

    stem: tuple[int, int]
    layers: int
    affine: bool
    stages: tuple[Stage, ...]
    params: int


_Four = tuple[int, int, int, int]


def _size(
    params: int, stem: tuple[int, int], layers: int, affine: bool, mid: _Four, out: _Four, blocks: _Four
) -> Size:
    return Size(stem, layers, affine, tuple(map(Stage, mid, out, blocks)), params)


# `stage_config` of PPHGNetV2_B0 to _B6 in the reference
VARIANTS: dict[str, Size] = {
    "pphgnetv2_b0": _size(
        5_996_550, (16, 16), 3, True, (16, 32, 64, 128), (64, 256, 512, 1024), (1, 1, 2, 1)
    ),
    "pphgnetv2_b1": _size(
        6_343_158, (24, 32), 3, True, (32, 48, 96, 192), (64, 256, 512, 1024), (1, 1, 2, 1)
    ),
    "pphgnetv2_b2": _size(
        11_221_356, (24, 32), 4, True, (32, 64, 128, 256), (96, 384, 768, 1536), (1, 1, 3, 1)
    ),
    "pphgnetv2_b3": _size(
        16_292_216, (24, 32), 5, True, (32, 64, 128, 256), (128, 512, 1024, 2048), (1, 1, 3, 1)
    ),
    "pphgnetv2_b4": _size(
        19_796_680, (32, 48), 6, False, (48, 96, 192, 384), (128, 512, 1024, 2048), (1, 1, 3, 1)
    ),
    "pphgnetv2_b5": _size(
        39_569_064, (32, 64), 6, False, (64, 128, 256, 512), (128, 512, 1024, 2048), (1, 2, 5, 2)
    ),
    "pphgnetv2_b6": _size(
        75_256_776, (48, 96), 6, False, (96, 192, 384, 768), (192, 512, 1024, 2048), (2, 3, 6, 3)
    ),
}
_KERNEL_SIZES = (3, 3, 5, 5)
_FIRST_LIGHT = 2  # number of the first stage with light layers


@dataclass(frozen=True)
class PPHGNetV2Config(VariantConfig[Size], table=VARIANTS):
    """`form` is that of the features where there are no classes, see PPHGNetV2.

    `use_lab` puts a learnable affine behind each activation; None does as the variant does. `deploy` folds the
    normalisations into convolutions.
    """

    variant: str = "pphgnetv2_b4"
    num_classes: int = 1000
    form: Literal["image", "line"] = "image"
    use_lab: bool | None = None
    deploy: bool = False


class ConvBNAct(ConvBN):
    """Convolution, normalisation, ReLU and maybe an affine."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        *,
        groups: int = 1,
        use_lab: bool,
        deploy: bool = False,
    ) -> None:
        options = ConvBNOptions(groups=groups, initializer=_KAIMING, norm_decay=0.0, deploy=deploy)
        super().__init__(in_channels, out_channels, kernel_size, stride, act=F.relu, options=options)
        self.use_lab = use_lab
        if use_lab:
            self.lab = Affine(_AFFINE_RATE)

    def forward(self, x: jax.Array) -> jax.Array:
        x = super().forward(x)
        return self.lab(x) if self.use_lab else x

    def deploy_state(self) -> Arrays:
        state = super().deploy_state()
        if self.use_lab:
            state |= {"lab.scale": np.asarray(self.lab.scale), "lab.bias": np.asarray(self.lab.bias)}
        return state


def light_conv(
    in_channels: int, out_channels: int, kernel_size: int, use_lab: bool, deploy: bool
) -> nn.Sequential:
    """1x1 convolution without activation, depthwise convolution with it."""
    own = {"groups": out_channels, "use_lab": use_lab, "deploy": deploy}
    point = ConvBNOptions(initializer=_KAIMING, norm_decay=0.0, deploy=deploy)
    return nn.Sequential(
        ("conv1", ConvBN(in_channels, out_channels, 1, options=point)),
        ("conv2", ConvBNAct(out_channels, out_channels, kernel_size, **own)),
    )


class HGBlock(nn.Layer):
    """Layers in a row; the input and the outputs of all are joined and reduced by two 1x1 convolutions."""

    def __init__(
        self,
        in_channels: int,
        stage: Stage,
        kernel_size: int,
        layers: int,
        light: bool,
        residual: bool,
        use_lab: bool,
        deploy: bool,
    ) -> None:
        super().__init__()
        self.residual = residual
        own = {"use_lab": use_lab, "deploy": deploy}
        make = light_conv if light else ConvBNAct
        inputs = [in_channels, *[stage.mid] * (layers - 1)]
        self.layers = nn.LayerList([make(width, stage.mid, kernel_size, **own) for width in inputs])
        joined, half = in_channels + layers * stage.mid, stage.out // 2
        self.aggregation_squeeze_conv = ConvBNAct(joined, half, 1, **own)
        self.aggregation_excitation_conv = ConvBNAct(half, stage.out, 1, **own)

    def forward(self, x: jax.Array) -> jax.Array:
        outs = [x]
        for layer in self.layers:
            outs.append(layer(outs[-1]))
        y = self.aggregation_squeeze_conv(jnp.concatenate(outs, axis=-1))
        y = self.aggregation_excitation_conv(y)
        return x + y if self.residual else y


class HGStage(nn.Layer):
    """Maybe a strided depthwise convolution, then blocks, residual but for the first."""

    def __init__(
        self,
        number: int,
        in_channels: int,
        size: Size,
        stride: int | tuple[int, int] | None,
        use_lab: bool,
        deploy: bool,
    ) -> None:
        super().__init__()
        stage = size.stages[number]
        self.downsamples = stride is not None
        if stride is not None:
            depth = ConvBNOptions(groups=in_channels, initializer=_KAIMING, norm_decay=0.0, deploy=deploy)
            self.downsample = ConvBN(in_channels, in_channels, 3, stride, options=depth)
        light, kernel = number >= _FIRST_LIGHT, _KERNEL_SIZES[number]
        self.blocks = nn.Sequential()
        for index in range(stage.blocks):
            width = stage.out if index else in_channels
            block = HGBlock(width, stage, kernel, size.layers, light, index > 0, use_lab, deploy)
            self.blocks.append(block)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.blocks(self.downsample(x) if self.downsamples else x)


@register("model", config=PPHGNetV2Config)
@register("backbone", config=PPHGNetV2Config)
class PPHGNetV2(WideHead[PPHGNetV2Config]):
    """[N, H, W, 3] -> logits [N, num_classes], or maps.

    Form `image`: the maps at strides 4, 8, 16 and 32. `line`, of the PP-OCR recognisers: one row [N, 1, T, C], where T
    is W // 8.
    """

    def __init__(self, config: PPHGNetV2Config) -> None:
        super().__init__(config)
        self.form = "image" if config.num_classes else config.form
        size = VARIANTS[config.variant]
        self.use_lab = size.affine if config.use_lab is None else config.use_lab
        own = {"use_lab": self.use_lab, "deploy": config.deploy}
        mid, width = size.stem
        # Behind an affine zero is not the least value.
        least = -float("inf") if self.use_lab else 0.0
        line = self.form == "line"
        conv = functools.partial(ConvBNAct, **own)
        self.stem = StemBlock(mid, width, conv, least, last_stride=1 if line else 2)
        self.stages = nn.LayerList()
        for number, stride in enumerate(LINE_STRIDES if line else (None, 2, 2, 2)):
            self.stages.append(HGStage(number, width, size, stride, **own))
            width = size.stages[number].out
        self.features = tuple(
            Feature(stage.out, stride) for stage, stride in zip(size.stages, (4, 8, 16, 32))
        )
        if line:
            self.features = (Feature(width, TEXT_ROW_STRIDE),)
        if config.num_classes:
            self.add_head(width, HEAD_WIDTH, config.num_classes, F.relu, dropout=0.0, initializer=_KAIMING)
            if self.use_lab:
                self.lab = Affine(_AFFINE_RATE)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        maps = collect_maps(self.stem(x), self.stages)  # [N, H/4, W/4, C1] to [N, H/32, W/32, C4]
        if self.form == "line":  # [N, 3, W/4, C] -> [N, 1, W/8, C]
            return (pool_text_row(maps[-1], self.training, type(self).__name__),)
        return maps

    def widen(self, x: jax.Array) -> jax.Array:
        x = super().widen(x)
        return self.lab(x) if self.use_lab else x
