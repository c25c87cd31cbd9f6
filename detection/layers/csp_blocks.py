"""The blocks that YOLOX's backbone, neck and head share, and its neck.

Paper: YOLOX, https://arxiv.org/abs/2107.08430
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/backbones/csp_darknet.py, necks/yolo_fpn.py
Differs: nothing in the function computed. Normalisations have the epsilon and momentum that upstream's trainer sets.
"""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp

from framework import nn
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.csp_pan import aggregate_paths


def base_conv(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    groups: int = 1,
    deploy: bool = False,
) -> ConvBN:
    """Convolution, normalisation, SiLU."""
    initializer = I.KaimingUniform(negative_slope=math.sqrt(5), nonlinearity="leaky_relu")
    options = ConvBNOptions(
        groups=groups, initializer=initializer, epsilon=1e-3, momentum=0.97, deploy=deploy
    )
    return ConvBN(in_channels, out_channels, kernel_size, stride, act=F.silu, options=options)


def spatial_conv(
    in_channels: int, out_channels: int, stride: int, depthwise: bool, deploy: bool
) -> ConvBN | nn.Sequential:
    """3x3, plain or separable: depthwise, then 1x1, each normalised and activated."""
    if depthwise:
        spatial = base_conv(in_channels, in_channels, 3, stride, in_channels, deploy)
        point = base_conv(in_channels, out_channels, 1, deploy=deploy)
        return nn.Sequential(("dw_conv", spatial), ("pw_conv", point))
    return base_conv(in_channels, out_channels, 3, stride, deploy=deploy)


class Bottleneck(nn.Layer):
    """1x1 and 3x3 of equal width, beside a residual where `shortcut`."""

    def __init__(self, channels: int, shortcut: bool, depthwise: bool, deploy: bool) -> None:
        super().__init__()
        self.shortcut = shortcut
        self.conv1 = base_conv(channels, channels, 1, deploy=deploy)
        self.conv2 = spatial_conv(channels, channels, 1, depthwise, deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        y = self.conv2(self.conv1(x))
        return x + y if self.shortcut else y


class CSPLayer(nn.Layer):
    """Half of the output through `depth` bottlenecks, half past them, 1x1."""

    def __init__(
        self, in_channels: int, out_channels: int, depth: int, shortcut: bool, depthwise: bool, deploy: bool
    ) -> None:
        super().__init__()
        width = out_channels // 2
        self.conv1 = base_conv(in_channels, width, 1, deploy=deploy)
        self.conv2 = base_conv(in_channels, width, 1, deploy=deploy)
        self.bottlenecks = nn.Sequential(
            *(Bottleneck(width, shortcut, depthwise, deploy) for _ in range(depth))
        )
        self.conv3 = base_conv(2 * width, out_channels, 1, deploy=deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        # In the order of the authors' exported programs, which weights are matched by.
        through, past = self.conv1(x), self.conv2(x)
        return self.conv3(jnp.concatenate([self.bottlenecks(through), past], axis=-1))


class YOLOCSPPAN(nn.Layer):
    """Maps at strides 8, 16 and 32 -> as many of the same channels, down the pyramid and up again."""

    def __init__(
        self, channels: tuple[int, ...], depth: float, depthwise: bool, deploy: bool = False
    ) -> None:
        super().__init__()
        blocks = round(3 * depth)

        def mix(inputs: int, outputs: int) -> CSPLayer:
            return CSPLayer(inputs, outputs, blocks, False, depthwise, deploy)

        pairs = list(itertools.pairwise(channels))
        self.lateral_convs = nn.LayerList([base_conv(b, a, 1, deploy=deploy) for a, b in pairs[::-1]])
        self.fpn_blocks = nn.LayerList([mix(2 * a, a) for a, _ in pairs[::-1]])
        self.downsample_convs = nn.LayerList([spatial_conv(a, a, 2, depthwise, deploy) for a, _ in pairs])
        self.pan_blocks = nn.LayerList([mix(2 * a, b) for a, b in pairs])

    def forward(self, maps: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        down = zip(self.lateral_convs, self.fpn_blocks, strict=True)
        return aggregate_paths(maps, down, zip(self.downsample_convs, self.pan_blocks, strict=True))
