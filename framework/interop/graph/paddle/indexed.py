"""Paddle's operators that write at indices, and that choose by masks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from framework.core.errors import FormatError, ShapeError
from framework.interop.graph.operator import Table
from framework.interop.graph.paddle.arguments import Arguments, rank, registrar
from framework.interop.graph.paddle.shapes import stored_values
from framework.interop.graph.values import Dim, Item, Value, is_symbolic, to_jax

OPERATORS: Table = {}
operator = registrar(OPERATORS)


@operator("set_value", "set_value_with_tensor")
def _set_value(a: Arguments) -> Item:
    """x[starts:ends:steps] = value on some axes; `decrease_axes` are those that an index, and no slice, has chosen."""
    x, value_input = a["Input"], a.get("ValueTensor")
    if a.ints("none_axes"):
        raise a.call.error("new axes in an assignment are not supported", FormatError)
    value: Item = stored_values(a) if value_input is None else value_input
    index, array = _slices(a, rank(x)), to_jax(x)
    return Value.of(array.at[index].set(to_jax(value).astype(array.dtype)))


def _slices(a: Arguments, axes: int) -> tuple[Dim | slice | jax.Array, ...]:
    sliced, gone = a.ints("axes"), a.ints("decrease_axes")
    if any(not 0 <= axis < axes for axis in sliced):
        raise a.call.error("the axis is out of range", ShapeError, received=sliced, allowed=f"below {axes}")
    starts = _bounds(a, "starts", "StartsTensor")
    ends = _bounds(a, "ends", "EndsTensor")
    steps = _bounds(a, "steps", "StepsTensor") or [1] * len(sliced)
    index: list[Dim | slice | jax.Array] = [slice(None)] * axes
    for axis, start, end, step in zip(sliced, starts, ends, steps, strict=True):
        if axis in gone:
            index[axis] = start
        elif isinstance(start, jax.Array):
            index[axis] = start[None]  # Paddle's own programs know the bounds of longer slices
        else:
            index[axis] = slice(start, end, step)
    return tuple(index)


def _bounds(a: Arguments, attribute: str, tensor: str) -> list[Dim | jax.Array]:
    """Python integers, or numbers of the program that only a place of one element can have."""
    single, several = a.get(tensor), a.all(f"{tensor}List")
    if single is None and not several:
        return a.ints(attribute)
    items = several or [single]
    bounds: list[Dim | jax.Array] = []
    for item in items:
        if isinstance(item, Value) and isinstance(item.data, Tracer):
            bounds += list(item.logical().reshape(-1))
        else:
            bounds += [dim if is_symbolic(dim) else int(dim) for dim in a.call.dims(item, tensor)]
    return bounds


@operator("index_put", main="out")
def _index_put(a: Arguments) -> Item:
    x, value = a.array("x"), a.array("value").astype(a.array("x").dtype)
    index = tuple(to_jax(item) for item in a.all("indices"))
    add = bool(a.attr("accumulate", False))
    if len(index) == 1 and index[0].dtype == bool and value.size == 1:
        mask = index[0].reshape(index[0].shape + (1,) * (x.ndim - index[0].ndim))
        return Value.of(jnp.where(mask, (x if add else 0) + value.reshape(()), x))
    at = x.at[index]
    return Value.of(at.add(value) if add else at.set(value))


@operator("put_along_axis", main="Result")
def _put_along_axis(a: Arguments) -> Item:
    ways = {"assign": "none", "add": "add", "multiply": "mul", "mul": "mul", "amin": "min", "amax": "max"}
    way = ways.get(str(a.attr("Reduce", "assign")))
    if way is None or not a.attr("Include_self", True):
        raise a.call.error(
            "this way of joining is not supported", received=a.attr("Reduce"), allowed=sorted(ways)
        )
    index = a.array("Index")
    value = Value.of(jnp.broadcast_to(a.array("Value"), index.shape))
    return a.onnx(
        "ScatterElements", a["Input"], Value.of(index), value, axis=int(a.attr("Axis", 0)), reduction=way
    )


@operator("masked_select", main="Y", grows=True)
def _masked_select(a: Arguments) -> Item:
    x, mask = a.array("X"), a.call.static(a["Mask"], "the mask")
    return Value.of(x[np.broadcast_to(np.asarray(mask, bool), x.shape)])


@operator("repeat_interleave", "repeat_interleave_with_tensor_index")
def _repeat(a: Arguments) -> Item:
    """Every slice of an axis as often as `Repeats` says, or as a tensor says for each."""
    x, axis, counts = a.array("X"), int(a.attr("dim", 0)), a.get("RepeatsTensor")
    times = (
        int(a.attr("Repeats", 0)) if counts is None else np.asarray(a.call.static(counts, "RepeatsTensor"))
    )
    return Value.of(jnp.repeat(x, times, axis))


@operator("cumprod")
def _cumulative_product(a: Arguments) -> Item:
    return a.onnx("CumProd", a["X"], np.asarray(int(a.attr("dim", 0)), np.int64))


@operator("kthvalue")
def _kth(a: Arguments) -> dict[str, Item]:
    """The k-th smallest value along an axis and where it stands."""
    x, axis, number = a.array("X"), int(a.attr("axis", -1)), int(a.attr("k", 1)) - 1
    order = jnp.argsort(x, axis, stable=True).take(jnp.asarray([number]), axis)
    values = jnp.take_along_axis(x, order, axis)
    if not a.attr("keepdim", False):
        order, values = order.squeeze(axis), values.squeeze(axis)
    return {"Out": Value.of(values), "Indices": Value.of(order.astype(jnp.int32))}


@operator("searchsorted")
def _search(a: Arguments) -> Item:
    """Where each value belongs in a sorted sequence; rows with rows where the sequence has them."""
    sorted_rows, values = a.array("SortedSequence"), a.array("Values")
    side = "right" if a.attr("right", False) else "left"
    if sorted_rows.ndim == 1:
        return Value.of(jnp.searchsorted(sorted_rows, values, side).astype(jnp.int32))
    rows, queries = sorted_rows.reshape(-1, sorted_rows.shape[-1]), values.reshape(-1, values.shape[-1])
    at = jax.vmap(lambda row, query: jnp.searchsorted(row, query, side))(rows, queries)
    return Value.of(at.reshape(values.shape).astype(jnp.int32))
