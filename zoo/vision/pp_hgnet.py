"""PP-HGNet: blocks of plain 3x3 convolutions that join the outputs of all their layers and weigh the channels.

Paper: none; upstream describes it in PaddleClas docs/zh_CN/models/ImageNet1k/PP-HGNet.md
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/pp_hgnet.py; for text
    PaddlePaddle/PaddleOCR ppocr/modeling/backbones/rec_hgnet.py
Differs: nothing in the function computed. The line form of every size strides as upstream's `small`, the one size that
    recognisers use: upstream's other two do not reduce a line to one row.
Weights: `state_dict()` has upstream's names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Feature
from zoo.layers.conv_bn import Activation, ConvBN, ConvBNOptions
from zoo.layers.stages import collect_maps
from zoo.layers.text_row import LINE_STRIDES, TEXT_ROW_STRIDE, pool_text_row
from zoo.layers.variants import VariantConfig
from zoo.layers.wide_head import WideHead

_KAIMING = nn.initializer.KaimingNormal()
HEAD_WIDTH = 2048

Stride = int | tuple[int, int]


class Stage(NamedTuple):
    """Channels of the layers within a block, channels behind it, and number of blocks."""

    mid: int
    out: int
    blocks: int


class Size(NamedTuple):
    """`stem` are the channels of its three convolutions, `layers` are those of each block.

    `params` of 1000 classes, without the running statistics.
    """

    stem: tuple[int, int, int]
    layers: int
    stages: tuple[Stage, ...]
    params: int
    dropout: float = 0.0


_Four = tuple[int, int, int, int]


def _stages(mid: _Four, out: _Four, blocks: _Four) -> tuple[Stage, ...]:
    return tuple(map(Stage, mid, out, blocks))


# PPHGNet_tiny, _small and _base of the reference; `params`: counted in PaddleClas 2.6.
VARIANTS: dict[str, Size] = {
    "pphgnet_tiny": Size(
        (48, 48, 96), 5, _stages((96, 128, 160, 192), (224, 448, 512, 768), (1, 1, 2, 1)), 14_735_864
    ),
    "pphgnet_small": Size(
        (64, 64, 128), 6, _stages((128, 160, 192, 224), (256, 512, 768, 1024), (1, 1, 2, 1)), 24_360_872
    ),
    "pphgnet_base": Size(
        (96, 96, 160), 7, _stages((192, 224, 256, 288), (320, 640, 960, 1280), (1, 2, 3, 2)), 71_578_184, 0.2
    ),
}


@dataclass(frozen=True)
class PPHGNetConfig(VariantConfig[Size], table=VARIANTS):
    """`form` is that of the features where there are no classes, see PPHGNet.

    `deploy` folds the normalisations into convolutions.
    """

    variant: str = "pphgnet_small"
    num_classes: int = 1000
    form: Literal["image", "line"] = "image"
    deploy: bool = False


def conv(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: Stride = 1,
    groups: int = 1,
    act: Activation | None = F.relu,
    deploy: bool = False,
) -> ConvBN:
    """Convolution, normalisation and, with `act`, an activation."""
    options = ConvBNOptions(groups=groups, initializer=_KAIMING, norm_decay=0.0, deploy=deploy)
    return ConvBN(in_channels, out_channels, kernel_size, stride, act=act, options=options)


class EffectiveSE(nn.Layer):
    """`x` times the sigmoid of one linear map of its mean over all pixels.

    Paper: CenterMask, https://arxiv.org/abs/1911.06667, section 3.3
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2D(channels, channels, 1, weight_attr=_KAIMING)

    def forward(self, x: jax.Array) -> jax.Array:
        return x * F.sigmoid(self.conv(F.global_avg_pool2d(x)))


class HGBlock(nn.Layer):
    """Layers in a row; the input and the outputs of all are joined, reduced by a 1x1 convolution, and weighed."""

    def __init__(self, in_channels: int, stage: Stage, layers: int, residual: bool, deploy: bool) -> None:
        super().__init__()
        self.residual = residual
        inputs = [in_channels, *[stage.mid] * (layers - 1)]
        self.layers = nn.LayerList([conv(width, stage.mid, 3, deploy=deploy) for width in inputs])
        self.aggregation_conv = conv(in_channels + layers * stage.mid, stage.out, 1, deploy=deploy)
        self.att = EffectiveSE(stage.out)

    def forward(self, x: jax.Array) -> jax.Array:
        outs = [x]
        for layer in self.layers:
            outs.append(layer(outs[-1]))
        y = self.att(self.aggregation_conv(jnp.concatenate(outs, axis=-1)))
        return y + x if self.residual else y


class HGStage(nn.Layer):
    """Maybe a strided depthwise convolution, then blocks, residual but for the first."""

    def __init__(
        self, in_channels: int, stage: Stage, layers: int, stride: Stride | None, deploy: bool
    ) -> None:
        super().__init__()
        self.downsamples = stride is not None
        if stride is not None:
            self.downsample = conv(in_channels, in_channels, 3, stride, in_channels, None, deploy)
        widths = [in_channels, *[stage.out] * (stage.blocks - 1)]
        blocks = [HGBlock(width, stage, layers, i > 0, deploy) for i, width in enumerate(widths)]
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.blocks(self.downsample(x) if self.downsamples else x)


@register("model", config=PPHGNetConfig)
@register("backbone", config=PPHGNetConfig)
class PPHGNet(WideHead[PPHGNetConfig]):
    """[N, H, W, 3] -> logits [N, num_classes], or maps.

    Form `image`: the maps at strides 4, 8, 16 and 32. `line`, of the PP-OCR recognisers: one row [N, 1, T, C], where T
    is W // 8.
    """

    def __init__(self, config: PPHGNetConfig) -> None:
        super().__init__(config)
        self.form = "image" if config.num_classes else config.form
        size, deploy = VARIANTS[config.variant], config.deploy
        inputs = (3, *size.stem[:2])
        stem = [
            conv(*pair, 3, 2 if i == 0 else 1, deploy=deploy) for i, pair in enumerate(zip(inputs, size.stem))
        ]
        self.stem = nn.Sequential(*stem)
        strides: Sequence[Stride | None] = LINE_STRIDES if self.form == "line" else (None, 2, 2, 2)
        self.stages, width = nn.LayerList(), size.stem[-1]
        for stage, stride in zip(size.stages, strides, strict=True):
            self.stages.append(HGStage(width, stage, size.layers, stride, deploy))
            width = stage.out
        if self.form == "line":
            self.features = (Feature(width, TEXT_ROW_STRIDE),)
        else:
            self.features = tuple(Feature(s.out, stride) for s, stride in zip(size.stages, (4, 8, 16, 32)))
        if config.num_classes:
            self.add_head(width, HEAD_WIDTH, config.num_classes, F.relu, size.dropout, _KAIMING)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.stem(x)  # [N, H/2, W/2, C]
        if self.form == "line":  # [N, 3, W/4, C] -> [N, 1, W/8, C]
            rows = collect_maps(x, self.stages)[-1]
            return (pool_text_row(rows, self.training, type(self).__name__),)
        x = F.max_pool2d(x, 3, stride=2, padding=1, pad_value=0.0)  # 0 is the least that ReLU gives
        return collect_maps(x, self.stages)  # [N, H/4, W/4, C1] to [N, H/32, W/32, C4]
