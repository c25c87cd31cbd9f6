"""Pooling of one to three axes: maxima, means, adaptive windows, and the inverse of maxima."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from framework.core.axes import per_axis
from framework.nn import functional as core
from framework.paddle._kernel.arguments import Integers, Padding
from framework.paddle._kernel.errors import ShapeError
from framework.paddle.nn.functional.face import channels_first, face
from framework.paddle.nn.functional.layout import Size, edges, from_last, is_last, to_last

Places = jax.Array | tuple[jax.Array, jax.Array]


def _axes(function: Callable[..., object]) -> int:
    return int(function.__name__[-2])


def _windows(
    function: Callable[..., object],
    kernel_size: Size,
    stride: Size | None,
    padding: Padding,
    data_format: str,
) -> tuple[object, object, object]:
    """Kernel, stride and padding as the core's function takes them."""
    axes = _axes(function)
    kernel = per_axis(kernel_size, axes, "kernel_size")
    strides = kernel if stride is None else per_axis(stride, axes, "stride")
    pads = edges(padding, axes, data_format)
    return (kernel[0], strides[0], pads) if axes == 1 else (kernel, strides, pads)


def _with_places(out: Any, return_mask: bool, data_format: str) -> Places:
    if not return_mask:
        return from_last(out, data_format)
    return from_last(out[0], data_format), from_last(out[1].astype(np.int32), data_format)


def _refuse_last(data_format: str) -> None:
    if is_last(data_format):
        raise ShapeError(
            "places of maxima are those of channels-first data",
            received=f"data_format={data_format!r}",
            allowed="NCL, NCHW, NCDHW",
        )


def _max_pool(
    function: Callable[..., object],
    x: jax.Array,
    kernel_size: Size,
    stride: Size | None,
    padding: Padding,
    return_mask: bool,
    ceil_mode: bool,
    data_format: str = "NCL",
) -> Places:
    windows = _windows(function, kernel_size, stride, padding, data_format)
    if return_mask:
        _refuse_last(data_format)
    # As in Paddle, which has no ceil_mode where it looks for places.
    ceil_mode = ceil_mode and not return_mask
    out = function(to_last(x, data_format), *windows, return_mask=return_mask, ceil_mode=ceil_mode)
    return _with_places(out, return_mask, data_format)


def _avg_pool(
    function: Callable[..., jax.Array],
    x: jax.Array,
    kernel_size: Size,
    stride: Size | None,
    padding: Padding,
    data_format: str = "NCL",
    **settings: object,
) -> jax.Array:
    windows = _windows(function, kernel_size, stride, padding, data_format)
    return from_last(function(to_last(x, data_format), *windows, **settings), data_format)


def _sizes(function: Callable[..., object], output_size: Integers) -> Any:
    if _axes(function) == 1:
        return per_axis(output_size, 1, "output_size")[0]
    return list(output_size) if isinstance(output_size, tuple) else output_size


def _adaptive_avg(
    function: Callable[..., jax.Array], x: jax.Array, output_size: Integers, data_format: str = "NCL"
) -> jax.Array:
    return channels_first(function, x, data_format, output_size=_sizes(function, output_size))


def _adaptive_max(
    function: Callable[..., object], x: jax.Array, output_size: Integers, return_mask: bool
) -> Places:
    out = function(to_last(x, "NCHW"), _sizes(function, output_size), return_mask)
    return _with_places(out, return_mask, "NCHW")


def _max_unpool(
    function: Callable[..., jax.Array],
    x: jax.Array,
    indices: jax.Array,
    kernel_size: Size,
    stride: Size | None,
    padding: Padding,
    data_format: str,
    output_size: Any,
) -> jax.Array:
    _refuse_last(data_format)
    windows = _windows(function, kernel_size, stride, padding, data_format)
    size = None if output_size is None else [int(np.asarray(n).reshape(())) for n in output_size]
    if size is not None and len(size) == x.ndim:
        size = size[2:]
    out = function(to_last(x, data_format), to_last(indices, data_format), *windows, output_size=size)
    return from_last(out, data_format)


max_pool1d = face(core.max_pool1d, _max_pool)
max_pool2d = face(core.max_pool2d, _max_pool, data_format="NCHW")
max_pool3d = face(core.max_pool3d, _max_pool, data_format="NCDHW")
avg_pool1d = face(core.avg_pool1d, _avg_pool)
avg_pool2d = face(core.avg_pool2d, _avg_pool, data_format="NCHW")
avg_pool3d = face(core.avg_pool3d, _avg_pool, data_format="NCDHW")
adaptive_avg_pool1d = face(core.adaptive_avg_pool1d, _adaptive_avg)
adaptive_avg_pool2d = face(core.adaptive_avg_pool2d, _adaptive_avg, data_format="NCHW")
adaptive_avg_pool3d = face(core.adaptive_avg_pool3d, _adaptive_avg, data_format="NCDHW")
adaptive_max_pool1d = face(core.adaptive_max_pool1d, _adaptive_max)
adaptive_max_pool2d = face(core.adaptive_max_pool2d, _adaptive_max)
adaptive_max_pool3d = face(core.adaptive_max_pool3d, _adaptive_max)
max_unpool1d = face(core.max_unpool1d, _max_unpool, data_format="NCL", before="output_size")
max_unpool2d = face(core.max_unpool2d, _max_unpool, data_format="NCHW", before="output_size")
max_unpool3d = face(core.max_unpool3d, _max_unpool, data_format="NCDHW", before="output_size")
