"""Convolutions of one to three axes and their transposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from framework.core.errors import ShapeError
from framework.nn import functional as core
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle.nn.functional.layout import Size, edges, from_last, numbers, same_edges, to_last


def _one_number(values: tuple[int, ...]) -> Any:
    return values[0] if len(values) == 1 else values


def _convolve(
    function: Callable[..., jax.Array],
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Size,
    padding: Any,
    dilation: Size,
    groups: int,
    data_format: str,
) -> jax.Array:
    axes = weight.ndim - 2
    pads = edges(padding, axes, data_format)
    if pads == "SAME":
        dilation = 1  # as in Paddle
    strides, dilations = numbers(stride, axes, "stride"), numbers(dilation, axes, "dilation")
    y = function(
        to_last(x, data_format), weight, bias, _one_number(strides), pads, _one_number(dilations), groups
    )
    return from_last(y, data_format)


@operation
def conv1d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str = "NCL",
    name: str | None = None,
) -> Array:
    """Convolution of [N, C, L] with weight [out, C / groups, k]."""
    return _convolve(core.conv1d, x, weight, bias, stride, padding, dilation, groups, data_format)


@operation
def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Array:
    """Convolution of [N, C, H, W] with weight [out, C / groups, kh, kw]."""
    return _convolve(core.conv2d, x, weight, bias, stride, padding, dilation, groups, data_format)


@operation
def conv3d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Array:
    """Convolution of [N, C, D, H, W] with weight [out, C / groups, kd, kh, kw]."""
    return _convolve(core.conv3d, x, weight, bias, stride, padding, dilation, groups, data_format)


def _transposed(
    function: Callable[..., jax.Array],
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Size,
    padding: Any,
    output_padding: Size,
    dilation: Size,
    groups: int,
    output_size: Any,
    data_format: str,
) -> jax.Array:
    axes = weight.ndim - 2
    images, strides = to_last(x, data_format), numbers(stride, axes, "stride")
    pads = edges(padding, axes, data_format)
    if pads == "SAME":
        pads, dilation = same_edges(images.shape[1:-1], weight.shape[2:], strides), 1
    elif pads == "VALID":
        pads = (0,) * (2 * axes)
    if output_size is not None and output_padding != 0:
        raise ShapeError(
            "a transposed convolution takes one of output_size and output_padding",
            received=f"output_size {output_size}, output_padding {output_padding}",
            allowed="either of them",
        )
    y = function(
        images,
        weight,
        bias,
        stride=_one_number(strides),
        padding=pads,
        output_padding=_one_number(numbers(output_padding, axes, "output_padding")),
        dilation=_one_number(numbers(dilation, axes, "dilation")),
        groups=groups,
        output_size=None if output_size is None else numbers(output_size, axes, "output_size"),
    )
    return from_last(y, data_format)


@operation
def conv1d_transpose(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
    output_size: Any = None,
    data_format: str = "NCL",
    name: str | None = None,
) -> Array:
    """Transposed convolution of [N, C, L] with weight [C, out / groups, k]."""
    settings = (stride, padding, output_padding, dilation, groups, output_size, data_format)
    return _transposed(core.conv1d_transpose, x, weight, bias, *settings)


@operation
def conv2d_transpose(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    output_size: Any = None,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Array:
    """Transposed convolution of [N, C, H, W] with weight [C, out / groups, kh, kw]."""
    settings = (stride, padding, output_padding, dilation, groups, output_size, data_format)
    return _transposed(core.conv2d_transpose, x, weight, bias, *settings)


@operation
def conv3d_transpose(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
    output_size: Any = None,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Array:
    """Transposed convolution of [N, C, D, H, W] with weight [C, out / groups, kd, kh, kw]."""
    settings = (stride, padding, output_padding, dilation, groups, output_size, data_format)
    return _transposed(core.conv3d_transpose, x, weight, bias, *settings)
