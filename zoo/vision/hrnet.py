"""HRNet: branches at strides 4, 8, 16 and 32 run side by side and exchange what they know after every module.

Paper: https://arxiv.org/abs/1908.07919 (figure 2); pose: https://arxiv.org/abs/1902.09212
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/hrnet.py; the other two forms are
    PaddleSeg paddleseg/models/backbones/hrnet.py and PaddleDetection ppdet/modeling/backbones/hrnet.py
Differs: images need no sides that are multiples of 32, where the reference's nearest upsampling fails. No variant has
    squeeze-and-excitation or polarised self-attention.
Weights: HRNet_W*_C_pretrained.pdparams of PaddleClas; PaddleSeg's and PaddleDetection's spellings load too. A variant's
    backbone has the same arrays in all forms, but for those that `multi_scale_output=False` leaves out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Backbone, Feature
from zoo.layers.conv_bn import Activation, ConvBN, ConvBNOptions
from zoo.layers.variants import VariantConfig


class Size(NamedTuple):
    """`first` is (blocks, width) of the bottlenecks of stage 1; `modules` those of stages 2, 3 and 4.

    The branches have `width`, 2, 4 and 8 times `width` channels, and `blocks` basic blocks in each module. `params` of
    1000 classes, without the running statistics.
    """

    width: int
    params: int
    first: tuple[int, int] = (4, 64)
    modules: tuple[int, int, int] = (1, 4, 3)
    blocks: int = 4


# PaddleClas and PaddleSeg, the constructors of the references; the paper describes them in section 3
VARIANTS: dict[str, Size] = {
    "w18": Size(18, 21_295_164),
    "w30": Size(30, 37_708_380),
    "w32": Size(32, 41_228_840),
    "w40": Size(40, 57_553_320),
    "w44": Size(44, 67_061_144),
    "w48": Size(48, 77_466_024),
    "w60": Size(60, 114_063_000),
    "w64": Size(64, 128_056_104),
    "w18_small_v1": Size(16, 13_183_624, first=(1, 32), modules=(1, 1, 1), blocks=2),
    "w18_small_v2": Size(18, 15_593_624, first=(2, 64), modules=(1, 3, 2), blocks=2),
}

_HEAD_WIDTHS = (32, 64, 128, 256)  # of the head's bottlenecks, which give four times as many channels
_LAST_WIDTH = 2048


@dataclass(frozen=True)
class HRNetConfig(VariantConfig[Size], table=VARIANTS):
    """The defaults are those of classification and detection.

    Segmentation (PaddleSeg): `upsample="bilinear"`, `same_padding=True`; `align_corners=True` where images have odd
    sides such as 769. Pose (PaddleDetection): `multi_scale_output=False`.

    `same_padding` pads convolutions of stride 2 below and to the right only where a side is even. Without
    `multi_scale_output` the last module makes the map at stride 4 alone, and has no weights for the others.
    """

    variant: str = "w18"
    num_classes: int = 1000
    upsample: Literal["nearest", "bilinear"] = "nearest"
    align_corners: bool = False
    same_padding: bool = False
    multi_scale_output: bool = True
    in_channels: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.align_corners and self.upsample == "nearest":
            raise ConfigError(
                "HRNet: align_corners belongs to bilinear upsampling",
                received="align_corners=True, upsample='nearest'",
                allowed="upsample='bilinear', or align_corners=False",
            )


class Halve(ConvBN):
    """3x3 convolution with stride 2: [N, H, W, C] -> [N, ceil(H / 2), ceil(W / 2), out_channels]."""

    def __init__(
        self, in_channels: int, out_channels: int, same_padding: bool, act: Activation | None = F.relu
    ) -> None:
        options = ConvBNOptions(padding=0 if same_padding else 1)
        super().__init__(in_channels, out_channels, 3, 2, act=act, options=options)
        self.same_padding = same_padding

    def forward(self, x: jax.Array) -> jax.Array:
        if self.same_padding:  # not the convolution's own "SAME", which refuses symbolic sizes
            top, left = x.shape[1] % 2, x.shape[2] % 2
            x = jnp.pad(x, ((0, 0), (top, 1), (left, 1), (0, 0)))
        return super().forward(x)


class Bottleneck(nn.Layer):
    """1x1, 3x3 and 1x1 to four times `width`, with a residual that `project` makes a 1x1 convolution."""

    def __init__(self, in_channels: int, width: int, project: bool) -> None:
        super().__init__()
        self.conv1 = ConvBN(in_channels, width, 1, act=F.relu)
        self.conv2 = ConvBN(width, width, 3, act=F.relu)
        self.conv3 = ConvBN(width, 4 * width, 1)
        self.project = project
        if project:
            self.conv_down = ConvBN(in_channels, 4 * width, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        residual = self.conv_down(x) if self.project else x
        return F.relu(residual + self.conv3(self.conv2(self.conv1(x))))


class BasicBlock(nn.Layer):
    """Two 3x3 convolutions and a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = ConvBN(width, width, 3, act=F.relu)
        self.conv2 = ConvBN(width, width, 3)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.relu(x + self.conv2(self.conv1(x)))


