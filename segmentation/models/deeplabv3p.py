"""DeepLabV3+: a dilated ResNet, convolutions of several dilations side by side, and a decoder that adds fine edges.

Paper: Chen et al. 2018, https://arxiv.org/abs/1802.02611
Reference: PaddlePaddle/PaddleSeg paddleseg/models/deeplab.py, configs/deeplabv3p/deeplabv3p_resnet{50,101}_os8_*.yml
Differs: nothing in the function computed.
Weights: `state_dict()` has upstream's names, those of the backbone in the spelling of PaddleClas; upstream's own are
    accepted too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from segmentation.layers.backbone import SegmenterConfig, build_backbone
from segmentation.layers.conv_bn import BIASED, conv_bn_relu, separable_conv
from zoo.vision.resnet import ResNetConfig


class Size(NamedTuple):
    """Backbone, and trained parameters with 19 classes."""

    backbone: ResNetConfig
    params: int


# configs/deeplabv3p, parameters counted on PaddleSeg 2.8. `multi_grid` are factors of the dilation in the three blocks
# of the last stage.
VARIANTS: dict[str, Size] = {
    "resnet50": Size(ResNetConfig("resnet50_vd", output_stride=8, multi_grid=(1, 2, 4)), 26_723_395),
    "resnet101": Size(ResNetConfig("resnet101_vd", output_stride=8, multi_grid=(1, 2, 4)), 45_715_523),
}

# By output stride. Paper on DeepLabV3, https://arxiv.org/abs/1706.05587, section 3.3
_DILATIONS = {8: (12, 24, 36), 16: (6, 12, 18)}
_WIDTH, _FINE_WIDTH, _DROPOUT = 256, 48, 0.1


@dataclass(frozen=True)
class DeepLabV3PConfig(SegmenterConfig[Size], table=VARIANTS):
    """`backbone` takes the place of the variant's; the stride of its last map is 8, or 16, which takes less memory."""

    variant: str = "resnet50"


class ASPP(nn.Layer):
    """A 1x1 convolution, separable ones of several dilations and the mean of the map, concatenated and mixed."""

    def __init__(self, in_channels: int, dilations: tuple[int, ...]) -> None:
        super().__init__()
        dilated = [
            separable_conv(in_channels, _WIDTH, dilation=dilation, bias=True) for dilation in dilations
        ]
        self.aspp_blocks = nn.LayerList([conv_bn_relu(in_channels, _WIDTH, 1, options=BIASED), *dilated])
        self.global_avg_pool = nn.Sequential(nn.AdaptiveAvgPool2D(1), conv_bn_relu(in_channels, _WIDTH, 1))
        self.conv_bn_relu = conv_bn_relu((len(dilations) + 2) * _WIDTH, _WIDTH, 1, options=BIASED)
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(self, x: jax.Array) -> jax.Array:
        branches = [block(x) for block in self.aspp_blocks]
        mean = self.global_avg_pool(x)  # [N, 1, 1, 256]
        branches.append(jnp.broadcast_to(mean, branches[0].shape))
        return self.dropout(self.conv_bn_relu(jnp.concatenate(branches, axis=-1)))


class Decoder(nn.Layer):
    """Logits from the coarse map, resized, beside a narrow projection of the fine one."""

    def __init__(self, fine_channels: int, num_classes: int) -> None:
        super().__init__()
        self.conv_bn_relu1 = conv_bn_relu(fine_channels, _FINE_WIDTH, 1, options=BIASED)
        self.conv_bn_relu2 = separable_conv(_WIDTH + _FINE_WIDTH, _WIDTH, bias=True)
        self.conv_bn_relu3 = separable_conv(_WIDTH, _WIDTH, bias=True)
        self.conv = nn.Conv2D(_WIDTH, num_classes, 1)

    def forward(self, x: jax.Array, fine: jax.Array) -> jax.Array:
        fine = self.conv_bn_relu1(fine)
        x = F.interpolate(x, fine.shape[1:3], mode="bilinear")
        x = self.conv_bn_relu2(jnp.concatenate([x, fine], axis=-1))
        return self.conv(self.conv_bn_relu3(x))


class Head(nn.Layer):
    """Logits at stride 4 from the maps of strides 4 and `output_stride`."""

    def __init__(
        self, fine_channels: int, in_channels: int, dilations: tuple[int, ...], num_classes: int
    ) -> None:
        super().__init__()
        self.aspp = ASPP(in_channels, dilations)
        self.decoder = Decoder(fine_channels, num_classes)

    def forward(self, fine: jax.Array, x: jax.Array) -> jax.Array:
        return self.decoder(self.aspp(x), fine)


@register("model", config=DeepLabV3PConfig)
class DeepLabV3P(nn.Model[DeepLabV3PConfig]):
    """Segmenter of segmentation/contracts.py, of one output.

    Raises:
        ConfigError: the last map of the backbone has another stride than 8 and 16.
    """

    def __init__(self, config: DeepLabV3PConfig) -> None:
        super().__init__(config)
        self.backbone = build_backbone(config.parts.backbone, config.in_channels)
        fine, *_, coarse = self.backbone.features
        if coarse.stride not in _DILATIONS:
            raise ConfigError(
                "DeepLabV3P has no such output stride",
                where="model.backbone",
                received=coarse.stride,
                allowed=", ".join(map(str, _DILATIONS)),
            )
        self.head = Head(fine.channels, coarse.channels, _DILATIONS[coarse.stride], config.num_classes)

    def forward(self, images: jax.Array) -> tuple[jax.Array, ...]:
        fine, *_, coarse = self.backbone.forward_features(images)
        logits = self.head(fine, coarse).astype(jnp.float32)
        return (F.interpolate(logits, images.shape[1:3], mode="bilinear"),)
