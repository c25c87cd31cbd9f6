"""ONNX operators that make, move or measure arrays: shapes, slices, joins. Known arrays stay known."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import max_dim, min_dim

from framework.core.errors import ShapeError
from framework.interop.graph.onnx.elementwise import element_type, namespace
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import (
    MAX_ELEMENTS,
    MAX_KNOWN,
    MAX_RANK,
    MOST_TIMES,
    Array,
    Dim,
    Item,
    Value,
    as_dims,
    channels_last,
    count,
    dims_array,
    is_known,
    is_symbolic,
    note_limit,
    reshape,
    shape_of,
    to_jax,
    to_value,
)

OPERATORS: Table = {}
operator = registrar(OPERATORS)


def axes_of(call: Call, given: Item, name: str = "axes") -> tuple[int, ...] | None:
    """Axes from an input (new form) or from an attribute (old form); None where there are neither."""
    if given is not None:
        return tuple(map(int, call.static(given, name).ravel().tolist()))
    return call.ints(name)


# -- sizes --------------------------------------------------------------------------------------------------------


@operator("Shape", style="values")
def _shape(call: Call, x: Item) -> Item:
    shape = shape_of(x)
    return dims_array(shape[call.attr("start", 0) : call.attr("end", len(shape))])


@operator("Size", style="values")
def _size(call: Call, x: Item) -> Item:
    return dims_array([math.prod(shape_of(x))]).reshape(())


# -- new arrays ---------------------------------------------------------------------------------------------------


def _filled(shape: list[Dim], value: np.ndarray, where: str) -> Item:
    count(shape, where)
    if any(is_symbolic(dim) for dim in shape):
        return Value.of(jnp.full(shape, to_jax(value)))
    return np.broadcast_to(value, tuple(shape))


@operator("Constant", style="values")
def _constant(call: Call) -> Item:
    raise call.error("a constant of text or of sparse values", allowed="dense numbers")


@operator("ConstantOfShape", style="values")
def _constant_of_shape(call: Call, shape: Item) -> Item:
    value = np.asarray(call.attr("value", np.zeros(1, np.float32))).reshape(())
    return _filled(call.dims(shape, "the shape"), value, call.where)


@operator("Range", style="values")
def _range(call: Call, start: Item, limit: Item, delta: Item) -> Item:
    dtype = np.asarray(start).dtype if is_known(start) else start.dtype  # type: ignore[union-attr]
    first, last, step = (call.static(item, "a bound of a range").ravel()[0] for item in (start, limit, delta))
    if any(is_symbolic(bound) for bound in (first, last, step)):
        length = -((first - last) // step) if step != 1 else last - first
        line = jnp.arange(length, dtype=jnp.int32)
        return Value.of(line * _scalar(step) + _scalar(first) if (first, step) != (0, 1) else line)
    count([max(0, math.ceil((last - first) / step))], call.where, MAX_KNOWN)
    return np.arange(first, last, step, dtype=np.int64 if dtype.kind == "O" else dtype)


def _scalar(value: Dim) -> jax.Array | int:
    return jnp.asarray(value) if is_symbolic(value) else int(value)


@operator("EyeLike", style="values")
def _eye_like(call: Call, x: Item) -> Item:
    rows, columns = shape_of(x)
    code = call.attr("dtype")
    dtype = x.dtype if code is None else element_type(call, code)  # type: ignore[union-attr]
    return np.eye(rows, columns, call.attr("k", 0)).astype(dtype)


@operator("OneHot", static=(1,), folds=True)
def _one_hot(call: Call, indices: Array, depth: Item, values: Array) -> Array:
    xp, size = namespace(indices, values), as_dims(call.static(depth, "the depth"))[0]
    rank = indices.ndim + 1
    axis = call.axis(call.attr("axis", -1), rank)
    count([*indices.shape, size], call.where)
    line = xp.arange(size).reshape([size if i == axis else 1 for i in range(rank)])
    index = xp.expand_dims(indices, axis).astype(np.int32)
    hit = xp.where(index < 0, index + size, index) == line
    return xp.where(hit, values[1], values[0])


# -- other shapes of the same elements ----------------------------------------------------------------------------


def reshaped(call: Call, x: Item, shape: list[Dim]) -> Item:
    """x in another shape; one size may be -1."""
    old = shape_of(x)
    if (
        isinstance(x, np.ndarray)
        and len(shape) <= MAX_RANK
        and -1 not in shape
        and x.size == math.prod(shape)
    ):
        return x.reshape(shape)
    if len(shape) > MAX_RANK:
        raise call.error("too many axes", ShapeError, received=len(shape), allowed=MAX_RANK)
    if any(isinstance(dim, int) and dim == -1 for dim in shape):
        at = next(i for i, dim in enumerate(shape) if isinstance(dim, int) and dim == -1)
        others = math.prod(dim for i, dim in enumerate(shape) if i != at)
        total = math.prod(old)
        if isinstance(others, int) and others == 0:
            shape[at] = 0
        else:
            shape[at] = total // others
    if not (math.prod(old) == math.prod(shape)):
        raise call.error("the elements do not fill the shape", ShapeError, received=old, allowed=tuple(shape))
    if isinstance(x, Value):
        return reshape(x, shape)
    return np.reshape(np.asarray(x), tuple(shape))


@operator("Reshape", style="values")
def _reshape(call: Call, x: Item, shape: Item = None) -> Item:
    sizes = call.dims(shape, "the shape") if shape is not None else list(call.required("shape"))
    old = shape_of(x)
    keep = not call.attr("allowzero")
    sizes = [old[i] if keep and isinstance(dim, int) and dim == 0 else dim for i, dim in enumerate(sizes)]
    return reshaped(call, x, sizes)


@operator("Flatten", style="values")
def _flatten(call: Call, x: Item) -> Item:
    shape, axis = shape_of(x), call.attr("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return reshaped(call, x, [math.prod(shape[:axis]), math.prod(shape[axis:])])


@operator("Unsqueeze", style="values")
def _unsqueeze(call: Call, x: Item, axes: Item = None) -> Item:
    added = axes_of(call, axes) or ()
    rank = len(shape_of(x)) + len(added)
    positions = {call.axis(axis, rank) for axis in added}
    if len(positions) < len(added):
        raise call.error(
            "an axis is added twice",
            ShapeError,
            received=list(added),
            allowed=f"each of the {rank} axes once",
        )
    rest = iter(shape_of(x))
    return reshaped(call, x, [1 if i in positions else next(rest) for i in range(rank)])


@operator("Squeeze", style="values")
def _squeeze(call: Call, x: Item, axes: Item = None) -> Item:
    shape, dropped = shape_of(x), axes_of(call, axes)
    if dropped is None:
        positions = {i for i, dim in enumerate(shape) if isinstance(dim, int) and dim == 1}
    else:
        positions = {call.axis(axis, len(shape)) for axis in dropped}
    return reshaped(call, x, [dim for i, dim in enumerate(shape) if i not in positions])


@operator("Transpose", style="values")
def _transpose(call: Call, x: Item) -> Item:
    perm = call.ints("perm") or tuple(reversed(range(len(shape_of(x)))))
    if not isinstance(x, Value):
        return np.transpose(x, perm)  # type: ignore[arg-type]
    if sorted(perm) != list(range(x.ndim)):
        raise call.error("no permutation of the axes", ShapeError, received=perm, allowed=f"{x.ndim} axes")
    return Value(x.data, tuple(x.order[axis] for axis in perm))


@operator("Expand", style="values")
def _expand(call: Call, x: Item, shape: Item) -> Item:
    old, target = shape_of(x), call.dims(shape, "the shape")
    rank = max(len(old), len(target))
    old = (1,) * (rank - len(old)) + tuple(old)
    target = [1] * (rank - len(target)) + target
    sizes = [a if _is_one(b) else b for a, b in zip(old, target)]
    count(sizes, call.where)
    if is_known(x) and not any(is_symbolic(dim) for dim in sizes):
        return np.broadcast_to(np.asarray(x), tuple(sizes))
    full = reshape(to_value(x), old)
    stored: list[Dim] = [0] * rank
    for axis, dim in zip(full.order, sizes):
        stored[axis] = dim
    return full.keep(jnp.broadcast_to(full.data, stored))


def _is_one(dim: Dim) -> bool:
    return isinstance(dim, int) and dim == 1


@operator("Tile", static=(1, 2), folds=True)
def _tile(call: Call, x: Array, repeats: Item, axis: Item = None) -> Array:
    times = call.dims(repeats, "the repeats")
    if call.version < 6:
        position = int(call.number(axis, "the axis"))
        times = [times[0] if i == position else 1 for i in range(x.ndim)]
    count([n * t for n, t in zip(x.shape, times)], call.where, MAX_KNOWN if is_known(x) else MAX_ELEMENTS)
    if any(is_symbolic(t) for t in times):
        for at, t in enumerate(times):
            if not _is_one(t):
                wide = jnp.broadcast_to(jnp.expand_dims(x, at), (*x.shape[:at], t, *x.shape[at:]))
                x = wide.reshape(*x.shape[:at], t * x.shape[at], *x.shape[at + 1 :])
        return x
    return namespace(x).tile(x, times)


# -- joins and parts ----------------------------------------------------------------------------------------------


def concat(call: Call, items: tuple[Item, ...], axis: int) -> Item:
    """The items one behind the other along a logical axis."""
    if is_known(*items):
        arrays = [np.asarray(item) for item in items]
        count([sum(a.size for a in arrays)], call.where, MAX_KNOWN)
        return np.concatenate(arrays, call.axis(axis, arrays[0].ndim))
    values = [to_value(item) for item in items]
    axis = call.axis(axis, values[0].ndim)
    count(
        [
            sum(v.shape[axis] if i == axis else 0 for v in values) if i == axis else dim
            for i, dim in enumerate(values[0].shape)
        ],
        call.where,
    )
    lead = max(values, key=lambda v: v.order != tuple(range(v.ndim)))
    data = jnp.concatenate([v.stored(lead.order) for v in values], lead.order[axis])
    return lead.keep(data)


@operator("Concat", style="values")
def _concat(call: Call, *items: Item) -> Item:
    return concat(call, items, call.attr("axis", 1))


def part(x: Item, axis: int, start: Dim, stop: Dim, step: int = 1) -> Item:
    """The elements from `start` to `stop` along a logical axis; both count from the front."""
    if not isinstance(x, Value) and any(map(is_symbolic, (start, stop))):
        x = to_value(x)
    if not isinstance(x, Value):
        return np.asarray(x)[(slice(None),) * axis + (slice(start, stop if stop >= 0 else None, step),)]
    position = x.order[axis]
    if step > 0:
        return x.keep(lax.slice_in_dim(x.data, start, stop, step, position))
    return x.keep(x.data[(slice(None),) * position + (slice(start, stop if stop >= 0 else None, step),)])


def _clamp(value: Dim, size: Dim, step: int) -> Dim:
    """A bound of a slice counted from the front, as numpy reads it."""
    low, high = (0, size) if step > 0 else (-1, size - 1)
    if isinstance(value, int):
        if value >= 2**31 - 1:
            return high
        if value <= -(2**31) + 1:
            return low
        if value < 0:
            value = value + size
    if all(isinstance(n, int) for n in (value, size)):
        return min(max(value, low), high)
    if value is size or value == size:
        return high
    if is_symbolic(value) and isinstance(size, int):
        note_limit(value, size)
    return max_dim(min_dim(value, high), low)


@operator("Slice", style="values")
def _slice(
    call: Call, x: Item, starts: Item = None, ends: Item = None, axes: Item = None, steps: Item = None
) -> Item:
    first = call.dims(starts, "starts") if starts is not None else list(call.required("starts"))
    last = call.dims(ends, "ends") if ends is not None else list(call.required("ends"))
    shape = shape_of(x)
    positions = axes_of(call, axes) or tuple(range(len(first)))
    strides = [1] * len(first) if steps is None else [int(s) for s in call.dims(steps, "steps")]
    for axis, start, stop, step in zip(positions, first, last, strides, strict=True):
        axis = call.axis(axis, len(shape))
        begin, end = _clamp(start, shape[axis], step), _clamp(stop, shape[axis], step)
        if step > 0 and all(isinstance(n, int) for n in (begin, end)):
            end = max(begin, end)
        x = part(x, axis, begin, end, step)
    return x


@operator("Split", style="values")
def _split(call: Call, x: Item, sizes: Item = None) -> tuple[Item, ...]:
    shape = shape_of(x)
    axis = call.axis(call.attr("axis", 0), len(shape))
    if sizes is not None:
        lengths = call.dims(sizes, "the sizes")
    elif (sizes_given := call.ints("split")) is not None:
        lengths = list(sizes_given)
    else:
        count, size = len(call.node.outputs), shape[axis]
        each = -(-size // count)
        lengths = [each] * (count - 1) + [size - each * (count - 1)]
        if isinstance(size, int):  # the last ones are smaller, or empty
            lengths = [min(each, max(size - each * i, 0)) for i in range(count)]
    if isinstance(shape[axis], int) and sum(lengths) != shape[axis]:
        raise call.error("the parts do not add up", ShapeError, received=lengths, allowed=shape[axis])
    result, at = [], 0
    for length in lengths:
        result.append(part(x, axis, at, at + length))
        at = at + length
    return tuple(result)


@operator("Pad", style="values")
def _pad(call: Call, x: Item, pads: Item = None, value: Item = None, axes: Item = None) -> Item:
    shape, mode = shape_of(x), call.attr("mode", "constant")
    widths = (
        call.dims(pads, "the pads")
        if pads is not None
        else list(call.attr("pads") or call.required("paddings"))
    )
    positions = axes_of(call, axes) if axes is not None else tuple(range(len(widths) // 2))
    assert positions is not None
    edges: list[tuple[Dim, Dim]] = [(0, 0)] * len(shape)
    for i, axis in enumerate(positions):
        edges[call.axis(axis, len(shape))] = (widths[i], widths[i + len(positions)])
    return pad(call, x, edges, mode, call.attr("value", 0.0) if value is None else value)


def pad(call: Call, x: Item, edges: list[tuple[Dim, Dim]], mode: str, value: Item | float = 0.0) -> Item:
    """x with (before, behind) more elements on each logical axis; negative ones are cut off."""
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise call.error("an unknown mode", received=mode, allowed="constant, reflect, edge or wrap")
    new = [n + low + high if isinstance(n, int) else 0 for n, (low, high) in zip(shape_of(x), edges)]
    total, is_fixed = count(new, call.where), all(isinstance(size, int) for size in new)
    if is_fixed and total > MAX_KNOWN and any(b > MOST_TIMES * max(a, 1) for a, b in zip(shape_of(x), new)):
        raise call.error(
            "an axis is padded to more than any model needs: damage, which takes minutes to compute",
            ShapeError,
            received=f"from {list(shape_of(x))} to {new}",
            allowed=f"{MOST_TIMES:,} times its size at most, or {MAX_KNOWN:,} elements together",
        )
    for axis, (low, high) in enumerate(edges):
        if any(isinstance(edge, int) and edge < 0 for edge in (low, high)):
            x = part(x, axis, max(-low, 0), shape_of(x)[axis] - max(-high, 0))
    grown = [(_at_least_0(low), _at_least_0(high)) for low, high in edges]
    if is_known(x, value):
        fill = {"constant_values": value} if mode == "constant" else {}
        return np.pad(np.asarray(x), grown, mode=mode, **fill)  # type: ignore[call-overload]
    v = to_value(x)
    stored = [(0, 0)] * v.ndim
    for axis, pair in zip(v.order, grown):
        stored[axis] = pair
    if mode == "constant":
        fill_value = (
            to_jax(value).reshape(()) if isinstance(value, Value | np.ndarray) else jnp.asarray(value)
        )
        return v.keep(jnp.pad(v.data, stored, constant_values=fill_value.astype(v.dtype)))
    return v.keep(jnp.pad(v.data, stored, mode=mode))


def _at_least_0(edge: Dim) -> Dim:
    return max(edge, 0) if isinstance(edge, int) else edge


@operator("CenterCropPad", style="values")
def _center_crop_pad(call: Call, x: Item, shape: Item) -> Item:
    sizes, target = shape_of(x), call.dims(shape, "the shape")
    axes = call.ints("axes", range(len(sizes)))
    edges: list[tuple[Dim, Dim]] = [(0, 0)] * len(sizes)
    for axis, size in zip(axes or (), target, strict=True):
        axis = call.axis(axis, len(sizes))
        extra = size - sizes[axis]
        edges[axis] = (
            (extra // 2, extra - extra // 2) if extra >= 0 else (-(-extra // 2), extra + (-extra // 2))
        )
    return pad(call, x, edges, "constant")


@operator("DepthToSpace", "SpaceToDepth", style="values")
def _blocks(call: Call, x: Item) -> Item:
    b, v = int(call.required("blocksize")), to_value(x)
    n, c, h, w = v.shape
    if call.node.op == "SpaceToDepth":
        wide = reshape(v, (n, c, h // b, b, w // b, b))
        perm = (0, 1, 3, 5, 2, 4) if call.attr("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
        moved = Value(wide.data, tuple(wide.order[i] for i in perm))
        return reshape(moved, (n, c * b * b, h // b, w // b))
    if call.attr("mode", "DCR") == "DCR":
        wide, perm = reshape(v, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2)
    else:
        wide, perm = reshape(v, (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3)
    moved = Value(wide.data, tuple(wide.order[i] for i in perm))
    y = reshape(moved, (n, c // (b * b), h * b, w * b))
    return Value(y.stored(channels_last(4)), channels_last(4))


@operator("Trilu", static=(1,), folds=True)
def _trilu(call: Call, x: Array, k: Item = None) -> Array:
    xp, diagonal = namespace(x), 0 if k is None else int(call.number(k, "the diagonal"))
    rows, columns = (xp.arange(n) for n in x.shape[-2:])
    ahead = columns[None, :] - rows[:, None]
    keep = ahead >= diagonal if call.attr("upper", 1) else ahead <= diagonal
    return xp.where(keep, x, xp.zeros((), x.dtype))


@operator("ReverseSequence", static=())
def _reverse_sequence(call: Call, x: jax.Array, lengths: jax.Array) -> jax.Array:
    batch, time = call.attr("batch_axis", 1), call.attr("time_axis", 0)
    x = jnp.moveaxis(x, (batch, time), (0, 1))
    at = jnp.arange(x.shape[1])[None]
    index = jnp.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)
    y = jax.vmap(lambda row, i: jnp.take(row, i, axis=0))(x, index)
    return jnp.moveaxis(y, (0, 1), (batch, time))


# -- sequences and optional values ----------------------------------------------------------------------------------


@operator("SequenceEmpty", style="values")
def _sequence_empty(call: Call) -> Item:
    return []


@operator("SequenceConstruct", style="values")
def _sequence_construct(call: Call, *items: Item) -> Item:
    return list(items)


@operator("SequenceLength", style="values")
def _sequence_length(call: Call, items: list) -> Item:
    return np.asarray(len(items), np.int64)


@operator("SequenceAt", style="values")
def _sequence_at(call: Call, items: list, position: Item) -> Item:
    return items[int(call.number(position, "the position"))]


@operator("SequenceInsert", style="values")
def _sequence_insert(call: Call, items: list, item: Item, position: Item = None) -> Item:
    at = len(items) if position is None else int(call.number(position, "the position"))
    result = list(items)
    result.insert(at if at >= 0 else at + len(items), item)
    return result


@operator("SequenceErase", style="values")
def _sequence_erase(call: Call, items: list, position: Item = None) -> Item:
    at = -1 if position is None else int(call.number(position, "the position"))
    return [item for i, item in enumerate(items) if i != at % len(items)]


@operator("SplitToSequence", style="values")
def _split_to_sequence(call: Call, x: Item, sizes: Item = None) -> Item:
    shape = shape_of(x)
    axis = call.axis(call.attr("axis", 0), len(shape))
    if sizes is None:
        lengths = [1] * shape[axis]
    elif np.ndim(call.static(sizes, "the sizes")) == 0:
        each = int(call.number(sizes, "the sizes"))
        lengths = [min(each, shape[axis] - at) for at in range(0, shape[axis], each)]
    else:
        lengths = call.dims(sizes, "the sizes")
    starts = np.cumsum([0, *lengths])
    items = [part(x, axis, int(a), int(a) + n) for a, n in zip(starts, lengths)]
    if sizes is None and not call.attr("keepdims", 1):
        items = [reshaped(call, p, [d for i, d in enumerate(shape_of(p)) if i != axis]) for p in items]
    return [*items]


@operator("ConcatFromSequence", style="values")
def _concat_from_sequence(call: Call, items: list) -> Item:
    axis = call.required("axis")
    if not call.attr("new_axis"):
        return concat(call, tuple(items), axis)
    rank = len(shape_of(items[0])) + 1
    position = call.axis(axis, rank)
    grown = [reshaped(call, x, [*shape_of(x)[:position], 1, *shape_of(x)[position:]]) for x in items]
    return concat(call, tuple(grown), position)


@operator("Optional", style="values")
def _optional(call: Call, item: Item = None) -> Item:
    return item


@operator("OptionalHasElement", style="values")
def _optional_has_element(call: Call, item: Item = None) -> Item:
    return np.asarray(item is not None)


@operator("OptionalGetElement", style="values")
def _optional_get_element(call: Call, item: Item) -> Item:
    if item is None:
        raise call.error("an optional value that is not there", ShapeError)
    return item
