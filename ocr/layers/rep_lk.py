"""Detection necks of PP-OCRv6: large depthwise kernels that are sums of dilated ones in training.

Paper: PP-OCRv6, https://arxiv.org/abs/2606.13108; UniRepLKNet, https://arxiv.org/abs/2311.15599
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/necks/db_fpn.py (RepLKFPN, RepLKPAN)
Differs: the deploy form of RepLKPAN folds the normalisation of IntraCL too.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import jax
import numpy as np

from framework import nn
from framework.nn.reparam import Arrays, centred, fuse_conv_bn, prefixed
from ocr.layers.pyramid import IntraCLBlock, Pyramid, RSELayer, bottom_up, coarse_first, join, top_down
from zoo.layers.squeeze_excite import SqueezeExcite

# (kernel, dilation) of the branches beside a large kernel; UniRepLKNet, table of DilatedReparamBlock
BRANCHES: dict[int, tuple[tuple[int, int], ...]] = {
    5: ((3, 1), (3, 2)),
    7: ((5, 1), (3, 2), (3, 3)),
    9: ((5, 1), (5, 2), (3, 3), (3, 4)),
}


@dataclass(frozen=True)
class RepLKFPNConfig:
    """`kernel_size` is that of the large depthwise convolution on each level."""

    kind: Literal["RepLKFPN"] = "RepLKFPN"
    out_channels: int = 96
    kernel_size: Literal[5, 7, 9] = 7


@dataclass(frozen=True)
class RepLKPANConfig:
    """`intracl` adds a block of square and line-shaped kernels behind each level."""

    kind: Literal["RepLKPAN"] = "RepLKPAN"
    out_channels: int = 256
    intracl: bool = True


class DilatedReparamBlock(nn.Layer):
    """One large depthwise convolution: the sum of `BRANCHES`, each with its normalisation, in training form."""

    def __init__(self, channels: int, kernel_size: int, deploy: bool = False) -> None:
        super().__init__()
        self.kernel_size, self.deploy = kernel_size, deploy
        bias = None if deploy else False
        conv = functools.partial(nn.Conv2D, channels, channels, groups=channels, bias_attr=bias)
        self.lk_origin = conv(kernel_size, padding=kernel_size // 2)
        if deploy:
            return
        self.origin_bn = nn.BatchNorm2D(channels)
        for size, dilation in BRANCHES[kernel_size]:
            dilated = conv(size, padding=dilation * (size // 2), dilation=dilation)
            self.add_sublayer(f"dil_conv_k{size}_{dilation}", dilated)
            self.add_sublayer(f"dil_bn_k{size}_{dilation}", nn.BatchNorm2D(channels))

    def branches(self) -> list[tuple[nn.Conv2D, nn.BatchNorm2D, int]]:
        """(convolution, normalisation, dilation) of every branch in training form."""
        dilated = [
            (getattr(self, f"dil_conv_k{k}_{d}"), getattr(self, f"dil_bn_k{k}_{d}"), d)
            for k, d in BRANCHES[self.kernel_size]
        ]
        return [(self.lk_origin, self.origin_bn, 1), *dilated]

    def forward(self, x: jax.Array) -> jax.Array:
        if self.deploy:
            return self.lk_origin(x)
        return functools.reduce(operator.add, [bn(conv(x)) for conv, bn, _ in self.branches()])

    def deploy_state(self) -> Arrays:
        folded = [(*fuse_conv_bn(conv.weight, None, bn), d) for conv, bn, d in self.branches()]
        weight = np.sum([centred(w, self.kernel_size, d) for w, _, d in folded], axis=0)
        return {"lk_origin.weight": weight, "lk_origin.bias": np.sum([b for _, b, _ in folded], axis=0)}


class DilatedReparamConv(nn.Layer):
    """A large convolution as a depthwise one and a 1x1 with normalisation."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, deploy: bool = False) -> None:
        super().__init__()
        self.deploy = deploy
        self.dw = DilatedReparamBlock(in_channels, kernel_size, deploy)
        self.pw = nn.Conv2D(in_channels, out_channels, 1, bias_attr=None if deploy else False)
        if not deploy:
            self.bn = nn.BatchNorm2D(out_channels)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.pw(self.dw(x))
        return x if self.deploy else self.bn(x)

    def deploy_state(self) -> Arrays:
        weight, bias = fuse_conv_bn(self.pw.weight, None, self.bn)
        return {**prefixed("dw", self.dw.deploy_state()), "pw.weight": weight, "pw.bias": bias}


