"""GoogLeNet. Source: Szegedy et al. 2014."""

from __future__ import annotations

from framework import paddle
from framework.paddle import nn
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.vision.models.parts import model_function, zoo_table


class _Conv(nn.Layer):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self._conv = nn.Conv2D(inputs, outputs, kernel, stride, (kernel - 1) // 2, bias_attr=False)

    def forward(self, x: Tensor) -> Tensor:
        return self._conv(x)


class _Inception(nn.Layer):
    def __init__(
        self, inputs: int, one: int, three_in: int, three: int, five_in: int, five: int, pool: int
    ) -> None:
        super().__init__()
        self._conv1 = _Conv(inputs, one, 1)
        self._conv3r = _Conv(inputs, three_in, 1)
        self._conv3 = _Conv(three_in, three, 3)
        self._conv5r = _Conv(inputs, five_in, 1)
        self._conv5 = _Conv(five_in, five, 5)
        self._pool = nn.MaxPool2D(3, 1, 1)
        self._convprj = _Conv(inputs, pool, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = [
            self._conv1(x),
            self._conv3(self._conv3r(x)),
            self._conv5(self._conv5r(x)),
            self._convprj(self._pool(x)),
        ]
        return F.relu(paddle.concat(parts, 1))


class GoogLeNet(nn.Layer):
    """Images [N, 3, 224, 224] -> [logits, and those of two earlier heads], each [N, num_classes]."""

    def __init__(self, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        self._conv = _Conv(3, 64, 7, 2)
        self._pool = nn.MaxPool2D(3, 2)
        self._conv_1 = _Conv(64, 64, 1)
        self._conv_2 = _Conv(64, 192, 3)
        for name, sizes in zoo_table("GoogLeNet", "BLOCKS").items():
            setattr(self, name, _Inception(*sizes))
        if with_pool:
            self._pool_5 = nn.AdaptiveAvgPool2D(1)
            self._pool_o1 = nn.AvgPool2D(5, 3)
            self._pool_o2 = nn.AvgPool2D(5, 3)
        if num_classes > 0:
            self._drop = nn.Dropout(0.4, mode="downscale_in_infer")
            self._fc_out = nn.Linear(1024, num_classes)
            for number, inputs in ((1, 512), (2, 528)):
                setattr(self, f"_conv_o{number}", _Conv(inputs, 128, 1))
                setattr(self, f"_fc_o{number}", nn.Linear(1152, 1024))
                setattr(self, f"_drop_o{number}", nn.Dropout(0.7, mode="downscale_in_infer"))
                setattr(self, f"_out{number}", nn.Linear(1024, num_classes))

    def _head(self, x: Tensor, number: int) -> Tensor:
        """An earlier classifier."""
        if self.with_pool:
            x = getattr(self, f"_pool_o{number}")(x)
        if self.num_classes > 0:
            x = getattr(self, f"_conv_o{number}")(x).flatten(1)
            x = getattr(self, f"_fc_o{number}")(x)
            # Paddle's second head has no activation, and its weights are trained so.
            x = getattr(self, f"_drop_o{number}")(F.relu(x) if number == 1 else x)
            x = getattr(self, f"_out{number}")(x)
        return x

    def forward(self, inputs: Tensor) -> list[Tensor]:
        x = self._conv_2(self._conv_1(self._pool(self._conv(inputs))))
        x = self._pool(self._ince3b(self._ince3a(self._pool(x))))
        first = x = self._ince4a(x)
        second = x = self._ince4d(self._ince4c(self._ince4b(x)))
        x = self._ince5b(self._ince5a(self._pool(self._ince4e(x))))
        if self.with_pool:
            x = self._pool_5(x)
        if self.num_classes > 0:
            x = self._fc_out(self._drop(x).flatten(1))
        return [x, self._head(first, 1), self._head(second, 2)]


googlenet = model_function("googlenet", GoogLeNet)
