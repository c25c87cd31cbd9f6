"""Path aggregation with cross-stage partial blocks: all maps get one width, go down the pyramid and up again.

Paper: PicoDet, https://arxiv.org/abs/2111.00902; PP-StructureV2, https://arxiv.org/abs/2210.05391, section 3.2
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/necks/csp_pan.py, PaddlePaddle/PaddleOCR
    ppocr/modeling/necks/csp_pan.py
Differs: nothing in the function computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import jax
import jax.numpy as jnp

from framework import nn
from framework.nn import functional as F
from framework.nn.reparam import Arrays, fuse_conv_bn
from zoo.layers.conv_bn import ConvBN, ConvBNOptions

_KAIMING = nn.initializer.KaimingUniform()


def aggregate_paths(
    maps: Sequence[jax.Array],
    down: Iterable[tuple[Callable[[jax.Array], jax.Array], nn.Layer]],
    up: Iterable[tuple[nn.Layer, nn.Layer]],
    by_size: bool = False,
) -> tuple[jax.Array, ...]:
    """Maps, finest first, down the pyramid and up again -> as many maps, finest first.

    Args:
        down: For each step what a map passes before it is enlarged, and what mixes it with the finer one.
        up: What halves a map, and what mixes it with the one that was enlarged there.
        by_size: Enlarge to the finer map's size, which need not be twice that of the coarser one.
    """
    x, sides = maps[-1], []
    for (lateral, mix), finer in zip(down, maps[-2::-1], strict=True):
        sides.insert(0, lateral(x))
        if by_size:
            below = F.interpolate(sides[0], size=finer.shape[1:3], mode="nearest")
        else:
            below = F.interpolate(sides[0], scale_factor=2, mode="nearest")
        x = mix(jnp.concatenate([below, finer], axis=-1))
    outs = [x]
    for (halve, mix), side in zip(up, sides, strict=True):
        outs.append(mix(jnp.concatenate([halve(outs[-1]), side], axis=-1)))
    return tuple(outs)


def pointwise(in_channels: int, out_channels: int, deploy: bool = False) -> ConvBN:
    """1x1 convolution, normalisation, hard swish."""
    options = ConvBNOptions(initializer=_KAIMING, deploy=deploy)
    return ConvBN(in_channels, out_channels, 1, act=F.hardswish, options=options)


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


def halve(channels: int, deploy: bool = False) -> SpatialThenPointwise:
    """5x5 with stride 2, then 1x1."""
    return SpatialThenPointwise(channels, channels, 5, stride=2, deploy=deploy)


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


class CSPPAN(nn.Layer):
    """Maps, finest first, each at half the size of the one before -> as many maps of `out_channels`.

    `block` mixes two maps that lie upon one another. `by_size`: see `aggregate_paths`.
    """

    def __init__(
        self,
        in_channels: Sequence[int],
        out_channels: int,
        block: Callable[[int, int, bool], nn.Layer] = CSPBlock,
        deploy: bool = False,
        by_size: bool = False,
    ) -> None:
        super().__init__()
        steps = range(len(in_channels) - 1)
        self.by_size = by_size
        self.conv_t = ChannelTransform(in_channels, out_channels, deploy)
        self.top_down_blocks = nn.LayerList([block(2 * out_channels, out_channels, deploy) for _ in steps])
        self.downsamples = nn.LayerList([halve(out_channels, deploy) for _ in steps])
        self.bottom_up_blocks = nn.LayerList([block(2 * out_channels, out_channels, deploy) for _ in steps])

    def forward(self, maps: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        return self.aggregate(self.conv_t(maps))

    def aggregate(self, maps: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        """The paths, of maps that have one width already."""
        down = ((lambda x: x, block) for block in self.top_down_blocks)
        up = zip(self.downsamples, self.bottom_up_blocks, strict=True)
        return aggregate_paths(maps, down, up, self.by_size)
