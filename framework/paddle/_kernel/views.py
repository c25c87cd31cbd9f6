"""Views: Tensors over the memory of another one, as slices, reshaped and transposed Tensors are in Paddle.

Arrays of jax never change. So a view has an array of its own, and knows where in the memory of its `Storage` the
elements lie. Changing one Tensor of a storage in place changes the one that the storage began with (its owner), and the
others forget their arrays: `Tensor.__getattr__` lets them take what stands in their places when somebody asks. Where
gradients are wanted, writing through a view and reading again are operations of the tape, so that gradients are those
of the new values. (Paddle's tape does not see what is written through a view.)
"""

from __future__ import annotations

import functools
import inspect
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import Tracer

from framework.paddle._kernel.compiled import Compiled
from framework.paddle._kernel.dispatch import execute
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor, wrap

P = ParamSpec("P")
R = TypeVar("R")
Sizes = Sequence[int]
Offset = int | jax.Array  # an array where a traced function computes it
Layout = tuple[tuple[int, ...], Offset]  # the strides, and the number of the first element
# The shape and the strides of a Tensor, the shape of the result, and the other arguments of an operation -> the layout
# of the result, counted from that of the Tensor; None: it has memory of its own.
Rule = Callable[..., "tuple[Sizes, Offset] | None"]
_NONE: Mapping[str, object] = {}


class Storage:
    """The memory of one Tensor and its views; these keep it alive, as they do in Paddle.

    Attributes:
        array: what stands in it, in the shape of the owner.
        owner: the Tensor that it began with, None when that is gone.
    """

    __slots__ = ("__weakref__", "_most", "array", "owner", "views")

    def __init__(self, owner: Tensor) -> None:
        self.array: jax.Array = owner._array
        self.owner: Callable[[], Tensor | None] = weakref.ref(owner)
        self.views: list[weakref.ref[Tensor]] = []
        self._most = 8

    def add(self, view: Tensor) -> None:
        views = self.views
        views.append(weakref.ref(view))
        if len(views) > self._most:
            self.views = [one for one in views if one() is not None]
            self._most = max(8, 2 * len(self.views))

    def set_array(self, array: jax.Array) -> None:
        # A trace ends, and the storage may stay.
        if not isinstance(array, Tracer) or isinstance(self.array, Tracer):
            self.array = array

    def forget_others(self, writer: Tensor | None) -> None:
        """Let all views but the writer take their values anew when they are asked for."""
        for one in self.views:
            view = one()
            if view is None or view is writer or "_array" not in view.__dict__:
                continue
            link = view._link
            if isinstance(link, View) and link.storage is self and link.layout() is not None:
                if mode.watcher is not None:
                    mode.watcher.read_value(view, view._array)
                del view._array
                view._sizes = None


class Ownership(weakref.ref[Storage]):
    """What the first Tensor of a storage knows of it."""

    __slots__ = ()

    def changed(self, tensor: Tensor, recorded: bool = False) -> None:
        """The Tensor got other values."""
        storage, array = self(), tensor._array
        if storage is None:
            tensor._link = None
        elif array.size == storage.array.size and array.dtype == storage.array.dtype:
            storage.set_array(array)
            storage.forget_others(None)
        else:
            leave_storage(tensor)


