"""The path aggregation networks of PicoDet: all maps get one width, go down the pyramid and up again.

Paper: Yu et al. 2021, https://arxiv.org/abs/2111.00902
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/necks/{csp_pan,lc_pan}.py
Differs: nothing in the function computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from detection.layers.csp_blocks import aggregate_paths
from framework import nn
from framework.nn import functional as F
from framework.nn.reparam import Arrays, fuse_conv_bn
from zoo.layers.conv_bn import ConvBN
from zoo.vision.pp_lcnet import Block, DepthwiseSeparable

_KAIMING = nn.initializer.KaimingUniform()


def pointwise(in_channels: int, out_channels: int, deploy: bool = False) -> ConvBN:
    """1x1 convolution, normalisation, hard swish."""
    return ConvBN(in_channels, out_channels, 1, act=F.hardswish, initializer=_KAIMING, deploy=deploy)


class SpatialThenPointwise(nn.Layer):
    """A spatial convolution of `out_channels` groups, then 1x1, each normalised; hard swish after the first, and after
    the second unless `linear`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        linear: bool = False,
        deploy: bool = False,
    ) -> None:
        super().__init__()
        self.linear, self.deploy = linear, deploy
        attrs = {"weight_attr": _KAIMING, "bias_attr": None if deploy else False}
        padding, groups = kernel_size // 2, out_channels
        self.dwconv = nn.Conv2D(
            in_channels, out_channels, kernel_size, stride, padding, groups=groups, **attrs
        )
        self.pwconv = nn.Conv2D(out_channels, out_channels, 1, **attrs)
        if not deploy:
            self.bn1, self.bn2 = nn.BatchNorm2D(out_channels), nn.BatchNorm2D(out_channels)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.dwconv(x)
        x = F.hardswish(x if self.deploy else self.bn1(x))
        x = self.pwconv(x)
        x = x if self.deploy else self.bn2(x)
        return x if self.linear else F.hardswish(x)

    def deploy_state(self) -> Arrays:
        state = {}
        for name, conv, bn in (("dwconv", self.dwconv, self.bn1), ("pwconv", self.pwconv, self.bn2)):
            state[f"{name}.weight"], state[f"{name}.bias"] = fuse_conv_bn(conv.weight, None, bn)
        return state


class ChannelTransform(nn.Layer):
    """Every map to one width."""

    def __init__(self, in_channels: Sequence[int], out_channels: int, deploy: bool) -> None:
        super().__init__()
        self.convs = nn.LayerList([pointwise(width, out_channels, deploy) for width in in_channels])

    def forward(self, maps: Sequence[jax.Array]) -> list[jax.Array]:
        return [conv(x) for conv, x in zip(self.convs, maps, strict=True)]


class CSPBlock(nn.Layer):
    """Half of the output from a bottleneck, half past it. Source: Wang et al. 2019, https://arxiv.org/abs/1911.11929"""

    def __init__(self, in_channels: int, out_channels: int, deploy: bool = False) -> None:
        super().__init__()
        width = out_channels // 2
        self.main_conv = pointwise(in_channels, width, deploy)
        self.short_conv = pointwise(in_channels, width, deploy)
        self.final_conv = pointwise(2 * width, out_channels, deploy)
        bottleneck = nn.Sequential(
            ("conv1", pointwise(width, width, deploy)),
            ("conv2", SpatialThenPointwise(width, width, 5, deploy=deploy)),
        )
        self.blocks = nn.Sequential(bottleneck)

    def forward(self, x: jax.Array) -> jax.Array:
        short = self.short_conv(x)
        return self.final_conv(jnp.concatenate([self.blocks(self.main_conv(x)), short], axis=-1))


def lc_block(in_channels: int, out_channels: int, deploy: bool = False) -> nn.Layer:
    """Two depthwise separable blocks of LCNet."""
    return nn.Sequential(
        DepthwiseSeparable(Block(5, in_channels), in_channels, in_channels, deploy=deploy),
        DepthwiseSeparable(Block(5, out_channels), in_channels, out_channels, deploy=deploy),
    )


class PicoPAN(nn.Layer):
    """Maps at strides 8, 16 and 32 -> maps at 8, 16, 32 and 64 of `out_channels`.

    `block` mixes two maps that lie upon one another: `lc_block` in LCPAN, CSPBlock in CSPPAN.
    """

    def __init__(
        self,
        in_channels: Sequence[int],
        out_channels: int,
        block: Callable[[int, int, bool], nn.Layer],
        deploy: bool = False,
    ) -> None:
        super().__init__()
        halving = lambda: SpatialThenPointwise(out_channels, out_channels, 5, stride=2, deploy=deploy)  # noqa: E731
        steps = range(len(in_channels) - 1)
        self.conv_t = ChannelTransform(in_channels, out_channels, deploy)
        self.first_top_conv, self.second_top_conv = halving(), halving()
        self.top_down_blocks = nn.LayerList([block(2 * out_channels, out_channels, deploy) for _ in steps])
        self.downsamples = nn.LayerList([halving() for _ in steps])
        self.bottom_up_blocks = nn.LayerList([block(2 * out_channels, out_channels, deploy) for _ in steps])

    def forward(self, maps: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        maps = self.conv_t(maps)
        down = ((lambda x: x, block) for block in self.top_down_blocks)
        up = aggregate_paths(maps, down, zip(self.downsamples, self.bottom_up_blocks, strict=True))
        top = self.first_top_conv(maps[-1])
        return (*up, top + self.second_top_conv(up[-1]))
