"""The stem of PP-HGNetV2, which PP-LCNetV4 took over."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from framework import nn
from framework.nn import functional as F


class StemBlock(nn.Layer):
    """Two strided 3x3 convolutions with a pooling branch and a convolution branch between them; stride 4 in all, or 2
    where the second has `last_stride` 1.

    `conv` makes a normalised and activated convolution from (in_channels, out_channels, kernel_size) and the keyword
    `stride`, padded so that without a stride the size stays. `least` is the least value that its activation gives, with
    which the pooling pads.
    """

    def __init__(
        self,
        mid_channels: int,
        out_channels: int,
        conv: Callable[..., nn.Layer],
        least: float = 0.0,
        last_stride: int = 2,
    ) -> None:
        super().__init__()
        mid, half = mid_channels, mid_channels // 2
        self.least = least
        self.stem1 = conv(3, mid, 3, stride=2)
        self.stem2a = conv(mid, half, 2)
        self.stem2b = conv(half, mid, 2)
        self.stem3 = conv(2 * mid, mid, 3, stride=last_stride)
        self.stem4 = conv(mid, out_channels, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.stem1(x)  # [N, H/2, W/2, mid]
        convolved = self.stem2b(self.stem2a(x))
        pooled = F.max_pool2d(x, 2, stride=1, padding="SAME", pad_value=self.least)
        x = jnp.concatenate([pooled, convolved], axis=-1)
        return self.stem4(self.stem3(x))  # [N, H/4, W/4, out], or [N, H/2, W/2, out]
