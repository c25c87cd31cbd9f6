"""Paddle's operators that move, join, cut and make arrays, and that look for places in them."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from framework.interop.graph.operator import Table
from framework.interop.graph.paddle.arguments import Arguments, Rule, rank, registrar
from framework.interop.graph.values import Dim, Item, Value, dims_array, shape_of, to_jax
from framework.nn import functional as F

OPERATORS: Table = {}
canonical = jax.dtypes.canonicalize_dtype
operator = registrar(OPERATORS)
_INT64 = 7  # of ONNX
END = np.iinfo(np.int32).max


def axis_of(a: Arguments, item: Item, name: str = "axis", default: int = 0, tensor: str = "") -> int:
    """An axis from the front. Raises: ShapeError."""
    axis_tensor = a.get(tensor) if tensor else None
    axis = int(a.attr(name, default)) if axis_tensor is None else int(a.call.number(axis_tensor, tensor))
    return a.call.axis(axis, rank(item))


@operator("shape", "shape64")
def _shape(a: Arguments) -> Item:
    return a.onnx("Shape", a["Input"])


@operator("size")
def _size(a: Arguments) -> Item:
    return a.onnx("Size", a["Input"])


@operator("reshape2", "reshape")
def _reshape(a: Arguments) -> Item:
    return a.onnx("Reshape", a["X"], dims_array(a.dims("shape", "Shape", "ShapeTensor")))


@operator("transpose2", "transpose")
def _transpose(a: Arguments) -> Item:
    return a.onnx("Transpose", a["X"], perm=tuple(axis % max(rank(a["X"]), 1) for axis in a.ints("axis")))


@operator("squeeze2", "squeeze")
def _squeeze(a: Arguments) -> Item:
    """Axes of another size than 1 stay."""
    x, axes = a["X"], a.dims("axes", "AxesTensor", "AxesTensorList")
    shape = shape_of(x)
    positions = [axis % len(shape) for axis in axes] if axes else range(len(shape))
    ones = [axis for axis in positions if isinstance(shape[axis], int) and shape[axis] == 1]
    return a.onnx("Squeeze", x, np.array(ones, np.int64)) if ones else x


@operator("unsqueeze2", "unsqueeze")
def _unsqueeze(a: Arguments) -> Item:
    x = a["X"]
    for axis in a.dims("axes", "AxesTensor", "AxesTensorList"):  # one after the other, as Paddle counts them
        x = a.onnx("Unsqueeze", x, np.array([axis], np.int64))
    return x


@operator("flatten_contiguous_range")
def _flatten_range(a: Arguments) -> Item:
    x = a["X"]
    shape = list(shape_of(x))
    if not shape:
        return a.onnx("Reshape", x, np.array([1], np.int64))
    start, stop = (
        int(a.attr(name, other)) % len(shape) for name, other in (("start_axis", 1), ("stop_axis", 1))
    )
    merged: list[Dim] = [*shape[:start], math.prod(shape[start : stop + 1]), *shape[stop + 1 :]]
    return a.onnx("Reshape", x, dims_array(merged), allowzero=1)


@operator("flatten2", "flatten")
def _flatten(a: Arguments) -> Item:
    return a.onnx("Flatten", a["X"], axis=int(a.attr("axis", 1)))


@operator("concat")
def _concat(a: Arguments) -> Item:
    items = a.all("X")
    return a.onnx("Concat", *items, axis=axis_of(a, items[0], tensor="AxisTensor"))


@operator("split")
def _split(a: Arguments) -> list[Item]:
    x = a["X"]
    axis, outputs = (
        axis_of(a, x, tensor="AxisTensor"),
        sum(slot == "Out" for slot in a.call.node.output_slots),
    )
    sections = a.dims("sections", "", "SectionsTensorList")
    total = shape_of(x)[axis]
    if not sections:
        outputs = int(a.attr("num", 0)) or outputs
        sections = [total // outputs] * outputs
    if -1 in sections:
        sections[sections.index(-1)] = total - sum(size for size in sections if size != -1)
    results = a.onnx("Split", x, dims_array(sections), axis=axis, outputs=len(sections))
    return list(results) if isinstance(results, tuple) else [results]


@operator("stack", main="Y")
def _stack(a: Arguments) -> Item:
    items = a.all("X")
    axis = int(a.attr("axis", 0)) % (rank(items[0]) + 1)
    wide = [a.onnx("Unsqueeze", item, np.array([axis], np.int64)) for item in items]
    return a.onnx("Concat", *wide, axis=axis)


@operator("unstack", main="Y")
def _unstack(a: Arguments) -> list[Item]:
    x = a["X"]
    return _single(a, x, axis_of(a, x))


@operator("unbind")
def _unbind(a: Arguments) -> list[Item]:
    x = a["X"]
    return _single(a, x, axis_of(a, x))


def _single(a: Arguments, x: Item, axis: int) -> list[Item]:
    count = a.call.static(a.onnx("Shape", x), "the number of parts")[axis]
    return [a.onnx("Gather", x, np.asarray(i, np.int64), axis=axis) for i in range(int(count))]


@operator("slice")
def _slice(a: Arguments) -> Item:
    """`decrease_axis` are the axes of one element that an index, and no slice, has left."""
    x, axes = a["Input"], a.ints("axes")
    starts = a.dims("starts", "StartsTensor", "StartsTensorList")
    ends = a.dims("ends", "EndsTensor", "EndsTensorList")
    gone = a.ints("decrease_axis")
    ends = [
        END if axis in gone and start == -1 else end
        for axis, start, end in zip(axes, starts, ends, strict=True)
    ]
    y = a.onnx("Slice", x, dims_array(starts), dims_array(ends), np.array(axes, np.int64))
    return a.onnx("Squeeze", y, np.array(gone, np.int64)) if gone else y


@operator("strided_slice")
def _strided_slice(a: Arguments) -> Item:
    """Going backwards, the end -1 is beyond the first element. Source: StridedSliceFunctor of
    paddle/phi/kernels/funcs/strided_slice.h"""
    axes = np.array(a.ints("axes"), np.int64)
    starts = dims_array(a.dims("starts", "StartsTensor", "StartsTensorList"))
    steps = a.dims("strides", "StridesTensor", "StridesTensorList")
    ends = [
        -END - 1 if isinstance(end, int) and end == -1 and step < 0 else end
        for end, step in zip(a.dims("ends", "EndsTensor", "EndsTensorList"), steps, strict=True)
    ]
    y = a.onnx("Slice", a["Input"], starts, dims_array(ends), axes, dims_array(steps))
    gone = a.ints("decrease_axis")
    return a.onnx("Squeeze", y, np.array(gone, np.int64)) if gone else y


@operator("expand_v2")
def _expand(a: Arguments) -> Item:
    """-1 keeps the size of an axis."""
    x = a["X"]
    target = a.dims("shape", "Shape", "expand_shapes_tensor")
    padded = (1,) * (len(target) - rank(x)) + tuple(shape_of(x))
    full = [
        old if isinstance(new, int) and new == -1 else new for new, old in zip(target, padded, strict=True)
    ]
    return a.onnx("Expand", x, dims_array(full))


@operator("expand_as_v2")
def _expand_as(a: Arguments) -> Item:
    target = a.get("Y")
    return a.onnx(
        "Expand", a["X"], dims_array(a.ints("target_shape") if target is None else shape_of(target))
    )


@operator("expand")
def _expand_times(a: Arguments) -> Item:
    return a.onnx("Tile", a["X"], dims_array(a.dims("expand_times", "ExpandTimes", "expand_times_tensor")))


@operator("tile")
def _tile(a: Arguments) -> Item:
    x, times = a["X"], a.dims("repeat_times", "RepeatTimes", "repeat_times_tensor")
    if len(times) > rank(x):
        x = a.onnx("Unsqueeze", x, np.arange(len(times) - rank(x)))
    return a.onnx("Tile", x, dims_array([1] * (rank(x) - len(times)) + list(times)))


@operator("fill_constant")
def _fill(a: Arguments) -> Item:
    dtype, text, tensor = a.dtype(), a.attr("str_value", ""), a.get("ValueTensor")
    number = float(text) if text else a.attr("value", 0.0)
    shape = a.dims("shape", "ShapeTensor", "ShapeTensorList")
    if isinstance(tensor, np.ndarray) and tensor.size == 1 and tensor.dtype.kind != "O":
        return _full(shape, tensor.ravel()[0].item(), dtype)
    if tensor is not None:
        return a.onnx(
            "Expand", a.elementwise(lambda x: x.astype(canonical(dtype)), tensor), dims_array(shape)
        )
    return _full(shape, number, dtype)


def _full(shape: list[Dim], number: float, dtype: np.dtype) -> Item:
    """Numbers that decide shapes stay numpy; so do small arrays of them."""
    if all(isinstance(dim, int) for dim in shape) and (dtype.kind in "iub" or math.prod(shape) <= 16):
        return np.full(shape, number, dtype)
    return Value.of(jnp.full(shape, number, canonical(dtype)))


@operator("fill_constant_batch_size_like")
def _fill_like_batch(a: Arguments) -> Item:
    shape: list[Dim] = list(a.ints("shape"))
    shape[int(a.attr("output_dim_idx", 0))] = shape_of(a["Input"])[int(a.attr("input_dim_idx", 0))]
    text = a.attr("str_value", "")
    return _full(shape, float(text) if text else a.attr("value", 0.0), a.dtype())


@operator("fill_any_like", "fill_zeros_like")
def _fill_like(a: Arguments) -> Item:
    x = a["X"]
    dtype, number = x.dtype if isinstance(x, Value | np.ndarray) else None, a.get("ValueTensor")
    value = a.attr("value", 0.0) if number is None else a.call.number(number, "value")
    return _full(list(shape_of(x)), value, a.dtype("dtype", dtype))


_VALUES = ("values", *(f"{kind}_values" for kind in ("fp32", "fp64", "int32", "int64", "bool", "int8")))


def stored_values(a: Arguments) -> np.ndarray:
    """The numbers that the attributes of a node hold, in their type and shape."""
    values = next((found for name in _VALUES if (found := a.attr(name))), ())
    return np.asarray(values, a.dtype()).reshape(a.ints("shape"))


@operator("assign_value")
def _assign_value(a: Arguments) -> Item:
    return stored_values(a)


@operator("range")
def _range(a: Arguments) -> Item:
    y = a.onnx("Range", *(a.onnx("Squeeze", a[slot]) for slot in ("Start", "End", "Step")))
    if y.dtype == np.float64 and a.dtype(default=np.dtype(np.float64)) == np.float32:
        # PIR counts in float64 and gives the type that is asked for.
        return _as_type(a, y, np.dtype(np.float32))
    return y


@operator("linspace")
def _linspace(a: Arguments) -> Item:
    start, stop, count = (a.call.number(a[slot], slot) for slot in ("Start", "Stop", "Num"))
    return Value.of(jnp.linspace(start, stop, int(count), dtype=canonical(a.dtype())))


@operator("eye")
def _eye(a: Arguments) -> Item:
    rows, columns = int(a.attr("num_rows", 0)), int(a.attr("num_columns", -1))
    return np.eye(rows, columns if columns > 0 else rows, dtype=a.dtype())


@operator("tril_triu")
def _triangle(a: Arguments) -> Item:
    return a.onnx(
        "Trilu", a["X"], np.asarray(int(a.attr("diagonal", 0))), upper=int(not a.attr("lower", True))
    )


@operator("meshgrid")
def _meshgrid(a: Arguments) -> list[Item]:
    return [Value.of(one) for one in jnp.meshgrid(*(to_jax(item) for item in a.all("X")), indexing="ij")]


@operator("flip")
def _flip(a: Arguments) -> Item:
    return Value.of(jnp.flip(a.array("X"), a.ints("axis")))


@operator("roll")
def _roll(a: Arguments) -> Item:
    x, shifts, axes = a.array("X"), a.dims("shifts", "ShiftsTensor"), a.ints("axis")
    if not axes:
        return Value.of(jnp.roll(x, shifts[0]))
    return Value.of(jnp.roll(x, tuple(shifts), tuple(axes)))


@operator("gather")
def _gather(a: Arguments) -> Item:
    x, index = a["X"], a["Index"]
    if rank(index) == 2 and shape_of(index)[1] == 1:
        index = a.onnx("Squeeze", index, np.array([1], np.int64))
    return a.onnx("Gather", x, index, axis=axis_of(a, x, tensor="Axis"))


@operator("index_select")
def _index_select(a: Arguments) -> Item:
    return a.onnx("Gather", a["X"], a["Index"], axis=axis_of(a, a["X"], "dim"))


@operator("gather_nd")
def _gather_nd(a: Arguments) -> Item:
    return a.onnx("GatherND", a["X"], a["Index"])


@operator("take_along_axis", main="Result")
def _take_along(a: Arguments) -> Item:
    return a.onnx("GatherElements", a["Input"], a["Index"], axis=int(a.attr("Axis", 0)))


@operator("scatter")
def _scatter(a: Arguments) -> Item:
    x, index, updates = a.array("X"), a.array("Ids").reshape(-1), a.array("Updates")
    if a.attr("overwrite", True):
        return Value.of(x.at[index].set(updates))
    return Value.of(x.at[index].set(0).at[index].add(updates))


@operator("scatter_nd_add")
def _scatter_nd_add(a: Arguments) -> Item:
    return a.onnx("ScatterND", a["X"], a["Index"], a["Updates"], reduction="add")


@operator("where_index", grows=True)
def _where_index(a: Arguments) -> Item:
    return a.onnx("Transpose", a.onnx("NonZero", a["Condition"]), perm=(1, 0))


@operator("one_hot_v2", "one_hot")
def _one_hot(a: Arguments) -> Item:
    depth = a.get("depth_tensor")
    count = int(a.attr("depth", 1)) if depth is None else int(a.call.number(depth, "depth"))
    return Value.of(F.one_hot(a.array("X"), count))


@operator("lookup_table_v2", "lookup_table")
def _lookup(a: Arguments) -> Item:
    ids, padding = a.array("Ids"), int(a.attr("padding_idx", -1))
    if a.call.node.op == "lookup_table":
        ids = ids.reshape(ids.shape[:-1])
    return Value.of(F.embedding(ids, a.array("W"), None if padding < 0 else padding))


@operator("pad")
def _pad(a: Arguments) -> Item:
    pairs = np.array(a.ints("paddings"), np.int64).reshape(-1, 2)
    return a.onnx("Pad", a["X"], pairs.T.ravel(), a.number_like(a["X"], a.attr("pad_value", 0.0)))


_MODES = {
    "constant": "constant",
    "reflect": "reflect",
    "edge": "edge",
    "replicate": "edge",
    "circular": "wrap",
}


@operator("pad2d", "pad3d")
def _pad_images(a: Arguments) -> Item:
    """pad2d names edges from the first axis on, pad3d from the last."""
    x = a["X"]
    edges = a.dims("paddings", "Paddings")
    pairs = list(zip(edges[::2], edges[1::2]))
    if a.call.node.op == "pad3d":
        pairs = pairs[::-1]
    spatial = rank(x) - 2
    pairs = pairs[-spatial:]
    whole = (
        [(0, 0), *pairs, (0, 0)]
        if str(a.attr("data_format", "NCHW")).endswith("C")
        else [(0, 0), (0, 0), *pairs]
    )
    flat = [pair[side] for side in (0, 1) for pair in whole]
    value = a.attr("pad_value", a.attr("value", 0.0))
    mode = _MODES[a.attr("mode", "constant")]
    return a.onnx("Pad", x, dims_array(flat), a.number_like(x, value), mode=mode)


@operator("top_k_v2", "top_k")
def _top_k(a: Arguments) -> dict[str, Item]:
    x, k = a["X"], a.get("K")
    count = np.array([a.attr("k", 1)] if k is None else [a.call.number(k, "k")], np.int64)
    axis = axis_of(a, x, default=-1)
    values, positions = a.onnx("TopK", x, count, axis=axis, largest=int(a.attr("largest", True)), outputs=2)
    return {"Out": values, "Indices": positions}


@operator("argsort")
def _argsort(a: Arguments) -> dict[str, Item]:
    x = a.array("X")
    axis, down = axis_of(a, a["X"], default=-1), bool(a.attr("descending", False))
    positions = jnp.argsort(x, axis, descending=down, stable=True)
    return {"Out": Value.of(jnp.take_along_axis(x, positions, axis)), "Indices": Value.of(positions)}


@operator("arg_max", "arg_min")
def _arg(a: Arguments) -> Item:
    x, axis = a["X"], axis_of(a, a["X"], tensor="AxisTensor")
    if a.attr("flatten", False):
        x, axis = a.onnx("Reshape", x, np.array([-1], np.int64)), 0
    op = "ArgMax" if a.call.node.op == "arg_max" else "ArgMin"
    return a.onnx(op, x, axis=axis, keepdims=int(bool(a.attr("keepdims", False))))


def _as_type(a: Arguments, x: Item, dtype: np.dtype) -> Item:
    return (
        x.astype(dtype)
        if isinstance(x, np.ndarray)
        else a.elementwise(lambda y: y.astype(canonical(dtype)), x)
    )


def _reduction(op: str) -> Rule:
    def rule(a: Arguments) -> Item:
        x = a["X"]
        if op == "ReduceSum" and isinstance(x, Value | np.ndarray) and x.dtype == bool:
            x = a.onnx("Cast", x, to=_INT64)
        dtype = a.dtype("out_dtype", np.dtype(np.int64))
        if dtype.kind == "f":  # else a mean of counts would be a division of integers
            x = _as_type(a, x, dtype)
        axes = [] if a.attr("reduce_all", False) else a.dims("dim", "AxisTensor", "AxisTensorList")
        keep = int(bool(a.attr("keep_dim", a.attr("keepdim", False))))
        if axes:
            return a.onnx(op, x, np.array(axes, np.int64), keepdims=keep)
        return a.onnx(op, x, keepdims=keep)

    return rule


for _name in ("sum", "mean", "max", "min", "prod"):
    operator(f"reduce_{_name}")(_reduction(f"Reduce{_name.capitalize()}"))
operator("mean")(lambda a: a.onnx("ReduceMean", a["X"], keepdims=0))
operator("logsumexp")(_reduction("ReduceLogSumExp"))
operator("frobenius_norm")(_reduction("ReduceL2"))


@operator("reduce_all", "reduce_any")
def _logical(a: Arguments) -> Item:
    axes = None if a.attr("reduce_all", False) else tuple(a.ints("dim"))
    function = jnp.all if a.call.node.op == "reduce_all" else jnp.any
    return Value.of(function(a.array("X"), axis=axes or None, keepdims=bool(a.attr("keep_dim", False))))


@operator("cumsum")
def _cumsum(a: Arguments) -> Item:
    if rank(a["X"]) == 0:
        return a["X"]
    x, axis = a["X"], axis_of(a, a["X"], default=-1, tensor="AxisTensor")
    if a.attr("flatten", False):
        x, axis = a.onnx("Reshape", x, np.array([-1], np.int64)), 0
    flags = {name: int(bool(a.attr(name, False))) for name in ("exclusive", "reverse")}
    return a.onnx("CumSum", x, np.asarray(axis % rank(x)), **flags)
