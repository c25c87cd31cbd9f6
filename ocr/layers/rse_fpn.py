"""Detection neck of PP-OCRv3 to v5 mobile: a small pyramid with squeeze-and-excitation on every level.

Reference: PaddlePaddle/PaddleOCR ppocr/modeling/necks/db_fpn.py (RSEFPN)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import jax

from framework import nn
from ocr.layers.pyramid import Pyramid, RSELayer, coarse_first, join, top_down


@dataclass(frozen=True)
class RSEFPNConfig:
    """`out_channels` in the laterals and in the joined result."""

    kind: Literal["RSEFPN"] = "RSEFPN"
    out_channels: int = 96


class RSEFPN(nn.Layer):
    """Top-down pyramid of 1x1 convolutions, then a 3x3 on each level.

    Takes the four maps at strides 4 to 32 and gives `out_channels` at stride 4. It has no normalisation, so its deploy
    form is the same.
    """

    def __init__(self, config: RSEFPNConfig, in_channels: Sequence[int], deploy: bool = False) -> None:
        super().__init__()
        width = self.out_channels = config.out_channels
        self.ins_conv = nn.LayerList([RSELayer(channels, width, 1) for channels in in_channels])
        self.inp_conv = nn.LayerList([RSELayer(width, width // 4, 3) for _ in in_channels])

    def forward(self, maps: Sequence[jax.Array]) -> Pyramid:
        outs = top_down(coarse_first(self.ins_conv, maps))
        return Pyramid(join(coarse_first(self.inp_conv, outs)), outs[:3])
