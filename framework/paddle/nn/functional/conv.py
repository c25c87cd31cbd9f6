"""Convolutions of one to three axes and their transposes."""

from __future__ import annotations

from collections.abc import Callable

import jax

from framework.core.axes import per_axis, same_edges
from framework.nn import functional as core
from framework.paddle._kernel.arguments import Integers, Padding
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.functional.face import face
from framework.paddle.nn.functional.layout import Size, edges, from_last, to_last


def _one_number(values: tuple[int, ...]) -> int | tuple[int, ...]:
    return values[0] if len(values) == 1 else values


def _edges(padding: Padding, axes: int, data_format: str) -> str | tuple[int, ...]:
    """Edges of a convolution, which adds pixels and takes none away.

    Raises:
        ShapeError: padding is negative, or of another number of axes.
    """
    pads = edges(padding, axes, data_format)
    if not isinstance(pads, str) and min(pads) < 0:
        raise ShapeError("padding is negative", received=padding, allowed="numbers from 0")
    return pads


def _output_padding(padding: Size, strides: tuple[int, ...], dilations: tuple[int, ...]) -> tuple[int, ...]:
    """Rows behind the output for each axis.

    Raises:
        ShapeError: there are more than a stride leaves open.
    """
    extra = per_axis(padding, len(strides), "output_padding")
    most = [max(pair) for pair in zip(strides, dilations, strict=True)]
    if any(not 0 <= n < limit for n, limit in zip(extra, most, strict=True)):
        raise ShapeError(
            "output_padding is more than stride and dilation leave open",
            received=f"output_padding {padding}, stride {strides}, dilation {dilations}",
            allowed="numbers from 0, below the stride or the dilation",
        )
    return extra


def _convolve(
    function: Callable[..., jax.Array],
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Size,
    padding: Padding,
    dilation: Size,
    groups: int,
    data_format: str,
) -> jax.Array:
    axes = weight.ndim - 2
    pads = _edges(padding, axes, data_format)
    if pads == "SAME":
        dilation = 1  # as in Paddle
    strides, dilations = per_axis(stride, axes, "stride"), per_axis(dilation, axes, "dilation")
    y = function(
        to_last(x, data_format), weight, bias, _one_number(strides), pads, _one_number(dilations), groups
    )
    return from_last(y, data_format)


def _transposed(
    function: Callable[..., jax.Array],
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Size,
    padding: Padding,
    output_padding: Size,
    dilation: Size,
    groups: int,
    output_size: Integers,
    data_format: str,
) -> jax.Array:
    axes = weight.ndim - 2
    images, strides = to_last(x, data_format), per_axis(stride, axes, "stride")
    pads = _edges(padding, axes, data_format)
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
    dilations = per_axis(dilation, axes, "dilation")
    y = function(
        images,
        weight,
        bias,
        stride=_one_number(strides),
        padding=pads,
        output_padding=_one_number(_output_padding(output_padding, strides, dilations)),
        dilation=_one_number(dilations),
        groups=groups,
        output_size=None if output_size is None else per_axis(output_size, axes, "output_size"),
    )
    return from_last(y, data_format)


def _conv_nd(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Padding = 0,
    padding_algorithm: str | None = None,
    dilation: Size = 1,
    groups: int = 1,
    data_format: str = "NCHW",
    channel_dim: int = 1,
    op_type: str = "conv2d",
    use_cudnn: bool = True,
    use_mkldnn: bool = False,
    name: str | None = None,
) -> Tensor:
    """The convolution `op_type`, as Paddle's layers call it; `padding_algorithm` is EXPLICIT, or SAME or VALID, which
    replaces `padding`. Packages that derive from convolutions call it by this name."""
    pads: Padding = padding_algorithm if padding_algorithm in ("SAME", "VALID") else padding
    function = conv3d if op_type == "conv3d" else conv2d  # depthwise_conv2d is a conv2d of groups
    return function(x, weight, bias, stride, pads, dilation, groups, data_format)


conv1d = face(core.conv1d, _convolve, data_format="NCL")
conv2d = face(core.conv2d, _convolve, data_format="NCHW")
conv3d = face(core.conv3d, _convolve, data_format="NCDHW")
conv1d_transpose = face(core.conv1d_transpose, _transposed, data_format="NCL")
conv2d_transpose = face(core.conv2d_transpose, _transposed, data_format="NCHW")
conv3d_transpose = face(core.conv3d_transpose, _transposed, data_format="NCDHW")
