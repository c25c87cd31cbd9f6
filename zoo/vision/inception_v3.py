"""Inception-v3: blocks of branches whose large kernels are factorised into small and one-sided ones.

Paper: Szegedy et al. 2015, https://arxiv.org/abs/1512.00567, table 1
Reference: paddle.vision.models.inceptionv3; PaddleClas ppcls/arch/backbone/legendary_models/inception_v3.py is the same
Differs: nothing in the function computed. As upstream it has no inner classifier, which torchvision's has; the epsilon
    of the normalisations is 1e-5, where torchvision's is 1e-3.
Weights: `state_dict()` has the names of paddle.vision.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Contract
from zoo.layers.conv_bn import ConvBN, ConvBNOptions

PARAMS = 23_834_568  # with 1000 classes, as torchvision's without its inner classifier
WIDTH = 2048  # of the last map
_WIDE, _TALL = (1, 7), (7, 1)


@dataclass(frozen=True)
class InceptionV3Config:
    """The network has one size."""

    num_classes: int = 1000


def _conv(
    in_channels: int,
    out_channels: int,
    kernel_size: int | tuple[int, int],
    stride: int = 1,
    padding: int | None = None,
) -> ConvBN:
    """With ReLU. At stride 1 it keeps the size, if `padding` is not 0."""
    options = ConvBNOptions(padding=padding, names=("0", "1"))
    return ConvBN(in_channels, out_channels, kernel_size, stride, act=F.relu, options=options)


def _mean3(x: jax.Array) -> jax.Array:
    """Of 3x3 pixels, zeros around the map among them."""
    return F.avg_pool2d(x, 3, 1, 1, exclusive=False)


def _join(*branches: jax.Array) -> jax.Array:
    return jnp.concatenate(branches, axis=-1)


class Stem(nn.Layer):
    """[N, H, W, 3] -> [N, about H/8, about W/8, 192]; most convolutions lose the border."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_1a_3x3 = _conv(3, 32, 3, 2, padding=0)
        self.conv_2a_3x3 = _conv(32, 32, 3, padding=0)
        self.conv_2b_3x3 = _conv(32, 64, 3)
        self.conv_3b_1x1 = _conv(64, 80, 1)
        self.conv_4a_3x3 = _conv(80, 192, 3, padding=0)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.conv_2b_3x3(self.conv_2a_3x3(self.conv_1a_3x3(x)))  # [N, 147, 147, 64] of 299 pixels
        x = F.max_pool2d(x, 3, 2)  # [N, 73, 73, 64]
        x = self.conv_4a_3x3(self.conv_3b_1x1(x))  # [N, 71, 71, 192]
        return F.max_pool2d(x, 3, 2)  # [N, 35, 35, 192]


class InceptionA(nn.Layer):
    """[N, H, W, in_channels] -> [N, H, W, 224 + pooled]. Source: paper, figure 5, with a 5x5 left in one branch."""

    def __init__(self, in_channels: int, pooled: int) -> None:
        super().__init__()
        self.branch1x1 = _conv(in_channels, 64, 1)
        self.branch5x5_1 = _conv(in_channels, 48, 1)
        self.branch5x5_2 = _conv(48, 64, 5)
        self.branch3x3dbl_1 = _conv(in_channels, 64, 1)
        self.branch3x3dbl_2 = _conv(64, 96, 3)
        self.branch3x3dbl_3 = _conv(96, 96, 3)
        self.branch_pool_conv = _conv(in_channels, pooled, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        return _join(
            self.branch1x1(x),
            self.branch5x5_2(self.branch5x5_1(x)),
            self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x))),
            self.branch_pool_conv(_mean3(x)),
        )


