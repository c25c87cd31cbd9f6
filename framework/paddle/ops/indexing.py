"""`x[...]` and `x[...] = value`.

An index becomes a plan, which decides the shape of the result and is compiled, and data: single positions, starts of
slices of a fixed length, arrays of positions. So `x[i]` and `x[i : i + 8]` in a loop over i are one program. As in
Paddle (and not as in numpy) single positions are taken before arrays of positions: `x[0, :, [1, 2]]` is
`x[0][:, [1, 2]]`. Boolean masks become positions, which needs their values; `x[mask] = number` does not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from framework.core.compilation import enable_compilation_cache
from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, Compiled, operation, run
from framework.paddle._kernel.errors import ShapeError, ValueNeeded
from framework.paddle._kernel.free_sizes import is_free_size
from framework.paddle._kernel.methods import replace_value
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.settings import freeze
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor, as_array
from framework.paddle._kernel.views import Offset, Sizes, share_storage
from framework.paddle._kernel.x64 import x64

__all__: list[str] = []

# The parts of a plan. AT: a position, data. FROM: a slice of fixed length, its start is data. CUT: a slice with fixed
# ends. NEW: a new axis. PICK: an array of positions, data; a short list as that many numbers, which reach the device
# sooner than an array. FLAG: a mask of no dimensions, fixed.
AT, FROM, CUT, NEW, PICK, FLAG = range(6)
_WHOLE = (CUT, None, None, None)
_SHORT = 16
Part = tuple[Any, ...]
Plan = tuple[Part, ...]


class PositionError(ShapeError, IndexError):
    """An index that the Tensor does not have; an IndexError too, as Python's protocols expect."""


def _plan(x: Tensor, item: Any) -> tuple[Plan, list[object]]:
    """The plan of an index, and its data."""
    items = item if isinstance(item, tuple) else (item,)
    parts: list[Part] = []
    data: list[Any] = []
    sizes = _sizes(x)
    axis = 0
    for position, part in enumerate(items):
        kind = part.__class__
        if kind is int:
            if axis >= len(sizes) or _exceeds(part, part, sizes[axis]):
                raise _outside(x, item, axis)
            parts.append((AT,))
            data.append(part)
            axis += 1
        elif kind is slice:
            if axis >= len(sizes):
                raise _outside(x, item, axis)
            _add_slice(part, sizes[axis], parts, data)
            axis += 1
        elif part is None:
            parts.append((NEW,))
        elif part is Ellipsis:
            left = len(sizes) - axis - sum(map(_axes_taken, items[position + 1 :]))
            parts.extend([_WHOLE] * left)
            axis += max(left, 0)
        elif is_free_size(part):
            parts.append((AT,))
            data.append(as_array(part))
            axis += 1
        else:
            axis += _add_array(x, item, part, axis, parts, data)
    while len(parts) and parts[-1] == _WHOLE:
        parts.pop()
    return tuple(parts), data


def _sizes(x: Tensor) -> tuple[int, ...]:
    """The shape; -1 for a size that is not known before a static program runs."""
    return x._value.shape if isinstance(x._value, jax.Array) else tuple(x.shape)


def _exceeds(lowest: int, highest: int, size: int) -> bool:
    return size != -1 and (lowest < -size or highest >= size)


def _add_slice(part: slice, size: int, parts: list[Part], data: list[object]) -> None:
    start, stop, step = map(_bound, (part.start, part.stop, part.step))
    if is_free_size(start) or is_free_size(stop):
        parts.append((CUT, start, stop, step))
        return
    if step == 0:
        raise ShapeError("the step of a slice is not 0", where="Tensor[...]", received=str(part))
    if start is not None and stop is not None and step in (None, 1) and 0 <= start < stop <= size:
        parts.append((FROM, stop - start))
        data.append(start)
    else:
        parts.append((CUT, start, stop, step) if (start, stop, step) != (0, None, None) else _WHOLE)


def _bound(value: object) -> int | None:
    """An end or the step of a slice; of a Tensor the number that it holds."""
    bound = freeze(value)
    bound = bound[0] if isinstance(bound, tuple) else bound
    return bound if bound is None or is_free_size(bound) else int(bound)


