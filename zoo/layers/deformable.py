"""A convolution that learns where its taps read, and how much each counts.

Paper: Zhu et al. 2018, Deformable ConvNets v2, https://arxiv.org/abs/1811.11168
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/backbones/det_resnet_vd.py (DeformableConvV2)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.nn import functional as F
from framework.nn.functional.deform import deform_conv2d
from framework.nn.reparam import Arrays, fold_batch_norm, prefixed
from framework.nn.reparam import deploy_state as state_of
from zoo.layers.conv_bn import PLAIN, Activation, ConvBNOptions


class DeformableConv(nn.Layer):
    """[N, H, W, in] -> [N, H / stride, W / stride, out]; a plain convolution gives offsets and weights of the taps.

    It starts as the plain convolution of half the kernel: no tap moves, and each counts half.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, bias: bool = False
    ) -> None:
        super().__init__()
        self.taps, padding = kernel_size**2, kernel_size // 2
        self.conv_dcn = nn.Conv2D(
            in_channels, out_channels, kernel_size, stride, padding, bias_attr=None if bias else False
        )
        zero = nn.initializer.Constant(0.0)
        self.conv_offset = nn.Conv2D(
            in_channels, 3 * self.taps, kernel_size, stride, padding, weight_attr=zero, bias_attr=zero
        )

    def forward(self, x: jax.Array) -> jax.Array:
        offset, mask = jnp.split(self.conv_offset(x), [2 * self.taps], axis=-1)
        conv, weighed = self.conv_dcn, F.sigmoid(mask)
        return deform_conv2d(x, offset, conv.weight, conv.bias, conv.stride, conv.padding, mask=weighed)


class DeformableConvBN(nn.Layer):
    """`act(bn(conv(x)))` with a deformable convolution, as ConvBN; of the options it heeds `names` and `deploy`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        *,
        act: Activation | None = None,
        options: ConvBNOptions = PLAIN,
    ) -> None:
        super().__init__()
        self.names, self.act, self.deploy = options.names, act, options.deploy
        conv = DeformableConv(in_channels, out_channels, kernel_size, stride, bias=self.deploy)
        self.add_sublayer(self.names[0], conv)
        if not self.deploy:
            self.add_sublayer(self.names[1], nn.BatchNorm2D(out_channels))

    def forward(self, x: jax.Array) -> jax.Array:
        x = getattr(self, self.names[0])(x)
        x = x if self.deploy else getattr(self, self.names[1])(x)
        return x if self.act is None else self.act(x)

    def deploy_state(self) -> Arrays:
        conv, bn = (getattr(self, name) for name in self.names)
        weight, bias = fold_batch_norm(
            np.asarray(conv.conv_dcn.weight),
            None,
            bn.weight,
            bn.bias,
            bn._mean,
            bn._variance,
            epsilon=bn.epsilon,
        )
        state = {"conv_dcn.weight": weight, "conv_dcn.bias": bias}
        return prefixed(self.names[0], state | prefixed("conv_offset", state_of(conv.conv_offset)))
