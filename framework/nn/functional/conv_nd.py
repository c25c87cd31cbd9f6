"""Convolutions of other ranks: transposed 1-D, 3-D and its transpose.

Activations are channels-last, weights have Paddle's layouts.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.axes import per_axis
from framework.core.errors import ShapeError
from framework.nn.functional import lowering
from framework.nn.functional.conv import check_conv, conv2d_transpose, flat_padding, transposed_windows
from framework.nn.functional.lowering import Platform
from framework.nn.functional.windows import Axes, Edges, spatial_padding, transposed_padding


def conv1d_transpose(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int = 0,
    groups: int = 1,
    dilation: int = 1,
    output_size: int | Sequence[int] | None = None,
) -> jax.Array:
    """Transposed 1-D convolution. x [N, T, in], weight [in, out/groups, k] -> [N, ot, out].

    `output_size` as in `conv2d_transpose`.
    """
    check_conv("conv1d_transpose", x, weight, groups, transposed=True)
    y = conv2d_transpose(
        x[:, None],
        weight[:, :, None],
        bias,
        (1, stride),
        flat_padding(padding),
        (0, output_padding),
        (1, dilation),
        groups,
        None if output_size is None else (1, *per_axis(output_size, 1, "output_size")),
    )
    return y[:, 0]


@functools.partial(jax.jit, static_argnames=("stride", "pads", "dilation", "groups"))
def _conv3d(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Axes,
    pads: Edges,
    dilation: Axes,
    groups: int,
) -> jax.Array:
    y = lax.conv_general_dilated(
        x,
        weight.transpose(2, 3, 4, 1, 0),
        stride,
        pads,
        rhs_dilation=dilation,
        dimension_numbers=("NDHWC", "DHWIO", "NDHWC"),
        feature_group_count=groups,
    )
    return y if bias is None else y + bias.astype(y.dtype)


def conv3d(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> jax.Array:
    """3-D convolution. x [N, D, H, W, in], weight [out, in/groups, kd, kh, kw], bias [out] -> [N, od, oh, ow, out].

    `padding` is a number, (pd, ph, pw), six numbers front to right, 'SAME' or 'VALID'.
    """
    check_conv("conv3d", x, weight, groups)
    strides, dilations = per_axis(stride, 3, "stride"), per_axis(dilation, 3, "dilation")
    pads = spatial_padding(padding, weight.shape[2:], strides, x.shape[1:-1], dilations)
    return _conv3d(x, jnp.asarray(weight), bias, strides, pads, dilations, groups)


@functools.partial(jax.jit, static_argnames=("stride", "pads", "output_padding", "dilation", "groups", "on"))
def _conv3d_transpose(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Axes,
    pads: Edges,
    output_padding: Axes,
    dilation: Axes,
    groups: int,
    on: Platform,
) -> jax.Array:
    channels, per_group, *kernel = weight.shape
    flipped = weight[:, :, ::-1, ::-1, ::-1].reshape(groups, channels // groups, per_group, *kernel)
    flipped = flipped.transpose(3, 4, 5, 1, 0, 2).reshape(*kernel, channels // groups, groups * per_group)
    edges = [
        ((k - 1) * d - p[0], (k - 1) * d - p[1] + extra)
        for k, d, p, extra in zip(kernel, dilation, pads, output_padding)
    ]
    y = transposed_windows(x, flipped, stride, edges, dilation, groups, on)
    return y if bias is None else y + bias.astype(y.dtype)


def conv3d_transpose(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
    output_size: int | Sequence[int] | None = None,
) -> jax.Array:
    """Transposed 3-D convolution, the gradient of conv3d. x [N, D, H, W, in], weight [in, out/groups, kd, kh, kw].

    `padding` is a number, (pd, ph, pw), six numbers front to right, or 'VALID'; `output_size` as in `conv2d_transpose`.
    """
    check_conv("conv3d_transpose", x, weight, groups, transposed=True)
    if isinstance(padding, str) and padding.upper() != "VALID":
        raise ShapeError(
            "conv3d_transpose: unknown padding", received=repr(padding), allowed="numbers or 'VALID'"
        )
    strides, dilations = per_axis(stride, 3, "stride"), per_axis(dilation, 3, "dilation")
    kernel, extra = weight.shape[2:], per_axis(output_padding, 3, "output_padding")
    pads = spatial_padding(padding, kernel, strides)
    geometry = (kernel, strides, pads, dilations, extra)
    extra = transposed_padding("conv3d_transpose", x.shape[1:4], *geometry, output_size)
    on = lowering.platform()
    return _conv3d_transpose(x, jnp.asarray(weight), bias, strides, pads, extra, dilations, groups, on)
