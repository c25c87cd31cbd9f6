"""A function of Tensors as one compiled program: traced, called, and one node on the tape.

`trace` runs the function under jax's trace until it knows every Tensor of the outside that is read (parameters,
buffers, gradients, optimizer state: these become inputs), and notes every one that is changed (these become outputs).
Where a result wants a gradient, the tape's backward run is traced behind the forward run; what does not depend on the
incoming gradients is the forward program, the rest the backward program, and what passes between them is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

from framework.paddle._kernel.dispatch import Compiled
from framework.paddle._kernel.dtypes import INEXACT
from framework.paddle._kernel.errors import NOT_FINITE, not_finite
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.program import Program
from framework.paddle._kernel.random import TracedKeys, default_generator
from framework.paddle._kernel.tape import Cotangent, Node, _Gradients, _walk, attach, edge_of
from framework.paddle._kernel.tensor import Tensor, is_only_holder, wrap
from framework.paddle._kernel.watch import watching
from framework.paddle._kernel.x64 import enter_x64, leave_x64, x64
from framework.paddle.jit.nodes import FREED, Failing, StaticNode
from framework.paddle.jit.recording import (
    ArgumentSlot,
    Buffers,
    GradSlot,
    MemberSlot,
    NoGradient,
    Recording,
    Slot,
    TensorSlot,
    abstract,
    is_alive,
    shape_and_type,
)
from framework.paddle.jit.structure import map_tensors
from framework.paddle.nn.layer import Layer

_KEY_DATA = jax.ShapeDtypeStruct((2,), np.uint32)


class Output:
    """One array that the program returns, and what becomes of it."""

    def __init__(self, tensor: Tensor, live: bool) -> None:
        self.live = live  # it has a history
        self.stop_gradient = tensor.stop_gradient
        self.freed = not live and not tensor.stop_gradient and tensor._node is not None


class Change:
    """A Tensor of the outside that gets a new value (`output`), or a new gradient (`is_grad`; None: no gradient)."""

    def __init__(self, slot: Slot, output: int | None, is_grad: bool, name: str | None = None) -> None:
        self.slot, self.output, self.is_grad, self.name = slot, output, is_grad, name


class Guard:
    """What must be as it was when the program was traced: the gradient is there or not, `clear_grad` asked for
    zeros or not."""

    def __init__(self, slot: Slot, has_grad: bool, zeros: bool | None) -> None:
        self.slot, self.has_grad, self.zeros = slot, has_grad, zeros

    def holds(self, args: Sequence[Tensor]) -> bool:
        tensor = self.slot.find(args)
        if tensor is None:
            return False
        state = tensor.__dict__
        has_grad = state.get("_gradient") is not None
        if has_grad != self.has_grad:
            return False
        return has_grad or self.zeros is None or state.get("_zero_grad", False) == self.zeros


class _Run:
    """One traced run: the function of arrays that jax sees, and what was noted on the way."""

    def __init__(
        self,
        call: Callable[[], object],
        slots: Sequence[Slot],
        args: Sequence[Tensor],
        layers: Sequence[Layer],
    ) -> None:
        self.call, self.slots, self.args, self.layers = call, slots, args, layers
        self.tensors = [slot.find(args) for slot in slots]

    def __call__(
        self, values: Sequence[jax.Array], root: Any, cotangents: Sequence[jax.Array]
    ) -> list[jax.Array]:
        known = {id(t): t for t in self.tensors if t is not None}
        self.recording = recording = Recording(known)
        buffers = Buffers(self.layers)
        self.keys = TracedKeys(root)
        keys_before, mode.keys = mode.keys, self.keys
        start = Node((), 0).number
        try:
            with watching(recording):
                for tensor, value in zip(self.tensors, values, strict=True):
                    assert tensor is not None
                    recording.snapshot(tensor)
                    tensor._array, tensor._sizes = value, None
                self.edges = [edge_of(t) for t in self.tensors if t is not None]
                returned = self.call()
                buffers.settle(recording)
                collected = self._collect(returned, values)
                arrays = [t._array for t in collected]
                gradients = self._gradients(collected, cotangents, start) if cotangents else []
        finally:
            mode.keys = keys_before
            recording.restore()
            buffers.restore()
        self.count = len(arrays)
        return [*arrays, *gradients]

    def _collect(self, returned: object, values: Sequence[jax.Array]) -> list[Tensor]:
        """All Tensors whose values are returned; notes what they are for."""
        recording = self.recording
        collected: list[Tensor] = []
        places: dict[int, int] = {}
        self.outputs: list[Output] = []
        self.changes: list[Change] = []
        self.seen = {id(t): slot for t, slot in zip(self.tensors, self.slots, strict=True)}

        def place(tensor: Tensor) -> int:
            if id(tensor) not in places:
                places[id(tensor)] = len(collected)
                collected.append(tensor)
                alive = not tensor.stop_gradient and is_alive(tensor._node)
                self.outputs.append(Output(tensor, alive and tensor.dtype.numpy in INEXACT))
            return places[id(tensor)]

        def result(value: object) -> object:
            if not isinstance(value, Tensor):
                return place(wrap(value)) if isinstance(value, jax.Array) else value
            return place(value) if recording.is_own(value) else self.slot_of(value)

        self.result = map_tensors(returned, lambda v: _Result(result(v)))
        initial = {id(t): v for t, v in zip(self.tensors, values, strict=True)}
        for tensor in recording.written.values():
            if tensor._array is not initial.get(id(tensor)):
                self.changes.append(Change(self.slot_of(tensor), place(tensor), False))
        for owner in recording.owners.values():
            grad = owner._gradient
            if grad is not recording.before(owner, "_gradient"):
                number = None if grad is None else place(grad)
                name = None if grad is None else grad._name
                self.changes.append(Change(self.slot_of(owner), number, True, name))
        self.zeros = [(self.slot_of(t), t._zeroed) for t in recording.zeros_set.values()]
        return collected

    def slot_of(self, tensor: Tensor) -> Slot:
        found = self.seen.get(id(tensor))
        if found is None:
            owner = self.recording.owner_of.get(id(tensor))
            found = GradSlot(self.slot_of(owner)) if owner is not None else self._member(tensor)
            self.seen[id(tensor)] = found
        return found

    def _member(self, tensor: Tensor) -> Slot:
        for layer in self.layers:
            for members in (layer._parameters, layer._buffers):
                for name, member in members.items():
                    if member is tensor:
                        return MemberSlot(members, name)
        return TensorSlot(tensor)

    def _gradients(
        self, collected: Sequence[Tensor], cotangents: Sequence[jax.Array], start: int
    ) -> list[jax.Array]:
        """The gradients of the slots, for these of the live outputs."""
        gradients = _Gradients(create_graph=False)
        enabled, mode.grad_enabled = mode.grad_enabled, False
        try:
            live = [t for t, output in zip(collected, self.outputs, strict=True) if output.live]
            for tensor, cotangent in zip(live, cotangents, strict=True):
                gradients.add(edge_of(tensor), cotangent)
            found: dict[tuple[Node, int], Cotangent] = {}
            outputs = {edge for edge in self.edges if isinstance(edge, tuple)}
            _walk(gradients, False, lambda node: node.number > start, outputs, found)
        finally:
            mode.grad_enabled = enabled
        self.mask = []
        results = []
        for tensor, edge in zip(self.tensors, self.edges, strict=True):
            assert tensor is not None
            gradient = None
            if not tensor.stop_gradient:
                leaf = gradients.leaves.get(id(edge), (None, None))[1]
                gradient = found.get(edge) if isinstance(edge, tuple) else leaf
            self.mask.append(gradient is not None)
            if gradient is not None:
                results.append(gradient._value if isinstance(gradient, Tensor) else gradient)
        return results

    def guards(self) -> list[Guard]:
        recording = self.recording
        return [
            Guard(
                self.slot_of(t),
                recording.before(t, "_gradient") is not None,
                recording.before(t, "_zeroed") if id(t) in recording.zeros_read else None,
            )
            for t in {**recording.owners, **recording.zeros_read}.values()
        ]


class _Result:
    """The place of a Tensor in a nested result."""

    __slots__ = ("at",)

    def __init__(self, at: Any) -> None:
        self.at = at


def trace(
    call: Callable[[], object],
    args: Sequence[Tensor],
    layers: Sequence[Layer] = (),
    known: Iterable[Slot] = (),
) -> StaticProgram:
    """Trace `call`, which uses `args`; `layers`: whose attributes it may set. `known`: slots of an earlier trace."""
    slots: list[Slot] = []
    seen: set[int] = set()
    for slot in [*[ArgumentSlot(index) for index in range(len(args))], *known]:
        tensor = slot.find(args)
        if tensor is not None and id(tensor) not in seen:
            seen.add(id(tensor))
            slots.append(slot)
    cotangents: list[jax.ShapeDtypeStruct] = []
    failure: NoGradient | None = None
    while True:
        run = _Run(call, slots, args, layers)
        values = [abstract(t._value) for t in run.tensors if t is not None]
        try:
            with x64(), watching(mode.watcher):
                jaxpr = jax.make_jaxpr(run)(values, _KEY_DATA, cotangents)
        except NoGradient as error:
            if not cotangents:  # the function itself asked for the gradient
                raise
            failure, cotangents = error, []  # an error only for those who go back
            continue
        run.recording.check_nothing_leaked()
        if run.recording.found:
            slots = [*slots, *[run.slot_of(t) for t in run.recording.found.values()]]
            cotangents = []
            continue
        live = [abstract(v) for v, output in zip(jaxpr.out_avals, run.outputs, strict=False) if output.live]
        if len(live) != len(cotangents) and failure is None:
            cotangents = live
            continue
        return StaticProgram(run, jaxpr, len(cotangents), failure)


class StaticProgram:
    """The compiled forms of a traced function."""

    def __init__(self, run: _Run, jaxpr: ClosedJaxpr, live: int, failure: NoGradient | None) -> None:
        self.failure = failure
        inner, count = jaxpr.jaxpr, len(run.tensors)
        read = {v for e in inner.eqns for v in e.invars if not isinstance(v, Literal)}
        read.update(v for v in inner.outvars if not isinstance(v, Literal))
        used = [
            i for i, slot in enumerate(run.slots) if inner.invars[i] in read or isinstance(slot, ArgumentSlot)
        ]
        self.slots = [run.slots[i] for i in used]
        tensors = [run.tensors[i] for i in used]
        self.avals = [shape_and_type(t._value) for t in tensors if t is not None]
        self.argument_avals = [shape_and_type(t._value) for t in run.args]
        self.flags = [t is not None and t.stop_gradient for t in tensors]
        self.guards = run.guards()
        self.layers = list(run.layers)
        self.training = [layer.training for layer in run.layers]
        self.outputs, self.changes, self.zeros, self.result = run.outputs, run.changes, run.zeros, run.result
        self.random = run.keys.count > 0
        self.live = [index for index, output in enumerate(self.outputs) if output.live]
        self.mask = [run.mask[i] for i in used] if live else [False] * len(used)
        self.avals_out = [shape_and_type(v) for v in jaxpr.out_avals[: run.count]]
        inputs = [*[inner.invars[i] for i in used], inner.invars[count]]
        primal = inner.outvars[: run.count]
        changed = {id(c.slot) for c in self.changes if c.output is not None and not c.is_grad}
        self.replaced = [i for i, slot in enumerate(self.slots) if id(slot) in changed]
        self.forward, self.split = _split(
            jaxpr, inputs, inner.invars[count + 1 :], primal, inner.outvars[run.count :], self.replaced
        )
        self.whole: Compiled | None = None
        if live:
            function = jaxpr_as_fun(
                _closed(jaxpr, [*inputs, *inner.invars[count + 1 :]], inner.outvars[run.count :], inner.eqns)
            )
            self.whole = Compiled("to_static_grad", lambda *values: tuple(function(*values)), whole=True)

    def fits(self, args: Sequence[Tensor]) -> list[Tensor] | None:
        """The Tensors of the slots, if the program is one for them."""
        for layer, training in zip(self.layers, self.training, strict=True):
            if layer.training is not training:
                return None
        tensors: list[Tensor] = []
        for slot, (shape, dtype), flag in zip(self.slots, self.avals, self.flags, strict=True):
            tensor = slot.find(args)
            if tensor is None or tensor.stop_gradient is not flag:
                return None
            value = tensor._value
            if value.shape != shape or value.dtype != dtype:
                return None
            tensors.append(tensor)
        return tensors if all(guard.holds(args) for guard in self.guards) else None

    def __call__(self, tensors: Sequence[Tensor], args: Sequence[Tensor]) -> Any:
        """Run on the Tensors that `fits` gave: sets what the function sets, returns what it returns."""
        alone = not self.live and all(is_only_holder(tensors[i]) for i in self.replaced)
        values: list[Any] = [t._value for t in tensors]
        values.append(default_generator.next_key() if self.random else np.zeros(2, np.uint32))
        node = None
        before = enter_x64(True)
        try:
            if self.split is not None and mode.grad_enabled:
                made = self.split.forward(*values)
                node = StaticNode(self, values, made[len(self.outputs) :], tensors)
            else:
                made = self.forward(*values, in_place=alone)
        except NOT_FINITE as error:
            raise not_finite(error, "paddle.jit.to_static") from error
        finally:
            leave_x64(before)
        results = [self._tensor(index, made[index], node) for index in range(len(self.outputs))]
        self._apply(results, args)
        return map_tensors_of(self.result, results, args)

    def _tensor(self, index: int, value: jax.Array, node: StaticNode | None) -> Tensor:
        output, tensor = self.outputs[index], wrap(value)
        tensor.stop_gradient = output.stop_gradient
        if node is not None and output.live:
            attach(tensor, node, node.place[index])
        elif output.freed:
            attach(tensor, FREED, 0)
        elif output.live and self.failure is not None and mode.grad_enabled:
            attach(tensor, Failing(self.failure), 0)
        return tensor

    def _apply(self, results: Sequence[Tensor], args: Sequence[Tensor]) -> None:
        found = [(change, change.slot.find(args)) for change in self.changes]
        zeros = [(slot.find(args), zero) for slot, zero in self.zeros]
        for change, tensor in found:
            assert tensor is not None
            new = None if change.output is None else results[change.output]
            if change.is_grad:
                tensor._grad = new
                if new is not None:
                    new._name = change.name
            elif new is not None:
                tensor._value = new._value
                tensor._version += 1
                tensor._node, tensor._index = new._node, new._index
                tensor.stop_gradient = new.stop_gradient
        for tensor, zero in zeros:
            if tensor is not None:
                tensor._zero_grad = zero


def map_tensors_of(result: Any, results: Sequence[Tensor], args: Sequence[Tensor]) -> Any:
    """A nested result with the Tensors of this call in their places."""
    if isinstance(result, _Result):
        at = result.at
        return at.find(args) if isinstance(at, Slot) else results[at]
    if isinstance(result, tuple) and type(result) is not tuple:
        return type(result)(*[map_tensors_of(part, results, args) for part in result])
    if isinstance(result, list | tuple):
        return type(result)([map_tensors_of(part, results, args) for part in result])
    if type(result) is dict:
        return {name: map_tensors_of(part, results, args) for name, part in result.items()}
    return result


class Split:
    """A forward program that also returns what the backward program takes: inputs by number, and arrays after the
    outputs."""

    def __init__(self, forward: Program, backward: Program, kept: Sequence[int]) -> None:
        self.forward, self.backward, self.kept = forward, backward, kept


def _closed(
    jaxpr: ClosedJaxpr, inputs: Sequence[Any], outputs: Sequence[Any], equations: Sequence[Any]
) -> ClosedJaxpr:
    inner = jaxpr.jaxpr
    info = inner.debug_info._replace(arg_names=None, result_paths=None)
    return ClosedJaxpr(Jaxpr(inner.constvars, inputs, outputs, equations, inner.effects, info), jaxpr.consts)


def _program(jaxpr: ClosedJaxpr, replaced: Sequence[int] = ()) -> Program:
    function = jaxpr_as_fun(jaxpr)

    def to_static(*values: object) -> Any:
        return function(*values)

    return Program(to_static, replaced, whole=True)


def _split(
    jaxpr: ClosedJaxpr,
    inputs: Sequence[object],
    cotangents: Sequence[object],
    primal: Sequence[object],
    gradients: Sequence[object],
    replaced: Sequence[int],
) -> tuple[Program, Split | None]:
    dependent = set(cotangents)
    first, second = [], []
    for equation in jaxpr.jaxpr.eqns:
        if any(not isinstance(v, Literal) and v in dependent for v in equation.invars):
            second.append(equation)
            dependent.update(equation.outvars)
        else:
            first.append(equation)
    forward = _program(_closed(jaxpr, inputs, primal, first), replaced)
    if not gradients:
        return forward, None
    constant = set(jaxpr.jaxpr.constvars)
    needed: dict[Any, None] = {}
    for variable in [*[v for equation in second for v in equation.invars], *gradients]:
        if not isinstance(variable, Literal) and variable not in dependent and variable not in constant:
            needed[variable] = None
    number = {variable: index for index, variable in enumerate(inputs)}
    kept = [v for v in needed if v in number]
    passed = [v for v in needed if v not in number]
    with_rest = _program(_closed(jaxpr, inputs, [*primal, *passed], first))
    backward = _program(_closed(jaxpr, [*kept, *passed, *cotangents], gradients, second))
    return forward, Split(with_rest, backward, [number[v] for v in kept])
