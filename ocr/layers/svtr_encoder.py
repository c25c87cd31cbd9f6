"""The encoder of PP-OCRv3 to v5: attention on reduced channels, fused with its input.

Paper: SVTR, https://arxiv.org/abs/2205.00159; PP-OCRv3, https://arxiv.org/abs/2206.03001
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/necks/rnn.py (EncoderWithSVTR)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from framework import nn
from framework.nn import functional as F
from ocr.layers.svtr import SVTRBlock
from zoo.layers.conv_bn import ConvBN

_MLP_RATIO = 2.0


@dataclass(frozen=True)
class SVTREncoderConfig:
    """`hidden_dims` channels in the attention, `dims` at the end; `kernel_size` of the first and fusing convolutions.

    `guided` stops the gradient at the input, so that CTC does not train the backbone. Upstream trains with it, as the
    attention decoder beside CTC trains the backbone there; without that decoder it freezes the backbone.
    """

    kind: Literal["svtr"] = "svtr"
    dims: int = 120
    depth: int = 2
    hidden_dims: int = 120
    kernel_size: tuple[int, int] = (1, 3)
    guided: bool = False


class SVTREncoder(nn.Layer):
    """[N, 1, T, in_channels] -> [N, 1, T, dims]: global context, put beside the input and reduced with it."""

    def __init__(self, config: SVTREncoderConfig, in_channels: int, deploy: bool = False) -> None:
        super().__init__()
        self.out_channels, self.guided = config.dims, config.guided
        mid, hidden = in_channels // 8, config.hidden_dims
        own = {"act": F.silu, "names": ("conv", "norm"), "deploy": deploy}
        self.conv1 = ConvBN(in_channels, mid, config.kernel_size, **own)
        self.conv2 = ConvBN(mid, hidden, 1, **own)
        self.svtr_block = nn.LayerList([SVTRBlock(hidden, _MLP_RATIO) for _ in range(config.depth)])
        self.norm = nn.LayerNorm(hidden, epsilon=1e-6)
        self.conv3 = ConvBN(hidden, in_channels, 1, **own)
        self.conv4 = ConvBN(2 * in_channels, mid, config.kernel_size, **own)
        self.conv1x1 = ConvBN(mid, config.dims, 1, **own)

    def forward(self, x: jax.Array) -> jax.Array:
        if self.guided:
            x = jax.lax.stop_gradient(x)
        z = self.conv2(self.conv1(x))
        n, height, width, hidden = z.shape
        z = z.reshape(n, height * width, hidden)  # [N, T, hidden]
        for block in self.svtr_block:
            z = block(z)
        z = self.conv3(self.norm(z).reshape(n, height, width, hidden))
        z = jnp.concatenate([x, z], axis=-1)  # [N, 1, T, 2 * in_channels]
        return self.conv1x1(self.conv4(z))
