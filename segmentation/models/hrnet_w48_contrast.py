"""HRNet-W48 trained with pixel contrast: beside the logits, training has an embedding that tells classes apart.

Paper: Wang et al. 2021, https://arxiv.org/abs/2101.11939 (figure 3)
Reference: PaddlePaddle/PaddleSeg paddleseg/models/hrnet_contrast.py, configs/hrnet_w48_contrast
Differs: the backbone's kernels start as in PaddleClas; upstream always starts from a pretrained one.
Weights: PaddleSeg's load with 0 missing and 0 extra; in `state_dict()` the backbone's names are PaddleClas's.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from segmentation.contracts import Embedded, Output
from segmentation.layers.backbone import HRNetSegmenter, HRNetSegmenterConfig, hrnet_sizes
from segmentation.layers.conv_bn import BIASED, conv_bn_relu
from zoo.contracts import Contract

# PaddleSeg, configs/hrnet_w48_contrast, which has hrnet_w48 alone; the parameters of the others are counted here
VARIANTS = hrnet_sizes(w18_small_v1=2_233_440, w18=10_493_130, w48=71_046_240)


@dataclass(frozen=True)
class HRNetW48ContrastConfig(HRNetSegmenterConfig, table=VARIANTS):
    """See HRNetSegmenterConfig.

    `dropout` is of channels. `embedding_dim` is the length of the vectors, upstream's `proj_dim`.
    """

    variant: str = "hrnet_w48"
    dropout: float = 0.1
    embedding_dim: int = 720


class ProjectionHead(nn.Layer):
    """[N, h, w, in_channels] -> vectors of length 1 [N, h, w, out_channels] float32. Source: section 3.3"""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.proj = nn.Sequential(
            conv_bn_relu(in_channels, in_channels, 1, options=BIASED), nn.Conv2D(in_channels, out_channels, 1)
        )

    def forward(self, x: jax.Array) -> jax.Array:
        return F.normalize(self.proj(x).astype(jnp.float32), axis=-1)


def _shapes(
    config: HRNetW48ContrastConfig, training: bool, shape: tuple[int, int, int]
) -> list[tuple[int, ...]]:
    """Logits, and in training what learns by contrast, at a quarter of the sides."""
    n, h, w = shape
    coarse = (n, -(-h // 4), -(-w // 4))
    embedded = [(*coarse, config.num_classes), (*coarse, config.embedding_dim)]
    return [(n, h, w, config.num_classes), *(embedded if training else [])]


@register("model", config=HRNetW48ContrastConfig)
class HRNetW48Contrast(HRNetSegmenter[HRNetW48ContrastConfig]):
    """Segmenter of segmentation/contracts.py. In training an `Embedded` at stride 4 follows, for `PixelContrast`."""

    contract = Contract(outputs=lambda layer, n, h, w: _shapes(layer.config, layer.training, (n, h, w)))

    def __init__(self, config: HRNetW48ContrastConfig) -> None:
        super().__init__(config)
        channels = self.channels
        self.cls_head = nn.Sequential(
            conv_bn_relu(channels, channels, 3, options=BIASED),
            nn.Dropout2D(config.dropout),
            nn.Conv2D(channels, config.num_classes, 1, bias_attr=False),
        )
        self.proj_head = ProjectionHead(channels, config.embedding_dim)

    def forward(self, images: jax.Array) -> tuple[Output, ...]:
        x = self.extract(images)
        coarse = self.cls_head(x).astype(jnp.float32)  # [N, H/4, W/4, num_classes]
        logits = self.resize(coarse, images)
        return (logits, Embedded(coarse, self.proj_head(x))) if self.training else (logits,)
