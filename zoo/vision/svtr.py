"""SVTR: attention among pieces of characters, first nearby, then along the whole line; no recurrence and no decoder.

Paper: Du et al. 2022, https://arxiv.org/abs/2205.00159
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/backbones/rec_svtrnet.py with `prenorm: False`, `patch_merging: Conv`
    and `last_stage: True`, as in configs/rec/rec_svtrnet.yml and rec_svtrnet_ch.yml
Differs: nothing in the function computed. Upstream's other switches (convolutions as mixers, merging by pooling,
    normalisation behind the sum), which the paper's sizes do not use, are not there. The deploy form folds the
    normalisations of the patch embedding.
Weights: PaddleOCR's `rec_svtr_*_none_ctc_*`; `state_dict()` has upstream's names.

    patch_embed    two 3x3 convolutions of stride 2; each column of 4 pixels has H / 4 tokens
    blocks1, 2, 3  attention and MLP; between the stages the height is halved
    last_conv      the rows' mean, wider, with hard swish
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError, ShapeError
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Backbone, Contract, Feature
from zoo.layers.attention import Attention
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.mlp import MLP, NARROW, DropPath, drop_rates
from zoo.layers.variants import VariantConfig

# Section 3.3: rows and columns of tokens that a local block sees; section 4.1
WINDOW_HW = (7, 11)
_MLP_RATIO = 4
_EPSILON = 1e-6
_LAST_DROPOUT = 0.1
_STRIDE_HW = (16, 4)  # of the last stage


class Size(NamedTuple):
    """`widths`, `depths` and `heads` of the stages; of all blocks the first `local` ones see their neighbours alone.

    `columns` is the length of the row that comes out, `out_channels` its width. `params`: counted in the reference, as
    the paper's numbers are of the whole recogniser.
    """

    widths: tuple[int, int, int]
    depths: tuple[int, int, int]
    heads: tuple[int, int, int]
    local: int
    out_channels: int
    params: int
    image_hw: tuple[int, int] = (32, 100)
    columns: int = 25


# Table 1 of the paper; the sizes of the images as upstream trained them
VARIANTS: dict[str, Size] = {
    "svtr_tiny": Size((64, 128, 256), (3, 6, 3), (2, 4, 8), 6, 192, 4_160_704),
    "svtr_small": Size((96, 192, 256), (3, 6, 6), (3, 6, 8), 8, 192, 8_464_928),
    "svtr_base": Size((128, 256, 384), (3, 6, 9), (4, 8, 12), 8, 256, 22_721_664, (48, 160), 40),
    "svtr_large": Size((192, 256, 512), (3, 9, 9), (6, 8, 16), 10, 384, 38_897_344, (48, 160), 40),
}


@dataclass(frozen=True)
class SVTRNetConfig(VariantConfig[Size], table=VARIANTS):
    """`image_hw`, `columns` and `out_channels` take the place of the variant's.

    The position embedding is of one size of images: the height is a multiple of 16, the width of four times `columns`.
    `drop_path_rate` is the last block's; the others' rise to it from 0. `deploy` folds the normalisations into
    convolutions.

    Raises:
        ConfigError: the image does not divide into tokens, or the tokens into columns.
    """

    variant: str = "svtr_tiny"
    image_hw: tuple[int, int] | None = None
    columns: int | None = None
    out_channels: int | None = None
    drop_path_rate: float = 0.1
    deploy: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        (height, width), columns = self.parts.image_hw, self.parts.columns
        if height < 16 or height % 16 or columns < 1 or width < 1 or width % (4 * columns):
            raise ConfigError(
                "the image does not divide into columns of tokens",
                where="SVTRNetConfig",
                received=f"image_hw ({height}, {width}), columns {columns}",
                allowed="a height that is a multiple of 16 and a width that is one of 4 * columns",
                fix="give `columns` beside `image_hw`: one for every 4 pixels of the width, or every 8",
            )


class Block(nn.Layer):
    """Attention and MLP on [N, T, C], each on the normalised tokens and added to them."""

    def __init__(self, width: int, heads: int, drop_path: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, _EPSILON)
        self.mixer = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, _EPSILON)
        self.mlp = MLP(width, _MLP_RATIO * width)
        self.drop_path = DropPath(drop_path)

    def forward(self, x: jax.Array, visible: jax.Array | None = None) -> jax.Array:
        x = x + self.drop_path(self.mixer(self.norm1(x), visible=visible))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class SubSample(nn.Layer):
    """[N, H, W, C] -> [N, H / 2, W, out_channels]: a 3x3 convolution and a normalisation of each token."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2D(in_channels, out_channels, 3, (2, 1), 1, weight_attr=I.KaimingNormal())
        self.norm = nn.LayerNorm(out_channels)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.norm(self.conv(x))


