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
from segmentation.layers.backbone import SegmenterConfig, build_backbone
from segmentation.layers.conv_bn import conv_bn_relu
from zoo.contracts import Contract
from zoo.vision.mit import MixVisionTransformerConfig


class Size(NamedTuple):
    """Encoder, width of the decoder, and trained parameters with 19 classes."""

    backbone: MixVisionTransformerConfig
    width: int
    params: int


# Paper, table 6; configs/segformer/segformer_b{0..5}_cityscapes_1024x1024_160k.yml; parameters as counted on
# PaddleSeg 2.8. In millions table 1a of the paper has 3.8, 13.7, 27.5, 47.3, 64.1 and 84.7.
VARIANTS: dict[str, Size] = {
    "b0": Size(MixVisionTransformerConfig("mit_b0"), 256, 3_719_027),
    "b1": Size(MixVisionTransformerConfig("mit_b1"), 256, 13_682_131),
    "b2": Size(MixVisionTransformerConfig("mit_b2"), 768, 27_361_235),
    "b3": Size(MixVisionTransformerConfig("mit_b3"), 768, 47_237_075),
    "b4": Size(MixVisionTransformerConfig("mit_b4"), 768, 64_007_635),
    "b5": Size(MixVisionTransformerConfig("mit_b5"), 768, 84_607_955),
}

_DROPOUT = 0.1


@dataclass(frozen=True)
class SegFormerConfig(SegmenterConfig[Size], table=VARIANTS):
    """`backbone` takes the place of the variant's encoder."""

    variant: str = "b0"


@register("model", config=SegFormerConfig)
class SegFormer(nn.Model[SegFormerConfig]):
    """Segmenter of segmentation/contracts.py, of one output. Both sides of an image are at least 29 pixels."""

    contract = Contract(inputs=("n", "h", "w", 3), image=(2, 61, 95, 3), constraints=("h >= 32", "w >= 32"))

    def __init__(self, config: SegFormerConfig) -> None:
        super().__init__(config)
        size = config.parts
        self.backbone = build_backbone(size.backbone, config.in_channels)
        self.levels = range(len(self.backbone.features), 0, -1)
        for level in self.levels:
            channels = self.backbone.features[level - 1].channels
            self.add_sublayer(f"linear_c{level}", nn.Sequential(("proj", nn.Linear(channels, size.width))))
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
