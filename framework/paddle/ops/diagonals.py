"""Diagonals, and Tensors built from the powers, choices or norms of another's elements."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.axes import normalize_axis
from framework.nn.functional.slopes import absolute
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import AxisError, OperandError, require
from framework.paddle._kernel.views import Sizes, view_of
from framework.paddle.ops.promotion import as_float

__all__ = ["combinations", "diagonal", "renorm", "trace", "vander"]


def _two_axes(x: jax.Array, axis1: int, axis2: int, where: str) -> tuple[int, int]:
    require(x.ndim >= 2, "two axes at least", where, x.shape, AxisError)
    return normalize_axis(axis1, x.ndim, where), normalize_axis(axis2, x.ndim, where)


def _on_diagonal(
    old: Sizes,
    strides: Sizes,
    new: Sizes,
    /,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    name: object = None,
) -> tuple[list[int], int]:
    first, second = axis1 % len(old), axis2 % len(old)
    others = [stride for axis, stride in enumerate(strides) if axis not in (first, second)]
    begin = offset * strides[second] if offset >= 0 else -offset * strides[first]
    return [*others, strides[first] + strides[second]], begin


@view_of(_on_diagonal)
@operation
def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Array:
    """The diagonals over two axes, as a new last axis."""
    return jnp.diagonal(x, offset, *_two_axes(x, axis1, axis2, "paddle.diagonal"))


@operation
def trace(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Array:
    """The sum of `diagonal`."""
    return jnp.diagonal(x, offset, *_two_axes(x, axis1, axis2, "paddle.trace")).sum(-1, dtype=x.dtype)


@operation
def vander(x: Array, n: int | None = None, increasing: bool = False, name: str | None = None) -> Array:
    """[N, n]: the powers of each element of x [N], n - 1 to 0, or 0 to n - 1."""
    require(x.ndim == 1, "x has one axis", "paddle.vander", x.shape)
    count = x.shape[0] if n is None else n
    require(count >= 0, "n is 0 or more", "paddle.vander", n)
    powers = jnp.arange(count) if increasing else jnp.arange(count - 1, -1, -1)
    return jnp.power(x[:, None], powers)


@operation
def combinations(x: Array, r: int = 2, with_replacement: bool = False, name: str | None = None) -> Array:
    """[M, r]: all choices of r elements of x [N], in the order of x."""
    require(x.ndim == 1, "x has one axis", "paddle.combinations", x.shape, OperandError)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = np.array(list(choose(range(x.shape[0]), r)), np.int64).reshape(-1, r)
    return x[chosen]


@operation
def renorm(x: Array, p: float, axis: int, max_norm: float) -> Array:
    """x with the slices along `axis` whose p-norm is above `max_norm` scaled down to it."""
    x = as_float(x)
    along = normalize_axis(axis, x.ndim, "paddle.renorm")
    others = tuple(a for a in range(x.ndim) if a != along)
    norms = jnp.power(jnp.sum(jnp.power(absolute(x), p), others, keepdims=True), 1 / p)
    return x * jnp.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0).astype(x.dtype)
