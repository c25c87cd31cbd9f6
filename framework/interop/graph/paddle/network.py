"""Paddle's layers as operators: products, convolutions, pooling, normalisation, resizing, recurrence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.axes import same_edges
from framework.core.errors import ShapeError
from framework.interop.graph.operator import Table
from framework.interop.graph.paddle.arguments import Arguments, rank, registrar
from framework.interop.graph.paddle.shapes import axis_of
from framework.interop.graph.values import (
    Dim,
    Item,
    Value,
    channels_last,
    dims_array,
    shape_of,
    to_jax,
    to_value,
)
from framework.nn import functional as F
from framework.nn.functional.rnn import CellWeights

OPERATORS: Table = {}
operator = registrar(OPERATORS)


def _swapped(item: Item, swap: bool) -> Item:
    """With the last two axes exchanged; nothing is moved."""
    value = to_value(item)
    if not swap or value.ndim < 2:
        return item
    return Value(value.data, (*value.order[:-2], value.order[-1], value.order[-2]))


@operator("matmul_v2", "matmul", "bmm")
def _matmul(a: Arguments) -> Item:
    flags = [
        bool(a.attr(new, a.attr(old, False)))
        for new, old in (("trans_x", "transpose_X"), ("trans_y", "transpose_Y"))
    ]
    x, y = _swapped(a["X"], flags[0]), _swapped(a["Y"], flags[1])
    heads = int(a.attr("head_number", 1))
    y = a.onnx("MatMul", x, y) if heads == 1 else _matmul_heads(a, x, y, heads)
    alpha = a.attr("alpha", 1.0)
    return y if alpha == 1 else a.onnx("Mul", y, a.number_like(y, alpha))


def _matmul_heads(a: Arguments, x: Item, y: Item, heads: int) -> Item:
    """The products of the columns of X, in so many blocks, with the blocks of rows of Y (of columns, where Y has only
    as many rows as a block), side by side."""
    *batch, rows, width = shape_of(x)
    *_, height, columns = shape_of(y)
    block = width // heads
    split = [*batch, block, heads, columns // heads] if height == block else [*batch, heads, block, columns]
    axes = list(range(len(batch)))
    before = [*axes, len(axes) + 1, len(axes), len(axes) + 2]
    left = a.onnx("Reshape", x, dims_array([*batch, rows, heads, block]))
    right = a.onnx("Reshape", y, dims_array(split))
    right = a.onnx("Transpose", right, perm=before) if height == block else right
    product = a.onnx("MatMul", a.onnx("Transpose", left, perm=before), right)
    return a.onnx(
        "Reshape", a.onnx("Transpose", product, perm=before), dims_array([*batch, rows, heads * split[-1]])
    )


@operator("mul")
def _mul(a: Arguments) -> Item:
    """The product of X and Y as matrices: the first axes of each are rows, the others columns."""
    x, y = a["X"], a["Y"]
    rows, inner = int(a.attr("x_num_col_dims", 1)), int(a.attr("y_num_col_dims", 1))
    shape = (*shape_of(x)[:rows], *shape_of(y)[inner:])
    flat = a.onnx("MatMul", _matrix(a, x, rows), _matrix(a, y, inner))
    return a.onnx("Reshape", flat, dims_array(shape), allowzero=1)


def _matrix(a: Arguments, item: Item, rows: int) -> Item:
    shape = shape_of(item)
    return a.onnx(
        "Reshape", item, dims_array([math.prod(shape[:rows]), math.prod(shape[rows:])]), allowzero=1
    )


@operator("fc")
def _fc(a: Arguments) -> Item:
    x, w, bias = a["Input"], a["W"], a.get("Bias")
    rows = int(a.attr("in_num_col_dims", 1))
    y = a.onnx("MatMul", _matrix(a, x, rows), w)
    y = y if bias is None else a.onnx("Add", y, a.onnx("Reshape", bias, np.array([-1], np.int64)))
    y = a.onnx("Relu", y) if a.attr("activation_type", "") == "relu" else y
    return a.onnx("Reshape", y, dims_array((*shape_of(x)[:rows], shape_of(w)[1])), allowzero=1)


@operator("addmm")
def _addmm(a: Arguments) -> Item:
    product = a.onnx("MatMul", a["X"], a["Y"])
    scaled = a.onnx("Mul", product, a.number_like(product, a.attr("Alpha", 1.0)))
    return a.onnx("Add", a.onnx("Mul", a["Input"], a.number_like(product, a.attr("Beta", 1.0))), scaled)


@operator("softmax")
def _softmax(a: Arguments) -> Item:
    return a.onnx("Softmax", a["X"], axis=int(a.attr("axis", -1)))


@operator("log_softmax")
def _log_softmax(a: Arguments) -> Item:
    return a.onnx("LogSoftmax", a["X"], axis=int(a.attr("axis", -1)))


def edges_of(a: Arguments, axes: int) -> list[int]:
    """Padding in ONNX's order: before each axis, then behind each."""
    numbers = a.ints("paddings", [0] * axes)
    if len(numbers) == 2 * axes:  # before and behind the first axis, then the next
        return numbers[::2] + numbers[1::2]
    if len(numbers) != axes:
        raise a.call.error("paddings has one or two numbers for each axis", ShapeError, received=numbers)
    return numbers * 2


