"""AlexNet on one device: five convolutions, three of them pooled, and three linear layers.

Paper: Krizhevsky 2014, https://arxiv.org/abs/1404.5997, section 5 (the network of one column)
Reference: paddle.vision.models.alexnet
Differs: the last map is averaged to 6x6 for images of other sizes than 224, as in torchvision; it has 6x6 at 224.
Weights: `state_dict()` has the names of paddle.vision.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Contract

PARAMS = 61_100_840  # with 1000 classes, as in paddle.vision and torchvision
_POOLED = 6  # side of the map that the linear layers see


@dataclass(frozen=True)
class AlexNetConfig:
    """`hidden_size` is the width of the linear layers before the last; weights have 4096."""

    num_classes: int = 1000
    hidden_size: int = 4096


def _conv(in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int) -> nn.Conv2D:
    """Kernel and bias start within one over the root of the kernel's values."""
    start = I.Uniform(-((in_channels * kernel_size**2) ** -0.5), (in_channels * kernel_size**2) ** -0.5)
    return nn.Conv2D(
        in_channels, out_channels, kernel_size, stride, padding, weight_attr=start, bias_attr=start
    )


class ConvPool(nn.Layer):
    """Convolution, ReLU, and the maximum of overlapping windows: 3x3 at stride 2."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int):
        super().__init__()
        self._conv = _conv(in_channels, out_channels, kernel_size, stride, padding)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.max_pool2d(F.relu(self._conv(x)), 3, 2)


@register("model", config=AlexNetConfig)
class AlexNet(nn.Model[AlexNetConfig]):
    """[N, H, W, 3], sides of 63 at least -> logits [N, num_classes]."""

    contract = Contract(small={"hidden_size": 16})

    def __init__(self, config: AlexNetConfig) -> None:
        super().__init__(config)
        self._conv1 = ConvPool(3, 64, 11, 4, 2)
        self._conv2 = ConvPool(64, 192, 5, 1, 2)
        self._conv3 = _conv(192, 384, 3, 1, 1)
        self._conv4 = _conv(384, 256, 3, 1, 1)
        self._conv5 = ConvPool(256, 256, 3, 1, 1)
        start = I.Uniform(-((256 * _POOLED**2) ** -0.5), (256 * _POOLED**2) ** -0.5)
        own = {"weight_attr": start, "bias_attr": start}
        # In this mode inference multiplies by 1 - p: official weights expect it.
        self._drop1 = nn.Dropout(0.5, mode="downscale_in_infer")
        self._fc6 = nn.Linear(256 * _POOLED**2, config.hidden_size, **own)
        self._drop2 = nn.Dropout(0.5, mode="downscale_in_infer")
        self._fc7 = nn.Linear(config.hidden_size, config.hidden_size, **own)
        self._fc8 = nn.Linear(config.hidden_size, config.num_classes, **own)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self._conv2(self._conv1(x))  # [N, 13, 13, 192] of 224 pixels
        x = self._conv5(F.relu(self._conv4(F.relu(self._conv3(x)))))  # [N, 6, 6, 256]
        x = F.adaptive_avg_pool2d(x, _POOLED)
        x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)  # in the order [C, H, W]
        x = F.relu(self._fc6(self._drop1(x)))
        return self._fc8(F.relu(self._fc7(self._drop2(x))))
