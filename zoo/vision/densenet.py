"""DenseNet: each layer sees the maps of all layers before it in its block.

Paper: Huang et al. 2017, https://arxiv.org/abs/1608.06993, table 1
Reference: paddle.vision.models.densenet; PaddleClas and torchvision build the same network
Differs: nothing in the function computed.
Weights: `state_dict()` has the names of paddle.vision, which are PaddleClas's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Backbone, Contract, Feature
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.variants import VariantConfig

BOTTLENECK = 4  # width of the 1x1 convolutions, in growths: the paper's DenseNet-B


class Size(NamedTuple):
    """`width` behind the stem, `growth` is the width of each layer, `depths` are the layers of each block.

    `params` of 1000 classes, without the running statistics.
    """

    width: int
    growth: int
    depths: tuple[int, int, int, int]
    params: int


# Paper, table 1, and 264 of its figure 3; 161 with the growth of 48 as in its authors' code
VARIANTS: dict[str, Size] = {
    "densenet121": Size(64, 32, (6, 12, 24, 16), 7_978_856),
    "densenet161": Size(96, 48, (6, 12, 36, 24), 28_681_000),
    "densenet169": Size(64, 32, (6, 12, 32, 32), 14_149_480),
    "densenet201": Size(64, 32, (6, 12, 48, 32), 20_013_928),
    "densenet264": Size(64, 32, (6, 12, 64, 48), 33_337_704),
}


@dataclass(frozen=True)
class DenseNetConfig(VariantConfig[Size], table=VARIANTS):
    """`depths` take the place of the variant's. `dropout` is that of every layer, which the paper has where it does not
    augment."""

    variant: str = "densenet121"
    num_classes: int = 1000
    depths: tuple[int, int, int, int] | None = None
    dropout: float = 0.0


class NormConv(nn.Layer):
    """Normalisation, ReLU, convolution."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self._batch_norm = nn.BatchNorm2D(in_channels)
        self._conv = nn.Conv2D(
            in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias_attr=False
        )

    def forward(self, x: jax.Array) -> jax.Array:
        return self._conv(F.relu(self._batch_norm(x)))


class DenseLayer(nn.Layer):
    """[N, H, W, C] -> [N, H, W, C + growth]: the input and what 1x1 and 3x3 convolutions make of it."""

    def __init__(self, in_channels: int, growth: int, dropout: float) -> None:
        super().__init__()
        self.bn_ac_func1 = NormConv(in_channels, BOTTLENECK * growth, 1)
        self.bn_ac_func2 = NormConv(BOTTLENECK * growth, growth, 3)
        # In this mode inference multiplies by 1 - p, as upstream.
        self.dropout_func = nn.Dropout(dropout, mode="downscale_in_infer")

    def forward(self, x: jax.Array) -> jax.Array:
        return jnp.concatenate([x, self.dropout_func(self.bn_ac_func2(self.bn_ac_func1(x)))], axis=-1)


class Transition(nn.Layer):
    """1x1 convolution to half of the channels, and the mean of 2x2 pixels."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.conv_ac_func = NormConv(in_channels, in_channels // 2, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.avg_pool2d(self.conv_ac_func(x), 2)


@register("model", config=DenseNetConfig)
@register("backbone", config=DenseNetConfig)
class DenseNet(Backbone[DenseNetConfig]):
    """[N, H, W, 3] -> logits [N, num_classes], or the maps of the four blocks at strides 4 to 32, the last normalised.

    Transitions round down, so as a backbone it takes sides that are multiples of 32.
    """

    contract = Contract(small={"depths": (2, 2, 2, 2)})

    def __init__(self, config: DenseNetConfig) -> None:
        super().__init__(config)
        size = config.parts
        self.conv1_func = ConvBN(
            3, size.width, 7, 2, act=F.relu, options=ConvBNOptions(names=("_conv", "_batch_norm"))
        )
        channels, features = size.width, []
        for stage, depth in enumerate(size.depths):
            block = nn.Sequential()
            for number in range(depth):
                layer = DenseLayer(channels, size.growth, config.dropout)
                block.add_sublayer(f"conv{stage + 2}_{number + 1}", layer)
                channels += size.growth
            self.add_sublayer(f"db_conv_{stage + 2}", block)
            features.append(Feature(channels, 4 << stage))
            if stage < len(size.depths) - 1:
                self.add_sublayer(f"tr_conv{stage + 2}_blk", Transition(channels))
                channels //= 2
        self.features = tuple(features)
        self.batch_norm = nn.BatchNorm2D(channels)
        if config.num_classes:
            bound = channels**-0.5
            self.out = nn.Linear(channels, config.num_classes, I.Uniform(-bound, bound))

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.conv1_func(x)  # [N, H/2, W/2, width]
        x = F.max_pool2d(x, 3, 2, 1, pad_value=0.0)  # 0 is the least that ReLU gives
        first = self.db_conv_2(x)  # [N, H/4, W/4, C1]
        second = self.db_conv_3(self.tr_conv2_blk(first))  # [N, H/8, W/8, C2]
        third = self.db_conv_4(self.tr_conv3_blk(second))  # [N, H/16, W/16, C3]
        last = self.db_conv_5(self.tr_conv4_blk(third))  # [N, H/32, W/32, C4]
        return first, second, third, F.relu(self.batch_norm(last))

    def logits(self, x: jax.Array) -> jax.Array:
        return self.out(F.global_avg_pool2d(x)[:, 0, 0])