class _Padding(TypedDict, total=False):
    """The edges as an ONNX convolution takes them: by name, or their sizes."""

    auto_pad: str
    pads: list[int]
    output_padding: list[int]


def _padding(a: Arguments, axes: int) -> _Padding:
    mode = a.attr("padding_algorithm", "EXPLICIT")
    if mode == "SAME":
        return {"auto_pad": "SAME_UPPER"}
    return {"pads": [0] * (2 * axes) if mode == "VALID" else edges_of(a, axes)}


@operator("conv2d", "depthwise_conv2d", "conv3d", main="Output")
def _conv(a: Arguments) -> Item:
    x = a.images(a.value("Input"))
    axes = x.ndim - 2
    padding = _padding(a, axes)
    y = a.onnx(
        "Conv",
        x,
        a["Filter"],
        a.get("Bias"),
        strides=a.ints("strides", [1] * axes),
        dilations=[1] * axes if "auto_pad" in padding else a.ints("dilations", [1] * axes),
        group=int(a.attr("groups", 1)),
        **padding,
    )
    return a.as_given(y)


@operator("conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose", main="Output")
def _conv_transpose(a: Arguments) -> Item:
    x = a.images(a.value("Input"))
    axes = x.ndim - 2
    extra, output_size = (
        a.ints("output_padding"),
        a.dims("output_size", "OutputSizeTensor", "OutputSizeTensorList"),
    )
    strides, dilations = a.ints("strides", [1] * axes), a.ints("dilations", [1] * axes)
    settings = _padding(a, axes)
    if "auto_pad" in settings:
        # Those of a convolution of an image of the input's size; ONNX asks for an output of size times stride.
        pads = same_edges(x.shape[2:], shape_of(a["Filter"])[2:], strides)
        settings = _Padding(pads=[*pads[::2], *pads[1::2]])
        dilations = [1] * axes
    if output_size and not extra:
        kernel, edges = shape_of(a["Filter"])[2:], settings.get("pads", [0] * (2 * axes))
        least = [
            (x.shape[i + 2] - 1) * strides[i]
            - edges[i]
            - edges[i + axes]
            + dilations[i] * (kernel[i] - 1)
            + 1
            for i in range(axes)
        ]
        extra = [int(size - low) for size, low in zip(output_size, least)]
    if extra:
        settings["output_padding"] = extra
    group = int(a.attr("groups", 1))
    y = a.onnx("ConvTranspose", x, a["Filter"], strides=strides, dilations=dilations, group=group, **settings)
    bias = a.get("Bias")
    if bias is not None:
        y = a.onnx("Add", y, a.onnx("Reshape", bias, np.array([1, -1, *[1] * axes], np.int64)))
    return a.as_given(y)


@operator("deformable_conv", main="Output")
def _deformable(a: Arguments) -> Item:
    pads = edges_of(a, 2)
    return a.onnx(
        "DeformConv",
        a["Input"],
        a["Filter"],
        a["Offset"],
        None,
        a.get("Mask"),
        strides=a.ints("strides", [1, 1]),
        dilations=a.ints("dilations", [1, 1]),
        group=int(a.attr("groups", 1)),
        offset_group=int(a.attr("deformable_groups", 1)),
        pads=pads,
    )


@operator("max_pool2d_with_index")
def _pool_with_indices(a: Arguments) -> dict[str, Item]:
    """The maxima, and where each stands in the flattened image."""
    x, size = a.images(a.value("X")).channels_last(), a.dims("ksize", "KernelSize")
    if a.attr("global_pooling", False) or a.attr("adaptive", False):
        _, indices = F.adaptive_max_pool2d(x, [1, 1] if a.attr("global_pooling", False) else size, True)
    else:
        edges = edges_of(a, 2)
        padding = [(edges[0], edges[2]), (edges[1], edges[3])]
        ceil = bool(a.attr("ceil_mode", False))
        _, indices = F.max_pool2d(x, size, a.ints("strides", [1, 1]), padding, True, ceil)
    return {"Out": _pool(a), "Mask": a.as_given(Value(indices, channels_last(4)))}


