"""Gathering, and slices whose start is computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jax.extend.core import JaxprEqn
from jax.typing import DTypeLike

from framework.export.formats.onnx.convert import Converter
from framework.export.formats.onnx.graph import Size, is_symbolic
from framework.export.formats.onnx.registry import primitive
from framework.export.formats.onnx.rules.elementwise import convert, out_aval
from framework.export.formats.onnx.rules.reduction import whole
from framework.export.formats.onnx.rules.shapes import cut
from framework.export.formats.onnx.values import Abstract, Value, constant, same


def fresh(dtype: DTypeLike, name: str, shape: Sequence[Size]) -> Value:
    """A tensor in the program's order."""
    return Value(tuple(shape), np.dtype(dtype), name, tuple(range(len(shape))))


def mode_of(eqn: JaxprEqn) -> str:
    """CLIP, FILL_OR_DROP or PROMISE_IN_BOUNDS."""
    return str(eqn.params["mode"]).rpartition(".")[2].upper()


def signed(c: Converter, indices: Value) -> Value:
    """Indices as int32 or int64, which is what operators take."""
    return indices if indices.dtype in (np.int32, np.int64) else convert(c, indices, np.int32)


def size_vector(c: Converter, sizes: Sequence[Size]) -> Value:
    """An int32 vector of sizes."""
    if not any(map(is_symbolic, sizes)):
        return constant(np.array([int(size) for size in sizes], np.int32))
    return Value((len(sizes),), np.dtype(np.int32), c.cast(c.graph.sizes(sizes), np.int32), (0,))


def in_bounds(indices: Value, limits: Sequence[Size]) -> bool:
    """Whether constant indices [..., K] lie between 0 and the limits."""
    if not indices.is_constant or any(map(is_symbolic, limits)):
        return False
    elements = indices.elements
    return bool(((elements >= 0) & (elements <= np.array([int(limit) for limit in limits]))).all())


