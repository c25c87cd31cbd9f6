"""Writing into arrays at computed places."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.extend.core import JaxprEqn

from framework.export.formats.onnx.convert import Converter
from framework.export.formats.onnx.graph import Size, is_symbolic
from framework.export.formats.onnx.registry import primitive
from framework.export.formats.onnx.rules.elementwise import convert, out_aval
from framework.export.formats.onnx.rules.indexing import (
    fresh,
    in_bounds,
    mode_of,
    signed,
    size_vector,
    window_indices,
    write,
)
from framework.export.formats.onnx.rules.reduction import whole
from framework.export.formats.onnx.rules.shapes import cut, pad_value
from framework.export.formats.onnx.values import Abstract, Value, constant, inverse, same

# The operator that combines, ScatterND's name of it, and what changes nothing.
_KINDS: dict[str, tuple[str, str, Any]] = {
    "scatter": ("", "none", None),
    "scatter-add": ("Add", "add", 0),
    "scatter_add": ("Add", "add", 0),
    "scatter-mul": ("Mul", "mul", 1),
    "scatter_mul": ("Mul", "mul", 1),
    "scatter_max": ("Max", "max", -np.inf),
    "scatter_min": ("Min", "min", np.inf),
    "scatter-max": ("Max", "max", -np.inf),
    "scatter-min": ("Min", "min", np.inf),
}


@primitive(*_KINDS)
def _scatter(c: Converter, eqn: JaxprEqn, x: Value, indices: Value, updates: Value) -> Value | None:
    numbers = eqn.params["dimension_numbers"]
    op, reduction, neutral = _KINDS[eqn.primitive.name]
    x, indices, updates = whole(c, eqn, x), whole(c, eqn, indices, 1), whole(c, eqn, updates, 2)
    batched, inserted = list(numbers.operand_batching_dims), list(numbers.inserted_window_dims)
    windowed = [axis for axis in range(len(x.shape)) if axis not in (*inserted, *batched)]
    sizes: dict[int, Size] = dict.fromkeys(inserted, 1)
    sizes |= {axis: updates.shape[i] for axis, i in zip(windowed, numbers.update_window_dims)}
    indexed = list(numbers.scatter_dims_to_operand_dims)
    indices = signed(c, indices)
    limits = [x.shape[axis] - sizes[axis] for axis in indexed]
    if len(indices.shape) == 1 and in_bounds(indices, limits):
        return _known_place(c, x, updates, indices, indexed, inserted, sizes, op)
    partial = [axis for axis in windowed if axis not in indexed and not same(sizes[axis], x.shape[axis])]
    if any(is_symbolic(sizes[axis]) for axis in (*indexed, *partial)):
        return None
    if partial:  # windows that begin at 0
        edges = [(0, 0)] * (len(indices.shape) - 1) + [(0, len(partial))]
        indices = pad_value(c, indices, edges)
        indexed, limits = [*indexed, *partial], [*limits, *(x.shape[a] - sizes[a] for a in partial)]
    rest = [axis for axis in windowed if axis not in indexed]
    # Axes of the updates: those of the indices in their order, then windows; here windows of `indexed` before `rest`.
    paired = list(numbers.scatter_indices_batching_dims)
    lone = [axis for axis in range(len(indices.shape) - 1) if axis not in paired]
    of_indices = [i for i in range(len(updates.shape)) if i not in numbers.update_window_dims]
    at = dict(zip(windowed, numbers.update_window_dims))
    windows = [sizes[axis] for axis in indexed]
    spread = any(size != 1 for size in windows)
    batch = [of_indices[i] for i in (*paired, *lone)]
    axes = [*batch, *(at[a] for a in indexed if a in at), *(at[a] for a in rest)]
    shape = [*(updates.shape[i] for i in batch), *(windows if spread else ()), *(x.shape[a] for a in rest)]
    placed = fresh(updates.dtype, c.place(updates, axes, updates.shape), [updates.shape[i] for i in axes])
    placed = c.reshape_value(placed, shape)
    order = [*paired, *lone, len(indices.shape) - 1]
    rows = fresh(indices.dtype, c.place(indices, order, indices.shape), [indices.shape[i] for i in order])
    table = fresh(
        x.dtype,
        c.place(x, [*batched, *indexed, *rest], x.shape),
        [x.shape[axis] for axis in (*batched, *indexed, *rest)],
    )
    dropping = mode_of(eqn) == "FILL_OR_DROP" and not in_bounds(indices, limits)
    if mode_of(eqn) == "CLIP" or dropping:
        rows, inside = _clip(c, rows, limits)
        if dropping and neutral is not None:
            placed = _neutral_outside(c, placed, inside, neutral)
        elif dropping:  # a row more, which is cut off again, takes what is outside
            table = pad_value(c, table, _behind(table, len(batched), max(int(windows[0]), 1)))
            rows = _to_row(c, rows, inside, x.shape[indexed[0]])
    positions = window_indices(c, rows, windows) if spread else rows
    positions = _with_batch(c, convert(c, positions, np.int64), [x.shape[axis] for axis in batched])
    name = c.graph.add("ScatterND", c.plain(table), c.plain(positions), c.plain(placed), reduction=reduction)
    scattered = fresh(x.dtype, name, table.shape)
    stored = (*batched, *indexed, *rest)
    if dropping and neutral is None:
        scattered = cut(c, scattered, [0] * len(stored), [x.shape[axis] for axis in stored])
    return c.value(c.tensor(scattered), out_aval(eqn), inverse(stored))


def _known_place(
    c: Converter,
    x: Value,
    updates: Value,
    indices: Value,
    indexed: list[int],
    inserted: list[int],
    sizes: dict[int, Size],
    op: str,
) -> Value:
    """One window at a known place."""
    starts: list[Size] = [0] * len(x.shape)
    for axis, start in zip(indexed, indices.elements):
        starts[axis] = int(start)
    shape = [sizes[axis] for axis in range(len(x.shape))]
    update = c.reshape_value(updates, shape)
    if op:
        block = cut(c, x, starts, [start + size for start, size in zip(starts, shape)])
        update = c.elementwise(op, (block, update), Abstract(shape, x.dtype))
    axes = [axis for axis in range(len(x.shape)) if not same(shape[axis], x.shape[axis])]
    lows = [c.graph.integers(starts[axis]) for axis in axes]
    axis_order = [x.order[axis] for axis in axes]
    name = write(c, c.tensor(x), c.arrange(update, x.order), axis_order, lows, [shape[axis] for axis in axes])
    return fresh_like(x, name)


def fresh_like(x: Value, name: str) -> Value:
    """A tensor that lies as the one of a value does."""
    return Value(x.shape, x.dtype, name, x.order)


def _clip(c: Converter, rows: Value, limits: list[Size]) -> tuple[Value, Value]:
    """Indices moved to where windows fit, and whether all of an index lay there: [...]."""
    most = convert(c, size_vector(c, limits), rows.dtype)
    most = c.reshape_value(most, [*[1] * (len(rows.shape) - 1), len(limits)])
    like = Abstract(rows.shape, rows.dtype)
    safe = c.elementwise("Max", (rows, c.scalar(0, rows.dtype)), like)
    safe = c.elementwise("Min", (safe, most), like)
    fits = c.elementwise("Equal", (safe, rows), Abstract(rows.shape, np.bool_))
    batch = Abstract(rows.shape[:-1], np.int32)
    inside = c.reduce("ReduceMin", convert(c, fits, np.int32), [len(rows.shape) - 1], batch)
    return safe, convert(c, inside, np.bool_)


def _neutral_outside(c: Converter, updates: Value, inside: Value, neutral: float) -> Value:
    shape = [*inside.shape, *[1] * (len(updates.shape) - len(inside.shape))]
    if updates.dtype.kind in "iu" and np.isinf(neutral):
        info = np.iinfo(updates.dtype)
        neutral = info.min if neutral < 0 else info.max
    mask = c.reshape_value(inside, shape)
    filler = c.scalar(neutral, updates.dtype)
    return c.where(mask, updates, filler, Abstract(updates.shape, updates.dtype))


def _behind(table: Value, axis: int, rows: int) -> list[tuple[int, int]]:
    return [(0, rows) if i == axis else (0, 0) for i in range(len(table.shape))]


def _to_row(c: Converter, rows: Value, inside: Value, row: Size) -> Value:
    """Indices whose first number is `row` where they are not inside."""
    first = np.zeros(rows.shape[-1], bool)
    first[0] = True
    is_first = constant(first.reshape([*[1] * (len(rows.shape) - 1), -1]))
    outside = c.elementwise("Not", [inside], Abstract(inside.shape, np.bool_))
    outside = c.reshape_value(outside, [*inside.shape, 1])
    moved = c.elementwise("And", (outside, is_first), Abstract(rows.shape, np.bool_))
    size = convert(c, size_vector(c, [row]), rows.dtype)
    size = c.reshape_value(size, [1] * len(rows.shape))
    return c.where(moved, size, rows, Abstract(rows.shape, rows.dtype))


def _with_batch(c: Converter, positions: Value, sizes: list[Size]) -> Value:
    """int64 [*sizes, ..., K] as [*sizes, ..., len(sizes) + K]: each index behind the numbers of its batch."""
    if not sizes:
        return positions
    columns = []
    shape = [*positions.shape[:-1], 1]
    for axis, size in enumerate(sizes):
        line = [size if i == axis else 1 for i in range(len(shape))]
        if is_symbolic(size):
            g = c.graph
            name = g.add("Range", g.constant(np.int64(0)), g.scalar(size), g.constant(np.int64(1)))
            column = c.reshape_value(fresh(np.int64, name, [size]), line)
        else:
            column = constant(np.arange(size, dtype=np.int64).reshape(line))
        columns.append(c.plain(column, shape))
    name = c.graph.add("Concat", *columns, c.plain(positions), axis=len(shape) - 1)
    return fresh(np.int64, name, [*positions.shape[:-1], len(sizes) + positions.shape[-1]])
