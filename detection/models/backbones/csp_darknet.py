"""CSPDarkNet as YOLOX has it.

Paper: YOLOX, https://arxiv.org/abs/2107.08430
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/backbones/csp_darknet.py with arch X
Differs: nothing in the function computed. It has no classifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from detection.layers.csp_blocks import CSPLayer, base_conv, spatial_conv
from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Backbone, Feature
from zoo.layers.stages import collect_maps
from zoo.layers.variants import VariantConfig

_POOLS = (5, 9, 13)
# In and out channels at a multiplier of 1, blocks, residuals, pooling
_STAGES = (
    (64, 128, 3, True, False),
    (128, 256, 9, True, False),
    (256, 512, 9, True, False),
    (512, 1024, 3, False, True),
)


class Size(NamedTuple):
    """Multipliers of blocks and channels, and whether 3x3 convolutions are separable."""

    depth: float
    width: float
    depthwise: bool = False


# depth_mult, width_mult and depthwise of configs/yolox; table 3 and 4 of the paper
VARIANTS: dict[str, Size] = {
    "nano": Size(0.33, 0.25, depthwise=True),
    "tiny": Size(0.33, 0.375),
    "s": Size(0.33, 0.5),
    "m": Size(0.67, 0.75),
    "l": Size(1.0, 1.0),
    "x": Size(1.33, 1.25),
}


@dataclass(frozen=True)
class CSPDarkNetConfig(VariantConfig[Size], table=VARIANTS):
    """`deploy` folds the normalisations into convolutions."""

    variant: str = "s"
    deploy: bool = False


class Focus(nn.Layer):
    """Each 2x2 pixels become one of four times the channels, then 3x3; odd sizes are an error of the caller."""

    def __init__(self, in_channels: int, out_channels: int, deploy: bool) -> None:
        super().__init__()
        self.conv = base_conv(4 * in_channels, out_channels, 3, deploy=deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        corners = [x[:, down::2, right::2] for right in (0, 1) for down in (0, 1)]
        return self.conv(jnp.concatenate(corners, axis=-1))


class SPPLayer(nn.Layer):
    """1x1 to half of the channels, maxima over windows of 5, 9 and 13 beside that, 1x1."""

    def __init__(self, channels: int, deploy: bool) -> None:
        super().__init__()
        self.conv1 = base_conv(channels, channels // 2, 1, deploy=deploy)
        self.conv2 = base_conv(channels // 2 * (1 + len(_POOLS)), channels, 1, deploy=deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.conv1(x)
        pooled = (F.max_pool2d(x, size, 1, size // 2) for size in _POOLS)
        return self.conv2(jnp.concatenate([x, *pooled], axis=-1))


@register("backbone", config=CSPDarkNetConfig)
class CSPDarkNet(Backbone[CSPDarkNetConfig]):
    """[N, H, W, 3], even sizes -> maps at strides 8, 16 and 32."""

    def __init__(self, config: CSPDarkNetConfig) -> None:
        super().__init__(config)
        deploy = config.deploy
        depth, width, depthwise = VARIANTS[config.variant]
        self.stem = Focus(3, int(_STAGES[0][0] * width), deploy)
        self.names: list[str] = []
        self.ends, features = [], []
        for stage, (inputs, outputs, blocks, shortcut, pooling) in enumerate(_STAGES, start=1):
            inputs, outputs = int(inputs * width), int(outputs * width)
            layers: list[tuple[str, nn.Layer]] = [
                ("conv_layer", spatial_conv(inputs, outputs, 2, depthwise, deploy))
            ]
            if pooling:
                layers.append(("spp_layer", SPPLayer(outputs, deploy)))
            blocks = max(round(blocks * depth), 1)
            layers.append(("csp_layer", CSPLayer(outputs, outputs, blocks, shortcut, depthwise, deploy)))
            for name, layer in layers:
                number = len(self.names) + 1  # upstream counts through all stages
                self.names.append(f"layers{number}.stage{stage}.{name}")
                self.add_sublayer(self.names[-1], layer)
            if stage > 1:
                self.ends.append(len(self.names) - 1)
                features.append(Feature(outputs, 2 ** (stage + 1)))
        self.features = tuple(features)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        return collect_maps(self.stem(x), (getattr(self, name) for name in self.names), self.ends)
