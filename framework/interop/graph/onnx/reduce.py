"""ONNX operators that reduce axes or work along one: sums, maxima, softmax, sorting, cumulative sums."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.dtypes import wide_type
from framework.interop.graph.onnx.elementwise import namespace
from framework.interop.graph.onnx.shapes import axes_of
from framework.interop.graph.operator import Call, Run, Table, registrar
from framework.interop.graph.values import Array, Item, Value, is_known, shape_of, to_value
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)
ArrayT = TypeVar("ArrayT", np.ndarray, jax.Array)


class Reduction(Protocol):
    """Of a module (numpy, jax.numpy), an array of it and axes: the array with these axes of size 1."""

    def __call__(self, xp: ModuleType, x: ArrayT, axes: tuple[int, ...], /) -> ArrayT: ...


def _reduced(function: Reduction) -> Run:
    def run(call: Call, x: Item, axes: Item = None) -> Item:
        rank, axes_given = len(shape_of(x)), axes_of(call, axes)
        if not axes_given and call.attr("noop_with_empty_axes"):
            positions: tuple[int, ...] = ()
        else:
            positions = tuple(call.axis(axis, rank) for axis in axes_given or range(rank))
        return reduce_axes(x, positions, bool(call.attr("keepdims", 1)), function)

    return run


def reduce_axes(x: Item, places: tuple[int, ...], keep: bool, function: Reduction) -> Item:
    """x reduced over logical axes, which stay with size 1 or go."""
    if is_known(x):
        array = np.asarray(x)
        y = function(np, array, places).astype(array.dtype)
        return y if keep else np.squeeze(y, places)
    v = to_value(x)
    y = function(jnp, v.data, tuple(v.order[axis] for axis in places)).astype(v.dtype)
    if keep:
        return v.keep(y)
    left = [place for axis, place in enumerate(v.order) if axis not in places]
    ranks = {place: number for number, place in enumerate(sorted(left))}
    return Value(jnp.squeeze(y, tuple(v.order[axis] for axis in places)), tuple(ranks[p] for p in left))


def _sum(xp: ModuleType, x: ArrayT, axes: tuple[int, ...]) -> ArrayT:
    return xp.sum(x, axis=axes, keepdims=True)


def _extreme(name: str, fill: float) -> Reduction:
    def run(xp: ModuleType, x: ArrayT, axes: tuple[int, ...]) -> ArrayT:
        if x.dtype == bool:
            return getattr(xp, "any" if name == "max" else "all")(x, axis=axes, keepdims=True)
        if any(isinstance(x.shape[axis], int) and x.shape[axis] == 0 for axis in axes):
            if jnp.issubdtype(x.dtype, jnp.integer):
                info = np.iinfo(x.dtype)
                return getattr(xp, name)(
                    x, axis=axes, keepdims=True, initial=info.min if fill < 0 else info.max
                )
            return getattr(xp, name)(x, axis=axes, keepdims=True, initial=fill)
        return getattr(xp, name)(x, axis=axes, keepdims=True)

    return run


def _mean(xp: ModuleType, x: ArrayT, axes: tuple[int, ...]) -> ArrayT:
    if xp is jnp and x.ndim == 4 and axes == (1, 2):
        return F.global_avg_pool2d(x)  # type: ignore[arg-type, return-value]  # images in NHWC
    return xp.mean(x, axis=axes, keepdims=True)


def _log_sum_exp(xp: ModuleType, x: ArrayT, axes: tuple[int, ...]) -> ArrayT:
    wide = _float(xp, x).astype(np.float64 if xp is np else wide_type(x.dtype))
    top = xp.max(wide, axis=axes, keepdims=True, initial=-math.inf)
    shift = xp.where(xp.isfinite(top), top, 0)
    return xp.log(xp.sum(xp.exp(wide - shift), axis=axes, keepdims=True)) + shift


def _float(xp: ModuleType, x: ArrayT) -> ArrayT:
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(np.float32)


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": _sum,
    "ReduceMean": _mean,
    "ReduceMax": _extreme("max", -math.inf),
    "ReduceMin": _extreme("min", math.inf),
    "ReduceProd": lambda xp, x, axes: xp.prod(x, axis=axes, keepdims=True),
    "ReduceL1": lambda xp, x, axes: _sum(xp, xp.abs(x), axes),
    "ReduceL2": lambda xp, x, axes: xp.sqrt(_sum(xp, _float(xp, x) ** 2, axes)),
    "ReduceSumSquare": lambda xp, x, axes: _sum(xp, x * x, axes),
    "ReduceLogSum": lambda xp, x, axes: xp.log(_float(xp, _sum(xp, x, axes))),
    "ReduceLogSumExp": _log_sum_exp,
}
for _name, _function in _REDUCTIONS.items():
    operator(_name, style="values")(_reduced(_function))


@operator("ArgMax", "ArgMin", style="values")
def _arg(call: Call, x: Item) -> Item:
    rank, last = len(shape_of(x)), bool(call.attr("select_last_index"))
    axis, smallest = call.axis(call.attr("axis", 0), rank), call.node.op == "ArgMin"

    def find(xp: ModuleType, x: ArrayT, axes: tuple[int, ...]) -> ArrayT:
        x = xp.flip(x, axes) if last else x
        at = (xp.argmin if smallest else xp.argmax)(x, axes[0])
        at = x.shape[axes[0]] - 1 - at if last else at
        return xp.expand_dims(at, axes)

    if is_known(x):
        y = find(np, np.asarray(x), (axis,)).astype(np.int64)
        return y if call.attr("keepdims", 1) else np.squeeze(y, axis)
    v = to_value(x)
    indices = v.keep(find(jnp, v.data, (v.order[axis],)).astype(jnp.int32))
    return indices if call.attr("keepdims", 1) else reduce_axes(indices, (axis,), False, _sum)


# -- along one axis -----------------------------------------------------------------------------------------------


@operator("Softmax", "LogSoftmax", style="values")
def _softmax(call: Call, x: Item) -> Item:
    function = F.softmax if call.node.op == "Softmax" else F.log_softmax
    v = to_value(x)
    axis = call.axis(call.attr("axis", -1 if call.version >= 13 else 1), v.ndim)
    if call.version >= 13 or axis == v.ndim - 1:
        return v.keep(function(v.data, v.order[axis]))
    # Before opset 13 all axes from `axis` on are one.
    data = v.logical()
    flat = data.reshape(*data.shape[:axis], math.prod(data.shape[axis:]))
    return Value.of(function(flat, -1).reshape(data.shape))


@operator("Hardmax", style="values")
def _hardmax(call: Call, x: Item) -> Item:
    v = to_value(x)
    axis = call.axis(call.attr("axis", -1 if call.version >= 13 else 1), v.ndim)
    if call.version < 13 and axis != v.ndim - 1:
        data = v.logical()
        flat = data.reshape(*data.shape[:axis], math.prod(data.shape[axis:]))
        return Value.of(_first_largest(flat, -1).reshape(data.shape))
    return v.keep(_first_largest(v.data, v.order[axis]))


def _first_largest(x: jax.Array, axis: int) -> jax.Array:
    return jax.nn.one_hot(jnp.argmax(x, axis), x.shape[axis], axis=axis, dtype=x.dtype)


@operator("LpNormalization", style="values")
def _lp_normalization(call: Call, x: Item) -> Item:
    v = to_value(x)
    position = v.order[call.axis(call.attr("axis", -1), v.ndim)]
    if call.attr("p", 2) == 1:
        norm = jnp.abs(v.data).sum(position, keepdims=True)
    else:
        norm = jnp.sqrt((v.data * v.data).sum(position, keepdims=True))
    return v.keep(jnp.where(norm == 0, 0, v.data / jnp.where(norm == 0, 1, norm)))


@operator("CumSum", "CumProd", static=(1,), folds=True)
def _cumulative(call: Call, x: Array, axis: Item) -> Array:
    xp, position = namespace(x), call.axis(int(call.number(axis, "the axis")), x.ndim)
    product = call.node.op == "CumProd"
    x = xp.flip(x, position) if call.attr("reverse") else x
    y = (xp.cumprod if product else xp.cumsum)(x, position, dtype=x.dtype)
    if call.attr("exclusive"):
        first = xp.full_like(xp.take(y, xp.arange(1), position), 1 if product else 0)
        y = xp.concatenate([first, xp.take(y, xp.arange(x.shape[position] - 1), position)], position)
    return xp.flip(y, position) if call.attr("reverse") else y


@operator("TopK", static=(1,), folds=True)
def _top_k(call: Call, x: Array, k: Item = None) -> tuple[Array, Array]:
    size = call.required("k") if k is None else call.number(k, "k")
    axis = call.axis(call.attr("axis", -1), x.ndim)
    if is_known(x):
        return _known_top(
            np.moveaxis(np.asarray(x), axis, -1), int(size), bool(call.attr("largest", 1)), axis
        )
    x = jnp.moveaxis(x, axis, -1)
    if call.attr("largest", 1):
        # Not-a-number counts as the largest; `top_k` tells its signs apart, and processors give it either.
        ranked = jnp.where(jnp.isnan(x), jnp.nan, x) if jnp.issubdtype(x.dtype, jnp.floating) else x
        values, indices = lax.top_k(ranked, size)
    else:
        indices = jnp.argsort(x, -1, stable=True)[..., :size]
        values = jnp.take_along_axis(x, indices, -1)
    return jnp.moveaxis(values, -1, axis), jnp.moveaxis(indices.astype(jnp.int32), -1, axis)


def _known_top(x: np.ndarray, size: int, largest: bool, axis: int) -> tuple[Array, Array]:
    """Of equal values the first comes first, as in a program."""
    if largest:
        order = x.shape[-1] - 1 - np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]
    else:
        order = np.argsort(x, -1, kind="stable")
    order = order[..., :size]
    values = np.take_along_axis(x, order, -1)
    return np.moveaxis(values, -1, axis), np.moveaxis(order.astype(np.int64), -1, axis)


@operator("Unique", style="values")
def _unique(call: Call, x: Item) -> tuple[Item, ...]:
    array, axis = call.static(x, "the values of Unique"), call.attr("axis")
    values, first, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.ravel()
    if not call.attr("sorted", 1):
        rank = np.argsort(first)
        position = np.empty_like(rank)
        position[rank] = np.arange(len(rank))
        values, first, counts = np.take(values, rank, 0 if axis is None else axis), first[rank], counts[rank]
        inverse = position[inverse]
    return values, first, inverse, counts
