"""Squeeze-and-excitation: channels weighted by what the whole image holds.

Paper: Hu et al. 2018, https://arxiv.org/abs/1709.01507
"""

from __future__ import annotations

import jax

from framework import nn
from framework.nn import functional as F


class SqueezeExcite(nn.Layer):
    """`x * gate`, the gate [N, 1, 1, C] in 0 to 1 from the mean over all pixels.

    `slope` is that of the hard sigmoid: 1/6 as in nn.Hardsigmoid, or 0.2 as in paddle's old functional default, which
    upstream uses in MobileNetV3 and in the detection necks. None takes the sigmoid itself (PP-LCNetV2). With `shortcut`
    the result is `x + x * gate`. `width` is that of the layer between, if not `channels // reduction`.
    """

    def __init__(
        self,
        channels: int,
        reduction: int = 4,
        slope: float | None = 1 / 6,
        shortcut: bool = False,
        width: int | None = None,
    ) -> None:
        super().__init__()
        width = channels // reduction if width is None else width
        self.conv1 = nn.Conv2D(channels, width, 1)
        self.conv2 = nn.Conv2D(width, channels, 1)
        self.slope, self.shortcut = slope, shortcut

    def forward(self, x: jax.Array) -> jax.Array:
        gate = self.conv2(F.relu(self.conv1(F.global_avg_pool2d(x))))  # [N, 1, 1, C]
        gate = F.sigmoid(gate) if self.slope is None else F.hardsigmoid(gate, slope=self.slope, offset=0.5)
        return x * (1 + gate) if self.shortcut else x * gate
