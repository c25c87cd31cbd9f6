"""ONNX convolutions. Images are channels-last inside; kernels keep ONNX's layout, which is the core's."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.core import max_dim

from framework.core.errors import ShapeError
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Dim, Item, Value, channels_last, count, to_jax, to_value
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Edges = list[tuple[Dim, Dim]]
Numbers = tuple[int, ...]


def window_edges(
    call: Call, size: tuple[Dim, ...], kernel: Numbers, strides: Numbers, dilations: Numbers
) -> Edges:
    """(before, behind) of each spatial axis, from `pads` or from `auto_pad`."""
    axes, mode = len(kernel), call.attr("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        edges: Edges = []
        for n, k, s, d in zip(size, kernel, strides, dilations):
            reach = (k - 1) * d + 1
            total = reach - 1 if s == 1 else (-(-n // s) - 1) * s + reach - n
            total = max(total, 0) if isinstance(total, int) else max_dim(total, 0)
            small, large = total // 2, total - total // 2
            edges.append((small, large) if mode == "SAME_UPPER" else (large, small))
        return edges
    pads = call.ints("pads") or (0,) * (2 * axes) if mode != "VALID" else (0,) * (2 * axes)
    if len(pads) != 2 * axes:
        raise call.error("pads has two numbers for each axis", received=pads, allowed=2 * axes)
    count([n + p + q if isinstance(n, int) else 1 for n, p, q in zip(size, pads, pads[axes:])], call.where)
    return list(zip(pads[:axes], pads[axes:]))


def spatial_numbers(call: Call, name: str, axes: int) -> Numbers:
    """An attribute with one number for each spatial axis, 1 where it is absent."""
    numbers = call.ints(name, (1,) * axes) or (1,) * axes
    if len(numbers) != axes or min(numbers) < 1:
        raise call.error(f"{name} has one positive number for each axis", received=numbers, allowed=axes)
    return numbers


def check_images(call: Call, x: Value, w: jax.Array) -> int:
    """The number of spatial axes. Raises: ShapeError, unless there are one to three of them."""
    if not 3 <= x.ndim <= 5 or w.ndim != x.ndim:
        raise call.error(
            "a convolution over other than one to three axes",
            ShapeError,
            received=f"input {x.shape}, kernel {w.shape}",
            allowed="[N, C, L], [N, C, H, W] or [N, C, D, H, W] and a kernel of as many axes",
        )
    return x.ndim - 2


def convolve(call: Call, x: Value, w: jax.Array, bias: jax.Array | None) -> Value:
    """The convolution of [N, C, *spatial] with [out, in/group, *kernel]."""
    axes, group = check_images(call, x, w), call.attr("group", 1)
    strides, dilations = spatial_numbers(call, "strides", axes), spatial_numbers(call, "dilations", axes)
    edges = window_edges(call, x.shape[2:], w.shape[2:], strides, dilations)
    data = x.channels_last()
    if any(not isinstance(edge, int) for pair in edges for edge in pair):
        data, edges = jnp.pad(data, [(0, 0), *edges, (0, 0)]), [(0, 0)] * axes
    if axes == 1:
        y = F.conv1d(data, w, bias, strides[0], edges[0], dilations[0], group)
    elif axes == 2:
        y = F.conv2d(data, w, bias, strides, edges, dilations, group)
    else:
        flat = [edge for pair in edges for edge in pair]
        y = F.conv3d(data, w, bias, strides, flat, dilations, group)
    return Value(y, channels_last(x.ndim))


@operator("Conv", style="values", weights=(1, 2))
def _conv(call: Call, x: Item, weight: Item, bias: Item = None) -> Item:
    return convolve(call, to_value(x), to_jax(weight), None if bias is None else to_jax(bias))


@operator("ConvTranspose", style="values", weights=(1, 2))
def _conv_transpose(call: Call, x: Item, weight: Item, bias: Item = None) -> Item:
    v, w = to_value(x), to_jax(weight)
    b = None if bias is None else to_jax(bias)
    axes, group = check_images(call, v, w), call.attr("group", 1)
    strides, dilations = spatial_numbers(call, "strides", axes), spatial_numbers(call, "dilations", axes)
    extra = call.ints("output_padding", (0,) * axes) or (0,) * axes
    edges = _transposed_edges(call, v.shape[2:], w.shape[2:], strides, dilations, extra)
    outs = [
        n * s + (k - 1) * d + e for n, s, k, d, e in zip(v.shape[2:], strides, w.shape[2:], dilations, extra)
    ]
    count([n for n in outs if isinstance(n, int)], call.where)
    data = v.channels_last()
    if axes == 3:
        flat = [edge for pair in edges for edge in pair]
        y = F.conv3d_transpose(data, w, b, strides, flat, extra, group, dilations)
    elif axes == 2:
        y = F.conv2d_transpose(data, w, b, strides, edges, extra, dilations, group)
    else:
        y = F.conv1d_transpose(data, w, b, strides[0], edges[0], extra[0], group, dilations[0])
    return Value(y, channels_last(v.ndim))


def _transposed_edges(
    call: Call, size: tuple[Dim, ...], kernel: Numbers, strides: Numbers, dilations: Numbers, extra: Numbers
) -> Edges:
    """What is cut off before and behind, from `output_shape`, `auto_pad` or `pads`."""
    axes, mode, output_shape = len(kernel), call.attr("auto_pad", "NOTSET"), call.ints("output_shape")
    if output_shape is None and mode not in ("SAME_UPPER", "SAME_LOWER"):
        pads = call.ints("pads") or (0,) * (2 * axes)
        return list(zip(pads[:axes], pads[axes:])) if mode == "NOTSET" else [(0, 0)] * axes
    edges: Edges = []
    for i in range(axes):
        reach = (kernel[i] - 1) * dilations[i] + 1
        out = size[i] * strides[i] if output_shape is None else output_shape[-axes:][i]
        total: Dim = strides[i] * (size[i] - 1) + extra[i] + reach - out
        if output_shape is None and isinstance(total, int):
            total = max(total, 0)
        small, large = total // 2, total - total // 2
        edges.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return edges


@operator("DeformConv", style="values", weights=(1, 3))
def _deform_conv(
    call: Call, x: Item, weight: Item, offset: Item, bias: Item = None, mask: Item = None
) -> Item:
    """Each tap of the kernel reads between the pixels, at its place moved by `offset` [N, 2 * taps, oh, ow]."""
    data, w = to_value(x).channels_last(), to_jax(weight)
    if data.ndim != 4:
        raise call.error("a deformable convolution over other than two axes", ShapeError, received=data.shape)
    moves = to_value(offset).channels_last()
    n, height, width, c = data.shape
    kernel, groups = w.shape[2:], call.attr("offset_group", 1)
    strides, dilations = spatial_numbers(call, "strides", 2), spatial_numbers(call, "dilations", 2)
    (top, _), (left, _) = window_edges(call, (height, width), kernel, strides, dilations)
    _, oh, ow, _ = moves.shape
    taps = kernel[0] * kernel[1]
    moves = moves.reshape(n, oh, ow, groups, taps, 2)
    scale = None if mask is None else to_value(mask).channels_last().reshape(n, oh, ow, groups, taps)
    tap_y, tap_x = jnp.meshgrid(*(jnp.arange(k) * d for k, d in zip(kernel, dilations)), indexing="ij")
    rows = (jnp.arange(oh) * strides[0] - top)[:, None, None] + tap_y.ravel()
    columns = (jnp.arange(ow) * strides[1] - left)[None, :, None] + tap_x.ravel()
    y = rows[None, :, :, None].astype(moves.dtype) + moves[..., 0]  # [N, oh, ow, groups, taps]
    z = columns[None, :, :, None].astype(moves.dtype) + moves[..., 1]
    groups_out = []
    for g, channels in enumerate(jnp.split(data, groups, -1)):
        grid = jnp.stack(
            [(2 * z[:, :, :, g] + 1) / width - 1, (2 * y[:, :, :, g] + 1) / height - 1], -1
        ).reshape(n, oh, ow * taps, 2)
        read = F.grid_sample(channels, grid, padding_mode="zeros", align_corners=False)
        read = read.reshape(n, oh, ow, taps, c // groups)
        groups_out.append(read if scale is None else read * scale[:, :, :, g, :, None])
    columns_of = jnp.concatenate(groups_out, -1)  # [N, oh, ow, taps, C]
    group = call.attr("group", 1)
    table = w.reshape(group, w.shape[0] // group, w.shape[1], taps)
    read = columns_of.reshape(n, oh, ow, taps, group, c // group)
    result = jnp.einsum("nhwtgc,goct->nhwgo", read, table).reshape(n, oh, ow, w.shape[0])
    return Value(result if bias is None else result + to_jax(bias), channels_last(4))


@operator("Col2Im", static=(1, 2))
def _col2im(call: Call, x: jax.Array, image: Item, block: Item) -> jax.Array:
    """Columns [N, C * taps, windows] added up at their places in an image of any number of axes."""
    size, kernel = call.dims(image, "the shape of the image"), call.dims(block, "the shape of a block")
    axes = len(size)
    strides, dilations = spatial_numbers(call, "strides", axes), spatial_numbers(call, "dilations", axes)
    pads = call.ints("pads") or (0,) * (2 * axes)
    padded = [n + pads[i] + pads[i + axes] for i, n in enumerate(size)]
    outs = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(padded, kernel, strides, dilations)]
    n, c = x.shape[0], x.shape[1] // max(math.prod(kernel), 1)
    count([n, c, *padded], call.where)
    x = x.reshape(n, c, *kernel, *outs)
    positions = []
    for i in range(axes):
        at = jnp.arange(kernel[i])[:, None] * dilations[i] + jnp.arange(outs[i])[None] * strides[i]
        shape = [1] * (2 * axes)
        shape[i], shape[i + axes] = at.shape
        positions.append(at.reshape(shape))
    y = jnp.zeros((n, c, *padded), x.dtype).at[(slice(None), slice(None), *positions)].add(x)
    return y[(slice(None), slice(None), *(slice(pads[i], pads[i] + size[i]) for i in range(axes)))]