def window_indices(c: Converter, indices: Value, sizes: Sequence[int]) -> Value:
    """Indices [..., K] of first elements as those of all elements of windows: [..., *sizes, K]."""
    if all(size == 1 for size in sizes):
        return indices
    steps = np.stack(np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij"), -1)
    *batch, count = indices.shape
    lone = c.reshape_value(indices, [*batch, *[1] * len(sizes), count])
    steps = constant(steps.reshape([*[1] * len(batch), *steps.shape]).astype(indices.dtype))
    return c.elementwise("Add", (lone, steps), Abstract([*batch, *sizes, count], indices.dtype))


@primitive("gather")
def _gather(c: Converter, eqn: JaxprEqn, x: Value, indices: Value) -> Value | None:
    p = eqn.params
    numbers, sizes = p["dimension_numbers"], p["slice_sizes"]
    x, indices = whole(c, eqn, x), whole(c, eqn, indices, 1)
    indexed, batched = list(numbers.start_index_map), list(numbers.operand_batching_dims)
    limits = [x.shape[axis] - sizes[axis] for axis in indexed]
    if (
        len(indices.shape) == 1
        and indices.is_constant
        and in_bounds(indices, limits) | (mode_of(eqn) == "PROMISE_IN_BOUNDS")
    ):
        return _known_slice(c, eqn, x, indices)
    if len(indices.shape) == 1 and mode_of(eqn) != "FILL_OR_DROP":
        return _slice_at(c, eqn, x, indices)
    rest = [axis for axis in range(len(x.shape)) if axis not in (*indexed, *batched)]
    if any(not same(sizes[axis], x.shape[axis]) for axis in rest) or any(
        is_symbolic(sizes[axis]) for axis in indexed
    ):
        return None
    indices = signed(c, indices)
    safe, inside = indices, None
    if mode_of(eqn) != "PROMISE_IN_BOUNDS" and not in_bounds(indices, limits):
        most = size_vector(c, limits)
        most = c.reshape_value(
            convert(c, most, indices.dtype), [1] * (len(indices.shape) - 1) + [len(limits)]
        )
        safe = c.elementwise(
            "Max", (indices, c.scalar(0, indices.dtype)), Abstract(indices.shape, indices.dtype)
        )
        safe = c.elementwise("Min", (safe, most), Abstract(indices.shape, indices.dtype))
        if mode_of(eqn) == "FILL_OR_DROP":
            inside = c.elementwise("Equal", (safe, indices), Abstract(indices.shape, np.bool_))
    result = _gather_elements(c, eqn, x, safe) or _gather_rows(c, eqn, x, safe, rest)
    return result if inside is None else _fill(c, eqn, result, inside)


def _known_slice(c: Converter, eqn: JaxprEqn, x: Value, indices: Value) -> Value:
    """One window at a known place."""
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    starts: list[Size] = [0] * len(x.shape)
    for axis, start in zip(numbers.start_index_map, indices.elements):
        starts[axis] = int(start)
    result = cut(c, x, starts, [start + size for start, size in zip(starts, sizes)])
    gone = numbers.collapsed_slice_dims
    return c.reshape_value(result, [size for axis, size in enumerate(result.shape) if axis not in gone])


def _slice_at(c: Converter, eqn: JaxprEqn, x: Value, indices: Value) -> Value:
    """One window at a computed place."""
    numbers, sizes, g = eqn.params["dimension_numbers"], eqn.params["slice_sizes"], c.graph
    axes = list(numbers.start_index_map)
    limits = [x.shape[axis] - sizes[axis] for axis in axes]
    low = c.cast(c.plain(indices), np.int64)
    low = g.add("Min", g.add("Max", low, g.integers(0)), g.sizes(limits))
    high = g.add("Add", low, g.sizes([sizes[axis] for axis in axes]))
    name = g.add("Slice", c.tensor(x), low, high, g.integers(*(x.order[axis] for axis in axes)))
    result = Value(tuple(sizes), x.dtype, name, x.order)
    gone = numbers.collapsed_slice_dims
    return c.reshape_value(result, [size for axis, size in enumerate(sizes) if axis not in gone])


def _gather_elements(c: Converter, eqn: JaxprEqn, x: Value, indices: Value) -> Value | None:
    """take_along_axis: every axis but one is a batch of both, in the same place."""
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    if len(numbers.start_index_map) != 1 or tuple(numbers.collapsed_slice_dims) != tuple(
        numbers.start_index_map
    ):
        return None
    (axis,) = numbers.start_index_map
    others = tuple(i for i in range(len(x.shape)) if i != axis)
    if tuple(numbers.operand_batching_dims) != others or numbers.offset_dims or sizes[axis] != 1:
        return None
    if len(indices.shape) != len(x.shape) + 1 or tuple(numbers.start_indices_batching_dims) != others:
        return None
    positions = c.plain(c.reshape_value(indices, indices.shape[:-1]))
    return c.value(c.graph.add("GatherElements", c.plain(x), positions, axis=axis), out_aval(eqn))


def _gather_rows(c: Converter, eqn: JaxprEqn, x: Value, indices: Value, rest: list[int]) -> Value:
    """Gather along one axis, or GatherND over several, with what is a batch of both first."""
    numbers, sizes, aval = eqn.params["dimension_numbers"], eqn.params["slice_sizes"], out_aval(eqn)
    indexed, batched = list(numbers.start_index_map), list(numbers.operand_batching_dims)
    windows = [sizes[axis] for axis in indexed]
    paired = list(numbers.start_indices_batching_dims)
    lone = [axis for axis in range(len(indices.shape) - 1) if axis not in paired]
    rows = indices
    if paired or not indices.is_constant:
        axes = [*paired, *lone, len(indices.shape) - 1]
        name = c.place(indices, axes, indices.shape)
        rows = fresh(indices.dtype, name, [indices.shape[axis] for axis in axes])
    # The axes of the result as the operator gives them: ("batch", i) of the indices, ("x", axis) of the operand.
    if len(indexed) == 1 and not batched:
        (axis,) = indexed
        positions = window_indices(c, rows, windows)
        name = c.graph.add(
            "Gather",
            c.tensor(x),
            c.plain(c.reshape_value(positions, positions.shape[:-1])),
            axis=x.order[axis],
        )
        stored = sorted(range(len(x.shape)), key=lambda i: x.order[i])
        order_before: list[tuple[str, int]] = []
        for i in stored:
            order_before += [("batch", j) for j in lone] + [("x", axis)] if i == axis else [("x", i)]
        shape: list[Size] = []
        for i in stored:
            shape += [*(indices.shape[j] for j in lone), sizes[axis]] if i == axis else [x.shape[i]]
        if sizes[axis] == 1:  # Gather has dropped the axis
            at = order_before.index(("x", axis))
            gathered = fresh(x.dtype, name, [*shape[:at], *shape[at + 1 :]])
            if axis in numbers.collapsed_slice_dims:
                del order_before[at]
            else:
                gathered = c.reshape_value(gathered, shape)
        else:
            gathered = fresh(x.dtype, name, shape)
    else:
        positions = window_indices(c, rows, windows)
        table = c.place(x, [*batched, *indexed, *rest], x.shape)
        name = c.graph.add(
            "GatherND",
            table,
            c.plain(convert(c, positions, np.int64)),
            batch_dims=len(batched) if batched else None,
        )
        windowed = [axis for axis in indexed if sizes[axis] != 1] if any(n != 1 for n in windows) else []
        indexed_axes = indexed if windowed else []
        order_before = [("batch", i) for i in (*paired, *lone)] + [
            ("x", axis) for axis in (*indexed_axes, *rest)
        ]
        shape = [indices.shape[i] for i in (*paired, *lone)] + [
            sizes[axis] for axis in (*indexed_axes, *rest)
        ]
        gathered = fresh(x.dtype, name, shape)
        missing = [
            ("x", axis) for axis in indexed if axis not in (*indexed_axes, *numbers.collapsed_slice_dims)
        ]
        order_before, gathered = (
            order_before + missing,
            c.reshape_value(gathered, [*shape, *[1] * len(missing)]),
        )
    offset = [axis for axis in range(len(x.shape)) if axis not in (*numbers.collapsed_slice_dims, *batched)]
    outside = [i for i in range(len(aval.shape)) if i not in numbers.offset_dims]
    order_after: list[tuple[str, int]] = [("", 0)] * len(aval.shape)
    for i, axis in zip(numbers.offset_dims, offset):
        order_after[i] = ("x", axis)
    for i, batch in zip(outside, range(len(indices.shape) - 1)):
        order_after[i] = ("batch", batch)
    gone = [i for i, key in enumerate(order_before) if key not in order_after]
    if gone:
        gathered = c.reshape_value(gathered, [size for i, size in enumerate(gathered.shape) if i not in gone])
        order_before = [key for i, key in enumerate(order_before) if i not in gone]
    return Value(
        tuple(aval.shape),
        x.dtype,
        gathered.name,
        tuple(gathered.order[order_before.index(key)] for key in order_after),
    )


def _fill(c: Converter, eqn: JaxprEqn, gathered: Value, inside: Value) -> Value:
    """With the fill value where an index is outside."""
    numbers, aval = eqn.params["dimension_numbers"], out_aval(eqn)
    value = eqn.params["fill_value"]
    if value is None:
        kind = gathered.dtype.kind
        value = (
            np.nan if kind == "f" else np.iinfo(gathered.dtype).min if kind == "i" else gathered.dtype.type(1)
        )
    batch = inside.shape[:-1]
    one = convert(c, inside, np.int32)
    last = len(inside.shape) - 1
    all_inside = convert(c, c.reduce("ReduceMin", one, [last], Abstract(batch, np.int32)), np.bool_)
    sizes = iter(batch)
    shape = [1 if i in numbers.offset_dims else next(sizes) for i in range(len(aval.shape))]
    mask = c.reshape_value(all_inside, shape)
    return c.where(mask, gathered, c.scalar(value, gathered.dtype), aval)


# -- slices whose start is computed -----------------------------------------------------------------------------------


def start_of(c: Converter, start: Value, size: Size, length: Size) -> str:
    """int64 [1]: a start, moved so that `length` elements fit into `size`."""
    name = c.cast(c.tensor(start), np.int64)
    name = c.graph.add("Reshape", name, c.graph.integers(1))
    if start.is_constant and not is_symbolic(size) and not is_symbolic(length):
        return c.graph.integers(int(np.clip(int(start.elements), 0, size - length)))
    name = c.graph.add("Max", name, c.graph.integers(0))
    return c.graph.add("Min", name, c.graph.size(size - length))


@primitive("dynamic_slice")
def _dynamic_slice(c: Converter, eqn: JaxprEqn, x: Value, *starts: Value) -> Value:
    x, sizes = whole(c, eqn, x), eqn.params["slice_sizes"]
    axes = [axis for axis in range(len(x.shape)) if not same(sizes[axis], x.shape[axis])]
    if not axes:
        return x
    g = c.graph
    lows = [start_of(c, starts[axis], x.shape[axis], sizes[axis]) for axis in axes]
    low = g.add("Concat", *lows, axis=0) if len(lows) > 1 else lows[0]
    high = g.add("Add", low, g.sizes([sizes[axis] for axis in axes]))
    name = g.add("Slice", c.tensor(x), low, high, g.integers(*(x.order[axis] for axis in axes)))
    return c.value(name, out_aval(eqn), x.order)


@primitive("dynamic_update_slice")
def _dynamic_update_slice(c: Converter, eqn: JaxprEqn, x: Value, update: Value, *starts: Value) -> Value:
    x, update = whole(c, eqn, x), whole(c, eqn, update, 1)
    axes = [axis for axis in range(len(x.shape)) if not same(update.shape[axis], x.shape[axis])]
    lows = [start_of(c, starts[axis], x.shape[axis], update.shape[axis]) for axis in axes]
    name = write(
        c,
        c.tensor(x),
        c.arrange(update, x.order),
        [x.order[axis] for axis in axes],
        lows,
        [update.shape[axis] for axis in axes],
    )
    return c.value(name, out_aval(eqn), x.order)


def write(c: Converter, x: str, update: str, axes: list[int], lows: list[str], sizes: list[Size]) -> str:
    """x with `update` in it: what is before, the part with the update in its other axes, and what is behind."""
    if not axes:
        return update
    g, start, low = c.graph, c.graph.integers(axes[0]), lows[0]
    high = g.add("Add", low, g.size(sizes[0]))
    end = g.integers(np.iinfo(np.int64).max)
    block = x
    if len(axes) > 1:
        block = g.add("Slice", x, low, high, start)
    middle = write(c, block, update, axes[1:], lows[1:], sizes[1:])
    before = g.add("Slice", x, g.integers(0), low, start)
    behind = g.add("Slice", x, high, end, start)
    return g.add("Concat", before, middle, behind, axis=axes[0])