def _add_array(x: Tensor, item: object, part: Any, axis: int, parts: list[Part], data: list[Any]) -> int:
    """Put a Tensor, an array, a list or a number into the plan; returns how many axes it takes."""
    sizes = _sizes(x)
    if part.__class__ is list and 0 < len(part) <= _SHORT and all(p.__class__ is int for p in part):
        if axis >= len(sizes) or _exceeds(min(part), max(part), sizes[axis]):
            raise _outside(x, item, axis)
        parts.append((PICK, 1, len(part)))
        data.extend(part)
        return 1
    values: Any = part._value if isinstance(part, Tensor) else part
    if not isinstance(part, Tensor | jax.Array):
        if not isinstance(values, np.ndarray | np.generic):
            values = _listed(x, values)
        # A copy: the array may change before the gradient is asked for.
        values = np.array(values, np.int64 if values.size == 0 and values.dtype.kind == "f" else None)
    if values.dtype == np.bool_:
        if values.ndim == 0:
            parts.append((FLAG, bool(values if isinstance(values, np.ndarray) else part)))
            return 0
        if isinstance(values, Symbol):
            values.variable.numpy()  # raises
        if sizes[axis : axis + values.ndim] != values.shape:
            raise PositionError(
                "the mask has another shape than the axes that it stands for",
                where="Tensor[...]",
                received=f"a mask of shape {list(values.shape)} at axis {axis} of a Tensor of shape {x.shape}",
            )
        mask = part.numpy() if isinstance(part, Tensor) else np.asarray(values)
        for positions in np.nonzero(mask):
            parts.append((PICK, 1, 0))
            data.append(positions)
        return values.ndim
    if values.dtype.kind not in "iu" or axis >= len(sizes):
        raise _outside(x, item, axis) if values.dtype.kind in "iu" else _no_index(x, part)
    known = isinstance(values, np.ndarray) and values.size > 0
    if known and _exceeds(int(values.min()), int(values.max()), sizes[axis]):
        raise _outside(x, item, axis)
    parts.append((PICK, values.ndim, 0) if values.ndim else (AT,))
    data.append(part if isinstance(part, Tensor) else values)
    return 1


def _listed(x: Tensor, values: TensorLike) -> np.ndarray:
    if isinstance(values, list | tuple | range):
        return np.asarray([v.numpy() if isinstance(v, Tensor) else v for v in values])
    if isinstance(values, bool | int):
        return np.asarray(values)
    raise _no_index(x, values)


def _axes_taken(part: object) -> int:
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor | np.ndarray) and part.dtype == np.bool_:
        return part.ndim
    if isinstance(part, list) and part:
        values = np.asarray([v.numpy() if isinstance(v, Tensor) else v for v in part])
        return values.ndim if values.dtype == np.bool_ else 1
    return 1


def _no_index(x: Tensor, part: object) -> ShapeError:
    return ShapeError(
        "this is no index",
        where="Tensor[...]",
        received=f"{type(part).__name__}: {str(part)[:60]}",
        allowed="integers, slices, None, ..., lists or Tensors of integers, boolean masks",
    )


def _outside(x: Tensor, item: object, axis: int) -> ShapeError:
    size = x.shape[axis] if axis < x.ndim else None
    text = str(item) if not isinstance(item, Tensor) else f"a Tensor of shape {item.shape}"
    return PositionError(
        f"axis {axis} has {size} elements" if size is not None else f"there is no axis {axis}",
        where="Tensor[...]",
        received=f"[{text[:80]}] of a Tensor of shape {x.shape}",
        allowed=f"{-size} to {size - 1}" if size else None,
    )


def _cut(x: jax.Array, plan: Plan, data: list[object]) -> tuple[list[Any], list[object]]:
    """The starts (data) and the static slices that make the window of `x` the plan speaks of, before new axes and
    arrays: x -> dynamic_slice(starts, sizes) -> [slices]."""
    values = iter(data)
    windows: list[Any] = []  # for each axis of x: (start, length, static slice or None for a position)
    picks: list[Any] = []
    for part in plan:
        if part[0] in (NEW, FLAG):
            continue
        size = x.shape[len(windows)]
        if part[0] == AT:
            start = jnp.asarray(next(values))
            windows.append((jnp.where(start < 0, start + size, start), 1, None))
        elif part[0] == FROM:
            windows.append((next(values), part[1], slice(None)))
        elif part[0] == CUT:
            windows.append((0, size, slice(*part[1:])))
        else:
            windows.append((0, size, slice(None)))
            count = part[2]
            picks.append(
                jnp.stack([jnp.asarray(next(values)) for _ in range(count)]) if count else next(values)
            )
    windows.extend((0, size, slice(None)) for size in x.shape[len(windows) :])
    return windows, picks