class View:
    """Where in a storage the elements of a Tensor lie. The rule that says so is asked when the layout is needed, since
    most views are never written to."""

    __slots__ = ("_layout", "args", "kwargs", "old", "parent", "rule", "shape", "storage")

    def __init__(
        self,
        storage: Storage,
        parent: View | None,
        old: Sizes,
        shape: tuple[int, ...],
        rule: Rule,
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> None:
        self.storage, self.parent, self.old, self.shape = storage, parent, old, shape
        self.rule, self.args, self.kwargs = rule, args, kwargs
        self._layout: Layout | bool | None = False

    def layout(self) -> Layout | None:
        """Element (i, j) of the Tensor is element `offset + i * strides[0] + j * strides[1]` of the storage; None where
        the Tensor has memory of its own."""
        if self._layout is False:
            self._layout = self._find_layout()
        return self._layout  # type: ignore[return-value]

    def _find_layout(self) -> Layout | None:
        before = (contiguous_strides(self.old), 0) if self.parent is None else self.parent.layout()
        if before is None:
            return None
        after = self.rule(self.old, before[0], self.shape, *self.args, **self.kwargs)
        return None if after is None else (tuple(after[0]), before[1] + after[1])

    def changed(self, tensor: Tensor, recorded: bool = False) -> None:
        """Write the new values of the Tensor into the storage; `recorded`: gradients come back through them."""
        storage, array, layout = self.storage, tensor._array, self.layout()
        if layout is None or array.shape != self.shape or array.dtype != storage.array.dtype:
            tensor._link = None
            return
        owner = storage.owner()
        if owner is None:
            storage.set_array(self._written(wrap(storage.array), wrap(array))._array)
        else:
            is_wanted_leaf = owner._node is None and not owner.stop_gradient  # Paddle changes its values, too
            keeps_history = not recorded or not mode.grad_enabled or is_wanted_leaf
            link, owner._link = owner._link, None
            if keeps_history:
                owner._value = self._written(wrap(owner._value), wrap(tensor._value))._value
            else:
                new = self._written(owner, tensor)
                owner._value = new._value
                owner._node, owner._index, owner.stop_gradient = new._node, new._index, new.stop_gradient
            owner._version += 1
            owner._link = link
            storage.set_array(owner._array)
        storage.forget_others(tensor)

    def _written(self, base: Tensor, view: Tensor) -> Tensor:
        layout = self.layout()
        assert layout is not None
        strides, offset = layout
        return execute(_writer(strides), (base, view, offset))

    def take(self, tensor: Tensor) -> jax.Array:
        """Give the Tensor what stands in its place now."""
        if mode.watcher is not None:
            mode.watcher.read_value(tensor, self.storage.array)
            if "_array" in tensor.__dict__:
                return tensor._array
        owner, layout = self.storage.owner(), self.layout()
        assert layout is not None
        strides, offset = layout
        reader = _reader(self.shape, strides)
        if owner is None or owner.stop_gradient or tensor.stop_gradient:
            base = self.storage.array if owner is None else owner._value
            tensor._array = execute(reader, (wrap(base), offset))._array
        else:
            enabled, mode.grad_enabled = mode.grad_enabled, True
            try:
                new = execute(reader, (owner, offset))
            finally:
                mode.grad_enabled = enabled
            tensor._array, tensor._node, tensor._index = new._array, new._node, new._index
        return tensor._array


def contiguous_strides(shape: Sizes) -> tuple[int, ...]:
    """How many elements lie between neighbours along each axis where they lie in the order of their positions."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(strides[::-1])


def strides_of(tensor: Tensor) -> tuple[int, ...]:
    """How many elements lie between neighbours along each axis."""
    link = tensor._link
    layout = link.layout() if isinstance(link, View) else None
    return contiguous_strides(tensor._value.shape) if layout is None else layout[0]


def _is_contiguous(shape: Sizes, strides: Sizes) -> bool:
    return all(
        size == 1 or a == b for size, a, b in zip(shape, strides, contiguous_strides(shape), strict=True)
    )


def is_contiguous(tensor: Tensor) -> bool:
    """Whether the elements lie in the memory in the order of their positions."""
    return _is_contiguous(tensor._value.shape, strides_of(tensor))


@functools.cache
def _writer(strides: tuple[int, ...]) -> Compiled:
    def write_view(base: jax.Array, view: jax.Array, offset: object) -> jax.Array:
        if _is_contiguous(view.shape, strides):
            if view.size == base.size:
                return view.reshape(base.shape)
            flat = lax.dynamic_update_slice(base.reshape(-1), view.reshape(-1), [jnp.asarray(offset)])
        else:
            flat = base.reshape(-1).at[_offsets(view.shape, strides, offset)].set(view)
        return flat.reshape(base.shape)

    return Compiled("write_view", write_view, settings={"strides": strides})


@functools.cache
def _reader(shape: tuple[int, ...], strides: tuple[int, ...]) -> Compiled:
    def read_view(base: jax.Array, offset: object) -> jax.Array:
        flat = base.reshape(-1)
        if not _is_contiguous(shape, strides):
            return flat[_offsets(shape, strides, offset)]
        return lax.dynamic_slice(flat, [jnp.asarray(offset)], [math.prod(shape)]).reshape(shape)

    return Compiled("read_view", read_view, settings={"shape": shape, "strides": strides})


def _offsets(shape: Sizes, strides: Sizes, offset: object) -> jax.Array:
    offsets = jnp.asarray(offset)
    for size, stride in zip(shape, strides, strict=True):
        offsets = offsets[..., None] + jnp.arange(size) * stride
    return offsets


def share_storage(
    x: Tensor, out: Tensor, rule: Rule, args: Sequence[object] = (), kwargs: Mapping[str, object] = _NONE
) -> None:
    """Make `out` a view of `x` where the rule, called with these arguments, gives a layout for it."""
    link = x._link
    parent = storage = None
    if link.__class__ is View:
        parent, storage = link, link.storage  # type: ignore[union-attr]
    elif link is not None:
        storage = link()  # type: ignore[operator]
    if storage is None:
        storage = Storage(x)
        x._link = Ownership(storage)
    view = View(storage, parent, x._array.shape, out._array.shape, rule, args, kwargs)  # type: ignore[arg-type]
    if parent is None or view.layout() is not None:  # a copy does not keep the memory of another Tensor
        out._link = view
        storage.add(out)


class Rewriting:
    """A block in which a Tensor gets a value and a history: what shares its memory gets both when it ends."""

    __slots__ = ("_link", "_tensor")

    def __init__(self, tensor: Tensor) -> None:
        self._tensor, self._link = tensor, tensor._link

    def __enter__(self) -> None:
        if self._link is not None:
            self._tensor._link = None

    def __exit__(self, kind: type[BaseException] | None, *others: object) -> None:
        if self._link is not None:
            self._tensor._link = self._link
            if kind is None:
                self._link.changed(self._tensor, recorded=True)


def leave_storage(tensor: Tensor) -> Tensor:
    """Give a Tensor memory of its own: what is written to it changes no other one, and the other way round."""
    link = tensor._link
    if isinstance(link, Ownership) and (storage := link()) is not None:
        storage.owner = _nobody
    tensor._link = None
    return tensor


def _nobody() -> None:
    return None


def view_of(rule: Rule) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make the result of an operation a view of its first argument where the rule gives strides for it."""

    def decorate(call: Callable[P, R]) -> Callable[P, R]:
        first = next(iter(inspect.signature(call).parameters))

        @functools.wraps(call)
        def with_view(*args: P.args, **kwargs: P.kwargs) -> R:
            out = call(*args, **kwargs)
            others = args[1:]
            x = args[0] if args else kwargs.pop(first)
            if mode.recorder is None and isinstance(x, Tensor) and isinstance(out, Tensor):
                share_storage(x, out, rule, others, kwargs)
            return out

        return with_view

    return decorate


def reshaped(
    old: Sizes, strides: Sizes, new: Sizes, /, *args: object, **kwargs: object
) -> tuple[Sizes, int] | None:
    """The strides of the same elements in another shape; None where no strides give their order."""
    if 0 in old:
        return None
    # Axes that lie in the memory as one axis would, as (size, stride) of that axis.
    runs: list[tuple[int, int]] = []
    for size, stride in zip(old, strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    result: list[int] = []
    left, step = runs.pop() if runs else (1, 1)
    for size in reversed(new):
        if size != 1 and left == 1:
            if not runs:
                return None
            left, step = runs.pop()
        if left % size:
            return None
        result.append(step)
        left, step = left // size, step * size
    return result[::-1], 0


def unchanged(old: Sizes, strides: Sizes, new: Sizes, /) -> tuple[Sizes, int]:
    """The strides of the same elements in the same shape."""
    return strides, 0


def reversed_axes(old: Sizes, strides: Sizes, new: Sizes, /, name: str | None = None) -> tuple[Sizes, int]:
    """The strides with the last axis first."""
    return strides[::-1], 0


@view_of(unchanged)
def detach(x: Tensor) -> Tensor:
    """The same values without their history, in the same memory."""
    return wrap(x._value)


Tensor.detach = detach  # type: ignore[method-assign]
