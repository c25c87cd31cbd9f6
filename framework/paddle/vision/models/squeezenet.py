"""SqueezeNet. Source: Iandola et al. 2016."""

from __future__ import annotations

import functools

from framework import paddle
from framework.paddle import nn
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.vision.models.parts import model_function, zoo_table


class _Conv(nn.Layer):
    def __init__(self, inputs: int, outputs: int, kernel: int, padding: int = 0) -> None:
        super().__init__()
        self._conv = nn.Conv2D(inputs, outputs, kernel, padding=padding)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self._conv(x))


class _Fire(nn.Layer):
    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self._conv = _Conv(inputs, squeezed, 1)
        self._conv_path1 = _Conv(squeezed, expanded, 1)
        self._conv_path2 = _Conv(squeezed, expanded, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self._conv(x)
        return paddle.concat([self._conv_path1(x), self._conv_path2(x)], 1)


class SqueezeNet(nn.Layer):
    """Images [N, 3, H, W] -> [N, num_classes]; version "1.0" or "1.1"."""

    def __init__(self, version: str, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        if version not in ("1.0", "1.1"):
            raise ShapeError(
                "unknown version", where="SqueezeNet", received=repr(version), allowed="'1.0', '1.1'"
            )
        self.version, self.num_classes, self.with_pool = version, num_classes, with_pool
        size = zoo_table("SqueezeNet")[f"squeezenet{version.replace('.', '_')}"]
        (width, kernel, padding), self._halved = size.stem, size.pooled
        self._conv = nn.Conv2D(3, width, kernel, 2, padding)
        self._pool = nn.MaxPool2D(3, 2)
        for number, (squeezed, expanded) in enumerate(zoo_table("SqueezeNet", "FIRES"), start=1):
            setattr(self, f"_conv{number}", _Fire(width, squeezed, expanded))
            width = 2 * expanded
        self._drop = nn.Dropout(0.5, mode="downscale_in_infer")
        self._conv9 = nn.Conv2D(512, num_classes, 1)
        self._avg_pool = nn.AdaptiveAvgPool2D(1)

    def forward(self, inputs: Tensor) -> Tensor:
        x = F.relu(self._conv(inputs))
        for number in range(1, 9):
            if number in self._halved:
                x = self._pool(x)
            x = getattr(self, f"_conv{number}")(x)
        if self.num_classes > 0:
            x = self._conv9(self._drop(x))
        return self._avg_pool(F.relu(x)).squeeze([2, 3]) if self.with_pool else x


squeezenet1_0 = model_function("squeezenet1_0", functools.partial(SqueezeNet, "1.0"))
squeezenet1_1 = model_function("squeezenet1_1", functools.partial(SqueezeNet, "1.1"))
