"""`paddle.sparse.nn`: activations of sparse Tensors. Convolutions and pooling over sparse points are not offered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp

from framework.paddle.dispatch import Array, operation
from framework.paddle.nn import Layer
from framework.paddle.nn import functional as dense
from framework.paddle.sparse.tensor import SparseTensor

__all__ = ["LeakyReLU", "ReLU", "ReLU6", "Softmax"]


def relu(x: SparseTensor, name: str | None = None) -> Any:
    """`relu` of the values."""
    return x.like(dense.relu(x.values()))


def relu6(x: SparseTensor, name: str | None = None) -> Any:
    """`relu6` of the values."""
    return x.like(dense.relu6(x.values()))


def leaky_relu(x: SparseTensor, negative_slope: float = 0.01, name: str | None = None) -> Any:
    """`leaky_relu` of the values."""
    return x.like(dense.leaky_relu(x.values(), negative_slope))


@operation
def _softmax_of_groups(values: Array, groups: Array, count: int) -> Array:
    greatest = jnp.full(count, -jnp.inf, values.dtype).at[groups].max(values)
    powers = jnp.exp(values - greatest[groups])
    return powers / jnp.zeros(count, values.dtype).at[groups].add(powers)[groups]


def softmax(x: SparseTensor, axis: int = -1, name: str | None = None) -> Any:
    """The softmax of the kept elements of each row, along the last axis."""
    if axis not in (-1, x.ndim - 1):
        raise ValueError(f"softmax of sparse Tensors runs along the last axis, received axis={axis}")
    coo = x.coo()
    rows = coo.flat() // x.shape[-1]
    count = int(rows.max()) + 1 if rows.size else 0
    return x.like(_softmax_of_groups(x.values(), rows, count))


functional = SimpleNamespace(relu=relu, relu6=relu6, leaky_relu=leaky_relu, softmax=softmax)


class ReLU(Layer):
    """`relu` as a layer."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        return relu(x)


class ReLU6(ReLU):
    """`relu6` as a layer."""

    def forward(self, x: Any) -> Any:
        return relu6(x)


class LeakyReLU(Layer):
    """`leaky_relu` as a layer."""

    def __init__(self, negative_slope: float = 0.01, name: str | None = None) -> None:
        super().__init__()
        self._negative_slope = negative_slope

    def forward(self, x: Any) -> Any:
        return leaky_relu(x, self._negative_slope)


class Softmax(Layer):
    """`softmax` as a layer."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self._axis = axis

    def forward(self, x: Any) -> Any:
        return softmax(x, self._axis)
