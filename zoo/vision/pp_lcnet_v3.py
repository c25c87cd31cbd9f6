"""PP-LCNetV3: depthwise separable blocks whose convolutions have several branches in training, with learnable affines.

Paper: PP-LCNet, https://arxiv.org/abs/2109.15099; V3 is described in PaddleOCR's PP-OCRv4 report
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/backbones/rec_lcnetv3.py; for the classifier
    PaddlePaddle/PaddleClas pull request 2894, commit 78e6025, pp_lcnet_v3.py
Differs: nothing in the function computed; the deploy form folds the stem's normalisation too. No release of PaddleClas
    has the classifier: that pull request was never merged.
Weights: part of the PP-OCRv4 and PP-OCRv5 mobile models, and none of the classifier. `state_dict()` has upstream's
    names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import jax
import numpy as np

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn.reparam import Arrays, centred, fuse_conv_bn
from zoo.contracts import Contract, Feature
from zoo.layers.affine import Affine
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.squeeze_excite import SqueezeExcite
from zoo.layers.stages import collect_maps
from zoo.layers.text_row import TEXT_ROW_STRIDE, pool_text_row
from zoo.layers.variants import ScaledSize, VariantConfig, scaled_width
from zoo.layers.wide_head import WideHead

Stride = int | tuple[int, int]

NUM_BRANCHES = 4
# The affines learn at a tenth of the rate (`lab_lr` of the reference).
_AFFINE_RATE = 0.1
# Channels of the four maps at scale 1, behind the 1x1 convolutions of `layer_list`
_MAP_WIDTHS = (16, 24, 56, 480)
_KAIMING = nn.initializer.KaimingNormal()


class Block(NamedTuple):
    """Widths are those at scale 1; a stride is (vertical, horizontal) where it is a pair."""

    kernel_size: int
    in_width: int
    out_width: int
    stride: Stride = 1
    squeeze: bool = False


def _stages(*strides: Stride) -> dict[str, tuple[Block, ...]]:
    """NET_CONFIG_det and NET_CONFIG_rec of the reference, which differ in the five strides that are not always 1."""
    third, fourth, fifth, sixth, last = strides
    wide = Block(5, 256, 256)
    return {
        "blocks2": (Block(3, 16, 32),),
        "blocks3": (Block(3, 32, 64, third), Block(3, 64, 64)),
        "blocks4": (Block(3, 64, 128, fourth), Block(3, 128, 128)),
        "blocks5": (Block(3, 128, 256, fifth), wide, wide, wide, wide),
        "blocks6": (
            Block(5, 256, 512, sixth, squeeze=True),
            Block(5, 512, 512, squeeze=True),
            Block(5, 512, 512, last),
            Block(5, 512, 512),
        ),
    }


_PAGE = _stages(2, 2, 2, 2, 1)
_LINE = _stages(1, (2, 1), (1, 2), (2, 1), (2, 1))
# Learnable affines whose factor and summand the next layer takes out again, for the contract.
_NORMALISED_BRANCHES = "an affine, and then nothing but normalised 1x1 branches"
_AFFINE = r"blocks(?!6\.[01]\.)\d\.\d\.dw_conv\.act\.lab\.(scale|bias)"  # not where squeezing stands between
_STRIDED = r"blocks[345]\.0\.dw_conv\.lab\.(scale|bias)"  # the integer 2 as stride: no activation
HEAD_WIDTH = 1280  # at every scale


# Widths of the PP-OCR detectors, and of PPLCNetV3_base in PaddleClas and the PP-OCR recognisers. With the running
# statistics `params` are the pull request's `state_dict()`.
VARIANTS: dict[str, ScaledSize] = {
    "pplcnetv3_x0_75": ScaledSize(0.75, 4_947_658),
    "pplcnetv3_base": ScaledSize(0.95, 6_787_918),
}


@dataclass(frozen=True)
class PPLCNetV3Config(VariantConfig[ScaledSize], table=VARIANTS):
    """`form` is that of the features where there are no classes, see PPLCNetV3.

    `deploy` builds one convolution in place of the branches.
    """

    variant: str = "pplcnetv3_base"
    num_classes: int = 1000
    form: Literal["image", "page", "line"] = "image"
    deploy: bool = False


class Activation(nn.Layer):
    """Hard swish and an affine behind it."""

    def __init__(self, trainable: bool = True) -> None:
        super().__init__()
        self.lab = Affine(_AFFINE_RATE, trainable)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.lab(F.hardswish(x))


class LearnableRepLayer(nn.Layer):
    """A convolution, an affine and an activation; the sum of up to six normalised branches in training form.

    The activation is missing where the stride is the integer 2. A pair such as (2, 1) does not count as one: upstream
    compares the value that its table holds, so the recogniser activates where the detector does not. A checkpoint has
    the affine of the activation in either case.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: Stride = 1,
        groups: int = 1,
        deploy: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.groups, self.deploy = kernel_size, groups, deploy
        self.activates = stride != 2
        self.has_identity = in_channels == out_channels and stride == 1
        if deploy:
            padding = kernel_size // 2
            self.reparam_conv = nn.Conv2D(
                in_channels, out_channels, kernel_size, stride, padding, groups=groups
            )
        else:
            if self.has_identity:
                self.identity = nn.BatchNorm2D(in_channels)
            options = ConvBNOptions(groups=groups, initializer=_KAIMING, norm_decay=0.0)
            branch = partial(ConvBN, in_channels, out_channels, stride=stride, options=options)
            self.conv_kxk = nn.LayerList([branch(kernel_size) for _ in range(NUM_BRANCHES)])
            if kernel_size > 1:
                self.conv_1x1 = branch(1)
        self.lab = Affine(_AFFINE_RATE)
        if self.activates or not deploy:
            self.act = Activation(trainable=self.activates)

    def forward(self, x: jax.Array) -> jax.Array:
        if self.deploy:
            y = self.reparam_conv(x)
        else:
            y = sum((conv(x) for conv in self.conv_kxk), 0.0)
            if self.kernel_size > 1:
                y = y + self.conv_1x1(x)
            if self.has_identity:
                y = y + self.identity(x)
        y = self.lab(y)
        return self.act(y) if self.activates else y

    def deploy_state(self) -> Arrays:
        folded = [conv.fuse() for conv in self.conv_kxk]
        if self.kernel_size > 1:
            weight, bias = self.conv_1x1.fuse()
            folded.append((centred(weight, self.kernel_size), bias))
        if self.has_identity:
            folded.append(fuse_conv_bn(self._unit_kernel(), None, self.identity))
        affines = {"lab": self.lab} | ({"act.lab": self.act.lab} if self.activates else {})
        return {
            "reparam_conv.weight": np.sum([weight for weight, _ in folded], axis=0),
            "reparam_conv.bias": np.sum([bias for _, bias in folded], axis=0),
            **{f"{name}.scale": np.asarray(affine.scale) for name, affine in affines.items()},
            **{f"{name}.bias": np.asarray(affine.bias) for name, affine in affines.items()},
        }

    def _unit_kernel(self) -> np.ndarray:
        """The convolution that returns its input."""
        channels, inputs = self.identity.num_features, self.identity.num_features // self.groups
        unit = np.zeros((channels, inputs, 1, 1), np.float32)
        unit[np.arange(channels), np.arange(channels) % inputs] = 1
        return centred(unit, self.kernel_size)