@operator("unpool")
def _unpool(a: Arguments) -> Item:
    x, indices = (a.images(a.value(slot)).channels_last() for slot in ("X", "Indices"))
    size = a.dims("output_size", "OutputSize")
    return a.as_given(Value(F.max_unpool2d(x, indices, a.ints("ksize"), output_size=size), channels_last(4)))


@operator("pool2d")
def _pool(a: Arguments) -> Item:
    x = a.images(a.value("X"))
    data, size = x.channels_last(), a.dims("ksize", "KernelSize")
    average = a.attr("pooling_type", "max") == "avg"
    if a.attr("global_pooling", False) or (a.attr("adaptive", False) and size == [1, 1]):
        y = data.mean((1, 2), keepdims=True) if average else data.max((1, 2), keepdims=True)
    elif a.attr("adaptive", False):
        y = (F.adaptive_avg_pool2d if average else F.adaptive_max_pool2d)(data, size)
    else:
        mode, edges = a.attr("padding_algorithm", "EXPLICIT"), edges_of(a, 2)
        padding: str | list[tuple[int, int]] = (
            mode if mode != "EXPLICIT" else [(edges[0], edges[2]), (edges[1], edges[3])]
        )
        strides, ceil = a.ints("strides", [1, 1]), bool(a.attr("ceil_mode", False))
        if average:
            y = F.avg_pool2d(data, size, strides, padding, ceil, bool(a.attr("exclusive", True)))
        else:
            y = F.max_pool2d(data, size, strides, padding, False, ceil)
    return a.as_given(Value(y, channels_last(4)))


@operator("batch_norm", "sync_batch_norm", main="Y")
def _batch_norm(a: Arguments) -> Item:
    """In a layer that trains the statistics are those of the batch, and the buffers follow, unless the graph says
    use_global_stats."""
    x = a.images(a.value("X"), "data_layout")
    mean, variance, scale, bias = (a.array(slot) for slot in ("Mean", "Variance", "Scale", "Bias"))
    epsilon, momentum = a.attr("epsilon", 1e-5), a.attr("momentum", 0.9)
    training = a.call.runner.training and not a.attr("use_global_stats", False)
    y, mean, variance = F.batch_norm(
        x.channels_last(), mean, variance, scale, bias, training, momentum, epsilon
    )
    if training:
        names = dict(zip(a.call.node.input_slots, a.call.node.inputs))
        a.call.runner.set_buffer(names["Mean"], mean)
        a.call.runner.set_buffer(names["Variance"], variance)
    return a.as_given(Value(y, channels_last(x.ndim)), "data_layout")


@operator("layer_norm", main="Y")
def _layer_norm(a: Arguments) -> Item:
    x = a.array("X")
    shape = x.shape[int(a.attr("begin_norm_axis", 1)) :]
    scale, bias = (
        None if a.get(slot) is None else a.array(slot).reshape(shape) for slot in ("Scale", "Bias")
    )
    return Value.of(F.layer_norm(x, shape, scale, bias, a.attr("epsilon", 1e-5)))


@operator("instance_norm", main="Y")
def _instance_norm(a: Arguments) -> Item:
    x = a.value("X")
    scale, bias = (None if a.get(slot) is None else a.array(slot) for slot in ("Scale", "Bias"))
    y = F.instance_norm(x.channels_last(), weight=scale, bias=bias, eps=a.attr("epsilon", 1e-5))
    return Value(y, channels_last(x.ndim))


@operator("group_norm", main="Y")
def _group_norm(a: Arguments) -> Item:
    x = a.images(a.value("X"), "data_layout")
    scale, bias = (None if a.get(slot) is None else a.array(slot) for slot in ("Scale", "Bias"))
    y = F.group_norm(x.channels_last(), int(a.attr("groups", 1)), a.attr("epsilon", 1e-5), scale, bias)
    return a.as_given(Value(y, channels_last(x.ndim)), "data_layout")


@operator("norm")
def _l2_normalize(a: Arguments) -> Item:
    x, axis = a.array("X"), axis_of(a, a["X"], default=1)
    length = jnp.sqrt(jnp.square(x).sum(axis, keepdims=True) + a.attr("epsilon", 1e-10))
    return Value.of(x / length)


