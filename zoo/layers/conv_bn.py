"""A convolution, its batch normalisation and an activation: one biased convolution in deploy form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from framework import nn
from framework.nn.reparam import Arrays, FoldableLayer, fold_norm, fuse_conv_bn

Activation = Callable[[jax.Array], jax.Array]


@dataclass(frozen=True)
class ConvBNOptions:
    """What a convolution with its normalisation has besides sizes and activation.

    Attributes:
        padding: By default at stride 1 the size stays.
        bias: Whether the convolution has a bias in training form, too.
        initializer: The kernel's, if not that of Conv2D.
        gamma: Where the normalisation's weight starts: 0 makes a residual block start as the identity.
        norm_decay: Weight decay of the normalisation's weight and bias, in place of the optimizer's.
        names: The attributes of convolution and normalisation, which differ between upstream's classes.
    """

    padding: str | int | None = None
    groups: int = 1
    dilation: int = 1
    bias: bool = False
    initializer: nn.initializer.Initializer | None = None
    gamma: float = 1.0
    epsilon: float = 1e-5
    momentum: float = 0.9
    norm_decay: float | None = None
    names: tuple[str, str] = ("conv", "bn")
    deploy: bool = False


PLAIN = ConvBNOptions()


class ConvBN(FoldableLayer):
    """`act(bn(conv(x)))` on [N, H, W, C]."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        *,
        act: Activation | None = None,
        options: ConvBNOptions = PLAIN,
    ) -> None:
        super().__init__()
        self.names, self.act, self.deploy = options.names, act, options.deploy
        conv = nn.Conv2D(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            _same(kernel_size, options.dilation) if options.padding is None else options.padding,
            options.dilation,
            groups=options.groups,
            weight_attr=options.initializer,
            bias_attr=None if options.deploy or options.bias else False,
        )
        self.add_sublayer(self.names[0], conv)
        if not self.deploy:
            gamma, decay = nn.initializer.Constant(options.gamma), options.norm_decay
            scale, shift = nn.ParamAttr(initializer=gamma, regularizer=decay), nn.ParamAttr(regularizer=decay)
            norm = nn.BatchNorm2D(
                out_channels, options.momentum, options.epsilon, weight_attr=scale, bias_attr=shift
            )
            self.add_sublayer(self.names[1], norm)

    def forward(self, x: jax.Array) -> jax.Array:
        x = getattr(self, self.names[0])(x)
        if not self.deploy:
            x = getattr(self, self.names[1])(x)
        return x if self.act is None else self.act(x)

    def fuse(self) -> tuple[np.ndarray, np.ndarray]:
        """(weight, bias) of the deploy form, from the training form."""
        conv, bn = (getattr(self, name) for name in self.names)
        return fuse_conv_bn(conv.weight, conv.bias, bn)

    def deploy_state(self) -> Arrays:
        weight, bias = self.fuse()
        return {f"{self.names[0]}.weight": weight, f"{self.names[0]}.bias": bias}

    def fold(self) -> None:
        """Becomes its deploy form in place: what it computes in eval mode stays the same."""
        if not self.deploy:
            fold_norm(getattr(self, self.names[0]), getattr(self, self.names[1]))
            delattr(self, self.names[1])
            self.deploy = True


def _same(kernel_size: int | tuple[int, int], dilation: int) -> str | tuple[int, int]:
    rows, columns = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
    return (dilation * (rows // 2), dilation * (columns // 2)) if rows % 2 and columns % 2 else "SAME"
