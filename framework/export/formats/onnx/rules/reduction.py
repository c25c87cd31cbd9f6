"""Reductions, cumulative sums, sorting and the best of an axis."""

from __future__ import annotations

import numpy as np
from jax.extend.core import JaxprEqn

from framework.export.formats.onnx.convert import Converter
from framework.export.formats.onnx.graph import Aval, aval_of, is_symbolic
from framework.export.formats.onnx.registry import Rule, primitive
from framework.export.formats.onnx.rules.elementwise import convert, out_aval
from framework.export.formats.onnx.rules.shapes import pad_value
from framework.export.formats.onnx.values import Abstract, Value

_REDUCTIONS = {
    "reduce_sum": "ReduceSum",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd",
    "reduce_or": "ReduceMax",
    "reduce_and": "ReduceMin",
}


def whole(c: Converter, eqn: JaxprEqn, value: Value, index: int = 0) -> Value:
    """An operand with all of its elements."""
    return c.spread(value, eqn.invars[index].aval.shape)  # type: ignore[attr-defined]


def _reduction(op: str) -> Rule:
    def rule(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
        x, axes, aval = whole(c, eqn, x), eqn.params["axes"], out_aval(eqn)
        if not axes:
            return x
        if x.dtype != np.bool_:
            return c.reduce(op, x, axes, aval)
        counted = c.reduce(op, convert(c, x, np.int32), axes, Abstract(aval.shape, np.int32))
        return convert(c, counted, np.bool_)

    return rule


for _name, _op in _REDUCTIONS.items():
    primitive(_name)(_reduction(_op))


@primitive("argmax", "argmin")
def _arg(c: Converter, eqn: JaxprEqn, x: Value) -> Value:
    x, (axis,) = whole(c, eqn, x), eqn.params["axes"]
    return argument(c, x, axis, "ArgMax" if eqn.primitive.name == "argmax" else "ArgMin", out_aval(eqn))


def argument(c: Converter, x: Value, axis: int, op: str, aval: Aval) -> Value:
    """The first index of the greatest or least value of an axis."""
    x = convert(c, x, np.int32) if x.dtype == np.bool_ else x
    name = c.graph.add(op, c.tensor(x), axis=x.order[axis], keepdims=0)
    remaining = [x.order[i] for i in range(len(x.shape)) if i != axis]
    order = tuple(int(i) for i in np.argsort(np.argsort(remaining)))
    return c.value(c.cast(name, aval.dtype), aval, order)


@primitive("cumsum", "cumlogsumexp", "cummax", "cummin", "cumprod")
def _cumulative(c: Converter, eqn: JaxprEqn, x: Value) -> Value | None:
    x, axis, reverse = whole(c, eqn, x), eqn.params["axis"], bool(eqn.params["reverse"])
    kind = eqn.primitive.name
    if kind == "cumsum":
        axis_constant = c.graph.constant(np.int64(x.order[axis]))
        name = c.graph.add("CumSum", c.tensor(x), axis_constant, reverse=int(reverse))
        return c.value(name, out_aval(eqn), x.order)
    size = x.shape[axis]
    if kind == "cumlogsumexp" or is_symbolic(size):
        return None
    # Each step combines every value with the one `step` before it, which holds the result of `step` values.
    op, filler = {
        "cummax": ("Max", _least(x.dtype)),
        "cummin": ("Min", _greatest(x.dtype)),
        "cumprod": ("Mul", 1),
    }[kind]
    step = 1
    while step < size:
        edges = [(0, 0)] * len(x.shape)
        edges[axis] = (-step, step) if reverse else (step, -step)
        moved = pad_value(c, x, edges, c.graph.constant(np.asarray(filler, x.dtype)))
        x = c.elementwise(op, (x, moved), out_aval(eqn))
        step *= 2
    return x


def _least(dtype: np.dtype) -> float:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _greatest(dtype: np.dtype) -> float:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


@primitive("top_k")
def _top_k(c: Converter, eqn: JaxprEqn, x: Value) -> list[Value]:
    x, axis = whole(c, eqn, x), eqn.params.get("axis", -1)
    axis = axis % len(x.shape)
    values, positions = c.graph.add_many(
        "TopK", 2, c.tensor(x), c.graph.size(eqn.params["k"]), axis=x.order[axis], largest=1, sorted=1
    )
    index = c.cast(positions, eqn.outvars[1].aval.dtype)  # type: ignore[attr-defined]
    return [
        c.value(values, aval_of(eqn.outvars[0]), x.order),
        c.value(index, aval_of(eqn.outvars[1]), x.order),
    ]


@primitive("sort")
def _sort(c: Converter, eqn: JaxprEqn, *args: Value) -> list[Value]:
    """By the last key first, then by those before it: of equal values TopK keeps the order."""
    axis, keys = eqn.params["dimension"], eqn.params["num_keys"]
    order = c.order_of(args, len(args[0].shape))
    tensors = [c.arrange(whole(c, eqn, arg, i), order) for i, arg in enumerate(args)]
    shape, position, positions = eqn.invars[0].aval.shape, order[axis], ""  # type: ignore[attr-defined]
    for key in reversed(range(keys)):
        name = tensors[key]
        if args[key].dtype == np.bool_:
            name = c.cast(name, np.int32)
        if positions:
            name = c.graph.add("GatherElements", name, positions, axis=position)
        _, order_found = c.graph.add_many(
            "TopK", 2, name, c.graph.size(shape[axis]), axis=position, largest=0, sorted=1
        )
        positions = (
            c.graph.add("GatherElements", positions, order_found, axis=position) if positions else order_found
        )
    return [
        c.value(c.graph.add("GatherElements", name, positions, axis=position), aval_of(var), order)
        for name, var in zip(tensors, eqn.outvars)
    ]
