"""MobileNet. Source: Howard et al. 2017."""

from __future__ import annotations

from typing import Any

from framework.paddle import nn
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.vision.models.parts import ConvNormActivation, scale_name, with_weights, zoo_table

# Each block of the zoo's table.
_NAMES = (
    "conv2_1",
    "conv2_2",
    "conv3_1",
    "conv3_2",
    "conv4_1",
    "conv4_2",
    *(f"conv5_{i}" for i in range(1, 7)),
    "conv6",
)


class _DepthwiseSeparable(nn.Layer):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self._depthwise_conv = ConvNormActivation(inputs, inputs, 3, stride, 1, groups=inputs)
        self._pointwise_conv = ConvNormActivation(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self._pointwise_conv(self._depthwise_conv(x))


class MobileNetV1(nn.Layer):
    """Images [N, 3, H, W] -> [N, num_classes]; `scale` multiplies the widths."""

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.scale, self.num_classes, self.with_pool = scale, num_classes, with_pool
        width = int(32 * scale)
        self.conv1 = ConvNormActivation(3, width, 3, 2, 1)
        for name, (at_scale_1, stride) in zip(_NAMES, zoo_table("MobileNetV1", "BLOCKS"), strict=True):
            inputs, width = width, int(at_scale_1 * scale)
            setattr(self, name, _DepthwiseSeparable(inputs, width, stride))
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.fc = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x)
        for name in _NAMES:
            x = getattr(self, name)(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x


def mobilenet_v1(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV1:
    """MobileNetV1."""
    entry = f"mobilenetv1_{scale_name(scale)}_vision_imagenet"
    return with_weights(MobileNetV1(scale=scale, **kwargs), pretrained, entry)