def neighbours(height: int, width: int) -> jax.Array:
    """Which of the tokens of a map see each other in a local block: bool [height * width, height * width].

    Source: section 3.3, "local mixing"; the window is cut at the map's edges.
    """
    rows, columns = (
        jnp.abs(jnp.arange(side)[:, None] - jnp.arange(side)[None]) <= window // 2
        for side, window in zip((height, width), WINDOW_HW)
    )
    count = height * width
    return (rows[:, None, :, None] & columns[None, :, None, :]).reshape(count, count)


@register("backbone", config=SVTRNetConfig)
class SVTRNet(Backbone[SVTRNetConfig]):
    """[N, *image_hw, 3] -> one row [N, 1, columns, out_channels]."""

    contract = Contract(fields={"image_hw": (32, 32), "columns": 8}, inputs=("n", 32, 32, 3))

    def __init__(self, config: SVTRNetConfig) -> None:
        super().__init__(config)
        size = self.size = config.parts
        first = size.widths[0]
        options = ConvBNOptions(
            bias=True, initializer=I.KaimingUniform(), names=("conv", "norm"), deploy=config.deploy
        )
        conv = partial(ConvBN, stride=2, act=F.gelu, options=options)
        embedding = nn.Sequential(conv(3, first // 2, 3), conv(first // 2, first, 3))
        self.patch_embed = nn.LayerDict({"proj": embedding})
        tokens = size.image_hw[0] // 4 * (size.image_hw[1] // 4)
        self.pos_embed = self.create_parameter((1, tokens, first), NARROW)
        for stage, rates in enumerate(drop_rates(config.drop_path_rate, size.depths)):
            width, heads = size.widths[stage], size.heads[stage]
            if stage:
                self.add_sublayer(f"sub_sample{stage}", SubSample(size.widths[stage - 1], width))
            self.add_sublayer(f"blocks{stage + 1}", nn.LayerList([Block(width, heads, p) for p in rates]))
        self.norm = nn.LayerNorm(size.widths[-1], _EPSILON)
        self.last_conv = nn.Conv2D(size.widths[-1], size.out_channels, 1, bias_attr=False)
        self.dropout = nn.Dropout(_LAST_DROPOUT, mode="downscale_in_infer")
        self.pool_hw = (size.image_hw[0] // _STRIDE_HW[0], size.image_hw[1] // _STRIDE_HW[1] // size.columns)
        strides = (_STRIDE_HW[0] * self.pool_hw[0], _STRIDE_HW[1] * self.pool_hw[1])
        self.features = (Feature(size.out_channels, strides),)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        if tuple(x.shape[1:3]) != self.size.image_hw:
            raise ShapeError(
                "the position embedding is for lines of one size",
                where="SVTRNet",
                received=f"height {x.shape[1]}, width {x.shape[2]}",
                allowed="{} by {}".format(*self.size.image_hw),
                fix="resize the lines, or build the model with another image_hw and train it",
            )
        x = self.patch_embed["proj"](x)  # [N, H/4, W/4, C1]
        x = x + self.pos_embed.reshape(1, *x.shape[1:])
        x = self._mix(x, self.blocks1, self.size.local)
        x = self.sub_sample1(x)  # [N, H/8, W/4, C2]
        x = self._mix(x, self.blocks2, self.size.local - self.size.depths[0])
        x = self.sub_sample2(x)  # [N, H/16, W/4, C3]
        x = self._mix(x, self.blocks3, self.size.local - sum(self.size.depths[:2]))
        x = F.avg_pool2d(self.norm(x), self.pool_hw)  # [N, 1, columns, C3]
        return (self.dropout(F.hardswish(self.last_conv(x))),)

    def _mix(self, x: jax.Array, blocks: nn.LayerList, local: int) -> jax.Array:
        """[N, H, W, C] through the blocks, the first `local` of which see their neighbours alone."""
        n, height, width, channels = x.shape
        tokens, nearby = x.reshape(n, height * width, channels), neighbours(height, width)
        for number, block in enumerate(blocks):
            tokens = block(tokens, nearby if number < local else None)
        return tokens.reshape(x.shape)
