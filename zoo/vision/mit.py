"""MiT, the encoder of SegFormer: overlapping patches, attention to a reduced map, and a convolution in every MLP.

Paper: Xie et al. 2021, https://arxiv.org/abs/2105.15203
Reference: PaddlePaddle/PaddleSeg paddleseg/models/backbones/mix_transformer.py, and NVlabs/SegFormer, of equal names
Differs: the reference builds no classifier. The one here is a linear layer on the mean of the last map, as in
    huggingface/transformers models/segformer/modeling_segformer.py, with NVlabs' name `head`.
Weights: PaddleSeg's and NVlabs' ImageNet checkpoints; `state_dict()` has their names. Hugging Face's store keys and
    values apart, which are one matrix `kv` here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.core.errors import ShapeError
from framework.nn import functional as F
from zoo.contracts import Backbone, Feature
from zoo.layers.attention import AttentionBase
from zoo.layers.mlp import DropPath, drop_rates, narrow_linear
from zoo.layers.variants import VariantConfig

HEADS = (1, 2, 5, 8)
REDUCTIONS = (8, 4, 2, 1)
EXPANSION = 4
# The first map must have a pixel for each reduction of its attention: ceil(29 / 4) is 8.
SMALLEST_IMAGE = 29


class Size(NamedTuple):
    """Channels and blocks of the four stages; `params` of 1000 classes."""

    widths: tuple[int, int, int, int]
    depths: tuple[int, int, int, int]
    params: int


# Table 6 of the paper. Without the classifier `params` are those counted on PaddleSeg 2.8's MixVisionTransformer_B0
# to B5, which the paper rounds in table 1a.
VARIANTS: dict[str, Size] = {
    "mit_b0": Size((32, 64, 160, 256), (2, 2, 2, 2), 3_576_392),
    "mit_b1": Size((64, 128, 320, 512), (2, 2, 2, 2), 13_664_424),
    "mit_b2": Size((64, 128, 320, 512), (3, 4, 6, 3), 24_709_288),
    "mit_b3": Size((64, 128, 320, 512), (3, 4, 18, 3), 44_585_128),
    "mit_b4": Size((64, 128, 320, 512), (3, 8, 27, 3), 61_355_688),
    "mit_b5": Size((64, 128, 320, 512), (3, 6, 40, 3), 81_956_008),
}


@dataclass(frozen=True)
class MixVisionTransformerConfig(VariantConfig[Size], table=VARIANTS):
    """`drop_path_rate` is the last block's; the others' rise to it from 0."""

    variant: str = "mit_b0"
    num_classes: int = 1000
    drop_path_rate: float = 0.1
    in_channels: int = 3


def _conv(in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int) -> nn.Conv2D:
    start = nn.initializer.Normal(0.0, math.sqrt(2.0 / (kernel_size**2 * out_channels)))
    return nn.Conv2D(in_channels, out_channels, kernel_size, stride, padding, weight_attr=start)


class EfficientAttention(AttentionBase):
    """Attention of every pixel of [N, H, W, C] to the map reduced `reduction` times on each axis."""

    def __init__(self, channels: int, heads: int, reduction: int) -> None:
        super().__init__(channels, heads, names=("q", "kv", "proj"))
        self.reduction = reduction
        if reduction > 1:
            self.sr = _conv(channels, channels, reduction, reduction, 0)
            self.norm = nn.LayerNorm(channels)

    def forward(self, x: jax.Array) -> jax.Array:
        n, h, w, c = x.shape
        seen = self.norm(self.sr(x)) if self.reduction > 1 else x  # [N, H // R, W // R, C]
        memory = self.keys_values(seen.reshape(n, seen.shape[1] * seen.shape[2], c))
        return self.attend(x.reshape(n, h * w, c), memory, None).reshape(n, h, w, c)


class MixFFN(nn.Layer):
    """Linear, depthwise 3x3, GELU, linear. Equation 3 of the paper."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = narrow_linear(channels, hidden)
        start = nn.initializer.Normal(0.0, math.sqrt(2.0 / 9))
        conv = nn.Conv2D(hidden, hidden, 3, padding=1, groups=hidden, weight_attr=start)
        self.dwconv = nn.Sequential(("dwconv", conv))  # it tells pixels where they are
        self.fc2 = narrow_linear(hidden, channels)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.fc2(F.gelu(self.dwconv(self.fc1(x))))


class Block(nn.Layer):
    """Attention and MLP on [N, H, W, C], each on the normalised map and added to it."""

    def __init__(self, channels: int, heads: int, reduction: int, drop_path: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(channels, epsilon=1e-6)
        self.attn = EfficientAttention(channels, heads, reduction)
        self.norm2 = nn.LayerNorm(channels, epsilon=1e-6)
        self.mlp = MixFFN(channels, EXPANSION * channels)
        self.drop_path = DropPath(drop_path)

    def forward(self, x: jax.Array) -> jax.Array:
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


@register("model", config=MixVisionTransformerConfig)
@register("backbone", config=MixVisionTransformerConfig)
class MixVisionTransformer(Backbone[MixVisionTransformerConfig]):
    """MiT for [N, H, W, in_channels], both sides at least 29: logits [N, num_classes], or maps.

    The maps have strides 4, 8, 16 and 32.
    """

    def __init__(self, config: MixVisionTransformerConfig) -> None:
        super().__init__(config)
        widths, depths, _ = VARIANTS[config.variant]
        rates = drop_rates(config.drop_path_rate, depths)
        in_channels = config.in_channels
        for i, width in enumerate(widths):
            kernel_size, stride = (7, 4) if i == 0 else (3, 2)
            proj = _conv(in_channels, width, kernel_size, stride, kernel_size // 2)  # of patches that overlap
            embed = nn.Sequential(("proj", proj), ("norm", nn.LayerNorm(width)))
            blocks = [Block(width, HEADS[i], REDUCTIONS[i], rate) for rate in rates[i]]
            self.add_sublayer(f"patch_embed{i + 1}", embed)
            self.add_sublayer(f"block{i + 1}", nn.Sequential(blocks))
            self.add_sublayer(f"norm{i + 1}", nn.LayerNorm(width, epsilon=1e-6))
            in_channels = width
        if config.num_classes:
            self.head = narrow_linear(in_channels, config.num_classes)
        self.features = tuple(Feature(width, 4 << i) for i, width in enumerate(widths))

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        """The normalised maps, finest first.

        Raises:
            ShapeError: a side of the image is shorter than 29 pixels.
        """
        if any(isinstance(side, int) and side < SMALLEST_IMAGE for side in x.shape[1:3]):
            raise ShapeError(
                "the image is too small for the reductions of the attention",
                where=type(self).__name__,
                received=f"height {x.shape[1]}, width {x.shape[2]}",
                allowed=f"both at least {SMALLEST_IMAGE}",
            )
        maps = []
        for i in range(1, len(self.features) + 1):
            x = getattr(self, f"patch_embed{i}")(x)  # [N, H/4, W/4, C1], then half the size each
            x = getattr(self, f"norm{i}")(getattr(self, f"block{i}")(x))
            maps.append(x)
        return tuple(maps)

    def logits(self, x: jax.Array) -> jax.Array:
        return self.head(x.mean((1, 2)))
