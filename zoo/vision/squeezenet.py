"""SqueezeNet: blocks that squeeze the channels by 1x1 convolutions and expand them by 1x1 and 3x3.

Paper: Iandola et al. 2016, https://arxiv.org/abs/1602.07360, table 1; 1.1 is of its authors' repository
Reference: paddle.vision.models.squeezenet
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
from zoo.contracts import Contract
from zoo.layers.variants import VariantConfig


class Stem(NamedTuple):
    """The first convolution, which has stride 2."""

    channels: int
    kernel_size: int
    padding: int


class Size(NamedTuple):
    """`pooled` are the blocks, from 1, before which the map is halved. `params` of 1000 classes."""

    stem: Stem
    pooled: tuple[int, int, int]
    params: int


# Paper, table 1, and https://github.com/forresti/SqueezeNet; parameters as in torchvision's table of weights
VARIANTS: dict[str, Size] = {
    "squeezenet1_0": Size(Stem(96, 7, 0), (1, 4, 8), 1_248_424),
    "squeezenet1_1": Size(Stem(64, 3, 1), (1, 3, 5), 1_235_496),
}
# Channels squeezed to, and of each of the two expansions. Paper, table 1
FIRES = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))


@dataclass(frozen=True)
class SqueezeNetConfig(VariantConfig[Size], table=VARIANTS):
    """`variant` is the version."""

    variant: str = "squeezenet1_0"
    num_classes: int = 1000


class FireConv(nn.Layer):
    """Convolution that keeps the size, ReLU."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self._conv = nn.Conv2D(in_channels, out_channels, kernel_size, padding=kernel_size // 2)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.relu(self._conv(x))


class Fire(nn.Layer):
    """[N, H, W, in_channels] -> [N, H, W, 2 * expanded]. Source: paper, figure 1."""

    def __init__(self, in_channels: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self._conv = FireConv(in_channels, squeezed, 1)
        self._conv_path1 = FireConv(squeezed, expanded, 1)
        self._conv_path2 = FireConv(squeezed, expanded, 3)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self._conv(x)
        return jnp.concatenate([self._conv_path1(x), self._conv_path2(x)], axis=-1)


@register("model", config=SqueezeNetConfig)
class SqueezeNet(nn.Model[SqueezeNetConfig]):
    """[N, H, W, 3], sides of 31 at least -> logits [N, num_classes], which are not negative."""

    # Convolutions and poolings without padding: the sides are numbers of the program.
    contract = Contract(inputs=("n", 64, 96, 3))

    def __init__(self, config: SqueezeNetConfig) -> None:
        super().__init__(config)
        size = VARIANTS[config.variant]
        channels = size.stem.channels
        self._conv = nn.Conv2D(3, channels, size.stem.kernel_size, 2, size.stem.padding)
        for number, (squeezed, expanded) in enumerate(FIRES, start=1):
            self.add_sublayer(f"_conv{number}", Fire(channels, squeezed, expanded))
            channels = 2 * expanded
        # In this mode inference multiplies by 1 - p: official weights expect it.
        self._drop = nn.Dropout(0.5, mode="downscale_in_infer")
        self._conv9 = nn.Conv2D(channels, config.num_classes, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        x = F.relu(self._conv(x))  # [N, about H/2, about W/2, 96]
        for number in range(1, len(FIRES) + 1):
            if number in VARIANTS[self.config.variant].pooled:
                x = F.max_pool2d(x, 3, 2)
            x = getattr(self, f"_conv{number}")(x)  # at last [N, about H/16, about W/16, 512]
        x = F.relu(self._conv9(self._drop(x)))
        return F.global_avg_pool2d(x)[:, 0, 0]
