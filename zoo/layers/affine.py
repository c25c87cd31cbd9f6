"""A learnable affine of two numbers, which PP-LCNetV3 and PP-HGNetV2 put behind activations."""

from __future__ import annotations

import jax

from framework import nn
from framework.nn import initializer as I


class Affine(nn.Layer):
    """`scale * x + bias` with one learnable number each, which compensate what quantisation shifts.

    `rate` multiplies the learning rate of both.
    """

    def __init__(self, rate: float, trainable: bool = True) -> None:
        super().__init__()

        def attr(value: float) -> nn.ParamAttr:
            return nn.ParamAttr(initializer=I.Constant(value), learning_rate=rate, trainable=trainable)

        self.scale = self.create_parameter((1,), attr(1.0))
        self.bias = self.create_parameter((1,), attr(0.0))

    def forward(self, x: jax.Array) -> jax.Array:
        return self.scale * x + self.bias
