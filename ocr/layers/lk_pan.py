"""LKPAN: the detection neck of the PP-OCR server models, a pyramid in both directions with plain 9x9 kernels.

Paper: PP-OCRv3, https://arxiv.org/abs/2206.03001, section 2.1
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/necks/db_fpn.py (LKPAN, mode "large")
Differs: the deploy form folds the normalisation of IntraCL too.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import jax

from framework import nn
from framework.nn import initializer as I
from ocr.layers.pyramid import IntraCLBlock, Pyramid, bottom_up, coarse_first, join, top_down

_KERNEL_SIZE = 9


@dataclass(frozen=True)
class LKPANConfig:
    """`out_channels` in the laterals and in the joined result.

    `intracl` adds a block of square and line-shaped kernels behind each level.
    """

    kind: Literal["LKPAN"] = "LKPAN"
    out_channels: int = 256
    intracl: bool = True


class LKPAN(nn.Layer):
    """Top-down and bottom-up pyramid with 9x9 kernels and intra-class context on every level.

    Takes the four maps at strides 4 to 32 and gives `out_channels` at stride 4.
    """

    def __init__(self, config: LKPANConfig, in_channels: Sequence[int], deploy: bool = False) -> None:
        super().__init__()
        width, quarter = config.out_channels, config.out_channels // 4
        self.out_channels, self.intracl = width, config.intracl
        conv = functools.partial(nn.Conv2D, weight_attr=I.KaimingUniform(), bias_attr=False)
        large = functools.partial(conv, kernel_size=_KERNEL_SIZE, padding=_KERNEL_SIZE // 2)
        self.ins_conv = nn.LayerList([conv(channels, width, 1) for channels in in_channels])
        self.inp_conv = nn.LayerList([large(width, quarter) for _ in in_channels])
        self.pan_head_conv = nn.LayerList([conv(quarter, quarter, 3, 2, 1) for _ in in_channels[1:]])
        self.pan_lat_conv = nn.LayerList([large(quarter, quarter) for _ in in_channels])
        if config.intracl:
            for level in range(len(in_channels)):
                self.add_sublayer(f"incl{level + 1}", IntraCLBlock(quarter, deploy=deploy))

    def forward(self, maps: Sequence[jax.Array]) -> Pyramid:
        outs = top_down(coarse_first(self.ins_conv, maps))  # 4 x [N, H/4 to H/32, W/4 to W/32, C]
        levels = bottom_up(coarse_first(self.inp_conv, outs), list(self.pan_head_conv))
        levels = [conv(x) for conv, x in zip(self.pan_lat_conv, levels)]  # C/4 channels each
        if self.intracl:
            levels = coarse_first((self.incl1, self.incl2, self.incl3, self.incl4), levels)
        return Pyramid(join(levels), outs[:3])
