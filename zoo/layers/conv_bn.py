"""A convolution, its batch normalisation and an activation: one biased convolution in deploy form."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from framework import nn
from framework.nn.reparam import Arrays, FoldableLayer, fold_norm, fuse_conv_bn

Activation = Callable[[jax.Array], jax.Array]


class ConvBN(FoldableLayer):
    """`act(bn(conv(x)))` on [N, H, W, C]; the convolution has no bias in training form, unless `bias` gives it one.

    Without `padding` a convolution of stride 1 and odd kernel keeps the size, dilated too. `names` are the attributes
    of convolution and normalisation, which differ between upstream's classes. `gamma` is where the normalisation's
    weight starts: 0 makes a residual block start as the identity. `initializer` is the kernel's, if not that of Conv2D.
    `epsilon` and `momentum` are the normalisation's, and `norm_decay` is the weight decay of its weight and bias, in
    place of the optimizer's.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: str | int | tuple[int, int] | None = None,
        groups: int = 1,
        act: Activation | None = None,
        names: tuple[str, str] = ("conv", "bn"),
        gamma: float = 1.0,
        deploy: bool = False,
        dilation: int = 1,
        initializer: nn.initializer.Initializer | None = None,
        bias: bool = False,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        norm_decay: float | None = None,
    ) -> None:
        super().__init__()
        if padding is None:
            kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
            padding = (dilation * (kernel[0] // 2), dilation * (kernel[1] // 2))
        self.names, self.act, self.deploy = names, act, deploy
        conv = nn.Conv2D(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups=groups,
            weight_attr=initializer,
            bias_attr=None if deploy or bias else False,
        )
        self.add_sublayer(names[0], conv)
        if not deploy:
            scale = nn.ParamAttr(initializer=nn.initializer.Constant(gamma), regularizer=norm_decay)
            shift = nn.ParamAttr(regularizer=norm_decay)
            norm = nn.BatchNorm2D(out_channels, momentum, epsilon, weight_attr=scale, bias_attr=shift)
            self.add_sublayer(names[1], norm)

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
