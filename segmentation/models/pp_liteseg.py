"""PP-LiteSeg: real-time segmentation by STDC, a light pyramid pooling and fusions weighted pixel by pixel.

Paper: Peng et al. 2022, https://arxiv.org/abs/2204.02681
Reference: PaddlePaddle/PaddleSeg paddleseg/models/pp_liteseg.py (arm_type UAFM_SpAtten), configs/pp_liteseg
Differs: nothing in the function computed. Upstream's `_scale` of the fusions, a parameter that is not trained, is a
    buffer here.
Weights: `state_dict()` has upstream's names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.nn import functional as F
from segmentation.layers.backbone import SegmenterConfig, build_backbone, find_strides
from segmentation.layers.conv_bn import BIASED, conv_bn, conv_bn_relu
from zoo.contracts import Contract
from zoo.vision.stdc import STDCConfig


class Size(NamedTuple):
    """Backbone, the widths of the fusions and of the heads at strides 8, 16 and 32, and that of the context.

    `params` are trained, with 19 classes.
    """

    backbone: STDCConfig
    fusion_widths: tuple[int, int, int]
    head_widths: tuple[int, int, int]
    context_width: int
    params: int


# Paper, section 4.1; configs/pp_liteseg/pp_liteseg_stdc{1,2}_*.yml, parameters counted on PaddleSeg 2.8. `xt` is ours:
# T at half of all widths.
VARIANTS: dict[str, Size] = {
    "xt": Size(STDCConfig("stdc1", width=32), (16, 32, 64), (16, 32, 32), 64, 2_041_632),
    "t": Size(STDCConfig("stdc1"), (32, 64, 128), (32, 64, 64), 128, 8_141_600),
    "b": Size(STDCConfig("stdc2"), (64, 96, 128), (64, 64, 64), 128, 12_366_464),
}

_CONTEXT_BINS = (1, 2, 4)
_STRIDES = (8, 16, 32)


@dataclass(frozen=True)
class PPLiteSegConfig(SegmenterConfig[Size], table=VARIANTS):
    """`t` is PP-LiteSeg-T, on STDC1, and `b` PP-LiteSeg-B, on STDC2; `xt` is a quarter of T.

    `backbone` takes the place of the variant's; it has maps at strides 8, 16 and 32.
    """

    variant: str = "t"


class ContextModule(nn.Layer):
    """Simple pyramid pooling: the map averaged over 1, 2x2 and 4x4 bins, each projected and resized, summed.

    Source: section 3.4.
    """

    def __init__(self, in_channels: int, width: int) -> None:
        super().__init__()
        self.stages = nn.LayerList(
            [
                nn.Sequential(nn.AdaptiveAvgPool2D(bins), conv_bn_relu(in_channels, width, 1, options=BIASED))
                for bins in _CONTEXT_BINS
            ]
        )
        self.conv_out = conv_bn_relu(width, width, 3, options=BIASED)

    def forward(self, x: jax.Array) -> jax.Array:
        size_hw = x.shape[1:3]
        total = sum(F.interpolate(stage(x), size_hw, mode="bilinear") for stage in self.stages)
        return self.conv_out(total)


@jax.custom_vjp
def _strongest(x: jax.Array) -> jax.Array:
    """The largest channel, [..., C] -> [..., 1]; its slope goes to the first that is as large.

    jnp.max shares it among the channels that equal the result, and divides by their number. That can be 0: XLA's CPU
    backend computes a cheap `x` again for the comparison, and may round it otherwise.
    """
    return jnp.max(x, axis=-1, keepdims=True)


def _strongest_forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return _strongest(x), x


def _strongest_backward(x: jax.Array, slope: jax.Array) -> tuple[jax.Array]:
    first = jnp.argmax(x, axis=-1, keepdims=True)
    return (jnp.where(jnp.arange(x.shape[-1]) == first, slope, jnp.zeros((), slope.dtype)),)


_strongest.defvjp(_strongest_forward, _strongest_backward)


class SpatialFusion(nn.Layer):
    """UAFM: the projected map `x` and the resized coarser map `y`, mixed by one weight for each pixel.

    Source: section 3.3, equations 2 and 3.
    """

    def __init__(self, x_channels: int, y_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv_x = conv_bn_relu(x_channels, y_channels, 3)
        self.conv_out = conv_bn_relu(y_channels, out_channels, 3)
        self.conv_xy_atten = nn.Sequential(conv_bn_relu(4, 2, 3), conv_bn(2, 1, 3))
        self.register_buffer("_scale", np.ones(1, np.float32))

    def forward(self, x: jax.Array, y: jax.Array) -> jax.Array:
        x = self.conv_x(x)
        y = F.interpolate(y, x.shape[1:3], mode="bilinear")
        statistics = [part for z in (x, y) for part in (jnp.mean(z, axis=-1, keepdims=True), _strongest(z))]
        weight = F.sigmoid(self.conv_xy_atten(jnp.concatenate(statistics, axis=-1)))  # [N, h, w, 1]
        return self.conv_out(x * weight + y * (self._scale.astype(y.dtype) - weight))


class Decoder(nn.Layer):
    """The context of the coarsest map, fused with one finer map after the other. Finest first, as its inputs."""

    def __init__(self, in_channels: Sequence[int], widths: Sequence[int], context_width: int) -> None:
        super().__init__()
        self.cm = ContextModule(in_channels[-1], context_width)
        coarser = (*widths[1:], context_width)
        fusions = [SpatialFusion(*channels) for channels in zip(in_channels, coarser, widths)]
        self.arm_list = nn.LayerList(fusions)

    def forward(self, maps: Sequence[jax.Array]) -> list[jax.Array]:
        y = self.cm(maps[-1])
        fused = []
        for x, fusion in zip(reversed(maps), reversed(list(self.arm_list))):
            y = fusion(x, y)
            fused.append(y)
        return fused[::-1]


class Head(nn.Layer):
    """3x3 convolution and logits, float32."""

    def __init__(self, in_channels: int, width: int, num_classes: int) -> None:
        super().__init__()
        self.conv = conv_bn_relu(in_channels, width, 3)
        self.conv_out = nn.Conv2D(width, num_classes, 1, bias_attr=False)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.conv_out(self.conv(x)).astype(jnp.float32)


@register("model", config=PPLiteSegConfig)
class PPLiteSeg(nn.Model[PPLiteSegConfig]):
    """Segmenter of segmentation/contracts.py. In training, logits from strides 16 and 32 follow those from stride 8."""

    contract = Contract(
        inputs=("n", "h", "w", 3),
        image=(2, 61, 95, 3),
        outputs=lambda layer, n, h, w: [(n, h, w, layer.config.num_classes)] * (1 + 2 * layer.training),
    )

    def __init__(self, config: PPLiteSegConfig) -> None:
        super().__init__(config)
        size = config.parts
        self.backbone = build_backbone(size.backbone, config.in_channels)
        self.places = find_strides(self.backbone, _STRIDES)
        in_channels = [self.backbone.features[place].channels for place in self.places]
        self.ppseg_head = Decoder(in_channels, size.fusion_widths, size.context_width)
        self.seg_heads = nn.LayerList(
            [Head(*widths, config.num_classes) for widths in zip(size.fusion_widths, size.head_widths)]
        )

    def forward(self, images: jax.Array) -> tuple[jax.Array, ...]:
        features = self.backbone.forward_features(images)
        maps = self.ppseg_head([features[place] for place in self.places])  # strides 8, 16, 32
        outputs = len(maps) if self.training else 1
        logits = [head(x) for head, x in zip(self.seg_heads, maps[:outputs])]
        return tuple(F.interpolate(x, images.shape[1:3], mode="bilinear") for x in logits)
