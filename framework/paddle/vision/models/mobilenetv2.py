"""MobileNetV2. Source: Sandler et al. 2018."""

from __future__ import annotations

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


class _InvertedResidual(nn.Layer):
    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        layers: list[nn.Layer] = []
        if expansion != 1:
            layers.append(ConvNormActivation(inputs, inner, 1, activation_layer=nn.ReLU6))
        layers.append(ConvNormActivation(inner, inner, 3, stride, groups=inner, activation_layer=nn.ReLU6))
        layers += [nn.Conv2D(inner, outputs, 1, bias_attr=False), nn.BatchNorm2D(outputs)]
        self.conv = nn.Sequential(*layers)
        self.use_res_connect = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Layer):
    """Images [N, 3, H, W] -> [N, num_classes]; `scale` multiplies the widths."""

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        width = make_divisible(32 * scale)
        layers: list[nn.Layer] = [ConvNormActivation(3, width, 3, 2, activation_layer=nn.ReLU6)]
        for expansion, channels, count, stride in zoo_table("MobileNetV2", "STAGES"):
            outputs = make_divisible(channels * scale)
            for index in range(count):
                layers.append(_InvertedResidual(width, outputs, 1 if index else stride, expansion))
                width = outputs
        last = make_divisible(1280 * max(1.0, scale))
        layers.append(ConvNormActivation(width, last, 1, activation_layer=nn.ReLU6))
        self.features = nn.Sequential(*layers)
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


def mobilenet_v2(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV2:
    """MobileNetV2."""
    entry = f"mobilenetv2_{scale_name(scale)}_imagenet"
    return with_weights(MobileNetV2(scale=scale, **kwargs), pretrained, entry)
