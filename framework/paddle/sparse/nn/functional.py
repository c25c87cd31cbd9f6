"""`paddle.sparse.nn.functional`: activations of the values that are kept, convolutions and pooling."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ShapeError, UnknownMethodError
from framework.paddle._kernel.modules import complete as _complete
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
    shape = (count, *values.shape[1:])
    greatest = jnp.full(shape, -jnp.inf, values.dtype).at[groups].max(values)
    powers = jnp.exp(values - greatest[groups])
    return powers / jnp.zeros(shape, values.dtype).at[groups].add(powers)[groups]


def softmax(x: SparseTensor, axis: int = -1, name: str | None = None) -> SparseTensor:
    """The softmax of the kept elements along an axis; of compressed rows along the last one.

    Raises:
        ShapeError: there is no such axis.
        UnknownMethodError: compressed rows, and not the last axis.
    """
    where = "paddle.sparse.nn.functional.softmax"
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError("there is no such axis", where=where, received=axis, allowed=f"below {x.ndim}")
    along = axis % x.ndim
    if x.is_sparse_csr() and along != x.ndim - 1:
        raise UnknownMethodError(
            "the softmax of compressed rows runs along the last axis",
            where=where,
            received=axis,
            fix="call to_sparse_coo() first",
        )
    coo = x.coo()
    if along >= len(coo.positions):  # of a dense axis; the first one of the values counts the elements
        return x.like(dense.softmax(x.values(), along - len(coo.positions) + 1))
    others = np.delete(coo.positions, along, 0)
    _, groups = np.unique(others, axis=1, return_inverse=True)
    count = int(groups.max()) + 1 if groups.size else 0
    return x.like(_softmax_of_groups(x.values(), groups.reshape(-1), count))


_complete(__name__)
