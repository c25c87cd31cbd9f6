"""Shapes, orders of axes, slices that are known, and what is joined or taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jax.extend.core import JaxprEqn

from framework.export.formats.onnx.convert import Converter
from framework.export.formats.onnx.graph import Size, aval_of, avals_of, is_symbolic
from framework.export.formats.onnx.registry import primitive
from framework.export.formats.onnx.rules.elementwise import out_aval
from framework.export.formats.onnx.values import Abstract, Value, constant, inverse, same


@primitive("dim_as_value")
def _dim_as_value(c: Converter, eqn: JaxprEqn) -> Value:
    return c.value(c.cast(c.graph.scalar(eqn.params["dim"]), out_aval(eqn).dtype), out_aval(eqn))


@primitive("broadcast_in_dim")
def _broadcast(c: Converter, eqn: JaxprEqn, x: Value, *sizes: Value) -> Value:
    """With 1 in place of every new size: whoever needs the elements spreads them."""
    dimensions = eqn.params["broadcast_dimensions"]
    shape: list[Size] = [1] * len(out_aval(eqn).shape)
    for axis, dimension in enumerate(dimensions):
        shape[dimension] = x.shape[axis]
    if x.array is not None and not any(map(is_symbolic, shape)):
        return constant(x.elements.reshape(shape))
    return replace(c.reshape_value(x, shape), dtype=x.dtype)


@primitive("reshape")
def _reshape(c: Converter, eqn: JaxprEqn, x: Value, *sizes: Value) -> Value:
    return c.reshape_value(c.spread(x, eqn.invars[0].aval.shape), out_aval(eqn).shape)  # type: ignore[attr-defined]


@primitive("squeeze")
def _squeeze(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    gone = {axis % len(x.shape) for axis in eqn.params["dimensions"]}
    return c.reshape_value(x, [size for axis, size in enumerate(x.shape) if axis not in gone])


@primitive("expand_dims")
def _expand_dims(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    sizes, new = iter(x.shape), set(eqn.params["dimensions"])
    return c.reshape_value(x, [1 if i in new else next(sizes) for i in range(len(x.shape) + len(new))])


@primitive("transpose")
def _transpose(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    order = eqn.params["permutation"]
    return replace(
        x, shape=tuple(x.shape[axis] for axis in order), order=tuple(x.order[axis] for axis in order)
    )


@primitive("iota")
def _iota(c: Converter, eqn: JaxprEqn, *sizes: Value) -> Value:
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    line = [size if i == axis else 1 for i, size in enumerate(shape)]
    dtype = np.dtype(eqn.params["dtype"])
    if not is_symbolic(shape[axis]):
        return constant(np.arange(shape[axis], dtype=dtype).reshape(line))
    g = c.graph
    name = g.add("Range", g.constant(np.int64(0)), g.scalar(shape[axis]), g.constant(np.int64(1)))
    name = c.cast(name, dtype) if dtype != np.int64 else name
    return c.reshape_value(Value((shape[axis],), dtype, name, (0,)), line)


@primitive("concatenate")
def _concatenate(c: Converter, eqn: JaxprEqn, *args: Value) -> Value:
    axis = eqn.params["dimension"]
    avals = avals_of(eqn.invars)
    operands = [c.spread(arg, aval.shape) for arg, aval in zip(args, avals) if not same(aval.shape[axis], 0)]
    if len(operands) == 1:
        return operands[0]
    order = c.order_of(operands, len(avals[0].shape))
    names = [c.arrange(part, order) for part in operands]
    return c.value(c.graph.add("Concat", *names, axis=order[axis]), out_aval(eqn), order)


@primitive("stack")
def _stack(c: Converter, eqn: JaxprEqn, *args: Value) -> Value:
    axis = eqn.params["axis"]
    shapes = [list(var.aval.shape) for var in eqn.invars]  # type: ignore[attr-defined]
    operands = []
    for arg, shape in zip(args, shapes):
        whole = c.spread(arg, shape)
        operands.append(c.plain(c.reshape_value(whole, [*shape[:axis], 1, *shape[axis:]])))
    return c.value(c.graph.add("Concat", *operands, axis=axis), out_aval(eqn))


@primitive("split")
def _split(c: Converter, eqn: JaxprEqn, x: Value) -> list[Value]:
    x, sizes = c.spread(x, eqn.invars[0].aval.shape), eqn.params["sizes"]  # type: ignore[attr-defined]
    position = x.order[eqn.params["axis"]]
    names = c.graph.add_many("Split", len(sizes), c.tensor(x), c.graph.sizes(sizes), axis=position)
    return [c.value(name, aval_of(var), x.order) for name, var in zip(names, eqn.outvars)]


@primitive("unstack")  # jax 0.11 has it
def _unstack(c: Converter, eqn: JaxprEqn, x: Value) -> list[Value]:
    aval, axis = eqn.invars[0].aval, eqn.params["axis"]
    x = c.spread(x, aval.shape)  # type: ignore[attr-defined]
    count = len(eqn.outvars)
    names = c.graph.add_many("Split", count, c.tensor(x), c.graph.sizes([1] * count), axis=x.order[axis])
    shape = [1 if i == axis else size for i, size in enumerate(x.shape)]
    slices = [c.value(name, Abstract(tuple(shape), x.dtype), x.order) for name in names]
    return [c.reshape_value(one, var.aval.shape) for one, var in zip(slices, eqn.outvars)]  # type: ignore[attr-defined]


def cut(
    c: Converter, x: Value, starts: Sequence[Size], stops: Sequence[Size], steps: Sequence[Size] | None = None
) -> Value:
    """A slice of a value that has all of its elements: sizes for every axis, of which the whole axes are left out."""
    steps = [1] * len(x.shape) if steps is None else steps
    axes = [
        axis
        for axis, size in enumerate(x.shape)
        if not (same(starts[axis], 0) and same(stops[axis], size) and steps[axis] == 1)
    ]
    if not axes:
        return x
    g = c.graph
    name = g.add(
        "Slice",
        c.tensor(x),
        g.sizes([starts[axis] for axis in axes]),
        g.sizes([stops[axis] for axis in axes]),
        g.integers(*(x.order[axis] for axis in axes)),
        g.integers(*(steps[axis] for axis in axes)),
    )
    shape = tuple(-(-(stop - start) // step) for start, stop, step in zip(starts, stops, steps))
    return Value(shape, x.dtype, name, x.order)


@primitive("slice")
def _slice(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    p, shape = eqn.params, eqn.invars[0].aval.shape  # type: ignore[attr-defined]
    starts, stops = list(p["start_indices"]), list(p["limit_indices"])
    steps = list(p["strides"] or (1,) * len(shape))
    for axis, size in enumerate(shape):  # an axis that is broadcast stays so where any of it is taken
        if same(x.shape[axis], 1) and not same(size, 1) and not same(out_aval(eqn).shape[axis], 0):
            starts[axis], stops[axis], steps[axis] = 0, 1, 1
    return cut(c, x, starts, stops, steps)


@primitive("rev")
def _rev(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    axes = [axis for axis in eqn.params["dimensions"] if not same(x.shape[axis], 1)]
    if not axes:
        return x
    g, many = c.graph, len(axes)
    ends = (g.integers(*[-1] * many), g.integers(*[np.iinfo(np.int64).min] * many))
    positions = g.integers(*(x.order[axis] for axis in axes))
    name = g.add("Slice", c.tensor(x), *ends, positions, g.integers(*[-1] * many))
    return replace(x, name=name, array=None)


@primitive("pad")
def _pad(c: Converter, eqn: JaxprEqn, x: Value, filler: Value) -> Value:
    x = c.spread(x, eqn.invars[0].aval.shape)  # type: ignore[attr-defined]
    edges = eqn.params["padding_config"]
    if any(between for _, _, between in edges):
        x = _pad_between(c, x, filler, [between for _, _, between in edges])
    return pad_value(c, x, [(low, high) for low, high, _ in edges], c.tensor(filler))


def pad_value(c: Converter, x: Value, edges: Sequence[Sequence[Size]], filler: str | None = None) -> Value:
    """A value with `filler` (0) before and behind each axis; negative numbers cut."""
    if all(same(n, 0) for pair in edges for n in pair):
        return x
    stored = [edges[axis] for axis in inverse(x.order)]
    amounts = c.graph.sizes([low for low, _ in stored] + [high for _, high in stored])
    name = c.tensor(x)
    if x.dtype == np.bool_:
        name = c.cast(name, np.int32)
        filler = None if filler is None else c.cast(filler, np.int32)
    name = c.graph.add("Pad", name, amounts, *(() if filler is None else (filler,)))
    name = c.cast(name, np.bool_) if x.dtype == np.bool_ else name
    shape = tuple(size + low + high for size, (low, high) in zip(x.shape, edges))
    return Value(shape, x.dtype, name, x.order)


def _pad_between(c: Converter, x: Value, filler: Value, between: list[int]) -> Value:
    """With so many fillers between any two elements of an axis: behind each element, but the last."""
    for axis, count in enumerate(between):
        if not count:
            continue
        size, shape = x.shape[axis], list(x.shape)
        lone = c.reshape_value(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
        edges = [(0, count) if i == axis + 1 else (0, 0) for i in range(len(lone.shape))]
        wide = pad_value(c, lone, edges, c.tensor(filler))
        shape[axis] = size * (count + 1)
        wide = c.reshape_value(wide, shape)
        x = pad_value(c, wide, [(0, -count) if i == axis else (0, 0) for i in range(len(shape))])
    return x


@primitive("tile")
def _tile(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    x = c.spread(x, eqn.invars[0].aval.shape)  # type: ignore[attr-defined]
    repeats = [eqn.params["reps"][axis] for axis in inverse(x.order)]
    return c.value(c.graph.add("Tile", c.tensor(x), c.graph.sizes(repeats)), out_aval(eqn), x.order)
