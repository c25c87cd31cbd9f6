"""The neck of the first DBNet, and with `asf` that of DBNet++, which weighs the levels at every pixel.

Paper: DB, https://arxiv.org/abs/1911.08947; DBNet++, https://arxiv.org/abs/2202.10304, section 3.2
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/necks/db_fpn.py (DBFPN, ASFBlock)
Differs: nothing in the function computed. It has no normalisation, so its deploy form is the same.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from framework import nn
from framework.nn import functional as F
from framework.nn import initializer as I
from ocr.layers.pyramid import Pyramid, coarse_first, join, top_down

_LEVELS = (2, 3, 4, 5)
_conv = functools.partial(nn.Conv2D, weight_attr=I.KaimingUniform(), bias_attr=False)


@dataclass(frozen=True)
class DBFPNConfig:
    """`out_channels` in the laterals and in the joined result; `asf` adds adaptive scale fusion."""

    kind: Literal["DBFPN"] = "DBFPN"
    out_channels: int = 256
    asf: bool = False


class AdaptiveScaleFusion(nn.Layer):
    """[N, H, W, C] of joined levels -> the same, each level times a number between 0 and 1 for every pixel."""

    def __init__(self, channels: int, levels: int) -> None:
        super().__init__()
        inner = channels // levels
        self.levels = levels
        self.conv = nn.Conv2D(channels, inner, 3, padding=1)
        # Upstream's Sequentials hold the activations as 1 and 3.
        self.spatial_scale = nn.Sequential(("0", _conv(1, 1, 3, padding=1)), ("2", _conv(1, 1, 1)))
        self.channel_scale = nn.Sequential(("0", _conv(inner, levels, 1)))

    def forward(self, x: jax.Array) -> jax.Array:
        y = self.conv(x)  # [N, H, W, C / levels]
        first, second = self.spatial_scale
        spatial = F.sigmoid(second(F.relu(first(y.mean(-1, keepdims=True)))))  # [N, H, W, 1]
        scores = F.sigmoid(self.channel_scale(spatial + y))  # [N, H, W, levels]
        return x * jnp.repeat(scores, x.shape[-1] // self.levels, axis=-1)


class DBFPN(nn.Layer):
    """Top-down pyramid of 1x1 convolutions, then a 3x3 on each level.

    Takes the four maps at strides 4 to 32 and gives `out_channels` at stride 4.
    """

    def __init__(self, config: DBFPNConfig, in_channels: Sequence[int], deploy: bool = False) -> None:
        super().__init__()
        width = self.out_channels = config.out_channels
        for level, channels in zip(_LEVELS, in_channels, strict=True):
            self.add_sublayer(f"in{level}_conv", _conv(channels, width, 1))
            self.add_sublayer(f"p{level}_conv", _conv(width, width // len(_LEVELS), 3, padding=1))
        self.fuses = config.asf
        if config.asf:
            self.asf = AdaptiveScaleFusion(width, len(_LEVELS))

    def forward(self, maps: Sequence[jax.Array]) -> Pyramid:
        laterals, outputs = ([getattr(self, f"{kind}{i}_conv") for i in _LEVELS] for kind in ("in", "p"))
        outs = top_down(coarse_first(laterals, maps))  # 4 x [N, H/4 to H/32, W/4 to W/32, C]
        fused = join(coarse_first(outputs, outs))
        return Pyramid(self.asf(fused) if self.fuses else fused, outs[:3])
