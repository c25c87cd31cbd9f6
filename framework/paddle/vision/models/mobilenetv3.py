"""MobileNetV3. Source: Howard et al. 2019."""

from __future__ import annotations

import functools
from typing import Any

from framework.paddle import nn
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.vision.models.parts import (
    ConvNormActivation,
    make_divisible,
    scale_name,
    with_weights,
    zoo_table,
)

_norm = functools.partial(nn.BatchNorm2D, epsilon=0.001, momentum=0.99)


class SqueezeExcitation(nn.Layer):
    """Weighs channels by what a small network sees of their means."""

    def __init__(self, input_channels: int, squeeze_channels: int) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2D(1)
        self.fc1 = nn.Conv2D(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2D(squeeze_channels, input_channels, 1)
        self.activation = nn.ReLU()
        self.scale_activation = nn.Hardsigmoid()

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x)))))


class InvertedResidual(nn.Layer):
    """Expand, filter each channel, weigh, project; with a shortcut where the form stays."""

    def __init__(
        self,
        inputs: int,
        inner: int,
        outputs: int,
        kernel: int,
        stride: int,
        use_se: bool,
        act: type[nn.Layer],
    ) -> None:
        super().__init__()
        self.use_res_connect = stride == 1 and inputs == outputs
        self.use_se, self.expand = use_se, inner != inputs
        form = {"norm_layer": _norm, "activation_layer": act}
        if self.expand:
            self.expand_conv = ConvNormActivation(inputs, inner, 1, **form)
        self.bottleneck_conv = ConvNormActivation(inner, inner, kernel, stride, groups=inner, **form)
        if use_se:
            self.mid_se = SqueezeExcitation(inner, make_divisible(inner // 4))
        self.linear_conv = ConvNormActivation(inner, outputs, 1, norm_layer=_norm, activation_layer=None)

    def forward(self, x: Tensor) -> Tensor:
        y = self.bottleneck_conv(self.expand_conv(x) if self.expand else x)
        y = self.linear_conv(self.mid_se(y) if self.use_se else y)
        return x + y if self.use_res_connect else y


class MobileNetV3(nn.Layer):
    """Blocks by a table, and a classifier of two layers; images [N, 3, H, W] -> [N, num_classes]."""

    def __init__(
        self,
        config: Any,
        last_channel: int,
        scale: float = 1.0,
        num_classes: int = 1000,
        with_pool: bool = True,
    ) -> None:
        super().__init__()
        self.scale, self.num_classes, self.with_pool = scale, num_classes, with_pool
        width = make_divisible(16 * scale)
        self.conv = ConvNormActivation(3, width, 3, 2, 1, norm_layer=_norm, activation_layer=nn.Hardswish)
        blocks = []
        for kernel, inner, outputs, use_se, act, stride in config:
            sizes = (width, make_divisible(inner * scale), make_divisible(outputs * scale))
            activation = nn.Hardswish if act == "hardswish" else nn.ReLU
            blocks.append(InvertedResidual(*sizes, kernel, stride, use_se, activation))
            width = sizes[2]
        self.blocks = nn.Sequential(*blocks)
        self.lastconv = ConvNormActivation(
            width, width * 6, 1, norm_layer=_norm, activation_layer=nn.Hardswish
        )
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = nn.Sequential(
                nn.Linear(width * 6, last_channel),
                nn.Hardswish(),
                nn.Dropout(0.2),
                nn.Linear(last_channel, num_classes),
            )

    def forward(self, x: Tensor) -> Tensor:
        x = self.lastconv(self.blocks(self.conv(x)))
        if self.with_pool:
            x = self.avgpool(x)
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


def _units(size: str) -> list[Any]:
    """Kernel, expanded width, width, squeeze and excitation, activation, stride of each block."""
    return [unit[:6] for unit in zoo_table("MobileNetV3", "UNITS")[size]]


class MobileNetV3Small(MobileNetV3):
    """The smaller of the two tables."""

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__(_units("small"), make_divisible(1024 * scale), scale, num_classes, with_pool)


class MobileNetV3Large(MobileNetV3):
    """The larger of the two tables."""

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__(_units("large"), make_divisible(1280 * scale), scale, num_classes, with_pool)


def mobilenet_v3_small(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV3Small:
    """MobileNetV3, the smaller."""
    entry = f"mobilenetv3_small_{scale_name(scale)}_vision_imagenet"
    return with_weights(MobileNetV3Small(scale=scale, **kwargs), pretrained, entry)


def mobilenet_v3_large(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV3Large:
    """MobileNetV3, the larger."""
    entry = f"mobilenetv3_large_{scale_name(scale)}_vision_imagenet"
    return with_weights(MobileNetV3Large(scale=scale, **kwargs), pretrained, entry)
