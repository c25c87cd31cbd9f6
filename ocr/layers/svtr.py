"""Attention over the columns of a text line: the block of SVTR, the encoder of PP-OCRv3 to v5, which puts it on reduced
channels and fuses it with its input, and the light encoder of PP-OCRv6.

Paper: SVTR, https://arxiv.org/abs/2205.00159; PP-OCRv3, https://arxiv.org/abs/2206.03001; PP-OCRv6, https://arxiv.org/abs/2606.13108
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/{backbones/rec_svtrnet,necks/rnn}.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp

from framework import nn
from framework.nn import functional as F
from zoo.layers.attention import Attention
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.mlp import MLP, Activation, LinearMaker, narrow_linear

DROPOUT = 0.1
_MLP_RATIO = 2.0


@dataclass(frozen=True)
class LightSVTRConfig:
    """`dims` channels, `depth` attention blocks, a depthwise `local_kernel` along the line before them.

    `guided` stops the gradient at the input, so that CTC does not train the backbone; MultiHead heeds it only where a
    guiding decoder does.
    """

    kind: Literal["lightsvtr"] = "lightsvtr"
    dims: int = 120
    depth: int = 2
    mlp_ratio: float = 2.0
    local_kernel: int = 7
    guided: bool = False


class DropoutMLP(MLP):
    """An MLP that drops out behind its activation and at its end."""

    def __init__(
        self, width: int, hidden: int, act: Activation = F.silu, linear: LinearMaker = narrow_linear
    ) -> None:
        super().__init__(width, hidden, act, linear=linear)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.dropout(self.fc2(self.dropout(self.act(self.fc1(x)))))


class SVTRBlock(nn.Layer):
    """Attention and MLP over [N, T, C], each behind a normalisation and with a residual."""

    def __init__(self, dims: int, mlp_ratio: float, num_heads: int = 8) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dims, epsilon=1e-5)
        self.mixer = Attention(dims, num_heads, dropout=DROPOUT)
        self.dropout = nn.Dropout(DROPOUT)
        self.norm2 = nn.LayerNorm(dims, epsilon=1e-5)
        self.mlp = DropoutMLP(dims, int(dims * mlp_ratio))

    def forward(self, x: jax.Array) -> jax.Array:
        x = x + self.dropout(self.mixer(self.norm1(x)))
        return x + self.mlp(self.norm2(x))


def mix_row(x: jax.Array, blocks: nn.LayerList, norm: nn.LayerNorm) -> jax.Array:
    """The columns of [N, 1, T, C] through the blocks and the norm."""
    n, height, width, channels = x.shape
    z = x.reshape(n, height * width, channels)  # [N, T, C]
    for block in blocks:
        z = block(z)
    return norm(z).reshape(x.shape)


def _named_conv(deploy: bool) -> Callable[..., ConvBN]:
    return partial(ConvBN, act=F.silu, options=ConvBNOptions(names=("conv", "norm"), deploy=deploy))


class LightSVTR(nn.Layer):
    """[N, 1, T, in_channels] -> [N, 1, T, dims]: local then global context, plus the input through a 1x1."""

    def __init__(self, config: LightSVTRConfig, in_channels: int, deploy: bool = False) -> None:
        super().__init__()
        dims = config.dims
        self.out_channels, self.guided = dims, config.guided
        conv = _named_conv(deploy)
        self.conv_reduce = conv(in_channels, dims, 1)
        kernel = (1, config.local_kernel)
        local = ConvBNOptions(groups=dims, names=("0", "1"), deploy=deploy)
        self.local_conv = ConvBN(dims, dims, kernel, act=F.silu, options=local)
        self.svtr_block = nn.LayerList([SVTRBlock(dims, config.mlp_ratio) for _ in range(config.depth)])
        self.norm = nn.LayerNorm(dims, epsilon=1e-6)
        self.skip_conv = conv(in_channels, dims, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        if self.guided:
            x = jax.lax.stop_gradient(x)
        skip = self.skip_conv(x)
        z = self.conv_reduce(x)
        z = z + self.local_conv(z)
        return mix_row(z, self.svtr_block, self.norm) + skip


@dataclass(frozen=True)
class SVTREncoderConfig:
    """`hidden_dims` channels in the attention, `dims` at the end; `kernel_size` of the first and fusing convolutions.

    `guided` stops the gradient at the input, so that CTC does not train the backbone, as all of upstream's configs of
    this encoder have it; MultiHead heeds it only where a guiding decoder trains the backbone.
    """

    kind: Literal["svtr"] = "svtr"
    dims: int = 120
    depth: int = 2
    hidden_dims: int = 120
    kernel_size: tuple[int, int] = (1, 3)
    guided: bool = True


class SVTREncoder(nn.Layer):
    """[N, 1, T, in_channels] -> [N, 1, T, dims]: global context, put beside the input and reduced with it."""

    def __init__(self, config: SVTREncoderConfig, in_channels: int, deploy: bool = False) -> None:
        super().__init__()
        self.out_channels, self.guided = config.dims, config.guided
        mid, hidden = in_channels // 8, config.hidden_dims
        conv = _named_conv(deploy)
        self.conv1 = conv(in_channels, mid, config.kernel_size)
        self.conv2 = conv(mid, hidden, 1)
        self.svtr_block = nn.LayerList([SVTRBlock(hidden, _MLP_RATIO) for _ in range(config.depth)])
        self.norm = nn.LayerNorm(hidden, epsilon=1e-6)
        self.conv3 = conv(hidden, in_channels, 1)
        self.conv4 = conv(2 * in_channels, mid, config.kernel_size)
        self.conv1x1 = conv(mid, config.dims, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        if self.guided:
            x = jax.lax.stop_gradient(x)
        z = self.conv2(self.conv1(x))
        z = self.conv3(mix_row(z, self.svtr_block, self.norm))
        z = jnp.concatenate([x, z], axis=-1)  # [N, 1, T, 2 * in_channels]
        return self.conv1x1(self.conv4(z))
