"""What a function reads and changes of the Tensors that exist outside it, found by running it under a trace."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from framework.core.errors import TraceError
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tape import Cotangent, Edge, Node, edge_of
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.layer import Layer


class NoGradient(TraceError):
    """A gradient was asked for where there is none."""


class Slot:
    """How a Tensor of the outside is found again when the compiled program runs."""

    def find(self, args: Sequence[Tensor]) -> Tensor | None:
        """The Tensor that stands there now."""
        raise NotImplementedError


class ArgumentSlot(Slot):
    """A Tensor among the arguments."""

    def __init__(self, index: int) -> None:
        self.index = index

    def find(self, args: Sequence[Tensor]) -> Tensor | None:
        return args[self.index]


class TensorSlot(Slot):
    """This very Tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def find(self, args: Sequence[Tensor]) -> Tensor | None:
        return self.tensor


class MemberSlot(Slot):
    """The parameter or buffer of this name, whatever Tensor it is by now."""

    def __init__(self, members: Mapping[str, Tensor | None], name: str) -> None:
        self.members, self.name = members, name

    def find(self, args: Sequence[Tensor]) -> Tensor | None:
        return self.members.get(self.name)


class GradSlot(Slot):
    """The gradient of another Tensor."""

    def __init__(self, owner: Slot) -> None:
        self.owner = owner

    def find(self, args: Sequence[Tensor]) -> Tensor | None:
        owner = self.owner.find(args)
        return None if owner is None else owner._gradient


class InputNode(Node):
    """Stands for the history that a Tensor brought in from outside."""

    __slots__ = ("place",)

    def __init__(self, place: str) -> None:
        super().__init__((), 1)
        self.place = place

    def pull(self, cotangents: Sequence[Cotangent | None], create_graph: bool) -> Sequence[Cotangent | None]:
        raise TraceError(
            "backward() inside a to_static function reaches a Tensor that was computed outside of it",
            received=self.place,
            fix="compute it inside, call backward() outside, or pass it in as tensor.detach()",
        )


_DEFAULTS = {"_gradient": None, "_zeroed": False, "_node": None, "_index": 0, "_version": 0}


