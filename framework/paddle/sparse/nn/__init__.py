"""`paddle.sparse.nn`: activations, convolutions, pooling and batch normalisation of sparse Tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.nn import Layer
from framework.paddle.sparse.nn import functional
from framework.paddle.sparse.nn.layers import (
    BatchNorm,
    Conv2D,
    Conv3D,
    MaxPool3D,
    SubmConv2D,
    SubmConv3D,
    SyncBatchNorm,
)
from framework.paddle.sparse.tensor import SparseTensor

__all__ = [
    "BatchNorm",
    "Conv2D",
    "Conv3D",
    "LeakyReLU",
    "MaxPool3D",
    "ReLU",
    "ReLU6",
    "Softmax",
    "SubmConv2D",
    "SubmConv3D",
    "SyncBatchNorm",
]


class ReLU(Layer):
    """`relu` as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: SparseTensor) -> SparseTensor:
        return functional.relu(x)


class ReLU6(ReLU):
    """`relu6` as a layer."""

    def forward(self, x: SparseTensor) -> SparseTensor:
        return functional.relu6(x)


class LeakyReLU(Layer):
    """`leaky_relu` as a layer."""

    def __init__(self, negative_slope: float = 0.01, name: str | None = None) -> None:
        super().__init__()
        self._negative_slope = negative_slope

    def forward(self, x: SparseTensor) -> SparseTensor:
        return functional.leaky_relu(x, self._negative_slope)


class Softmax(Layer):
    """`softmax` as a layer."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self._axis = axis

    def forward(self, x: SparseTensor) -> SparseTensor:
        return functional.softmax(x, self._axis)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