@operator("p_norm")
def _p_norm(a: Arguments) -> Item:
    x, power, keep = a.array("X"), float(a.attr("porder", 2.0)), bool(a.attr("keepdim", False))
    axis = None if a.attr("asvector", False) else int(a.attr("axis", -1))
    size = jnp.abs(x)
    if math.isinf(power):
        return Value.of((jnp.max if power > 0 else jnp.min)(size, axis, keepdims=keep))
    if power == 0:
        return Value.of((x != 0).sum(axis, keepdims=keep).astype(x.dtype))
    return Value.of((size**power).sum(axis, keepdims=keep) ** (1 / power))


def _resize(a: Arguments) -> Item:
    x = a.images(a.value("X"), "data_layout")
    mode = a.call.node.op.partition("_")[0]
    size = _wanted_size(a, x.shape[2:])
    corners = bool(a.attr("align_corners", True)) and mode != "nearest"
    data = x.channels_last()
    if mode == "nearest" and a.attr("align_corners", True):
        return a.as_given(Value(_nearest_corners(a, data, size), channels_last(x.ndim)), "data_layout")
    y = F.interpolate(data, size, None, mode, corners, 0 if corners else int(a.attr("align_mode", 1)))
    return a.as_given(Value(y, channels_last(x.ndim)), "data_layout")


def _nearest_corners(a: Arguments, x: jax.Array, size: Sequence[Dim]) -> jax.Array:
    """The pixels next to where those of the new size lie, with corners on corners; halves are rounded up."""
    for axis, (after, before) in enumerate(zip(size, x.shape[1:-1]), start=1):
        if not (isinstance(after, int) and isinstance(before, int)):
            raise a.call.error("nearest with align_corners needs known sizes", ShapeError, received=str(size))
        ratio = np.float32((before - 1) / (after - 1) if after > 1 else 0)
        x = jnp.take(x, (ratio * np.arange(after, dtype=np.float32) + np.float32(0.5)).astype(int), axis)
    return x


def _wanted_size(a: Arguments, size: tuple[Dim, ...]) -> list[Dim]:
    """From SizeTensor, OutSize, Scale, the attribute scale, or out_d, out_h and out_w, the first that is there."""
    tensors = a.all("SizeTensor")
    if tensors:
        return [dim for item in tensors for dim in a.call.dims(item, "SizeTensor")]
    if a.get("OutSize") is not None:
        return a.call.dims(a["OutSize"], "OutSize")
    scales = a.attr("scale", ())
    if a.get("Scale") is not None:
        scales = a.call.static(a["Scale"], "Scale").ravel().tolist()
    scales = list(scales) if isinstance(scales, list | tuple) else [scales]
    if scales and all(scale > 0 for scale in scales):
        scales = scales * len(size) if len(scales) == 1 else scales
        return [dim * int(s) if float(s).is_integer() else _scaled(a, dim, s) for dim, s in zip(size, scales)]
    return [int(a.attr(name, -1)) for name in ("out_d", "out_h", "out_w")[-len(size) :]]


def _scaled(a: Arguments, dim: Dim, scale: float) -> Dim:
    if isinstance(dim, int):
        return int(dim * scale)
    ratio = float(scale).as_integer_ratio()
    if ratio[1] > 64:
        raise a.call.error("an open size is scaled by no simple fraction", ShapeError, received=scale)
    return dim * ratio[0] // ratio[1]


for _mode in ("nearest", "bilinear", "bicubic", "linear", "trilinear"):
    operator(f"{_mode}_interp", f"{_mode}_interp_v2")(_resize)


@operator("pixel_shuffle")
def _pixel_shuffle(a: Arguments) -> Item:
    x = a.images(a.value("X"))
    y = F.pixel_shuffle(x.channels_last(), int(a.attr("upscale_factor", 1)))
    return a.as_given(Value(y, channels_last(4)))


@operator("shuffle_channel")
def _shuffle_channel(a: Arguments) -> Item:
    x = a.value("X")
    return Value(F.channel_shuffle(x.channels_last(), int(a.attr("group", 1))), channels_last(4))


