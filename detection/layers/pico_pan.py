"""The path aggregation networks of PicoDet: those of zoo/layers/csp_pan.py with a fourth level above them.

Paper: Yu et al. 2021, https://arxiv.org/abs/2111.00902
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/necks/{csp_pan,lc_pan}.py
Differs: nothing in the function computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax

from framework import nn
from zoo.layers.csp_pan import CSPPAN, halve
from zoo.vision.pp_lcnet import Block, DepthwiseSeparable


def lc_block(in_channels: int, out_channels: int, deploy: bool = False) -> nn.Layer:
    """Two depthwise separable blocks of LCNet."""
    return nn.Sequential(
        DepthwiseSeparable(Block(5, in_channels), in_channels, in_channels, deploy=deploy),
        DepthwiseSeparable(Block(5, out_channels), in_channels, out_channels, deploy=deploy),
    )


class PicoPAN(CSPPAN):
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
        super().__init__(in_channels, out_channels, block, deploy)
        self.first_top_conv, self.second_top_conv = (halve(out_channels, deploy) for _ in range(2))

    def forward(self, maps: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        maps = self.conv_t(maps)
        up = self.aggregate(maps)
        top = self.first_top_conv(maps[-1])
        return (*up, top + self.second_top_conv(up[-1]))
