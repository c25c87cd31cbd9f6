"""PyLayer: an operation whose gradient is written by the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp

from framework.paddle._kernel.dtypes import INEXACT
from framework.paddle._kernel.errors import LeafError, MissingBackwardError, OperandError, ShapeError
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tape import Cotangent, Edge, Node, attach, edge_of, no_grad
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.autograd.hooks import active_hooks


class PyLayerContext:
    """What `forward` hands to `backward`: saved Tensors, marks, and whatever attributes are set on it."""

    container: Any = None
    not_inplace_tensors: tuple[Tensor, ...] = ()
    non_differentiable: tuple[Tensor, ...] = ()
    materialize_grads: bool = True
    _unpack: Callable[[Any], Tensor] | None = None

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep Tensors for `backward`, which asks for them by `saved_tensor()`."""
        hooks = active_hooks()
        if hooks is None:
            self.container = tensors
        else:
            pack, self._unpack = hooks
            self.container = tuple(pack(tensor) for tensor in tensors)

    def saved_tensor(self) -> tuple[Tensor, ...] | None:
        """The Tensors given to `save_for_backward`, in order."""
        if self._unpack is None or self.container is None:
            return self.container
        return tuple(self._unpack(kept) for kept in self.container)

    def mark_not_inplace(self, *args: Tensor) -> None:
        """These inputs may be returned as they are: the output is a Tensor of its own."""
        self.not_inplace_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """These outputs get no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (as by default) or None for outputs without a gradient."""
        self.materialize_grads = value


class PyLayer(PyLayerContext):
    """Base of operations with a gradient of their own: static `forward(ctx, *args, **kwargs)` and
    `backward(ctx, *gradients)`, which returns one gradient for each Tensor among the arguments of `forward`."""

    @staticmethod
    def forward(ctx: object, *args: object, **kwargs: object) -> Any:
        raise NotImplementedError("a PyLayer needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: object, *args: object) -> Any:
        raise MissingBackwardError(
            "a PyLayer needs a static method backward(ctx, ...)", fix="write it beside forward"
        )

    @classmethod
    def apply(cls, *args: object, **kwargs: object) -> Any:
        """Run `forward`; `backward` runs in its place when gradients are computed."""
        ctx = cls()
        slots = [a for a in (*args, *kwargs.values()) if _holds_tensors(a)]
        with no_grad():
            outputs = cls.forward(ctx, *args, **kwargs)
        returned = outputs if isinstance(outputs, tuple | list) else [outputs]
        if not any(isinstance(one, Tensor) for one in returned):
            raise ShapeError(
                "PyLayer.forward returns a Tensor, or several things with one among them",
                where=cls.__name__,
                received=type(outputs).__name__,
            )
        wanted = any(not t.stop_gradient for slot in slots for t in _tensors(slot))
        if not (wanted and mode.grad_enabled):
            return outputs
        multiple = isinstance(outputs, tuple | list)
        results = list(outputs) if multiple else [outputs]
        inputs = {id(t): t for slot in slots for t in _tensors(slot)}
        unmarked = {id(t) for t in ctx.not_inplace_tensors}
        barred = {id(t) for t in ctx.non_differentiable}
        chosen: list[int] = []
        for index, result in enumerate(results):
            if not isinstance(result, Tensor):
                continue
            if id(result) in inputs:
                results[index] = _returned_input(result, id(result) in unmarked)
            if id(result) not in barred:
                chosen.append(index)
        # `backward` takes a gradient for each Tensor, and none for what else `forward` returns.
        positions = [index for index, result in enumerate(results) if isinstance(result, Tensor)]
        tensors = [results[index] for index in positions]
        node = PyLayerNode(cls, ctx, slots, tensors, [positions.index(i) for i in chosen])
        for position, index in enumerate(chosen):
            attach(results[index], node, position)
        return (tuple(results) if isinstance(outputs, tuple) else results) if multiple else results[0]


def _returned_input(tensor: Tensor, not_inplace: bool) -> Tensor:
    if not_inplace:
        return wrap(tensor._value)
    if tensor._node is None and not tensor.stop_gradient:
        raise LeafError(
            "PyLayer.forward returns a leaf that wants a gradient",
            received=tensor.name,
            fix="return a new Tensor, or call ctx.mark_not_inplace(tensor)",
        )
    tensor._version += 1
    return tensor


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, Tensor) or (
        isinstance(value, list | tuple) and bool(value) and all(isinstance(v, Tensor) for v in value)
    )


