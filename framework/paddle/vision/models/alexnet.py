"""AlexNet. Source: Krizhevsky 2014 (one weird trick)."""

from __future__ import annotations

from framework.paddle import nn
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.vision.models.parts import model_function


class _ConvPool(nn.Layer):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, padding: int) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self._conv = nn.Conv2D(inputs, outputs, kernel, stride, padding)
        self._pool = nn.MaxPool2D(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self._pool(self.relu(self._conv(x)))


class AlexNet(nn.Layer):
    """Images [N, 3, 224, 224] -> [N, num_classes]."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        self.num_classes = num_classes
        self._conv1 = _ConvPool(3, 64, 11, 4, 2)
        self._conv2 = _ConvPool(64, 192, 5, 1, 2)
        self._conv3 = nn.Conv2D(192, 384, 3, padding=1)
        self._conv4 = nn.Conv2D(384, 256, 3, padding=1)
        self._conv5 = _ConvPool(256, 256, 3, 1, 1)
        if num_classes > 0:
            self._drop1 = nn.Dropout(0.5, mode="downscale_in_infer")
            self._fc6 = nn.Linear(256 * 6 * 6, 4096)
            self._drop2 = nn.Dropout(0.5, mode="downscale_in_infer")
            self._fc7 = nn.Linear(4096, 4096)
            self._fc8 = nn.Linear(4096, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        x = self._conv2(self._conv1(inputs))
        x = self._conv5(F.relu(self._conv4(F.relu(self._conv3(x)))))
        if self.num_classes > 0:
            x = F.relu(self._fc6(self._drop1(x.flatten(1))))
            x = self._fc8(F.relu(self._fc7(self._drop2(x))))
        return x


alexnet = model_function("alexnet", AlexNet)
