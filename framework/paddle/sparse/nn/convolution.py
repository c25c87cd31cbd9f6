"""Convolutions and pooling over sparse points: only points that are kept are computed with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.sparse.tensor import SparseCooTensor, SparseTensor

Sizes = int | Sequence[int]


def sizes_of(sizes: Sizes, axes: int, where: str) -> list[int]:
    """One whole number an axis, from one number for all or a sequence."""
    if isinstance(sizes, str) or not isinstance(sizes, int | Sequence):
        raise ShapeError("sizes are whole numbers", where=where, received=sizes, allowed="an int or a list")
    numbers = [sizes] * axes if isinstance(sizes, int) else [int(size) for size in sizes]
    if len(numbers) != axes:
        raise ShapeError(f"one number for each of {axes} axes", where=where, received=numbers)
    return numbers


def _points(x: SparseTensor, axes: int, data_format: str, where: str) -> SparseCooTensor:
    """The points in order, each once; the channels are the dense last axis."""
    layout = "NDHWC" if axes == 3 else "NHWC"
    coo = x.coo().coalesce()
    if data_format != layout:
        raise ShapeError("the channels stand last", where=where, received=data_format, allowed=layout)
    if x.ndim != axes + 2 or len(coo.positions) != axes + 1:
        raise ShapeError(
            f"points of {axes} axes with dense channels: {layout}",
            where=where,
            received=f"shape {x.shape} with {len(coo.positions)} sparse axes",
            fix=f"x.to_sparse_coo({axes + 1})",
        )
    return coo


def _windows(
    points: SparseCooTensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    submanifold: bool,
) -> tuple[np.ndarray, list[int], np.ndarray]:
    """The positions of the output, its sizes without channels, and [outputs, kernel] which point each weight meets;
    the number behind the last point stands for none."""
    shape, (batch, *place) = points.shape[:-1], points.positions
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    sizes = [(s + 2 * p - r) // t + 1 for s, p, r, t in zip(shape[1:], padding, reach, stride, strict=True)]
    number, point, weight = [], [], []
    for index, offset in enumerate(np.ndindex(*kernel)):
        steps = zip(place, padding, offset, dilation, strict=True)
        target = np.stack([axis + p - o * d for axis, p, o, d in steps])
        output, rest = np.divmod(target, np.asarray(stride)[:, None])
        met = ((rest == 0) & (output >= 0) & (output < np.asarray(sizes)[:, None])).all(0)
        at = tuple(np.concatenate([batch[None], output])[:, met])
        number.append(np.ravel_multi_index(at, (shape[0], *sizes)))
        point.append(np.flatnonzero(met))
        weight.append(np.full(len(point[-1]), index))
    flat, points_met, weights = np.concatenate(number), np.concatenate(point), np.concatenate(weight)
    if submanifold:
        outputs = points.flat()
        same = np.isin(flat, outputs)
        flat, points_met, weights = flat[same], points_met[same], weights[same]
    else:
        outputs = np.unique(flat)
    table = np.full((len(outputs), math.prod(kernel)), points.nnz())
    table[np.searchsorted(outputs, flat), weights] = points_met
    sizes = [shape[0], *sizes]
    return np.stack(np.unravel_index(outputs, tuple(sizes))).astype(np.int64), sizes, table


@operation
def _weighted_windows(values: Array, weight: Array, table: Array) -> Array:
    padded = jnp.concatenate([values, jnp.zeros_like(values, shape=(1, values.shape[1]))])
    return jnp.einsum("nkc,kcm->nm", padded[table], weight.reshape(-1, *weight.shape[-2:]))


@operation
def _greatest_of_windows(values: Array, table: Array) -> Array:
    padded = jnp.concatenate([values, jnp.full_like(values, -jnp.inf, shape=(1, values.shape[1]))])
    return padded[table].max(1)


def _convolution(name: str, axes: int, submanifold: bool) -> Callable[..., SparseCooTensor]:
    where = f"paddle.sparse.nn.functional.{name}"

    def convolve(
        x: SparseTensor,
        weight: Tensor,
        bias: Tensor | None,
        settings: Sequence[Sizes],
        groups: int,
        data_format: str,
    ) -> SparseCooTensor:
        points = _points(x, axes, data_format, where)
        if groups != 1 or weight.ndim != axes + 2 or weight.shape[-2] != x.shape[-1]:
            raise ShapeError(
                "a weight of [*kernel, channels, channels out] and one group",
                where=where,
                received=f"weight {weight.shape}, x {x.shape}, groups={groups}",
            )
        kernel = weight.shape[:axes]
        stride, padding, dilation = (sizes_of(sizes, axes, where) for sizes in settings)
        if submanifold:  # as in Paddle: the points stay where they are, whatever stride and padding say
            stride, padding = [1] * axes, [size // 2 for size in kernel]
        positions, sizes, table = _windows(points, kernel, stride, padding, dilation, submanifold)
        out = _weighted_windows(points.values(), weight, table)
        out = out if bias is None else out + bias
        return SparseCooTensor(positions, out, [*sizes, weight.shape[-1]], coalesced=True)

    return convolve


_conv3d, _conv2d = _convolution("conv3d", 3, False), _convolution("conv2d", 2, False)
_subm_conv3d, _subm_conv2d = _convolution("subm_conv3d", 3, True), _convolution("subm_conv2d", 2, True)


def conv3d(
    x: SparseTensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> SparseCooTensor:
    """A convolution of points [N, D, H, W] by a weight [*kernel, C, M]; every window that meets a point is kept."""
    return _conv3d(x, weight, bias, (stride, padding, dilation), groups, data_format)


def conv2d(
    x: SparseTensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    data_format: str = "NHWC",
    name: str | None = None,
) -> SparseCooTensor:
    """As `conv3d`, of points [N, H, W]."""
    return _conv2d(x, weight, bias, (stride, padding, dilation), groups, data_format)


def subm_conv3d(
    x: SparseTensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    data_format: str = "NDHWC",
    key: str | None = None,
    name: str | None = None,
) -> SparseCooTensor:
    """A submanifold convolution: the output has the points of the input. `key` only saves time in Paddle."""
    return _subm_conv3d(x, weight, bias, (stride, padding, dilation), groups, data_format)


def subm_conv2d(
    x: SparseTensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    data_format: str = "NHWC",
    key: str | None = None,
    name: str | None = None,
) -> SparseCooTensor:
    """As `subm_conv3d`, of points [N, H, W]."""
    return _subm_conv2d(x, weight, bias, (stride, padding, dilation), groups, data_format)


def max_pool3d(
    x: SparseTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> SparseCooTensor:
    """The greatest of the kept points of each window that has any. `ceil_mode` changes nothing, as in Paddle."""
    where = "paddle.sparse.nn.functional.max_pool3d"
    points, kernel = _points(x, 3, data_format, where), sizes_of(kernel_size, 3, where)
    step = kernel if stride is None else sizes_of(stride, 3, where)
    positions, sizes, table = _windows(points, kernel, step, sizes_of(padding, 3, where), [1] * 3, False)
    out = _greatest_of_windows(points.values(), table)
    return SparseCooTensor(positions, out, [*sizes, x.shape[-1]], coalesced=True)
