"""The convolution blocks of segmentation models, with PaddleSeg's names of their parts."""

from __future__ import annotations

from functools import partial

import jax

from framework import nn
from framework.nn import functional as F
from zoo.layers.conv_bn import ConvBN

NAMES = ("_conv", "_batch_norm")

conv_bn = partial(ConvBN, names=NAMES)
"""A convolution padded to keep the size (at stride 1), its normalisation and `act`."""

conv_bn_relu = partial(conv_bn, act=F.relu)
"""`conv_bn` with a ReLU. Upstream's convolutions have a bias where it was not switched off."""


class SeparableConv(nn.Layer):
    """Depthwise 3x3 and 1x1, each with its normalisation, a ReLU behind the second. Upstream spells it like this."""

    def __init__(
        self, in_channels: int, out_channels: int, stride: int = 1, dilation: int = 1, bias: bool = False
    ) -> None:
        super().__init__()
        own = {"dilation": dilation, "groups": in_channels, "bias": bias}
        self.depthwise_conv = conv_bn(in_channels, in_channels, 3, stride, **own)
        self.piontwise_conv = conv_bn_relu(in_channels, out_channels, 1, bias=bias)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.piontwise_conv(self.depthwise_conv(x))
