"""The convolution blocks of segmentation models, with PaddleSeg's names of their parts."""

from __future__ import annotations

from collections.abc import Callable

import jax

from framework.nn import functional as F
from zoo.layers.conv_bn import ConvBN

NAMES = ("_conv", "_batch_norm")


def conv_bn(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    bias: bool = False,
    act: Callable[[jax.Array], jax.Array] | None = None,
) -> ConvBN:
    """A convolution padded to keep the size (at stride 1), its normalisation and `act`."""
    return ConvBN(
        in_channels,
        out_channels,
        kernel_size,
        stride,
        dilation=dilation,
        groups=groups,
        act=act,
        names=NAMES,
        bias=bias,
    )


def conv_bn_relu(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    dilation: int = 1,
    bias: bool = False,
) -> ConvBN:
    """`conv_bn` with a ReLU. Upstream's convolutions have a bias where it was not switched off."""
    return conv_bn(in_channels, out_channels, kernel_size, stride, dilation, bias=bias, act=F.relu)