class LCNetV3Block(nn.Layer):
    """Depthwise convolution with the stride, maybe squeeze-and-excitation, 1x1 convolution."""

    def __init__(self, block: Block, in_channels: int, out_channels: int, deploy: bool = False) -> None:
        super().__init__()
        self.squeeze = block.squeeze
        self.dw_conv = LearnableRepLayer(
            in_channels, in_channels, block.kernel_size, block.stride, in_channels, deploy
        )
        if block.squeeze:
            self.se = SqueezeExcite(in_channels)
        self.pw_conv = LearnableRepLayer(in_channels, out_channels, 1, deploy=deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.dw_conv(x)
        return self.pw_conv(self.se(x) if self.squeeze else x)


@register("model", config=PPLCNetV3Config)
@register("backbone", config=PPLCNetV3Config)
class PPLCNetV3(WideHead[PPLCNetV3Config]):
    """[N, H, W, 3] -> logits [N, num_classes], or maps.

    Form `image`: the maps at strides 4, 8, 16 and 32. `page`, of the PP-OCR detectors: these maps, narrowed by 1x1
    convolutions. `line`, of the PP-OCR recognisers: one row [N, 1, T, C], where T is W // 8.
    """

    contract = Contract(
        flat=(f"{_AFFINE}|{_STRIDED}", _NORMALISED_BRANCHES),
        forms={"line": Contract(flat=(_AFFINE, _NORMALISED_BRANCHES))},
    )

    def __init__(self, config: PPLCNetV3Config) -> None:
        super().__init__(config)
        self.form = "image" if config.num_classes else config.form
        scale, deploy = VARIANTS[config.variant].scale, config.deploy

        def width(value: int) -> int:
            return scaled_width(value, scale, multiple=16)

        options = ConvBNOptions(initializer=_KAIMING, norm_decay=0.0, deploy=deploy)
        self.conv1 = ConvBN(3, width(16), 3, 2, options=options)
        stages = _LINE if self.form == "line" else _PAGE
        for name, blocks in stages.items():
            layers = [LCNetV3Block(b, width(b.in_width), width(b.out_width), deploy) for b in blocks]
            self.add_sublayer(name, nn.Sequential(*layers))
        widths = [width(blocks[-1].out_width) for blocks in stages.values()][1:]
        self.features = tuple(Feature(*pair) for pair in zip(widths, (4, 8, 16, 32)))
        if self.form == "page":
            narrow = [int(value * scale) for value in _MAP_WIDTHS]
            self.layer_list = nn.LayerList([nn.Conv2D(*pair, 1) for pair in zip(widths, narrow)])
            self.features = tuple(Feature(*pair) for pair in zip(narrow, (4, 8, 16, 32)))
        elif self.form == "line":
            self.features = (Feature(widths[-1], TEXT_ROW_STRIDE),)
        if config.num_classes:
            self.add_head(widths[-1], HEAD_WIDTH, config.num_classes, Activation())

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.blocks2(self.conv1(x))  # [N, H/2, W/2, C], then [N, H/4, W/4, C1] to [N, H/32, W/32, C4]
        maps = collect_maps(x, (self.blocks3, self.blocks4, self.blocks5, self.blocks6))
        if self.form == "line":  # [N, 3, W/4, C] -> [N, 1, W/8, C]
            return (pool_text_row(maps[-1], self.training, type(self).__name__),)
        if self.form == "page":
            return tuple(conv(x) for conv, x in zip(self.layer_list, maps))
        return maps
