"""PP-HumanSeg-Lite (ConnectNet): people in front of a camera, by shuffled depthwise blocks and one shortcut.

Paper: Chu et al. 2021, https://arxiv.org/abs/2112.07146
Reference: PaddlePaddle/PaddleSeg paddleseg/models/pphumanseg_lite.py, contrib/PP-HumanSeg/configs; the blocks are those
    of ShuffleNetV2, https://arxiv.org/abs/1807.11164
Differs: nothing in the function computed. Upstream draws all kernels from a normal of deviation 0.001, which makes
    no difference behind a normalisation; here they have Paddle's default.
Weights: `state_dict()` has upstream's names.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from segmentation.layers.conv_bn import conv_bn_relu, separable_conv
from zoo.contracts import Contract

_STEM, _SHORTCUT, _DECODER = 36, 18, 64
_WIDTHS, _DEPTHS = (72, 144), (4, 8)  # at strides 8 and 16
PARAMS = 226_806  # of the default config, counted on PaddleSeg 2.8


@dataclass(frozen=True)
class PPHumanSegLiteConfig:
    """Class 0 is the background."""

    num_classes: int = 2
    in_channels: int = 3


class ShuffleBlock(nn.Layer):
    """A branch of 1x1, depthwise 3x3 and 1x1 on half of the channels, shuffled with the other half.

    With stride 2 both halves of the output see all channels. Upstream builds the other half's convolutions in every
    block and runs them only there, so that their weights are in its checkpoints.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.stride, half = stride, out_channels // 2
        branch = in_channels if stride == 2 else in_channels // 2
        self._depthwise_separable_0 = separable_conv(in_channels, half, stride)
        self._conv = conv_bn_relu(branch, half, 1)
        self._depthwise_separable_1 = separable_conv(half, half, stride)

    def forward(self, x: jax.Array) -> jax.Array:
        if self.stride == 2:
            left = self._depthwise_separable_0(x)
        else:
            left, x = jnp.split(x, 2, axis=-1)
        x = self._depthwise_separable_1(self._conv(x))
        return F.channel_shuffle(jnp.concatenate([left, x], axis=-1), 2)


def _stage(in_channels: int, out_channels: int, depth: int) -> nn.Sequential:
    blocks = [ShuffleBlock(in_channels, out_channels, 2)]
    return nn.Sequential(*blocks, *(ShuffleBlock(out_channels, out_channels, 1) for _ in range(depth - 1)))


@register("model", config=PPHumanSegLiteConfig)
class PPHumanSegLite(nn.Model[PPHumanSegLiteConfig]):
    """Segmenter of segmentation/contracts.py, of one output."""

    contract = Contract(
        inputs=("n", "h", "w", 3),
        image=(2, 61, 95, 3),
        flat=(r"block[12]\.[1-9]\._depthwise_separable_0\..*", "upstream has it and does not call it"),
    )

    def __init__(self, config: PPHumanSegLiteConfig) -> None:
        super().__init__(config)
        self.conv_bn0 = conv_bn_relu(config.in_channels, _STEM, 3, stride=2)
        self.conv_bn1 = conv_bn_relu(_STEM, _SHORTCUT, 1)
        self.block1 = _stage(_STEM, _WIDTHS[0], _DEPTHS[0])
        self.block2 = _stage(_WIDTHS[0], _WIDTHS[1], _DEPTHS[1])
        self.depthwise_separable0 = separable_conv(_WIDTHS[1], _DECODER)
        self.depthwise_separable1 = separable_conv(_DECODER + _SHORTCUT, _DECODER)
        self.depthwise_separable2 = separable_conv(_DECODER, config.num_classes)

    def forward(self, images: jax.Array) -> tuple[jax.Array, ...]:
        x = self.conv_bn0(images)  # [N, H/2, W/2, 36]
        shortcut = self.conv_bn1(x)
        x = F.max_pool2d(x, 3, stride=2, padding=1, pad_value=0.0)  # 0 is the least that ReLU gives
        x = self.depthwise_separable0(self.block2(self.block1(x)))  # [N, H/16, W/16, 64]
        x = F.interpolate(x, shortcut.shape[1:3], mode="bilinear")
        x = self.depthwise_separable1(jnp.concatenate([shortcut, x], axis=-1))
        logits = self.depthwise_separable2(x).astype(jnp.float32)
        return (F.interpolate(logits, images.shape[1:3], mode="bilinear"),)