class RepLKFPN(nn.Layer):
    """Top-down pyramid; each level then goes through a large depthwise kernel, a 1x1 and squeeze-and-excitation.

    Takes the four maps at strides 4 to 32 and gives `out_channels` at stride 4.
    """

    def __init__(self, config: RepLKFPNConfig, in_channels: Sequence[int], deploy: bool = False) -> None:
        super().__init__()
        width, quarter = config.out_channels, config.out_channels // 4
        self.out_channels = width
        levels = range(len(in_channels))
        self.ins_conv = nn.LayerList([RSELayer(channels, width, 1) for channels in in_channels])
        self.inp_conv_dw = nn.LayerList(
            [DilatedReparamBlock(width, config.kernel_size, deploy) for _ in levels]
        )
        self.inp_conv_pw = nn.LayerList([nn.Conv2D(width, quarter, 1, bias_attr=False) for _ in levels])
        self.inp_conv_se = nn.LayerList([SqueezeExcite(quarter, slope=0.2, shortcut=True) for _ in levels])

    def forward(self, maps: Sequence[jax.Array]) -> Pyramid:
        outs = top_down(coarse_first(self.ins_conv, maps))  # 4 x [N, H/4 to H/32, W/4 to W/32, C]
        deep = [self.inp_conv_se[i](self.inp_conv_pw[i](self.inp_conv_dw[i](outs[i]))) for i in (3, 2, 1, 0)]
        return Pyramid(join(deep[::-1]), outs[:3])


class RepLKPAN(nn.Layer):
    """Top-down and bottom-up pyramid with 9x9 kernels and intra-class context on every level.

    Takes the four maps at strides 4 to 32 and gives `out_channels` at stride 4.
    """

    def __init__(self, config: RepLKPANConfig, in_channels: Sequence[int], deploy: bool = False) -> None:
        super().__init__()
        width, quarter = config.out_channels, config.out_channels // 4
        self.out_channels, self.intracl = width, config.intracl
        levels = range(len(in_channels))
        self.ins_conv = nn.LayerList(
            [nn.Conv2D(channels, width, 1, bias_attr=False) for channels in in_channels]
        )
        self.inp_conv = nn.LayerList([DilatedReparamConv(width, quarter, 9, deploy) for _ in levels])
        self.pan_head_conv = nn.LayerList(
            [nn.Conv2D(quarter, quarter, 3, 2, 1, bias_attr=False) for _ in levels[1:]]
        )
        self.pan_lat_conv = nn.LayerList([DilatedReparamConv(quarter, quarter, 9, deploy) for _ in levels])
        if config.intracl:
            for level in levels:
                self.add_sublayer(f"incl{level + 1}", IntraCLBlock(quarter, deploy=deploy))

    def forward(self, maps: Sequence[jax.Array]) -> Pyramid:
        outs = top_down(coarse_first(self.ins_conv, maps))  # 4 x [N, H/4 to H/32, W/4 to W/32, C]
        levels = bottom_up(coarse_first(self.inp_conv, outs), list(self.pan_head_conv))
        levels = [conv(x) for conv, x in zip(self.pan_lat_conv, levels)]
        if self.intracl:
            levels = coarse_first((self.incl1, self.incl2, self.incl3, self.incl4), levels)
        return Pyramid(join(levels), outs[:3])
