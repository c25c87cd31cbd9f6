"""recompute: keep only the inputs of a function, and run it again in the backward run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
from jax.core import Tracer

from framework.paddle._kernel import random
from framework.paddle._kernel.mode import amp_scope, mode
from framework.paddle._kernel.tape import (
    Cotangent,
    Edge,
    Node,
    _Gradients,
    _key,
    _walk,
    attach,
    enable_grad,
)
from framework.paddle._kernel.tensor import Tensor


class _Run:
    """One run of the function with its operations on the tape."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.start = Node((), 0).number  # nodes of this run have greater numbers
        with enable_grad():  # type: ignore[union-attr]
            self.returned = call()
        self.outputs = list(_tensors(self.returned))

    def external_edges(self) -> list[Edge]:
        """Where gradients leave this run: leaves, and outputs of older nodes."""
        found: dict[Any, Edge] = {}
        seen: set[Node] = set()
        stack = [t._node for t in self.outputs if t._node is not None and t._node.number > self.start]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            for edge in node.edges:
                if isinstance(edge, tuple) and edge[0].number > self.start:
                    stack.append(edge[0])
                else:
                    found[_key(edge)] = edge
        return list(found.values())


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def recompute(
    function: Callable[..., object],
    *args: object,
    use_reentrant: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: object,
) -> object:
    """`function(*args, **kwargs)` without keeping what it computes on the way: the backward run calls it again.

    With `preserve_rng_state` random operations (dropout) repeat what they did.
    """

    def call() -> object:
        return function(*args, **kwargs)

    if not mode.grad_enabled:
        return call()
    state, amp = random.position(), mode.amp
    first = _Run(call)
    edges = first.external_edges()
    places = [
        index
        for index, tensor in enumerate(first.outputs)
        if tensor._node is not None and tensor._node.number > first.start
    ]
    if places:
        inputs = [t for t in _tensors([args, kwargs]) if isinstance(t, Tensor)]
        replay = _Replay(call, state if preserve_rng_state else None, amp, inputs)
        node = RecomputeNode(edges, replay, places)
        for index, place in enumerate(places):
            attach(first.outputs[place], node, index)
    return first.returned


class _Replay:
    """Runs the function again as it was."""

    def __init__(self, call: Callable[[], object], state: Any, amp: Any, inputs: Sequence[Tensor]) -> None:
        self.call, self.state, self.amp, self.inputs = call, state, amp, inputs

    def __call__(self, leaves: Iterable[Tensor]) -> _Run:
        before = random.position()
        if self.state is not None:
            random.seek(self.state)
        try:
            with amp_scope(self.amp), _apart([*self.inputs, *leaves]):
                return _Run(self.call)
        finally:
            if self.state is not None:
                random.seek(before)


@contextmanager
def _apart(tensors: Iterable[Tensor]) -> Iterator[None]:
    """Under a trace: keep the compiler from merging this run with the first one, whose values it would then keep."""
    changed = [(t, t._value) for t in {id(t): t for t in tensors}.values() if isinstance(t._value, Tracer)]
    if changed:
        held = jax.lax.optimization_barrier([value for _, value in changed])
        for (tensor, _), value in zip(changed, held, strict=True):
            tensor._value = value
    try:
        yield
    finally:
        for tensor, value in changed:
            tensor._value = value


class RecomputeNode(Node):
    """Its `pull` runs the function again and takes the gradients of that run."""

    __slots__ = ("places", "replay")

    def __init__(self, edges: Sequence[Edge], replay: _Replay, places: Sequence[int]) -> None:
        super().__init__(edges, len(places))
        self.replay: _Replay | None = replay
        self.places = places

    def pull(self, cotangents: Sequence[Cotangent | None], create_graph: bool) -> Sequence[Cotangent | None]:
        assert self.replay is not None
        run = self.replay([edge for edge in self.edges if isinstance(edge, Tensor)])
        gradients = _Gradients(create_graph)
        for place, cotangent in zip(self.places, cotangents, strict=True):
            tensor = run.outputs[place]
            if cotangent is not None and tensor._node is not None:
                gradients.add((tensor._node, tensor._index), cotangent)
        inner: dict[tuple[Node, int], Cotangent] = {}
        outputs = {edge for edge in self.edges if isinstance(edge, tuple)}
        _walk(gradients, create_graph, lambda node: node.number > run.start, outputs, inner)
        return [
            inner.get(edge) if isinstance(edge, tuple) else gradients.leaves.get(id(edge), (None, None))[1]
            for edge in self.edges
        ]

    def release(self) -> None:
        self.replay = None

    @property
    def released(self) -> bool:
        return self.replay is None
