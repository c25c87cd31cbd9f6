"""OCRNet: a coarse segmentation gathers one vector for each class, and every pixel attends to these.

Paper: Yuan et al. 2020, https://arxiv.org/abs/1909.11065 (figure 3)
Reference: PaddlePaddle/PaddleSeg paddleseg/models/ocrnet.py, configs/ocrnet
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
from zoo.contracts import Contract
from zoo.layers.conv_bn import ConvBN

# PaddleSeg, configs/ocrnet; the parameters of the smallest are counted here
VARIANTS = hrnet_sizes(w18_small_v1=3_844_582, w18=12_083_122, w48=70_374_982)

_WIDTH, _KEY_WIDTH = 512, 256  # section 4.2
_START = I.Normal(0.0, 0.001)
_OPTIONS = replace(BIASED, initializer=_START)


@dataclass(frozen=True)
class OCRNetConfig(HRNetSegmenterConfig, table=VARIANTS):
    """See HRNetSegmenterConfig. `dropout` is of channels."""

    variant: str = "hrnet_w18"
    dropout: float = 0.1


def _conv(in_channels: int, out_channels: int, kernel_size: int = 1) -> ConvBN:
    return ConvBN(in_channels, out_channels, kernel_size, act=F.relu, options=_OPTIONS)


def gather_regions(pixels: jax.Array, scores: jax.Array) -> jax.Array:
    """The mean of the pixels [N, h, w, C] for each class, weighed by a softmax of its scores over the image.

    `scores` are logits [N, h, w, K]; the result is [N, K, 1, C]. Source: equation 4
    """
    n, h, w, classes = scores.shape
    # Transposed before the softmax: XLA's CPU backend has no bfloat16 dot for weights that are transposed behind it.
    weights = F.softmax(scores.reshape(n, h * w, classes).transpose(0, 2, 1), axis=-1)  # [N, K, h * w]
    regions = F.matmul(weights, pixels.reshape(n, h * w, -1))
    return regions[:, :, None].astype(pixels.dtype)


class ObjectAttention(nn.Layer):
    """Pixels [N, h, w, C] attend to regions [N, K, 1, C]: the context [N, h, w, C]. Source: equations 3, 5 and 6"""

    def __init__(self) -> None:
        super().__init__()
        self.f_pixel = nn.Sequential(_conv(_WIDTH, _KEY_WIDTH), _conv(_KEY_WIDTH, _KEY_WIDTH))
        self.f_object = nn.Sequential(_conv(_WIDTH, _KEY_WIDTH), _conv(_KEY_WIDTH, _KEY_WIDTH))
        self.f_down = _conv(_WIDTH, _KEY_WIDTH)
        self.f_up = _conv(_KEY_WIDTH, _WIDTH)

    def forward(self, pixels: jax.Array, regions: jax.Array) -> jax.Array:
        n, h, w, _ = pixels.shape
        query = self.f_pixel(pixels).reshape(n, h * w, 1, _KEY_WIDTH)
        key, value = (f(regions).reshape(n, -1, 1, _KEY_WIDTH) for f in (self.f_object, self.f_down))
        context = F.scaled_dot_product_attention(query, key, value)
        return self.f_up(context.reshape(n, h, w, _KEY_WIDTH))


class ObjectContext(nn.Layer):
    """The pixels beside their context, fused. Source: equation 7"""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.attention_block = ObjectAttention()
        self.conv1x1 = nn.Sequential(_conv(2 * _WIDTH, _WIDTH), nn.Dropout2D(dropout))

    def forward(self, pixels: jax.Array, regions: jax.Array) -> jax.Array:
        context = self.attention_block(pixels, regions)
        return self.conv1x1(jnp.concatenate([context, pixels], axis=-1))


class OCRHead(nn.Layer):
    """[N, h, w, in_channels] -> logits and those of the coarse segmentation, both [N, h, w, num_classes] float32."""

    def __init__(self, in_channels: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        self.spatial_ocr = ObjectContext(dropout)
        self.conv3x3_ocr = _conv(in_channels, _WIDTH, 3)
        self.cls_head = nn.Conv2D(_WIDTH, num_classes, 1, weight_attr=_START)
        self.aux_head = nn.Sequential(
            _conv(in_channels, in_channels), nn.Conv2D(in_channels, num_classes, 1, weight_attr=_START)
        )

    def forward(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        coarse = self.aux_head(x).astype(jnp.float32)
        pixels = self.conv3x3_ocr(x)
        regions = gather_regions(pixels, coarse)  # [N, num_classes, 1, 512]
        logits = self.cls_head(self.spatial_ocr(pixels, regions))
        return logits.astype(jnp.float32), coarse


@register("model", config=OCRNetConfig)
class OCRNet(HRNetSegmenter[OCRNetConfig]):
    """Segmenter of segmentation/contracts.py. In training the logits of the coarse segmentation follow."""

    contract = Contract(
        outputs=lambda layer, n, h, w: [(n, h, w, layer.config.num_classes)] * (1 + layer.training)
    )

    def __init__(self, config: OCRNetConfig) -> None:
        super().__init__(config)
        self.head = OCRHead(self.channels, config.num_classes, config.dropout)

    def forward(self, images: jax.Array) -> tuple[jax.Array, ...]:
        logits, coarse = self.head(self.extract(images))
        outputs = (logits, coarse) if self.training else (logits,)
        return tuple(self.resize(x, images) for x in outputs)
