"""Convolutions of other ranks: transposed 1-D, 3-D and its transpose.

Activations are channels-last, weights have Paddle's layouts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.axes import per_axis
from framework.core.errors import ShapeError
from framework.nn.functional import lowering
from framework.nn.functional.conv import (
    check_conv,
    conv2d,
    conv2d_transpose,
    flat_padding,
    transposed_windows,
)
from framework.nn.functional.lowering import Platform, choose, platform_scope
from framework.nn.functional.windows import Axes, Edges, spatial_padding, transposed_padding

_MOST_SIDE_BY_SIDE = 1 << 25  # values: 128 MB of float32


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


def _by_frames(
    x: jax.Array, weight: jax.Array, stride: Axes, pads: Edges, dilation: Axes, groups: int
) -> jax.Array:
    """A 3-D convolution as 2-D ones of frames, which XLA's CPU backend has faster forms for: the frames that an output
    sees stand side by side as channels, or, where that would take much memory or there are groups, are convolved one
    after the other and summed.

    Milliseconds of CPU time on 2 cores (Zen 5), jax 0.10.2, XLA's 3-D form first: 3x3x3 over 8x32x32x64 36.8, 10.9;
    4x16x16x128 11.3, 4.9; 1x4x4x512 85, 4.1; 3x7x7 over 8x64x64x3 with stride 2 26, 2.9; 1x3x3 over 8x32x32x64 16.5,
    6.6.
    """
    n, _, height, width, channels = x.shape
    kernel, step, apart = weight.shape[2], stride[0], dilation[0]
    if pads[0] != (0, 0):
        x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (*pads[0], 0), *[(0, 0, 0)] * 3])
    depth = (x.shape[1] - (kernel - 1) * apart - 1) // step + 1

    def frames(i: int) -> jax.Array:
        stop = i * apart + (depth - 1) * step + 1
        return lax.slice_in_dim(x, i * apart, stop, step, axis=1)

    def convolve(images: jax.Array, kernels: jax.Array) -> jax.Array:
        images = images.reshape(n * depth, height, width, images.shape[-1])
        y = conv2d(images, kernels, None, stride[1:], (pads[1], pads[2]), dilation[1:], groups)
        return y.reshape(n, depth, *y.shape[1:])

    if groups == 1 and math.prod((n, depth, height, width, kernel, channels)) <= _MOST_SIDE_BY_SIDE:
        stacked = jnp.concatenate([frames(i) for i in range(kernel)], -1)
        if kernel > 1:
            stacked = lax.optimization_barrier(stacked)
        kernels = weight.transpose(0, 2, 1, 3, 4).reshape(
            weight.shape[0], kernel * channels, *weight.shape[3:]
        )
        return convolve(stacked, kernels)
    return functools.reduce(jnp.add, [convolve(frames(i), weight[:, :, i]) for i in range(kernel)])


@functools.partial(jax.jit, static_argnames=("stride", "pads", "dilation", "groups", "on", "folds"))
def _conv3d(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Axes,
    pads: Edges,
    dilation: Axes,
    groups: int,
    on: Platform,
    folds: bool,  # what `conv2d` reads from its scope: the trace is cached by it
) -> jax.Array:
    def plain(x: jax.Array, w: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            x,
            w.transpose(2, 3, 4, 1, 0),
            stride,
            pads,
            rhs_dilation=dilation,
            dimension_numbers=("NDHWC", "DHWIO", "NDHWC"),
            feature_group_count=groups,
        )

    def by_frames(x: jax.Array, w: jax.Array) -> jax.Array:
        with platform_scope("cpu"):
            return _by_frames(x, w, stride, pads, dilation, groups)

    is_fixed = all(isinstance(size, int) for size in x.shape)
    y = choose(on, by_frames, plain, x, weight) if is_fixed else plain(x, weight)
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
    weight = jnp.asarray(weight, x.dtype)
    scopes = lowering.platform(), lowering.folds_weights()
    return _conv3d(x, weight, bias, strides, pads, dilations, groups, *scopes)


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
