"""`paddle.sparse.nn.functional`: activations of the values that are kept, convolutions and pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.nn import functional as dense
from framework.paddle.sparse.nn.convolution import conv2d, conv3d, max_pool3d, subm_conv2d, subm_conv3d
from framework.paddle.sparse.tensor import SparseTensor

__all__ = [
    "conv2d",
    "conv3d",
    "leaky_relu",
    "max_pool3d",
    "relu",
    "relu6",
    "softmax",
    "subm_conv2d",
    "subm_conv3d",
]


def relu(x: SparseTensor, name: str | None = None) -> SparseTensor:
    """`relu` of the values."""
    return x.like(dense.relu(x.values()))


def relu6(x: SparseTensor, name: str | None = None) -> SparseTensor:
    """`relu6` of the values."""
    return x.like(dense.relu6(x.values()))


def leaky_relu(x: SparseTensor, negative_slope: float = 0.01, name: str | None = None) -> SparseTensor:
    """`leaky_relu` of the values."""
    return x.like(dense.leaky_relu(x.values(), negative_slope))


@operation
def _softmax_of_groups(values: Array, groups: Array, count: int) -> Array:
    greatest = jnp.full(count, -jnp.inf, values.dtype).at[groups].max(values)
    powers = jnp.exp(values - greatest[groups])
    return powers / jnp.zeros(count, values.dtype).at[groups].add(powers)[groups]


def softmax(x: SparseTensor, axis: int = -1, name: str | None = None) -> SparseTensor:
    """The softmax of the kept elements of each row, along the last axis."""
    if axis not in (-1, x.ndim - 1):
        raise ShapeError(
            "the softmax of a sparse Tensor runs along its last axis",
            where="paddle.sparse.nn.functional.softmax",
            received=f"axis={axis} of {x.ndim} dimensions",
        )
    coo = x.coo()
    rows = coo.flat() // x.shape[-1]
    count = int(rows.max()) + 1 if rows.size else 0
    return x.like(_softmax_of_groups(x.values(), rows, count))


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
