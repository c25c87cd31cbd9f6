"""FCN on HRNet: two 1x1 convolutions on the maps of all strides.

Paper: Long et al. 2015, https://arxiv.org/abs/1411.4038; with HRNet: https://arxiv.org/abs/1908.07919, section 4
Reference: PaddlePaddle/PaddleSeg paddleseg/models/fcn.py, configs/fcn
Differs: the backbone's kernels start as in PaddleClas; upstream always starts from a pretrained one.
Weights: PaddleSeg's load with 0 missing and 0 extra; in `state_dict()` the backbone's names are PaddleClas's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn import initializer as I
from segmentation.layers.backbone import HRNetSegmenter, HRNetSegmenterConfig, hrnet_sizes
from segmentation.layers.conv_bn import BIASED
from zoo.layers.conv_bn import ConvBN

# PaddleSeg, configs/fcn; the parameters of the smallest are counted here
VARIANTS = hrnet_sizes(w18_small_v1=1_540_819, w18=9_641_119, w48=65_859_379)

_START = I.Normal(0.0, 0.001)
_OPTIONS = replace(BIASED, initializer=_START)


@dataclass(frozen=True)
class FCNConfig(HRNetSegmenterConfig, table=VARIANTS):
    """See HRNetSegmenterConfig."""

    variant: str = "hrnet_w18"


class FCNHead(nn.Layer):
    """[N, h, w, in_channels] -> logits [N, h, w, num_classes] float32."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.conv_1 = ConvBN(in_channels, in_channels, 1, act=F.relu, options=_OPTIONS)
        self.cls = nn.Conv2D(in_channels, num_classes, 1, weight_attr=_START)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.cls(self.conv_1(x)).astype(jnp.float32)


@register("model", config=FCNConfig)
class FCN(HRNetSegmenter[FCNConfig]):
    """Segmenter of segmentation/contracts.py, with one output."""

    def __init__(self, config: FCNConfig) -> None:
        super().__init__(config)
        self.head = FCNHead(self.channels, config.num_classes)

    def forward(self, images: jax.Array) -> tuple[jax.Array, ...]:
        return (self.resize(self.head(self.extract(images)), images),)