def _exchanges(branches: int, outputs: int) -> Iterator[tuple[int, int, int]]:
    """(target, source, convolutions between them) in the order in which `FuseLayers` holds the convolutions."""
    for target in range(outputs):
        for source in range(branches):
            if source != target:
                yield target, source, max(target - source, 1)


class FuseLayers(nn.Layer):
    """Each map plus all others at its size: finer ones are halved, coarser ones pass a 1x1 and are upsampled."""

    def __init__(self, widths: tuple[int, ...], outputs: int, config: HRNetConfig) -> None:
        super().__init__()
        self.outputs, self.upsample, self.align_corners = outputs, config.upsample, config.align_corners
        self.residual_func_list = nn.LayerList()
        for target, source, steps in _exchanges(len(widths), outputs):
            if source > target:
                self.residual_func_list.append(ConvBN(widths[source], widths[target], 1))
                continue
            for _ in range(steps - 1):
                self.residual_func_list.append(Halve(widths[source], widths[source], config.same_padding))
            last = Halve(widths[source], widths[target], config.same_padding, act=None)
            self.residual_func_list.append(last)

    def forward(self, maps: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        fused, convs = list(maps[: self.outputs]), iter(self.residual_func_list)
        for target, source, steps in _exchanges(len(maps), self.outputs):
            x = maps[source]
            for _ in range(steps):
                x = next(convs)(x)
            if source > target:
                size_hw = maps[target].shape[1:3]
                x = F.interpolate(x, size_hw, mode=self.upsample, align_corners=self.align_corners)
            fused[target] = fused[target] + x
        return tuple(F.relu(x) for x in fused)


class HighResolutionModule(nn.Layer):
    """The branches, each `blocks` basic blocks, and the exchange between them."""

    def __init__(self, widths: tuple[int, ...], blocks: int, outputs: int, config: HRNetConfig) -> None:
        super().__init__()
        self.basic_block_list = nn.LayerList(
            [nn.Sequential(*(BasicBlock(width) for _ in range(blocks))) for width in widths]
        )
        self.fuse_func = FuseLayers(widths, outputs, config)

    def forward(self, maps: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        return self.fuse_func(tuple(branch(x) for branch, x in zip(self.basic_block_list, maps, strict=True)))


class Stage(nn.Layer):
    """Modules one after the other; the last one gives the first `outputs` maps."""

    def __init__(self, widths: tuple[int, ...], modules: int, outputs: int, config: HRNetConfig) -> None:
        super().__init__()
        blocks = VARIANTS[config.variant].blocks
        self.stage_func_list = nn.LayerList()
        for number in range(modules):
            given = outputs if number == modules - 1 else len(widths)
            self.stage_func_list.append(HighResolutionModule(widths, blocks, given, config))

    def forward(self, maps: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        for module in self.stage_func_list:
            maps = module(maps)
        return maps


def _exchange_names(stage: int) -> list[str]:
    """What PaddleSeg and PaddleDetection call the convolutions of `FuseLayers`: target and source, and the step."""
    return [
        f"{target + 1}_{source + 1}" + (f"_{step + 1}" if source < target else "")
        for target, source, steps in _exchanges(stage, stage)
        for step in range(steps)
    ]


def _other_name(name: str, suite: str) -> str:
    """Our name in PaddleSeg's or PaddleDetection's spelling: what `_other_names` turns into ours."""
    conv, norm, block = ("_conv", "_batch_norm", "bb") if suite == "paddleseg" else ("conv", "norm", "block")
    name = name.replace(".conv.", f".{conv}.").replace(".bn.", f".{norm}.")
    name = re.sub(r"^layer1\.(\d)\.", lambda found: f"la1.{block}_layer2_{int(found[1]) + 1}.", name)
    name = re.sub(r"^conv_tr1_(\d)\.", r"tr1.transition_tr1_layer_\1.", name)
    name = re.sub(r"^conv_tr2\.", "tr2.transition_tr2_layer_3.", name)
    name = re.sub(r"^conv_tr3\.", "tr3.transition_tr3_layer_4.", name)
    place = re.match(r"st(\d)\.stage_func_list\.(\d)\.", name)
    if place is None:
        return name
    stage = f"st{place[1]}_{int(place[2]) + 1}"
    rest = re.sub(
        r"^basic_block_list\.(\d)\.(\d)\.",
        lambda found: f"branches_func.bb_{stage}_branch_layer_{int(found[1]) + 1}_{int(found[2]) + 1}.",
        name[place.end() :],
    )
    rest = re.sub(
        r"residual_func_list\.(\d+)\.",
        lambda found: f"residual_{stage}_layer_{_exchange_names(int(place[1]))[int(found[1])]}.",
        rest,
    )
    return f"st{place[1]}.stage_{stage}.{rest}"


def _other_names() -> tuple[tuple[str, str], ...]:
    """PaddleSeg's and PaddleDetection's names to ours. Their counts from 1 stand in <> until the last four patterns."""
    renames = [
        (r"\._conv\.", ".conv."),
        (r"\.(_batch_norm|norm)\.", ".bn."),
        (r"^la1\.(?:bb|block)_layer2_(\d)\.", r"layer1.<\1>."),
        (r"^tr1\.transition_tr1_layer_(\d)\.", r"conv_tr1_\1."),
        (r"^tr([23])\.transition_tr\d_layer_\d\.", r"conv_tr\1."),
        (r"\.stage_st\d_(\d)\.", r".stage_func_list.<\1>."),
        (r"\.branches_func\.bb_st\d_\d_branch_layer_(\d)_(\d)\.", r".basic_block_list.<\1>.<\2>."),
    ]
    for stage in (2, 3, 4):
        renames += [
            (rf"^(st{stage}\..*)residual_st\d_\d_layer_{pair}\.", rf"\1residual_func_list.{number}.")
            for number, pair in enumerate(_exchange_names(stage))
        ]
    return (*renames, *((f"<{n}>", str(n - 1)) for n in (1, 2, 3, 4)))


@register("model", config=HRNetConfig)
@register("backbone", config=HRNetConfig)
class HRNet(Backbone[HRNetConfig]):
    """Contract: zoo/contracts.py. `features` are the maps at strides 4, 8, 16 and 32, or only the first of them.

    Raises:
        ConfigError: the classifier was asked for without `multi_scale_output`.
    """

    state_renames = _other_names()

    def official_names(self, suite: str) -> dict[str, str]:
        """Names of PaddleSeg or PaddleDetection to ours, which are PaddleClas's."""
        if suite not in ("paddledet", "paddleseg"):
            return {}
        return {_other_name(name, suite): name for name in self.state_shapes()}

    def __init__(self, config: HRNetConfig) -> None:
        super().__init__(config)
        if config.num_classes and not config.multi_scale_output:
            raise ConfigError(
                "HRNet: the classifier reads the maps of all strides",
                received=f"num_classes={config.num_classes}, multi_scale_output=False",
                allowed="num_classes=0, or multi_scale_output=True",
            )
        size, same = VARIANTS[config.variant], config.same_padding
        widths = tuple(size.width * 2**branch for branch in range(4))
        outputs = 4 if config.multi_scale_output else 1
        self.features = tuple(Feature(width, 4 * 2**i) for i, width in enumerate(widths[:outputs]))

        self.conv_layer1_1 = Halve(config.in_channels, 64, same)
        self.conv_layer1_2 = Halve(64, 64, same)
        blocks, width = size.first
        self.layer1 = nn.Sequential(Bottleneck(64, width, project=True))
        for _ in range(blocks - 1):
            self.layer1.append(Bottleneck(4 * width, width, project=False))
        self.conv_tr1_1 = ConvBN(4 * width, widths[0], 3, act=F.relu)
        self.conv_tr1_2 = Halve(4 * width, widths[1], same)
        self.st2 = Stage(widths[:2], size.modules[0], 2, config)
        self.conv_tr2 = Halve(widths[1], widths[2], same)
        self.st3 = Stage(widths[:3], size.modules[1], 3, config)
        self.conv_tr3 = Halve(widths[2], widths[3], same)
        self.st4 = Stage(widths, size.modules[2], outputs, config)
        if config.num_classes:
            self._add_classifier(widths, config.num_classes)

    def _add_classifier(self, widths: tuple[int, ...], num_classes: int) -> None:
        # A bottleneck for each map: 128, 256, 512 and 1024 channels
        pairs = zip(widths, _HEAD_WIDTHS, strict=True)
        blocks = [Bottleneck(width, own, project=True) for width, own in pairs]
        self.last_cls = nn.LayerDict({"func_list": nn.LayerList(blocks)})
        given = [4 * width for width in _HEAD_WIDTHS]
        self.cls_head_conv_list = nn.LayerList(
            [Halve(fine, coarse, self.config.same_padding) for fine, coarse in pairwise(given)]
        )
        self.conv_last = ConvBN(given[-1], _LAST_WIDTH, 1, act=F.relu)
        bound = 1 / math.sqrt(_LAST_WIDTH)
        self.fc = nn.Linear(_LAST_WIDTH, num_classes, weight_attr=I.Uniform(-bound, bound))

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.layer1(self.conv_layer1_2(self.conv_layer1_1(x)))  # [N, H/4, W/4, 256]
        maps = self.st2((self.conv_tr1_1(x), self.conv_tr1_2(x)))
        maps = self.st3((*maps, self.conv_tr2(maps[-1])))
        return self.st4((*maps, self.conv_tr3(maps[-1])))

    def forward(self, x: jax.Array) -> jax.Array | tuple[jax.Array, ...]:
        maps = self.forward_features(x)
        if not self.config.num_classes:
            return maps
        blocks = self.last_cls["func_list"]
        assert isinstance(blocks, nn.LayerList)
        x, *coarser = (block(x) for block, x in zip(blocks, maps, strict=True))
        for halve, own in zip(self.cls_head_conv_list, coarser, strict=True):
            x = own + halve(x)  # at last [N, H/32, W/32, 1024]
        x = F.global_avg_pool2d(self.conv_last(x))  # [N, 1, 1, 2048]
        return self.fc(x[:, 0, 0])