def _dynamic(x: jax.Array, windows: list[Any]) -> list[jax.Array] | None:
    """The starts of the window, or None where it is all of `x`."""
    if all(
        length == size and cut is not None for (_, length, cut), size in zip(windows, x.shape, strict=True)
    ):
        return None
    return [jnp.asarray(start, jnp.int64) for start, _, _ in windows]


def _basic(x: jax.Array, windows: list[Any]) -> jax.Array:
    starts = _dynamic(x, windows)
    if starts is not None:
        x = lax.dynamic_slice(x, starts, [length for _, length, _ in windows])
    cuts: list[int | slice] = [0 if cut is None else cut for _, _, cut in windows]
    for axis, cut in enumerate(cuts):
        if not isinstance(cut, slice) or not is_free_size(cut.stop) or cut.step not in (None, 1):
            continue
        if not is_free_size(x.shape[axis]) and isinstance(cut.start or 0, int):
            # A table of positions up to the length of a text: jax would take min(size, length) of them, a size that
            # fits no other. A length beyond the table gives NaN.
            x = jnp.take(x, jnp.arange(cut.start or 0, cut.stop), axis, mode="fill")
            cuts[axis] = slice(None)
    return x[tuple(cuts)]


def _inner(plan: Plan, picks: list[object]) -> tuple[object, ...]:
    """What is left of the index after `_basic`: new axes and arrays."""
    remaining = iter(picks)
    left = [p for p in plan if p[0] != AT]
    fixed = {NEW: lambda p: None, FLAG: lambda p: p[1], PICK: lambda p: next(remaining)}
    return tuple(fixed.get(p[0], lambda p: slice(None))(p) for p in left)


def _get(plan: Plan) -> Callable[..., jax.Array]:
    def getitem(x: jax.Array, *data: object) -> jax.Array:
        windows, picks = _cut(x, plan, list(data))
        x = _basic(x, windows)
        inner = _inner(plan, picks)
        return x[inner] if any(part[0] in (NEW, PICK, FLAG) for part in plan) else x

    return getitem


def _set(plan: Plan) -> Callable[..., jax.Array]:
    def setitem(x: jax.Array, value: TensorLike, *data: object) -> jax.Array:
        windows, picks = _cut(x, plan, list(data))
        starts = _dynamic(x, windows)
        window = x
        if starts is not None:
            window = lax.dynamic_slice(x, starts, [length for _, length, _ in windows])
        static = tuple(0 if cut is None else cut for _, _, cut in windows)
        chosen = window[static]
        value = jnp.asarray(value).astype(x.dtype)
        if any(part[0] in (NEW, PICK, FLAG) for part in plan):
            inner = _inner(plan, picks)
            chosen = chosen.at[inner].set(_shaped(value, jax.eval_shape(lambda c: c[inner], chosen).shape))
        else:
            chosen = jnp.broadcast_to(_shaped(value, chosen.shape), chosen.shape)
        if all(cut is None or cut == slice(None) for _, _, cut in windows):
            window = chosen.reshape(window.shape)
        else:
            window = window.at[static].set(chosen)
        return window if starts is None else lax.dynamic_update_slice(x, window, starts)

    return setitem


