"""ShuffleNetV2. Source: Ma et al. 2018."""

from __future__ import annotations

import functools
from collections.abc import Callable

from framework import paddle
from framework.paddle import nn
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.vision.models.parts import ConvNormActivation, model_function, scale_name, zoo_table


def _depthwise(width: int, stride: int) -> ConvNormActivation:
    return ConvNormActivation(width, width, 3, stride, 1, groups=width, activation_layer=None)


class _Shuffled(nn.Layer):
    """One half passes, the other is filtered."""

    def __init__(self, width: int, act: type[nn.Layer]) -> None:
        super().__init__()
        half = width // 2
        self._conv_pw = ConvNormActivation(half, half, 1, activation_layer=act)
        self._conv_dw = _depthwise(half, 1)
        self._conv_linear = ConvNormActivation(half, half, 1, activation_layer=act)

    def forward(self, x: Tensor) -> Tensor:
        passed, filtered = paddle.split(x, 2, axis=1)
        filtered = self._conv_linear(self._conv_dw(self._conv_pw(filtered)))
        return F.channel_shuffle(paddle.concat([passed, filtered], 1), 2)


class _ShuffledDown(nn.Layer):
    """Both halves are filtered with stride 2."""

    def __init__(self, inputs: int, outputs: int, act: type[nn.Layer]) -> None:
        super().__init__()
        half = outputs // 2
        self._conv_dw_1 = _depthwise(inputs, 2)
        self._conv_linear_1 = ConvNormActivation(inputs, half, 1, activation_layer=act)
        self._conv_pw_2 = ConvNormActivation(inputs, half, 1, activation_layer=act)
        self._conv_dw_2 = _depthwise(half, 2)
        self._conv_linear_2 = ConvNormActivation(half, half, 1, activation_layer=act)

    def forward(self, x: Tensor) -> Tensor:
        one = self._conv_linear_1(self._conv_dw_1(x))
        two = self._conv_linear_2(self._conv_dw_2(self._conv_pw_2(x)))
        return F.channel_shuffle(paddle.concat([one, two], 1), 2)


class ShuffleNetV2(nn.Layer):
    """Images [N, 3, H, W] -> [N, num_classes].

    Args:
        scale: .25, .33, .5, 1, 1.5 or 2.
        act: "relu" or "swish".
    """

    def __init__(
        self, scale: float = 1.0, act: str = "relu", num_classes: int = 1000, with_pool: bool = True
    ) -> None:
        super().__init__()
        kinds, sizes = {"relu": nn.ReLU, "swish": nn.Swish, None: None}, zoo_table("ShuffleNetV2")
        variant = f"shufflenet_v2_{scale_name(scale)}"
        if variant not in sizes or act not in kinds:
            raise ShapeError(
                "unknown scale or activation",
                where="ShuffleNetV2",
                received=f"scale {scale}, act {act!r}",
                allowed="scale 0.25, 0.33, 0.5, 1.0, 1.5 or 2.0, act 'relu', 'swish' or None",
            )
        self.scale, self.num_classes, self.with_pool = scale, num_classes, with_pool
        kind, size = kinds[act], sizes[variant]
        stem = zoo_table("ShuffleNetV2", "STEM_WIDTH")
        self._conv1 = ConvNormActivation(3, stem, 3, 2, 1, activation_layer=kind)
        self._max_pool = nn.MaxPool2D(3, 2, 1)
        self._block_list: list[str] = []
        inputs, depths = stem, zoo_table("ShuffleNetV2", "DEPTHS")
        for stage, (width, count) in enumerate(zip(size.widths, depths, strict=True), start=2):
            for number in range(1, count + 1):
                block = _Shuffled(width, kind) if number > 1 else _ShuffledDown(inputs, width, kind)
                self.add_sublayer(f"{stage}_{number}", block)
                self._block_list.append(f"{stage}_{number}")
            inputs = width
        self._last_conv = ConvNormActivation(inputs, size.last, 1, activation_layer=kind)
        if with_pool:
            self._pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self._fc = nn.Linear(size.last, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        x = self._max_pool(self._conv1(inputs))
        for name in self._block_list:
            x = getattr(self, name)(x)
        x = self._last_conv(x)
        if self.with_pool:
            x = self._pool2d_avg(x)
        return self._fc(x.flatten(1)) if self.num_classes > 0 else x


def _shufflenet(name: str, scale: float, act: str = "relu") -> Callable[..., ShuffleNetV2]:
    return model_function(name, functools.partial(ShuffleNetV2, scale=scale, act=act))


shufflenet_v2_x0_25 = _shufflenet("shufflenet_v2_x0_25", 0.25)
shufflenet_v2_x0_33 = _shufflenet("shufflenet_v2_x0_33", 0.33)
shufflenet_v2_x0_5 = _shufflenet("shufflenet_v2_x0_5", 0.5)
shufflenet_v2_x1_0 = _shufflenet("shufflenet_v2_x1_0", 1.0)
shufflenet_v2_x1_5 = _shufflenet("shufflenet_v2_x1_5", 1.5)
shufflenet_v2_x2_0 = _shufflenet("shufflenet_v2_x2_0", 2.0)
shufflenet_v2_swish = _shufflenet("shufflenet_v2_swish", 1.0, "swish")