def _tensors(slot: Any) -> Iterable[Tensor]:
    return (slot,) if isinstance(slot, Tensor) else slot


class PyLayerNode(Node):
    """Runs the user's `backward` with Tensors."""

    __slots__ = ("chosen", "ctx", "kind", "slots", "specs", "stopped", "wanted")

    def __init__(
        self,
        kind: type[PyLayer],
        ctx: PyLayer,
        slots: Sequence[object],
        outputs: Sequence[Tensor],
        chosen: Sequence[int],
    ) -> None:
        self.wanted = [
            [not t.stop_gradient and t._value.dtype in INEXACT for t in _tensors(slot)] for slot in slots
        ]
        edges: list[Edge] = [
            edge_of(t)
            for slot, flags in zip(slots, self.wanted, strict=True)
            for t, flag in zip(_tensors(slot), flags, strict=True)
            if flag
        ]
        super().__init__(edges, len(chosen))
        self.kind, self.chosen = kind, tuple(chosen)
        self.ctx: PyLayer | None = ctx
        self.slots = [isinstance(slot, Tensor) for slot in slots]
        self.stopped = [isinstance(slot, Tensor) and slot.stop_gradient for slot in slots]
        self.specs = [(tuple(t._value.shape), t._value.dtype) for t in outputs]

    def pull(self, cotangents: Sequence[Cotangent | None], create_graph: bool) -> Sequence[Cotangent | None]:
        ctx = self.ctx
        assert ctx is not None
        given: list[Tensor | None] = [None] * len(self.specs)
        for index, cotangent in zip(self.chosen, cotangents, strict=True):
            if cotangent is not None:
                given[index] = cotangent if isinstance(cotangent, Tensor) else wrap(cotangent)
        if ctx.materialize_grads:
            self._fill(given)
        returned = self.kind.backward(ctx, *given)
        whole = isinstance(returned, list) and len(self.slots) == 1 and not self.slots[0]
        gradients = list(returned) if isinstance(returned, tuple | list) and not whole else [returned]
        if len(gradients) > len(self.slots):
            raise ValueError(
                f"(InvalidArgument) {self.kind.__name__}.backward returned {len(gradients)} gradients, forward took "
                f"{len(self.slots)} Tensors"
            )
        self._check_stopped(gradients)
        return list(self._distributed(gradients, create_graph))

    def _check_stopped(self, gradients: Sequence[object]) -> None:
        """Raises: ValueError, as Paddle, where a gradient is returned at the position of another Tensor."""
        for index, stopped in enumerate(self.stopped):
            if stopped and index < len(gradients) and gradients[index] is not None:
                raise ValueError(
                    f"(InvalidArgument) {self.kind.__name__}.backward returned a gradient at position {index}, where "
                    "forward took a Tensor with stop_gradient = True: return None there"
                )
            if self.slots[index] and not stopped and index >= len(gradients):
                raise ValueError(
                    f"(InvalidArgument) {self.kind.__name__}.backward returned {len(gradients)} gradients, forward "
                    f"took a Tensor that wants one at position {index}: return a gradient or None there"
                )

    def _fill(self, given: list[Tensor | None]) -> None:
        """Zeros for the outputs that have no gradient."""
        for index, (shape, dtype) in enumerate(self.specs):
            if given[index] is None:
                with x64():
                    given[index] = wrap(jnp.zeros(shape, dtype))

    def _distributed(self, gradients: Sequence[Any], create_graph: bool) -> Iterator[Cotangent | None]:
        name = self.kind.__name__
        for index, (single, flags) in enumerate(zip(self.slots, self.wanted, strict=True)):
            gradient = gradients[index] if index < len(gradients) else None
            parts = [gradient] if single else list(gradient) if gradient is not None else [None] * len(flags)
            if len(parts) != len(flags):
                raise ValueError(
                    f"(InvalidArgument) {name}.backward: gradient {index} is of a list of {len(flags)} Tensors, "
                    f"received {len(parts)}"
                )
            for part, flag in zip(parts, flags, strict=True):
                if not flag:
                    continue
                if part is not None and not isinstance(part, Tensor):
                    raise OperandError(
                        "PyLayer.backward should return Tensors", where=name, received=type(part).__name__
                    )
                if part is None:
                    yield None
                else:
                    yield part if create_graph else part._value

    def release(self) -> None:
        self.ctx = None

    @property
    def released(self) -> bool:
        return self.ctx is None