def _shaped(value: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """A value that may have leading axes of size 1 too many."""
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value[0]
    fits = all(v in (1, s) for v, s in zip(value.shape[::-1], shape[::-1], strict=False))
    if value.ndim > len(shape) or not fits:
        raise ShapeError(
            "the value does not fit the part that it is assigned to",
            where="Tensor[...] = value",
            received=f"a value of shape {list(value.shape)} for a part of shape {list(shape)}",
        )
    return value


_getters: dict[Plan, Compiled] = {}
_setters: dict[Plan, Compiled] = {}


def _compiled(plan: Plan, cache: dict[Plan, Compiled], make: Any) -> Compiled:
    found = cache.get(plan)
    if found is None:
        enable_compilation_cache()
        function = make(plan)
        found = cache[plan] = Compiled(function.__name__, function, settings={"index": plan})
    return found


def getitem(x: Tensor, item: object) -> Tensor:
    """`x[item]`."""
    try:
        plan, data = _plan(x, item)
    except ValueNeeded as error:  # a mask of a static program
        return error.record(getitem, (x, item), {})
    out = run(_getters.get(plan) or _compiled(plan, _getters, _get), (x, *data))
    if mode.recorder is None and _is_strided(plan):
        arrays = [d._array if isinstance(d, Tensor) else d for d in data]  # the Tensor may change later
        share_storage(x, out, _layout, (plan, arrays))
    if x._sizes is not None:
        _carry_sizes(x._sizes, item, out)
    return out


def _carry_sizes(sizes: np.ndarray, item: object, out: Tensor) -> None:
    """What is known of the sizes of a traced function, at an index of Python's numbers."""
    if isinstance(item, int | slice) or (isinstance(item, list) and all(isinstance(i, int) for i in item)):
        out._sizes = np.array(sizes[item], object)


@functools.cache
def _is_strided(plan: Plan) -> bool:
    return not any(kind in (PICK, FLAG) for kind, *_ in plan)


def _layout(
    old: Sizes, steps: Sizes, new: Sizes, /, plan: Plan, data: Sequence[Offset]
) -> tuple[list[int], Offset]:
    """The strides of what a plan of positions, slices and new axes takes, and where it begins."""
    axes = iter(zip(old, steps, strict=True))
    values = iter(data)
    strides: list[int] = []
    offset: Offset = 0
    for kind, *bounds in plan:
        if kind == NEW:
            strides.append(0)
            continue
        size, stride = next(axes)
        if kind == AT:
            offset += _position(next(values), size) * stride
        elif kind == FROM:
            offset += next(values) * stride
            strides.append(stride)
        else:
            cut = slice(*bounds)
            offset += _begin(cut, size) * stride
            strides.append((cut.step or 1) * stride)
    return [*strides, *[stride for _, stride in axes]], offset


def _begin(cut: slice, size: int) -> int:
    """The position that a slice begins with; sizes may be free in a saved program."""
    if not any(map(is_free_size, (cut.start, cut.stop, size))):
        return cut.indices(size)[0]
    if cut.start is None:
        return 0 if cut.step is None or cut.step > 0 else size - 1
    return cut.start + size if isinstance(cut.start, int) and cut.start < 0 else cut.start


def _position(value: Offset, size: int) -> Offset:
    """A position counted from the front; an array of a traced function where it is known there only."""
    if isinstance(value, Tracer):
        with x64():
            return jnp.where(value < 0, value + size, value).astype(jnp.int64)
    position = int(value)
    return position + size if position < 0 else position


getitem.reads_values = True  # type: ignore[attr-defined]  # as of the decorator, which every index would pass


def setitem(x: Tensor, item: object, value: TensorLike) -> Tensor:
    """A Tensor like `x` with the value at the index; differentiable for both."""
    if isinstance(value, list | tuple):
        value = np.asarray(value)
    if isinstance(item, Tensor) and item._value.dtype == np.bool_ and _is_one(value):
        if x._value.shape[: item.ndim] != item._value.shape:
            _plan(x, item)  # raises
        return _where_mask(x, item, value)
    try:
        plan, data = _plan(x, item)
    except ValueNeeded as error:  # bounds of a static program
        return error.record(setitem, (x, item, value), {})
    return run(_setters.get(plan) or _compiled(plan, _setters, _set), (x, value, *data))


def _is_one(value: TensorLike) -> bool:
    return isinstance(value, int | float | complex) or (isinstance(value, Tensor) and value.ndim == 0)


@operation
def _where_mask(x: Array, mask: Array, value: Array) -> Array:
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return jnp.where(mask, jnp.asarray(value).astype(x.dtype), x)


def _set_in_place(self: Tensor, item: object, value: TensorLike) -> None:
    replace_value(self, setitem(self, item, value))


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if not self.ndim:
        raise TypeError("iteration over a 0-D Tensor")
    return (getitem(self, i) for i in range(self.shape[0]))


Tensor.__getitem__ = getitem  # type: ignore[method-assign]
Tensor.__setitem__ = _set_in_place  # type: ignore[method-assign]
Tensor.__iter__ = _iterate  # type: ignore[attr-defined]