class InceptionB(nn.Layer):
    """[N, H, W, in_channels] -> [N, about H/2, about W/2, 480 + in_channels]."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.branch3x3 = _conv(in_channels, 384, 3, 2, padding=0)
        self.branch3x3dbl_1 = _conv(in_channels, 64, 1)
        self.branch3x3dbl_2 = _conv(64, 96, 3)
        self.branch3x3dbl_3 = _conv(96, 96, 3, 2, padding=0)

    def forward(self, x: jax.Array) -> jax.Array:
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return _join(self.branch3x3(x), double, F.max_pool2d(x, 3, 2))


class InceptionC(nn.Layer):
    """[N, H, W, 768] -> [N, H, W, 768] by one-sided kernels of seven. Source: paper, figure 6."""

    def __init__(self, in_channels: int, mid: int) -> None:
        super().__init__()
        self.branch1x1 = _conv(in_channels, 192, 1)
        self.branch7x7_1 = _conv(in_channels, mid, 1)
        self.branch7x7_2 = _conv(mid, mid, _WIDE)
        self.branch7x7_3 = _conv(mid, 192, _TALL)
        self.branch7x7dbl_1 = _conv(in_channels, mid, 1)
        self.branch7x7dbl_2 = _conv(mid, mid, _TALL)
        self.branch7x7dbl_3 = _conv(mid, mid, _WIDE)
        self.branch7x7dbl_4 = _conv(mid, mid, _TALL)
        self.branch7x7dbl_5 = _conv(mid, 192, _WIDE)
        self.branch_pool_conv = _conv(in_channels, 192, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        double = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        return _join(
            self.branch1x1(x),
            self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x))),
            self.branch7x7dbl_5(self.branch7x7dbl_4(double)),
            self.branch_pool_conv(_mean3(x)),
        )


class InceptionD(nn.Layer):
    """[N, H, W, in_channels] -> [N, about H/2, about W/2, 512 + in_channels]."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.branch3x3_1 = _conv(in_channels, 192, 1)
        self.branch3x3_2 = _conv(192, 320, 3, 2, padding=0)
        self.branch7x7x3_1 = _conv(in_channels, 192, 1)
        self.branch7x7x3_2 = _conv(192, 192, _WIDE)
        self.branch7x7x3_3 = _conv(192, 192, _TALL)
        self.branch7x7x3_4 = _conv(192, 192, 3, 2, padding=0)

    def forward(self, x: jax.Array) -> jax.Array:
        factorised = self.branch7x7x3_3(self.branch7x7x3_2(self.branch7x7x3_1(x)))
        return _join(
            self.branch3x3_2(self.branch3x3_1(x)),
            self.branch7x7x3_4(factorised),
            F.max_pool2d(x, 3, 2),
        )


class InceptionE(nn.Layer):
    """[N, H, W, in_channels] -> [N, H, W, 2048]; 1x3 and 3x1 kernels side by side. Source: paper, figure 7."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.branch1x1 = _conv(in_channels, 320, 1)
        self.branch3x3_1 = _conv(in_channels, 384, 1)
        self.branch3x3_2a = _conv(384, 384, (1, 3))
        self.branch3x3_2b = _conv(384, 384, (3, 1))
        self.branch3x3dbl_1 = _conv(in_channels, 448, 1)
        self.branch3x3dbl_2 = _conv(448, 384, 3)
        self.branch3x3dbl_3a = _conv(384, 384, (1, 3))
        self.branch3x3dbl_3b = _conv(384, 384, (3, 1))
        self.branch_pool_conv = _conv(in_channels, 192, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        single = self.branch3x3_1(x)
        double = self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        return _join(
            self.branch1x1(x),
            self.branch3x3_2a(single),
            self.branch3x3_2b(single),
            self.branch3x3dbl_3a(double),
            self.branch3x3dbl_3b(double),
            self.branch_pool_conv(_mean3(x)),
        )


@register("model", config=InceptionV3Config)
class InceptionV3(nn.Model[InceptionV3Config]):
    """[N, H, W, 3], sides of 75 at least and 299 as trained -> logits [N, num_classes]."""

    # Convolutions and poolings without padding: the sides are numbers of the program.
    contract = Contract(inputs=("n", 96, 128, 3))

    def __init__(self, config: InceptionV3Config) -> None:
        super().__init__(config)
        self.inception_stem = Stem()
        self.inception_block_list = nn.Sequential(
            InceptionA(192, 32),
            InceptionA(256, 64),
            InceptionA(288, 64),
            InceptionB(288),
            InceptionC(768, 128),
            InceptionC(768, 160),
            InceptionC(768, 160),
            InceptionC(768, 192),
            InceptionD(768),
            InceptionE(1280),
            InceptionE(WIDTH),
        )
        # In this mode inference multiplies by 1 - p: official weights expect it.
        self.dropout = nn.Dropout(0.2, mode="downscale_in_infer")
        self.fc = nn.Linear(WIDTH, config.num_classes, I.Uniform(-(WIDTH**-0.5), WIDTH**-0.5))

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.inception_stem(x)  # [N, 35, 35, 192] of 299 pixels
        x = self.inception_block_list(x)  # [N, 8, 8, 2048]
        return self.fc(self.dropout(F.global_avg_pool2d(x))[:, 0, 0])
