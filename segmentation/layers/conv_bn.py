"""The convolution blocks of segmentation models, with PaddleSeg's names of their parts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from framework import nn
from framework.nn import functional as F
from zoo.layers.conv_bn import ConvBN, ConvBNOptions

NAMED = ConvBNOptions(names=("_conv", "_batch_norm"))
BIASED = replace(NAMED, bias=True)

conv_bn = partial(ConvBN, options=NAMED)
"""A convolution padded to keep the size (at stride 1), its normalisation and `act`."""

conv_bn_relu = partial(conv_bn, act=F.relu)
"""`conv_bn` with a ReLU. Upstream's convolutions have a bias where it was not switched off."""


def separable_conv(
    in_channels: int, out_channels: int, stride: int = 1, dilation: int = 1, bias: bool = False
) -> nn.Sequential:
    """Depthwise 3x3 and 1x1, each with its normalisation, a ReLU behind the second. Upstream spells it like this."""
    depthwise = replace(NAMED, groups=in_channels, dilation=dilation, bias=bias)
    return nn.Sequential(
        ("depthwise_conv", conv_bn(in_channels, in_channels, 3, stride, options=depthwise)),
        ("piontwise_conv", conv_bn_relu(in_channels, out_channels, 1, options=BIASED if bias else NAMED)),
    )
