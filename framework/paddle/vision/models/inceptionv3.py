"""Inception v3. Source: Szegedy et al. 2015."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework import paddle
from framework.paddle import nn
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.vision.models.parts import ConvNormActivation, model_function

_Step = str | tuple[str, ...]  # a layer, or layers side by side whose outputs are joined
_WIDE, _TALL = ((1, 7), (0, 3)), ((7, 1), (3, 0))


class _Block(nn.Layer):
    """Paths side by side, joined along channels.

    Args:
        convs: name -> inputs, outputs, kernel, padding, stride.
        pool: what `branch_pool` is.
    """

    def __init__(
        self, convs: Mapping[str, Any], pool: nn.Layer, paths: tuple[tuple[_Step, ...], ...]
    ) -> None:
        super().__init__()
        for name, (inputs, outputs, kernel, padding, *stride) in convs.items():
            layer = ConvNormActivation(inputs, outputs, kernel, *(stride or [1]), padding=padding)
            if name == "branch_pool_conv":
                self.branch_pool = pool
            setattr(self, name, layer)
        self.branch_pool = pool
        self.paths = paths

    def _follow(self, x: Tensor, path: tuple[_Step, ...]) -> Tensor:
        for step in path:
            if isinstance(step, tuple):
                x = paddle.concat([getattr(self, name)(x) for name in step], 1)
            else:
                x = getattr(self, step)(x)
        return x

    def forward(self, x: Tensor) -> Tensor:
        return paddle.concat([self._follow(x, path) for path in self.paths], 1)


def _mean() -> nn.Layer:
    return nn.AvgPool2D(3, 1, 1, exclusive=False)


_POOLED = ("branch_pool", "branch_pool_conv")


def _block_a(inputs: int, pool: int) -> _Block:
    convs = {
        "branch1x1": (inputs, 64, 1, 0),
        "branch5x5_1": (inputs, 48, 1, 0),
        "branch5x5_2": (48, 64, 5, 2),
        "branch3x3dbl_1": (inputs, 64, 1, 0),
        "branch3x3dbl_2": (64, 96, 3, 1),
        "branch3x3dbl_3": (96, 96, 3, 1),
        "branch_pool_conv": (inputs, pool, 1, 0),
    }
    double = ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3")
    return _Block(convs, _mean(), (("branch1x1",), ("branch5x5_1", "branch5x5_2"), double, _POOLED))


def _block_b(inputs: int) -> _Block:
    convs = {
        "branch3x3": (inputs, 384, 3, 0, 2),
        "branch3x3dbl_1": (inputs, 64, 1, 0),
        "branch3x3dbl_2": (64, 96, 3, 1),
        "branch3x3dbl_3": (96, 96, 3, 0, 2),
    }
    double = ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3")
    return _Block(convs, nn.MaxPool2D(3, 2), (("branch3x3",), double, ("branch_pool",)))


def _block_c(inputs: int, inner: int) -> _Block:
    convs = {
        "branch1x1": (inputs, 192, 1, 0),
        "branch7x7_1": (inputs, inner, 1, 0),
        "branch7x7_2": (inner, inner, *_WIDE),
        "branch7x7_3": (inner, 192, *_TALL),
        "branch7x7dbl_1": (inputs, inner, 1, 0),
        "branch7x7dbl_2": (inner, inner, *_TALL),
        "branch7x7dbl_3": (inner, inner, *_WIDE),
        "branch7x7dbl_4": (inner, inner, *_TALL),
        "branch7x7dbl_5": (inner, 192, *_WIDE),
        "branch_pool_conv": (inputs, 192, 1, 0),
    }
    once = tuple(f"branch7x7_{number}" for number in range(1, 4))
    twice = tuple(f"branch7x7dbl_{number}" for number in range(1, 6))
    return _Block(convs, _mean(), (("branch1x1",), once, twice, _POOLED))


def _block_d(inputs: int) -> _Block:
    convs = {
        "branch3x3_1": (inputs, 192, 1, 0),
        "branch3x3_2": (192, 320, 3, 0, 2),
        "branch7x7x3_1": (inputs, 192, 1, 0),
        "branch7x7x3_2": (192, 192, *_WIDE),
        "branch7x7x3_3": (192, 192, *_TALL),
        "branch7x7x3_4": (192, 192, 3, 0, 2),
    }
    long = tuple(f"branch7x7x3_{number}" for number in range(1, 5))
    return _Block(convs, nn.MaxPool2D(3, 2), (("branch3x3_1", "branch3x3_2"), long, ("branch_pool",)))


def _block_e(inputs: int) -> _Block:
    wide, tall = ((1, 3), (0, 1)), ((3, 1), (1, 0))
    convs = {
        "branch1x1": (inputs, 320, 1, 0),
        "branch3x3_1": (inputs, 384, 1, 0),
        "branch3x3_2a": (384, 384, *wide),
        "branch3x3_2b": (384, 384, *tall),
        "branch3x3dbl_1": (inputs, 448, 1, 0),
        "branch3x3dbl_2": (448, 384, 3, 1),
        "branch3x3dbl_3a": (384, 384, *wide),
        "branch3x3dbl_3b": (384, 384, *tall),
        "branch_pool_conv": (inputs, 192, 1, 0),
    }
    once = ("branch3x3_1", ("branch3x3_2a", "branch3x3_2b"))
    twice = ("branch3x3dbl_1", "branch3x3dbl_2", ("branch3x3dbl_3a", "branch3x3dbl_3b"))
    return _Block(convs, _mean(), (("branch1x1",), once, twice, _POOLED))


class _Stem(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv_1a_3x3 = ConvNormActivation(3, 32, 3, 2, 0)
        self.conv_2a_3x3 = ConvNormActivation(32, 32, 3, 1, 0)
        self.conv_2b_3x3 = ConvNormActivation(32, 64, 3, 1, 1)
        self.max_pool = nn.MaxPool2D(3, 2)
        self.conv_3b_1x1 = ConvNormActivation(64, 80, 1, 1, 0)
        self.conv_4a_3x3 = ConvNormActivation(80, 192, 3, 1, 0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.max_pool(self.conv_2b_3x3(self.conv_2a_3x3(self.conv_1a_3x3(x))))
        return self.max_pool(self.conv_4a_3x3(self.conv_3b_1x1(x)))


class InceptionV3(nn.Layer):
    """Images [N, 3, 299, 299] -> [N, num_classes]."""

    def __init__(self, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        self.inception_stem = _Stem()
        self.inception_block_list = nn.LayerList(
            [
                *(_block_a(inputs, pool) for inputs, pool in ((192, 32), (256, 64), (288, 64))),
                _block_b(288),
                *(_block_c(768, inner) for inner in (128, 160, 160, 192)),
                _block_d(768),
                *(_block_e(inputs) for inputs in (1280, 2048)),
            ]
        )
        if with_pool:
            self.avg_pool = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.dropout = nn.Dropout(0.2, mode="downscale_in_infer")
            self.fc = nn.Linear(2048, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inception_stem(x)
        for block in self.inception_block_list:
            x = block(x)
        if self.with_pool:
            x = self.avg_pool(x)
        return self.fc(self.dropout(x.reshape([-1, 2048]))) if self.num_classes > 0 else x


inception_v3 = model_function("inception_v3", InceptionV3)
