"""SegFormer: the MiT encoder, whose maps are projected, resized to the finest and mixed by one layer.

Paper: Xie et al. 2021, https://arxiv.org/abs/2105.15203
Reference: PaddlePaddle/PaddleSeg paddleseg/models/segformer.py, configs/segformer
Differs: nothing in the function computed.
Weights: `state_dict()` has upstream's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from segmentation.layers.conv_bn import conv_bn_relu
from zoo.contracts import build_backbone
from zoo.layers.variants import check_variant
from zoo.vision.mit import MixVisionTransformerConfig


class Size(NamedTuple):
    """Encoder, and width of the decoder."""

    backbone: str
    width: int


# Paper, table 6; configs/segformer/segformer_b{0..5}_cityscapes_1024x1024_160k.yml
VARIANTS: dict[str, Size] = {
    "b0": Size("mit_b0", 256),
    "b1": Size("mit_b1", 256),
    "b2": Size("mit_b2", 768),
    "b3": Size("mit_b3", 768),
    "b4": Size("mit_b4", 768),
    "b5": Size("mit_b5", 768),
}
SMALL = "b0"

_DROPOUT = 0.1


@dataclass(frozen=True)
class SegFormerConfig:
    """`drop_path_rate` is that of the encoder's last block; the others' rise to it from 0."""

    variant: str = "b0"
    num_classes: int = 19
    in_channels: int = 3
    drop_path_rate: float = 0.1

    def __post_init__(self) -> None:
        check_variant("SegFormer", self.variant, VARIANTS)


class Projection(nn.Layer):
    """A linear layer on every pixel."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.proj = nn.Linear(in_channels, out_channels)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.proj(x)


@register("model", config=SegFormerConfig)
class SegFormer(nn.Layer):
    """Segmenter of segmentation/contracts.py, of one output. Both sides of an image are at least 29 pixels."""

    def __init__(self, config: SegFormerConfig) -> None:
        super().__init__()
        self.config, size = config, VARIANTS[config.variant]
        backbone = MixVisionTransformerConfig(
            size.backbone, drop_path_rate=config.drop_path_rate, in_channels=config.in_channels
        )
        self.backbone = build_backbone(backbone)
        self.levels = range(len(self.backbone.features), 0, -1)
        for level in self.levels:
            channels = self.backbone.features[level - 1].channels
            self.add_sublayer(f"linear_c{level}", Projection(channels, size.width))
        self.dropout = nn.Dropout2D(_DROPOUT)
        self.linear_fuse = conv_bn_relu(len(self.levels) * size.width, size.width, 1)
        self.linear_pred = nn.Conv2D(size.width, config.num_classes, 1)

    def forward(self, images: jax.Array) -> tuple[jax.Array, ...]:
        maps = self.backbone.forward_features(images)  # strides 4, 8, 16, 32
        finest_hw = maps[0].shape[1:3]
        projected = [getattr(self, f"linear_c{level}")(maps[level - 1]) for level in self.levels]
        resized = [F.interpolate(x, finest_hw, mode="bilinear") for x in projected]
        x = self.linear_fuse(jnp.concatenate(resized, axis=-1))  # [N, H/4, W/4, width]
        logits = self.linear_pred(self.dropout(x)).astype(jnp.float32)
        return (F.interpolate(logits, images.shape[1:3], mode="bilinear"),)
