"""The path aggregation network of PP-YOLOE: maps go down the pyramid and up again through stages of RepVGG blocks.

Paper: PP-YOLOE, https://arxiv.org/abs/2203.16250, section 2.2
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/necks/custom_pan.py with `spp` and one stage a level
Differs: nothing in the function computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp

from framework import nn
from framework.nn import functional as F
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.vision.csp_resnet import RepVGGBlock

_POOLS = (5, 9, 13)


class SPP(nn.Layer):
    """Maxima over windows of 5, 9 and 13 beside the input, then 1x1 to `channels`."""

    def __init__(self, channels: int, deploy: bool = False) -> None:
        super().__init__()
        options = ConvBNOptions(deploy=deploy)
        self.conv = ConvBN(channels * (1 + len(_POOLS)), channels, 1, act=F.silu, options=options)

    def forward(self, x: jax.Array) -> jax.Array:
        pooled = (F.max_pool2d(x, size, 1, size // 2) for size in _POOLS)
        return self.conv(jnp.concatenate([x, *pooled], axis=-1))


class CSPStage(nn.Layer):
    """Half of the channels around `depth` blocks and half through them, then 1x1. `spp` is behind the middle block."""

    def __init__(self, in_channels: int, out_channels: int, depth: int, spp: bool, deploy: bool) -> None:
        super().__init__()
        middle = out_channels // 2
        conv = partial(ConvBN, act=F.silu, options=ConvBNOptions(deploy=deploy))
        self.conv1 = conv(in_channels, middle, 1)
        self.conv2 = conv(in_channels, middle, 1)
        blocks: list[tuple[str, nn.Layer]] = []
        for index in range(depth):
            block = nn.Sequential(
                ("conv1", conv(middle, middle, 3)),
                ("conv2", RepVGGBlock(middle, use_alpha=False, deploy=deploy)),
            )
            blocks.append((str(index), block))
            if spp and index == (depth - 1) // 2:
                blocks.append(("spp", SPP(middle, deploy)))
        self.convs = nn.Sequential(*blocks)
        self.conv3 = conv(2 * middle, out_channels, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.conv3(jnp.concatenate([self.conv1(x), self.convs(self.conv2(x))], axis=-1))


class CustomCSPPAN(nn.Layer):
    """Maps of `in_channels`, finest first -> as many maps of `out_channels`, coarsest first."""

    def __init__(
        self, in_channels: Sequence[int], out_channels: Sequence[int], depth: int, deploy: bool = False
    ) -> None:
        super().__init__()
        conv = partial(ConvBN, act=F.silu, options=ConvBNOptions(deploy=deploy))

        def stage(inputs: int, outputs: int, spp: bool = False) -> nn.Sequential:
            return nn.Sequential(CSPStage(inputs, outputs, depth, spp, deploy))

        self.fpn_stages, self.fpn_routes = nn.LayerList(), nn.LayerList()
        route = 0
        for level, (inputs, outputs) in enumerate(zip(in_channels[::-1], out_channels, strict=True)):
            self.fpn_stages.append(stage(inputs + route, outputs, spp=level == 0))
            route = outputs // 2
            if level < len(out_channels) - 1:
                self.fpn_routes.append(conv(outputs, route, 1))
        self.pan_stages, self.pan_routes = nn.LayerList(), nn.LayerList()
        for outputs, finer in itertools.pairwise(out_channels):
            self.pan_stages.append(stage(outputs + finer, outputs))
            self.pan_routes.append(conv(finer, finer, 3, 2))

    def forward(self, maps: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        down: list[jax.Array] = []
        for level, x in enumerate(maps[::-1]):
            if down:
                route = self.fpn_routes[level - 1](down[-1])
                below = F.interpolate(route, scale_factor=2, mode="nearest")
                x = jnp.concatenate([below, x], axis=-1)
            down.append(self.fpn_stages[level](x))
        up = [down[-1]]
        for level in range(len(down) - 2, -1, -1):
            x = jnp.concatenate([self.pan_routes[level](up[0]), down[level]], axis=-1)
            up.insert(0, self.pan_stages[level](x))
        return tuple(up)
