"""The tape: nodes that know how to pass gradients back, `backward` and `grad`.

A node stands for one operation that ran with an input that wants a gradient. It holds edges, one for each such input: a
leaf Tensor, or (node, index) for an output of another node. Nodes are numbered as they are made, so going back in the
order of numbers visits a node after everything that used it.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax.core import Tracer

from framework.core.process_state import state
from framework.paddle._kernel.ahead import at_backward, begin_backward
from framework.paddle._kernel.errors import NOT_FINITE, AssertedError, not_finite
from framework.paddle._kernel.grad_mode import enable_grad as enable_grad
from framework.paddle._kernel.grad_mode import is_grad_enabled as is_grad_enabled
from framework.paddle._kernel.grad_mode import no_grad as no_grad
from framework.paddle._kernel.grad_mode import set_grad_enabled as set_grad_enabled
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import enter_x64, leave_x64

log = logging.getLogger("oar")
Edge = Tensor | tuple["Node", int]
Cotangent = jax.Array | Tensor  # Tensors where the gradient is to be differentiated again
Hook = Callable[[Tensor], Tensor | None]

_numbers = itertools.count()
_ones = jax.jit(jnp.ones_like)
_sum = jax.jit(lambda a, b: a + b.astype(a.dtype))


@dataclass
class _Replacement:
    """A Tensor got other values in place of an array, by an operation of its own."""

    array: weakref.ref[jax.Array]
    tensor: weakref.ref[Tensor]
    version: int
    by: weakref.ref[Node] | None


_replacements: dict[int, _Replacement] = {}  # by the id of the array


def note_replaced(tensor: Tensor, by: Node | None) -> None:
    """Say that a Tensor gets other values in place, before it does; `by`: the node of the operation."""
    array = tensor._array
    if tensor._node is None or not mode.grad_enabled or not isinstance(array, jax.Array):
        return
    if isinstance(array, Tracer):
        return
    key = id(array)
    _replacements[key] = _Replacement(
        weakref.ref(array, lambda _: _replacements.pop(key, None)),
        weakref.ref(tensor),
        tensor.inplace_version,
        None if by is None else weakref.ref(by),
    )


def check_replaced(values: Iterable[object], node: Node) -> None:
    """Refuse a gradient by values that their Tensor has not any more, as Paddle does, which has one memory for both.

    Raises:
        RuntimeError: a Tensor was changed in place after this operation used it.
    """
    for value in values if _replacements else ():
        entry = _replacements.get(id(value))
        if entry is None or entry.array() is not value or (entry.by is not None and entry.by() is node):
            continue
        if (tensor := entry.tensor()) is not None:
            raise RuntimeError(
                f"(PermissionDenied) Tensor '{tensor.name}' used in gradient computation has been modified by an "
                f"inplace operation: received tensor_version:{tensor.inplace_version} != "
                f"wrapper_version_snapshot:{entry.version}. Change it before it is used, or use the operation "
                "without _."
            )


class Node:
    """One operation of the tape.

    Attributes:
        edges: where the gradients go that `pull` returns, in the same order.
        outputs: how many outputs the operation has.
        hooks: output -> functions that may replace its gradient.
        retained: output -> when `retain_grads` was called, as a key among those of `hooks`, and the Tensor whose
            `grad` is kept although it is no leaf.
    """

    __slots__ = ("__weakref__", "edges", "hooks", "number", "outputs", "retained")

    def __init__(self, edges: Sequence[Edge], outputs: int) -> None:
        self.edges = edges
        self.outputs = outputs
        self.number = next(_numbers)
        self.hooks: dict[int, dict[int, Hook]] | None = None
        self.retained: dict[int, tuple[int, Tensor]] | None = None

    def __lt__(self, other: Node) -> bool:
        return self.number > other.number  # a heap gives the newest first

    def pull(self, cotangents: Sequence[Cotangent | None], create_graph: bool) -> Sequence[Cotangent | None]:
        """Gradients for the edges from those of the outputs; None where there is none."""
        raise NotImplementedError

    def release(self) -> None:
        """Forget what `pull` needs."""

    @property
    def released(self) -> bool:
        return False


def edge_of(tensor: Tensor) -> Edge:
    """Where the gradient of a Tensor goes."""
    return tensor if tensor._node is None else (tensor._node, tensor._index)


def attach(tensor: Tensor, node: Node, index: int) -> Tensor:
    """Make a Tensor the output `index` of a node."""
    tensor._node, tensor._index, tensor.stop_gradient = node, index, False
    return tensor


class _Gradients:
    """Gradients on their way back."""

    def __init__(self, create_graph: bool, blocked: Set[object] = frozenset()) -> None:
        self.create_graph = create_graph
        self.blocked = blocked  # edges that nothing passes
        self.pending: dict[Node, list[Cotangent | None]] = {}
        self.leaves: dict[int, tuple[Tensor, Cotangent]] = {}
        self.heap: list[Node] = []

    def add(self, edge: Edge, gradient: Cotangent) -> None:
        if self.blocked and _key(edge) in self.blocked:
            return
        if edge.__class__ is tuple:
            node: Node = edge[0]  # type: ignore[index,assignment]
            index: int = edge[1]  # type: ignore[index,assignment]
            waiting = self.pending.get(node)
            if waiting is None:
                waiting = self.pending[node] = [None] * node.outputs
                heapq.heappush(self.heap, node)
            before = waiting[index]
            waiting[index] = gradient if before is None else self.total(before, gradient)
        else:
            leaf: Tensor = edge  # type: ignore[assignment]
            known = self.leaves.get(id(leaf))
            self.leaves[id(leaf)] = (leaf, gradient if known is None else self.total(known[1], gradient))

    def total(self, a: Cotangent, b: Cotangent) -> Cotangent:
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            return _tensor(a) + b
        return _sum(a, b)


def _tensor(gradient: Cotangent) -> Tensor:
    return gradient if isinstance(gradient, Tensor) else wrap(gradient)


def _hooked(hooks: Iterable[Hook], gradient: Cotangent, create_graph: bool) -> Cotangent:
    for hook in list(hooks):
        changed = hook(_tensor(gradient))
        if changed is not None:
            gradient = changed if create_graph else changed._value
    return gradient


def _run_hooks(node: Node, cotangents: list[Cotangent | None], create_graph: bool, retain: bool) -> None:
    """Call the hooks of a node's outputs in the order in which they were registered; as in Paddle the kept gradient
    is the one at the place of `retain_grads` among them."""
    hooks_of, retained = node.hooks or {}, node.retained or {}
    for index in {*hooks_of, *retained}:
        gradient, hooks = cotangents[index], hooks_of.get(index, {})
        if gradient is None:
            continue
        place, tensor = retained.get(index, (0, None))
        gradient = _hooked([hook for key, hook in hooks.items() if key < place], gradient, create_graph)
        if tensor is not None and retain:
            _accumulate(tensor, gradient, create_graph)
        later = [hook for key, hook in hooks.items() if key > place]
        cotangents[index] = _hooked(later, gradient, create_graph)


def _walk(
    gradients: _Gradients,
    retain_graph: bool,
    reaches: Callable[[Node], bool] | None = None,
    outputs: Set[tuple[Node, int]] | None = None,
    gradients_of: dict[tuple[Node, int], Cotangent] | None = None,
) -> None:
    """Pass gradients back until only those of leaves are left. `gradients_of` takes those of `outputs` of nodes, and
    nodes that do not reach an input are passed by."""
    create_graph = gradients.create_graph
    heap, pending = gradients.heap, gradients.pending
    while heap:
        node = heapq.heappop(heap)
        cotangents = pending.pop(node)
        if node.hooks or node.retained:
            _run_hooks(node, cotangents, create_graph, retain=outputs is None)
        if outputs and gradients_of is not None:
            for index, gradient in enumerate(cotangents):
                if gradient is not None and (node, index) in outputs:
                    gradients_of[node, index] = gradient
        if reaches is not None and not reaches(node):
            continue
        if node.released:
            raise RuntimeError(
                "(Unavailable) Trying to backward through the same graph a second time: what it needs was freed by the "
                "first backward(). Call the first one with retain_graph=True."
            )
        try:
            pulled = node.pull(cotangents, create_graph)
        except NOT_FINITE as error:
            raise not_finite(error, f"the gradient of {type(node).__name__}") from error
        for edge, gradient in zip(node.edges, pulled, strict=True):
            if gradient is not None:
                gradients.add(edge, gradient)
        if not retain_graph:
            node.release()


def _accumulate(tensor: Tensor, gradient: Cotangent, create_graph: bool) -> None:
    if tensor._grad is None:
        tensor._grad = gradient if isinstance(gradient, Tensor) else wrap(gradient)
        tensor._grad.stop_gradient = False  # as in Paddle, where it can be differentiated further
    elif create_graph:
        tensor._grad = tensor._grad + gradient
    else:
        tensor._grad._value = _sum(tensor._grad._value, gradient)


@contextlib.contextmanager
def _running(create_graph: bool) -> Iterator[None]:
    """64-bit types, and gradients of gradients only where they are asked for."""
    before, enabled = enter_x64(True), mode.grad_enabled
    mode.grad_enabled = create_graph
    try:
        yield
    finally:
        mode.grad_enabled = enabled
        leave_x64(before)


def _start(gradients: _Gradients, tensors: Sequence[Tensor], starts: Sequence[Tensor | None]) -> None:
    for tensor, start in zip(tensors, starts, strict=True):
        if start is None:
            first: Cotangent = wrap(_ones(tensor._value)) if gradients.create_graph else _ones(tensor._value)
        else:
            start = _shaped_start(start, tensor)
            first = start if gradients.create_graph else start._value
        gradients.add(edge_of(tensor), first)


def _shaped_start(start: Tensor, tensor: Tensor) -> Tensor:
    """The gradient to start with in the shape of its Tensor: of a larger one the first numbers, which Paddle reads."""
    if start.shape == tensor.shape:
        return start
    if start.size < tensor.size:
        raise _shape_error(start, tensor)
    return start.flatten()[: tensor.size].reshape(tensor.shape)


def _shape_error(start: Tensor, tensor: Tensor) -> AssertedError:
    return AssertedError(
        "the gradient to start with has another shape than its Tensor",
        where="backward",
        received=f"gradient {start.shape}, Tensor {tensor.shape}",
        fix="give a gradient of the Tensor's shape, or none for ones",
    )


def _as_list(value: object) -> list:
    return list(value) if isinstance(value, list | tuple) else [value]


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool = False,
) -> None:
    """Add the gradient of every leaf below `tensors` to its `grad`.

    Where nothing wants a gradient nothing is done, as in Paddle, but for a warning in the log.

    Raises:
        RuntimeError: a part of the graph was freed by an earlier call without `retain_graph=True`, or a Tensor was
            changed in place whose values a gradient needs.
        ShapeError: a gradient to start with has fewer numbers than its Tensor.
    """
    roots = _as_list(tensors)
    starts = [None] * len(roots) if grad_tensors is None else _as_list(grad_tensors)
    if all(root.stop_gradient for root in roots):
        log.warning(
            "backward(): the Tensor has no history that leads to one that wants a gradient, so that none is computed. "
            "Set stop_gradient = False on an input before the computation, and run it outside of paddle.no_grad()."
        )
        return
    if at_backward:
        begin_backward()
    gradients = _Gradients(create_graph=False)
    with _running(create_graph=False):
        _start(gradients, roots, starts)
        _walk(gradients, retain_graph)
        for leaf, gradient in gradients.leaves.values():
            if leaf.stop_gradient:
                continue
            if leaf._leaf_hooks:
                gradient = _hooked(leaf._leaf_hooks.values(), gradient, create_graph=False)
            _accumulate(leaf, gradient, create_graph=False)
            for notify in leaf._gradient_listeners or ():
                notify()
    if state.backward_watchers:
        _tell([leaf for leaf, _ in gradients.leaves.values()])
    while _final_hooks:
        _final_hooks.pop(0)()


_final_hooks: list[Callable[[], object]] = []


def add_backward_final_hook(hook: Callable[[], object]) -> None:
    """Call `hook()` once, at the end of the next backward."""
    _final_hooks.append(hook)


@runtime_checkable
class BackwardWatcher(Protocol):
    """What wants to know of every backward."""

    def after_backward(self, leaves: Sequence[Tensor]) -> None:
        """Called when the gradients of these leaves are known."""


def _tell(leaves: Sequence[Tensor]) -> None:
    """Call what watches backwards, and forget what nobody holds any more."""
    state.backward_watchers[:] = [one for one in state.backward_watchers if one() is not None]
    for reference in list(state.backward_watchers):
        if isinstance(watcher := reference(), BackwardWatcher):
            watcher.after_backward(leaves)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Tensor | Sequence[Tensor] | None = None,
) -> list[Tensor | None]:
    """The gradients of the sum of `outputs` for each of `inputs`, without touching any `grad`.

    With `create_graph`, and in functions of `to_static`, they have a history and can be differentiated again. Inputs
    that the outputs do not depend on are an error unless `allow_unused`, which gives None for them.
    """
    if mode.keys is not None:  # a traced function: gradients are variables of the program, as in Paddle's
        create_graph, retain_graph = True, True
    roots, targets = _as_list(outputs), _as_list(inputs)
    barred = [] if no_grad_vars is None else _as_list(no_grad_vars)
    starts = [None] * len(roots) if grad_outputs is None else _as_list(grad_outputs)
    for name, tensors in (
        ("outputs", roots),
        ("inputs", targets),
        ("no_grad_vars", barred),
    ):
        assert all(isinstance(tensor, Tensor) for tensor in tensors), (
            f"paddle.grad: {name} must be a Tensor or a list of Tensors, received {tensors!r:.80}"
        )
    assert len(starts) == len(roots), (
        f"paddle.grad: there must be as many grad_outputs as outputs, received {len(starts)} and {len(roots)}"
    )
    blocked = {_key(edge_of(tensor)) for tensor in barred}
    keys = [_key(edge_of(target)) for target in targets]
    inside: dict[tuple[Node, int], Cotangent] = {}
    inner = {key for key in keys if isinstance(key, tuple)}
    reaches = _reaching(set(keys), blocked)
    gradients = _Gradients(create_graph, blocked)
    keep = create_graph if retain_graph is None else retain_graph
    with _running(create_graph):
        _start(
            gradients,
            [r for r in roots if not r.stop_gradient],
            [s for r, s in zip(roots, starts, strict=True) if not r.stop_gradient],
        )
        _walk(gradients, keep, reaches, inner, inside)
        results: list[Tensor | None] = []
        for target, key in zip(targets, keys, strict=True):
            found = inside.get(key) if isinstance(key, tuple) else gradients.leaves.get(key, (None, None))[1]
            if found is not None and not isinstance(key, tuple) and target._leaf_hooks:
                found = _hooked(target._leaf_hooks.values(), found, create_graph)
            if found is None and not allow_unused:
                raise ValueError(
                    f"paddle.grad: input {targets.index(target)} ({target.name}, shape {target.shape}) is not part of "
                    "the graph of the outputs: give allow_unused=True to get None for it, or check stop_gradient"
                )
            results.append(None if found is None else _tensor(found))
    for result in results:
        if result is not None:
            result.stop_gradient = not create_graph
    return results


def _key(edge: Edge) -> tuple[Node, int] | int:
    return edge if isinstance(edge, tuple) else id(edge)


def _reaching(keys: Set[object], blocked: Set[object]) -> Callable[[Node], bool]:
    """Whether a node leads to one of these edges, by no blocked one."""
    known: dict[Node, bool] = {}

    def reaches(start: Node) -> bool:
        stack = [start]
        while stack:  # by hand: graphs are deeper than Python's stack
            node = stack[-1]
            if node in known:
                stack.pop()
                continue
            open_nodes, found = [], False
            for edge in node.edges:
                key = _key(edge)
                if key in blocked:
                    continue
                if key in keys:
                    found = True
                elif isinstance(edge, tuple):
                    below = known.get(edge[0])
                    if below is None:
                        open_nodes.append(edge[0])
                    else:
                        found = found or below
            if found or not open_nodes:
                known[node] = found
                stack.pop()
            else:
                stack.extend(open_nodes)
        return known[start]

    return reaches


class HookHandle:
    """Takes a hook away again."""

    def __init__(self, hooks: dict[int, Hook], key: int) -> None:
        self._hooks, self._key = hooks, key

    def remove(self) -> bool:
        return self._hooks.pop(self._key, None) is not None


def register_hook(tensor: Tensor, hook: Hook) -> HookHandle:
    """Call `hook(gradient)` when the gradient of this Tensor is known; what it returns replaces it."""
    if tensor.stop_gradient:
        raise RuntimeError("register_hook: this Tensor gets no gradient (stop_gradient is True)")
    if tensor._node is None:
        if tensor._leaf_hooks is None:
            tensor._leaf_hooks = {}
        hooks = tensor._leaf_hooks
    else:
        node = tensor._node
        if node.hooks is None:
            node.hooks = {}
        hooks = node.hooks.setdefault(tensor._index, {})
    key = next(_numbers)
    hooks[key] = hook
    return HookHandle(hooks, key)


def register_backward_hook(tensor: Tensor, hook: Callable[[], object]) -> None:
    """Call `hook()` after each backward that added to the `grad` of this leaf.

    Raises:
        ValueError: the Tensor is no leaf, or gets no gradient.
    """
    if tensor.stop_gradient or tensor._node is not None:
        raise ValueError(
            f"(InvalidArgument) _register_backward_hook: Tensor '{tensor.name}' is no leaf that gets a gradient "
            f"(stop_gradient is {tensor.stop_gradient}): register_hook takes Tensors within the graph"
        )
    tensor._gradient_listeners = (*(tensor._gradient_listeners or ()), hook)


def retain_grads(tensor: Tensor) -> None:
    """Keep the gradient of a Tensor that is no leaf in its `grad`."""
    if tensor._node is not None and not tensor.stop_gradient:
        if tensor._node.retained is None:
            tensor._node.retained = {}
        tensor._node.retained.setdefault(tensor._index, (next(_numbers), tensor))


def clear_grad(tensor: Tensor, set_to_zero: bool = True) -> None:
    """Set the gradient to zeros, or to None."""
    grad = tensor._grad
    tensor._zero_grad = set_to_zero and (grad is not None or tensor._zero_grad)
    if grad is not None:
        tensor._zeros_stop = grad.stop_gradient
    tensor._grad = None


def run_backward(tensor: Tensor, grad_tensor: Tensor | None = None, retain_graph: bool = False) -> None:
    """`tensor.backward()`: see `backward`. Other than there, the gradient has the Tensor's shape."""
    if grad_tensor is not None and not isinstance(grad_tensor, Tensor):
        raise AssertedError(
            "the gradient that backward begins with is a Tensor",
            where="backward",
            received=type(grad_tensor).__name__,
        )
    if grad_tensor is not None and grad_tensor.shape != tensor.shape:
        raise _shape_error(grad_tensor, tensor)
    backward([tensor], [grad_tensor], retain_graph)


Tensor.backward = run_backward  # type: ignore[attr-defined]
Tensor.register_hook = register_hook  # type: ignore[attr-defined]
Tensor._register_backward_hook = register_backward_hook  # type: ignore[attr-defined]
Tensor.retain_grads = retain_grads  # type: ignore[attr-defined]
Tensor.clear_grad = clear_grad  # type: ignore[attr-defined]
Tensor.clear_gradient = clear_grad  # type: ignore[attr-defined]
