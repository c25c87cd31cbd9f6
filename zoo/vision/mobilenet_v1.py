"""MobileNetV1: depthwise separable convolutions.

Paper: Howard et al. 2017, https://arxiv.org/abs/1704.04861, table 1
Reference: PaddlePaddle/PaddleClas ppcls/arch/backbone/legendary_models/mobilenet_v1.py
Differs: nothing in the function computed.
Weights: `state_dict()` has the names of PaddleClas; those of PaddleDetection, paddle.vision and of the PyTorch network
    of RetinaFace (github.com/bubbliiiing/retinaface-pytorch, `slope` 0.1) are taken too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax

from framework import nn
from framework.config import register
from framework.hub.names import Names
from framework.nn import functional as F
from zoo.contracts import Backbone, Feature
from zoo.layers.conv_bn import Activation, ConvBN, ConvBNOptions
from zoo.layers.stages import collect_maps, stage_ends
from zoo.layers.variants import ScaledSize, VariantConfig

# Paper, table 7. With the running statistics `params` are the values in PaddleClas 2.6's checkpoints.
VARIANTS: dict[str, ScaledSize] = {
    "mobilenetv1_x0_25": ScaledSize(0.25, 470_072),
    "mobilenetv1_x0_5": ScaledSize(0.5, 1_331_592),
    "mobilenetv1_x0_75": ScaledSize(0.75, 2_585_560),
    "mobilenetv1_x1_0": ScaledSize(1.0, 4_231_976),
}

STEM_WIDTH = 32
# (width behind the block at scale 1, stride); paper, table 1
BLOCKS: tuple[tuple[int, int], ...] = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *((512, 1),) * 5,
    (1024, 2),
    (1024, 1),
)

_KAIMING = nn.initializer.KaimingNormal()


@dataclass(frozen=True)
class MobileNetV1Config(VariantConfig[ScaledSize], table=VARIANTS):
    """`slope` is that of the activation below zero: 0 is ReLU. `deploy` folds the normalisations into convolutions."""

    variant: str = "mobilenetv1_x1_0"
    num_classes: int = 1000
    slope: float = 0.0
    deploy: bool = False


@dataclass(frozen=True)
class _LeakyReLU:
    slope: float

    def __call__(self, x: jax.Array) -> jax.Array:
        return F.leaky_relu(x, self.slope)


class DepthwiseSeparable(nn.Layer):
    """Depthwise 3x3 convolution with the stride, 1x1 convolution."""

    def __init__(
        self, in_channels: int, out_channels: int, stride: int, act: Activation, deploy: bool = False
    ) -> None:
        super().__init__()
        point = ConvBNOptions(initializer=_KAIMING, deploy=deploy)
        depth = replace(point, groups=in_channels)
        self.depthwise_conv = ConvBN(in_channels, in_channels, 3, stride, act=act, options=depth)
        self.pointwise_conv = ConvBN(in_channels, out_channels, 1, act=act, options=point)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.pointwise_conv(self.depthwise_conv(x))


@register("model", config=MobileNetV1Config)
@register("backbone", config=MobileNetV1Config)
class MobileNetV1(Backbone[MobileNetV1Config]):
    """[N, H, W, 3] -> logits [N, num_classes], or the maps at strides 4, 8, 16 and 32."""

    state_renames = Names("zoo/weights/mobilenet_v1.yml", "MobileNetV1")

    def __init__(self, config: MobileNetV1Config) -> None:
        super().__init__(config)
        scale, deploy = VARIANTS[config.variant].scale, config.deploy
        act = _LeakyReLU(config.slope) if config.slope else F.relu
        width = int(STEM_WIDTH * scale)
        options = ConvBNOptions(initializer=_KAIMING, deploy=deploy)
        self.conv = ConvBN(3, width, 3, 2, act=act, options=options)
        self.blocks = nn.Sequential()
        widths = []
        for at_scale_1, stride in BLOCKS:
            widths.append(int(at_scale_1 * scale))
            self.blocks.append(DepthwiseSeparable(width, widths[-1], stride, act, deploy))
            width = widths[-1]
        self.ends = stage_ends([stride for _, stride in BLOCKS])
        self.features = tuple(Feature(widths[number], stride) for number, stride in self.ends.items())
        if config.num_classes:
            self.fc = nn.Linear(width, config.num_classes, weight_attr=_KAIMING)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.conv(x)  # [N, H/2, W/2, C]
        return collect_maps(x, self.blocks, self.ends)  # [N, H/4, W/4, C1] to [N, H/32, W/32, C4]
