"""Pooling of one to three axes: maxima, means, adaptive windows, and the inverse of maxima."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from framework.core.errors import ShapeError
from framework.nn import functional as core
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle.nn.functional.layout import Size, edges, from_last, is_last, numbers, to_last


def _windows(
    kernel_size: Size, stride: Size | None, padding: Any, axes: int, data_format: str
) -> tuple[Any, Any, Any]:
    kernel = numbers(kernel_size, axes, "kernel_size")
    strides = kernel if stride is None else numbers(stride, axes, "stride")
    pads = edges(padding, axes, data_format)
    return (kernel[0], strides[0], pads) if axes == 1 else (kernel, strides, pads)


def _max_pool(
    function: Callable[..., Any],
    x: jax.Array,
    windows: tuple[Any, Any, Any],
    return_mask: bool,
    ceil_mode: bool,
    data_format: str,
) -> Any:
    if return_mask and is_last(data_format):
        raise ShapeError(
            "places of maxima are those of channels-first data",
            received=f"data_format={data_format!r}, return_mask=True",
            allowed="NCL, NCHW, NCDHW",
        )
    # As in Paddle, which has no ceil_mode where it looks for places.
    ceil_mode = ceil_mode and not return_mask
    out = function(to_last(x, data_format), *windows, return_mask=return_mask, ceil_mode=ceil_mode)
    return _with_places(out, data_format) if return_mask else from_last(out, data_format)


def _with_places(out: tuple[jax.Array, jax.Array], data_format: str) -> tuple[jax.Array, jax.Array]:
    return from_last(out[0], data_format), from_last(out[1].astype(np.int32), data_format)


@operation
def max_pool1d(
    x: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    name: str | None = None,
) -> Array:
    """Maximum over windows of [N, C, L]; with `return_mask` also their places, int32."""
    windows = _windows(kernel_size, stride, padding, 1, "NCL")
    return _max_pool(core.max_pool1d, x, windows, return_mask, ceil_mode, "NCL")


@operation
def max_pool2d(
    x: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Array:
    """Maximum over windows of [N, C, H, W]; with `return_mask` also their places in a flat image, int32."""
    windows = _windows(kernel_size, stride, padding, 2, data_format)
    return _max_pool(core.max_pool2d, x, windows, return_mask, ceil_mode, data_format)


@operation
def max_pool3d(
    x: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Array:
    """Maximum over windows of [N, C, D, H, W]; with `return_mask` also their places in a flat volume, int32."""
    windows = _windows(kernel_size, stride, padding, 3, data_format)
    return _max_pool(core.max_pool3d, x, windows, return_mask, ceil_mode, data_format)


@operation
def avg_pool1d(
    x: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    exclusive: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
) -> Array:
    """Mean over windows of [N, C, L]; with `exclusive` padding does not count."""
    windows = _windows(kernel_size, stride, padding, 1, "NCL")
    return from_last(
        core.avg_pool1d(to_last(x, "NCL"), *windows, exclusive=exclusive, ceil_mode=ceil_mode), "NCL"
    )


@operation
def avg_pool2d(
    x: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: Any = None,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Array:
    """Mean over windows of [N, C, H, W]; with `exclusive` padding does not count."""
    windows = _windows(kernel_size, stride, padding, 2, data_format)
    images = to_last(x, data_format)
    return from_last(core.avg_pool2d(images, *windows, ceil_mode, exclusive, divisor_override), data_format)


@operation
def avg_pool3d(
    x: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: Any = None,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Array:
    """Mean over windows of [N, C, D, H, W]; with `exclusive` padding does not count."""
    windows = _windows(kernel_size, stride, padding, 3, data_format)
    images = to_last(x, data_format)
    return from_last(core.avg_pool3d(images, *windows, ceil_mode, exclusive, divisor_override), data_format)


def _sizes(output_size: Any) -> Any:
    return list(output_size) if isinstance(output_size, tuple) else output_size


@operation
def adaptive_avg_pool1d(x: Array, output_size: Any, name: str | None = None) -> Array:
    """Mean over `output_size` bins that cover [N, C, L]."""
    size = numbers(output_size, 1, "output_size")[0]
    return from_last(core.adaptive_avg_pool1d(to_last(x, "NCL"), size), "NCL")


@operation
def adaptive_avg_pool2d(
    x: Array, output_size: Any, data_format: str = "NCHW", name: str | None = None
) -> Array:
    """Mean over `output_size` bins that cover the images; None keeps an axis."""
    return from_last(core.adaptive_avg_pool2d(to_last(x, data_format), _sizes(output_size)), data_format)


@operation
def adaptive_avg_pool3d(
    x: Array, output_size: Any, data_format: str = "NCDHW", name: str | None = None
) -> Array:
    """Mean over `output_size` bins that cover the volumes; None keeps an axis."""
    return from_last(core.adaptive_avg_pool3d(to_last(x, data_format), _sizes(output_size)), data_format)


def _adaptive_max(
    function: Callable[..., Any], x: jax.Array, output_size: Any, return_mask: bool, data_format: str
) -> Any:
    out = function(to_last(x, data_format), output_size, return_mask)
    return _with_places(out, data_format) if return_mask else from_last(out, data_format)


@operation
def adaptive_max_pool1d(
    x: Array, output_size: Any, return_mask: bool = False, name: str | None = None
) -> Array:
    """Maximum over `output_size` bins that cover [N, C, L]."""
    size = numbers(output_size, 1, "output_size")[0]
    return _adaptive_max(core.adaptive_max_pool1d, x, size, return_mask, "NCL")


@operation
def adaptive_max_pool2d(
    x: Array, output_size: Any, return_mask: bool = False, name: str | None = None
) -> Array:
    """Maximum over `output_size` bins that cover [N, C, H, W]; None keeps an axis."""
    return _adaptive_max(core.adaptive_max_pool2d, x, _sizes(output_size), return_mask, "NCHW")


@operation
def adaptive_max_pool3d(
    x: Array, output_size: Any, return_mask: bool = False, name: str | None = None
) -> Array:
    """Maximum over `output_size` bins that cover [N, C, D, H, W]; None keeps an axis."""
    return _adaptive_max(core.adaptive_max_pool3d, x, _sizes(output_size), return_mask, "NCDHW")


def _max_unpool(
    function: Callable[..., Any],
    x: jax.Array,
    indices: jax.Array,
    windows: tuple[Any, Any, Any],
    output_size: Any,
    data_format: str,
) -> jax.Array:
    if is_last(data_format):
        raise ShapeError(
            "places of maxima are those of channels-first data",
            received=f"data_format={data_format!r}",
            allowed="NCL, NCHW, NCDHW",
        )
    size = None if output_size is None else [int(n) for n in output_size]
    if size is not None and len(size) == x.ndim:
        size = size[2:]
    out = function(to_last(x, data_format), to_last(indices, data_format), *windows, output_size=size)
    return from_last(out, data_format)


@operation
def max_unpool1d(
    x: Array,
    indices: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    data_format: str = "NCL",
    output_size: Any = None,
    name: str | None = None,
) -> Array:
    """Zeros but for x at the places that `max_pool1d(return_mask=True)` gave."""
    windows = _windows(kernel_size, stride, padding, 1, data_format)
    return _max_unpool(core.max_unpool1d, x, indices, windows, output_size, data_format)


@operation
def max_unpool2d(
    x: Array,
    indices: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    data_format: str = "NCHW",
    output_size: Any = None,
    name: str | None = None,
) -> Array:
    """Zeros but for x at the places that `max_pool2d(return_mask=True)` gave."""
    windows = _windows(kernel_size, stride, padding, 2, data_format)
    return _max_unpool(core.max_unpool2d, x, indices, windows, output_size, data_format)


@operation
def max_unpool3d(
    x: Array,
    indices: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    data_format: str = "NCDHW",
    output_size: Any = None,
    name: str | None = None,
) -> Array:
    """Zeros but for x at the places that `max_pool3d(return_mask=True)` gave."""
    windows = _windows(kernel_size, stride, padding, 3, data_format)
    return _max_unpool(core.max_unpool3d, x, indices, windows, output_size, data_format)