@operator("unfold", main="Y")
def _unfold(a: Arguments) -> Item:
    """[N, C, H, W] -> [N, C * kh * kw, windows]."""
    n, c, _, _ = a.value("X").shape
    kernel, strides, dilations = (
        a.ints("kernel_sizes"),
        a.ints("strides", [1, 1]),
        a.ints("dilations", [1, 1]),
    )
    top, left, bottom, right = edges_of(a, 2) if len(a.ints("paddings")) == 2 else a.ints("paddings")
    x = jnp.pad(a.array("X"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = jax.lax.conv_general_dilated_patches(x, kernel, strides, "VALID", rhs_dilation=dilations)
    return Value.of(windows.reshape(n, c * math.prod(kernel), -1))


@operator("grid_sampler", main="Output")
def _grid_sampler(a: Arguments) -> Item:
    grid = a.array("Grid")
    settings = {"mode": a.attr("mode", "bilinear"), "padding_mode": a.attr("padding_mode", "zeros")}
    y = F.grid_sample(
        a.value("X").channels_last(), grid, align_corners=bool(a.attr("align_corners", True)), **settings
    )
    return Value(y, channels_last(4))


@operator("roi_align")
def _roi_align(a: Arguments) -> Item:
    rois, counts = a.array("ROIs"), a.get("RoisNum")
    numbers = jnp.zeros(rois.shape[0], jnp.int32)
    if counts is not None:
        each = to_jax(counts)
        numbers = jnp.repeat(jnp.arange(each.shape[0]), each, total_repeat_length=rois.shape[0])
    return a.onnx(
        "RoiAlign",
        a["X"],
        Value.of(rois),
        Value.of(numbers),
        output_height=int(a.attr("pooled_height", 1)),
        output_width=int(a.attr("pooled_width", 1)),
        sampling_ratio=max(int(a.attr("sampling_ratio", -1)), 0),
        spatial_scale=float(a.attr("spatial_scale", 1.0)),
        coordinate_transformation_mode="half_pixel" if a.attr("aligned", False) else "output_half_pixel",
    )


@operator("rnn")
def _rnn(a: Arguments) -> dict[str, Item]:
    """Recurrent layers over [T, N, C]. WeightList has both matrices of every direction of every layer, then the
    biases in the same order."""
    x, mode = a.array("Input"), a.attr("mode", "LSTM")
    layers, ways = int(a.attr("num_layers", 1)), 2 if a.attr("is_bidirec", False) else 1
    weights = [to_jax(item) for item in a.all("WeightList")]
    half = len(weights) // 2
    states, lengths = [to_jax(item) for item in a.all("PreState")], a.get("SequenceLength")
    lengths = None if lengths is None else to_jax(lengths)
    last: list[list[jax.Array]] = [[] for _ in states]
    for layer in range(layers):
        outs = []
        for way in range(ways):
            at = layer * ways + way
            cell = CellWeights(*weights[2 * at : 2 * at + 2], *weights[half + 2 * at : half + 2 * at + 2])
            start = tuple(state[at] for state in states)
            y, end = F.rnn_scan(x, start, cell, mode, lengths, way == 1, time_major=True)
            outs.append(y)
            for finals, state in zip(last, end):
                finals.append(state)
        x = jnp.concatenate(outs, -1) if ways == 2 else outs[0]
        if a.call.runner.training and layer + 1 < layers:
            x = F.dropout(x, a.attr("dropout_prob", 0.0))
    return {"Out": Value.of(x), "State": [Value.of(jnp.stack(finals)) for finals in last]}


@operator("im2sequence")
def _im2sequence(a: Arguments) -> Item:
    """Windows as rows: [N, C, H, W] -> [N * windows, C * kh * kw]."""
    kernel, strides, edges = a.ints("kernels"), a.ints("strides", [1, 1]), a.ints("paddings", [0, 0, 0, 0])
    images = a.array("X")
    if a.get("Y") is not None and images.shape[0] > 1:  # Paddle reads them of several images only
        raise a.call.error(
            "sizes of the images (Y) make as many rows as their values say",
            ShapeError,
            received=f"{images.shape[0]} images with sizes of their own",
            allowed="one image, or images without Y",
        )
    x = jnp.pad(images, ((0, 0), (0, 0), (edges[0], edges[2]), (edges[1], edges[3])))
    windows = jax.lax.conv_general_dilated_patches(x, kernel, strides, "VALID")
    rows = windows.reshape(*windows.shape[:2], -1).transpose(0, 2, 1)
    return Value.of(rows.reshape(-1, rows.shape[-1]))


@operator("einsum")
def _einsum(a: Arguments) -> Item:
    return a.onnx("Einsum", *a.all("Operands"), equation=a.attr("equation"))


@operator("affine_channel")
def _affine_channel(a: Arguments) -> Item:
    shape = np.array([1, -1, *[1] * (rank(a["X"]) - 2)], np.int64)
    scale, bias = (a.onnx("Reshape", a[slot], shape) for slot in ("Scale", "Bias"))
    return a.onnx("Add", a.onnx("Mul", a["X"], scale), bias)