class Recording:
    """Told of everything that one run does to Tensors (a Watcher). Tensors of the outside are put back as they were by
    `restore`.

    Attributes:
        found: Tensors of the outside that were read without being among `known`.
    """

    def __init__(self, known: Mapping[int, Tensor]) -> None:
        self.known = known
        self.parent = mode.watcher
        self.found: dict[int, Tensor] = {}
        self.written: dict[int, Tensor] = {}
        self.owners: dict[int, Tensor] = {}
        self.owner_of: dict[int, Tensor] = {}
        self.zeros_read: dict[int, Tensor] = {}
        self.zeros_set: dict[int, Tensor] = {}
        self._before: dict[int, tuple[Tensor, dict[str, Any]]] = {}
        self._made: list[weakref.ref[Tensor]] = []

    def is_own(self, tensor: Tensor) -> bool:
        """Whether this run made the Tensor."""
        return tensor.__dict__.get("_made_by") is self

    # Watcher

    def read_value(self, tensor: Tensor, value: object) -> Any:
        state = tensor.__dict__
        if state.get("_made_by") is not self:
            key = id(tensor)
            if key not in self.known and key not in self.written and key not in self.found:
                self.snapshot(tensor)
                self.found[key] = tensor
        return value

    def set_value(self, tensor: Tensor, value: object, new: bool) -> bool:
        state = tensor.__dict__
        if new:
            if isinstance(value, Tracer):  # what is concrete was made to stay, such as an optimizer's state
                state["_made_by"] = self
                self._made.append(weakref.ref(tensor))
        elif state.get("_made_by") is not self:
            self.snapshot(tensor)
            self.written[id(tensor)] = tensor
        return True

    def touch_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        if tensor.__dict__.get("_made_by") is self:
            return
        self.snapshot(tensor)
        self.owners[id(tensor)] = tensor
        if grad is not None and not self.is_own(grad):
            self.owner_of.setdefault(id(grad), tensor)
        if self.parent is not None:
            self.parent.touch_grad(tensor, grad)

    def touch_zero(self, tensor: Tensor, reads: bool) -> None:
        if tensor.__dict__.get("_made_by") is self:
            return
        self.snapshot(tensor)
        if not reads:
            self.zeros_set[id(tensor)] = tensor
        elif id(tensor) not in self.zeros_set:
            self.zeros_read[id(tensor)] = tensor
        if self.parent is not None:
            self.parent.touch_zero(tensor, reads)

    # Before and after

    def snapshot(self, tensor: Tensor) -> None:
        """Remember a Tensor of the outside as it is, and let its history end here."""
        if id(tensor) not in self._before:
            state = tensor.__dict__
            self._before[id(tensor)] = (tensor, dict(state))
            if state.get("_node") is not None and not tensor.stop_gradient:
                state["_node"], state["_index"] = InputNode(f"{tensor.dtype.name}{tensor.shape}"), 0

    def before(self, tensor: Tensor, name: str) -> Any:
        """An attribute as it was when the run first touched the Tensor."""
        known = self._before.get(id(tensor))
        state = tensor.__dict__ if known is None else known[1]
        return state.get(name, _DEFAULTS.get(name))

    def edge(self, tensor: Tensor) -> Edge:
        """Where gradients for a Tensor of the outside arrive in this run."""
        return edge_of(tensor)

    def restore(self) -> None:
        for tensor, state in self._before.values():
            tensor.__dict__.clear()
            tensor.__dict__.update(state)

    def check_nothing_leaked(self) -> None:
        """Raises: TraceError: a Tensor of the run is kept somewhere."""
        if self._alive():
            gc.collect()
        for tensor in self._alive():
            kept = [kind for kind in map(_keeper, gc.get_referrers(tensor)) if kind]
            raise TraceError(
                "a Tensor that a to_static function made is kept outside of it",
                received=f"{tensor.dtype.name}{tensor.shape}" + (f", kept in {kept[0]}" if kept else ""),
                allowed="Tensors that the function returns, and new values for Tensors that were there before",
                fix="return it; or make the Tensor before (register_buffer in __init__) and assign to it inside",
            )

    def _alive(self) -> list[Tensor]:
        found = [ref() for ref in self._made]
        return [t for t in found if t is not None and isinstance(getattr(t, "_array", None), Tracer)]


def _keeper(holder: object) -> str | None:
    if isinstance(holder, list | set):
        return f"a {type(holder).__name__} of {len(holder)} elements"
    if (
        isinstance(holder, dict)
        and all(isinstance(name, str) for name in holder)
        and "_made_by" not in holder
    ):
        return f"a dict or an object with {', '.join(list(holder)[:4])}"
    return None


class Buffers:
    """The registered Tensors of layers: an attribute that a run sets to another Tensor counts as a new value of the
    Tensor that was there."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._before = [(layer, dict(layer._buffers)) for layer in layers]

    def settle(self, recording: Recording) -> None:
        for layer, before in self._before:
            for name, tensor in layer._buffers.items():
                old = before.get(name)
                if tensor is None or tensor is old or not recording.is_own(tensor):
                    continue
                if old is None:
                    raise TraceError(
                        "a to_static function sets an attribute of a layer to a Tensor for the first time",
                        where=f"{type(layer).__name__}.{name}",
                        received=f"{tensor.dtype.name}{tensor.shape}",
                        fix=f"make it in __init__: self.register_buffer({name!r}, paddle.zeros(...), False)",
                    )
                old._value = tensor._value
                old._node, old._index = tensor._node, tensor._index
                old.stop_gradient = tensor.stop_gradient

    def restore(self) -> None:
        for layer, before in self._before:
            layer._buffers.clear()
            layer._buffers.update(before)


def is_alive(node: Node | None) -> bool:
    """Whether a history can still be gone back."""
    stack, seen = [node] if node is not None else [], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.released:
            return False
        stack.extend(edge[0] for edge in node.edges if isinstance(edge, tuple))
    return bool(seen)


def shape_and_type(value: Any) -> tuple[tuple[int, ...], np.dtype]:
    """What two arrays must share to use one program."""
    return (tuple(value.shape), value.dtype)


def abstract(value: Any) -> jax.ShapeDtypeStruct:
    """Shape and type alone, for tracing."""
    return jax.ShapeDtypeStruct(value.shape, value.dtype)
