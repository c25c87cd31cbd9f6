"""DenseNet. Source: Huang et al. 2017."""

from __future__ import annotations

import functools

from framework import paddle
from framework.paddle import nn
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.vision.models.parts import model_function, zoo_table


class _NormConv(nn.Layer):
    """Norm, ReLU, convolution."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self._batch_norm = nn.BatchNorm(inputs, act="relu")
        self._conv = nn.Conv2D(inputs, outputs, kernel, padding=kernel // 2, bias_attr=False)

    def forward(self, x: Tensor) -> Tensor:
        return self._conv(self._batch_norm(x))


class _ConvNorm(nn.Layer):
    """Convolution, norm, ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self._conv = nn.Conv2D(inputs, outputs, 7, 2, 3, bias_attr=False)
        self._batch_norm = nn.BatchNorm(outputs, act="relu")

    def forward(self, x: Tensor) -> Tensor:
        return self._batch_norm(self._conv(x))


class _DenseLayer(nn.Layer):
    def __init__(self, inputs: int, growth: int, bn_size: int, dropout: float) -> None:
        super().__init__()
        self.bn_ac_func1 = _NormConv(inputs, bn_size * growth, 1)
        self.bn_ac_func2 = _NormConv(bn_size * growth, growth, 3)
        self.dropout = dropout
        if dropout:
            self.dropout_func = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        new = self.bn_ac_func2(self.bn_ac_func1(x))
        return paddle.concat([x, self.dropout_func(new) if self.dropout else new], 1)


class _DenseBlock(nn.Layer):
    def __init__(
        self, number: int, inputs: int, count: int, growth: int, bn_size: int, dropout: float
    ) -> None:
        super().__init__()
        for index in range(count):
            layer = _DenseLayer(inputs + index * growth, growth, bn_size, dropout)
            self.add_sublayer(f"conv{number}_{index + 1}", layer)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.children():
            x = layer(x)
        return x


class _Transition(nn.Layer):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv_ac_func = _NormConv(inputs, outputs, 1)
        self.pool2d_avg = nn.AvgPool2D(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool2d_avg(self.conv_ac_func(x))


class DenseNet(nn.Layer):
    """Blocks whose layers see all layers before them; images [N, 3, H, W] -> [N, num_classes].

    Args:
        layers: 121, 161, 169, 201 or 264.
        bn_size: width of the 1x1 convolution, in growths.
    """

    def __init__(
        self,
        layers: int = 121,
        bn_size: int = 4,
        dropout: float = 0.0,
        num_classes: int = 1000,
        with_pool: bool = True,
    ) -> None:
        super().__init__()
        sizes = zoo_table("DenseNet")
        if f"densenet{layers}" not in sizes:
            raise ShapeError("unknown depth", where="DenseNet", received=layers, allowed=", ".join(sizes))
        size = sizes[f"densenet{layers}"]
        width, growth = size.width, size.growth
        self.num_classes, self.with_pool = num_classes, with_pool
        self.conv1_func = _ConvNorm(3, width)
        self.pool2d_max = nn.MaxPool2D(3, 2, 1)
        self._order: list[str] = []
        for index, count in enumerate(size.depths):
            number = index + 2
            block = _DenseBlock(number, width, count, growth, bn_size, dropout)
            self._append(f"db_conv_{number}", block)
            width += count * growth
            if index < len(size.depths) - 1:
                self._append(f"tr_conv{number}_blk", _Transition(width, width // 2))
                width //= 2
        self.batch_norm = nn.BatchNorm(width, act="relu")
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.out = nn.Linear(width, num_classes)

    def _append(self, name: str, layer: nn.Layer) -> None:
        self.add_sublayer(name, layer)
        self._order.append(name)

    def forward(self, input: Tensor) -> Tensor:
        x = self.pool2d_max(self.conv1_func(input))
        for name in self._order:
            x = getattr(self, name)(x)
        x = self.batch_norm(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.out(x.flatten(1)) if self.num_classes > 0 else x


densenet121 = model_function("densenet121", functools.partial(DenseNet, 121))
densenet161 = model_function("densenet161", functools.partial(DenseNet, 161))
densenet169 = model_function("densenet169", functools.partial(DenseNet, 169))
densenet201 = model_function("densenet201", functools.partial(DenseNet, 201))
densenet264 = model_function("densenet264", functools.partial(DenseNet, 264))
