"""Compiled functions of weights that stay: what they compute of weights alone is computed once, not in every call.

A kernel of Winograd's form, the zeros between the groups of a block, frames side by side as channels, scales from
variances: XLA computes what depends on an argument in every call. CPU time of a call against ONNX Runtime's, before and
after: r3d_18 at 8x64x64 1.9 and 1.1 times, (2+1)D 2.1 and 1.3, MobileNetV3 at 96 pixels 2.5 and 1.8.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from framework.core.types import PyTree

_CALLS = frozenset(("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"))
# What XLA reads in another order for nothing, where there are as many values before and behind.
_VIEWS = frozenset(("reshape", "squeeze", "expand_dims", "slice", "broadcast_in_dim"))
# How many times as many values as the weights that it is made of may an array have that is held for all calls.
_MOST_GROWTH = 16
# Values of a matrix up to which it is held transposed: products read it faster so (4 x 512 x 1024: 104 to 31 us), but
# it is in memory twice.
_LARGE_MATRIX = 1 << 22
_SHARED_BYTES = (
    1 << 16
)  # constants up to which values are compared, to tell that two shapes need the same array


@dataclass(frozen=True, eq=False)
class _Step:
    """One operation. Values are numbers."""

    equation: core.JaxprEqn
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def run(self, values: Sequence[jax.Array]) -> Sequence[jax.Array]:
        primitive = self.equation.primitive
        with self.equation.ctx.manager:
            results = primitive.bind(*values, **self.equation.params)
        return results if primitive.multiple_results else (results,)


@dataclass(eq=False)
class _Trace:
    """A program as a list of steps, without calls of functions.

    Attributes:
        shapes: Of each value.
        constants: The values that are known while a program is traced.
    """

    steps: list[_Step] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    constants: dict[int, np.ndarray | jax.Array] = field(default_factory=dict)
    is_wide: bool = False  # has values of 64 bits

    def number(self, value: core.Var | core.Literal) -> int:
        self.shapes.append(tuple(value.aval.shape))  # type: ignore[attr-defined]
        dtype = value.aval.dtype  # type: ignore[attr-defined]
        self.is_wide |= not _is_random_key(dtype) and np.dtype(dtype).itemsize > 4
        return len(self.shapes) - 1

    def add(self, closed: core.ClosedJaxpr, inputs: Sequence[int]) -> list[int]:
        """The outputs of a program for these inputs."""
        jaxpr = closed.jaxpr
        numbers = dict(zip(jaxpr.invars, inputs, strict=True))
        for variable, constant in zip(jaxpr.constvars, closed.consts, strict=True):
            numbers[variable] = self.number(variable)
            self.constants[numbers[variable]] = constant

        def read(atom: core.Var | core.Literal) -> int:
            if not isinstance(atom, core.Literal):
                return numbers[atom]
            number = self.number(atom)
            self.constants[number] = np.asarray(atom.val, atom.aval.dtype)  # type: ignore[attr-defined]
            return number

        for equation in jaxpr.eqns:
            operands = tuple(read(atom) for atom in equation.invars)
            if equation.primitive.name in _CALLS:
                body = equation.params.get("jaxpr") or equation.params["call_jaxpr"]
                results = self.add(body, operands)
            elif equation.primitive.name == "optimization_barrier":
                # One for each operand: what stands ahead of a program needs none.
                results = [
                    self._step(equation, (operand,), (v,)) for operand, v in zip(operands, equation.outvars)
                ]
                results = [number for (number,) in results]
            else:
                results = self._step(equation, operands, equation.outvars)
            numbers.update(zip(equation.outvars, results))
        return [read(atom) for atom in jaxpr.outvars]

    def _step(
        self, equation: core.JaxprEqn, inputs: tuple[int, ...], variables: Iterable[core.Var]
    ) -> list[int]:
        outputs = [self.number(variable) for variable in variables]
        self.steps.append(_Step(equation, inputs, tuple(outputs)))
        return outputs

    def evaluate(
        self, steps: Iterable[_Step], inputs: Mapping[int, jax.Array], numbers: Iterable[int]
    ) -> list[jax.Array]:
        # Operations take numpy's arrays as they are.
        values = cast("dict[int, jax.Array]", {**self.constants, **inputs})
        for step in steps:
            values.update(zip(step.outputs, step.run([values[number] for number in step.inputs])))
        return [values[number] for number in numbers]


def _needed(steps: Sequence[_Step], results: Iterable[int]) -> list[_Step]:
    """The steps that these values come from, in order."""
    read, needed = set(results), []
    for step in reversed(steps):
        if read.intersection(step.outputs):
            needed.append(step)
            read.update(step.inputs)
    return needed[::-1]


class _Division:
    """Which values of a trace are computed ahead.

    Attributes:
        held: The values that the rest reads of what weights alone give, in the order of the trace.
    """

    def __init__(self, trace: _Trace, weights: Sequence[int], outputs: Sequence[int]) -> None:
        self._trace = trace
        self._sources: dict[int, frozenset[int]] = {number: frozenset((number,)) for number in weights}
        self._layouts: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._same: dict[int, int] = {}
        self._maker: dict[int, _Step] = {}
        self._constants = set(trace.constants)
        later = [step for step in trace.steps if not self._depends_on_weights_alone(step)]
        held = {self.same(n) for n in (*outputs, *(n for s in later for n in s.inputs))} & set(self._sources)
        moved: set[int] = set()  # steps that are cheaper to compute in every call
        queue = sorted(held)
        while queue:
            step = self._maker.get(queue.pop())
            if step is None or id(step) in moved or not self._is_cheap(step):
                continue
            moved.add(id(step))
            held.difference_update(step.outputs)
            added = {self.same(number) for number in step.inputs} & set(self._sources) - held
            held |= added
            queue.extend(added)
        computed = {number for step in trace.steps if id(step) in moved for number in step.outputs}
        self.held = sorted(held - computed)
        remaining = {id(step) for step in later} | moved
        self.later = [step for step in trace.steps if id(step) in remaining]

    def same(self, number: int) -> int:
        """The weight that a value is, after transpositions that cancel."""
        return self._same.get(number, number)

    def _depends_on_weights_alone(self, step: _Step) -> bool:
        equation, operands = step.equation, [self.same(number) for number in step.inputs]
        sources = [self._sources[number] for number in operands if number in self._sources]
        is_constant = all(number in self._sources or number in self._constants for number in operands)
        if not is_constant or equation.effects:
            return False
        if not sources:  # XLA computes it when it compiles, in both programs
            self._constants.update(step.outputs)
            return False
        for number in step.outputs:
            self._sources[number] = frozenset().union(*sources)
            self._maker[number] = step
        if equation.primitive.name == "transpose":
            self._note_layout(operands[0], step.outputs[0], equation.params["permutation"])
        elif equation.primitive.name == "optimization_barrier":
            self._same[step.outputs[0]] = operands[0]
        return True

    def _note_layout(self, operand: int, output: int, axes: tuple[int, ...]) -> None:
        root, before = self._layouts.get(operand, (operand, tuple(range(len(axes)))))
        order = tuple(before[axis] for axis in axes)
        if order == tuple(range(len(order))):
            self._same[output] = root
        self._layouts[output] = root, order

    def _is_cheap(self, step: _Step) -> bool:
        """Whether to leave it to every call: a view, a vector of a larger array, a large matrix, what grows much."""
        name, shapes = step.equation.primitive.name, self._trace.shapes
        size = max(math.prod(shapes[number]) for number in step.outputs)
        weights = sum(math.prod(shapes[number]) for number in self._sources[step.outputs[0]])
        if name == "transpose":
            return len(shapes[step.outputs[0]]) == 2 and size > _LARGE_MATRIX
        if name in _VIEWS and (
            size == max(shapes[step.outputs[0]], default=1) or size == math.prod(shapes[step.inputs[0]])
        ):
            return True
        return name == "broadcast_in_dim" or size > _MOST_GROWTH * weights


@dataclass(frozen=True, eq=False)
class _Program:
    run: Callable[..., Sequence[jax.Array]]
    held: tuple[jax.Array, ...]
    tree: PyTree
    is_wide: bool


class FoldedFunction:
    """`function(*weights, inputs)` for weights that stay, compiled once for every combination of the inputs' shapes.
    Safe in threads.

    What several shapes need alike of the weights is held once. Large transposed matrices, views and what would take
    much more memory than the weights are left to the calls.
    """

    def __init__(
        self,
        function: Callable[..., PyTree],
        weights: tuple[PyTree, ...],
        options: Mapping[str, str | bool] | None = None,
    ) -> None:
        self._function, self._weights, self._options = function, weights, dict(options or {}) or None
        self._arrays = jax.tree.leaves(weights)
        self._programs: dict[tuple, _Program] = {}
        self._held: dict[int, jax.Array] = {}  # by the number of what makes it
        self._numbers: dict[tuple, int] = {}
        self._guard = threading.Lock()

    def __call__(self, inputs: Mapping[str, jax.Array]) -> PyTree:
        names = sorted(inputs)
        arrays = [inputs[name] for name in names]
        key = tuple([(array.shape, array.dtype) for array in arrays])
        program = self._programs.get(key)
        if program is None:
            with self._guard:
                program = self._programs.get(key) or self._split(inputs)
                self._programs[key] = program
        with _width(program.is_wide):
            outputs = program.run(program.held, arrays)
        return jax.tree.unflatten(program.tree, outputs)

    def lower(self, inputs: Mapping[str, jax.Array]) -> jax.stages.Lowered:
        """What a call with these inputs computes, for inspection."""
        self(inputs)
        arrays = [inputs[name] for name in sorted(inputs)]
        program = self._programs[tuple([(array.shape, array.dtype) for array in arrays])]
        with _width(program.is_wide):
            return program.run.lower(program.held, arrays)  # type: ignore[attr-defined]

    def _split(self, inputs: Mapping[str, jax.Array]) -> _Program:
        make = jax.make_jaxpr(self._function, return_shape=True)
        closed, shapes = make(*self._weights, dict(inputs))
        trace = _Trace()
        arguments = [trace.number(variable) for variable in closed.jaxpr.invars]
        outputs = trace.add(closed, arguments)
        weights, others = arguments[: len(self._arrays)], arguments[len(self._arrays) :]
        division = _Division(trace, weights, outputs)
        held = division.held
        arrays = self._compute(trace, dict(zip(weights, self._arrays)), held)
        results = [division.same(number) for number in outputs]
        steps = [
            _Step(s.equation, tuple(division.same(n) for n in s.inputs), s.outputs) for s in division.later
        ]
        steps = _needed(steps, results)

        def run(held_arrays: Sequence[jax.Array], arguments: Sequence[jax.Array]) -> Sequence[jax.Array]:
            values = dict(zip(held, held_arrays)) | dict(zip(others, arguments))
            return trace.evaluate(steps, values, results)

        compiled = jax.jit(run, compiler_options=self._options)
        return _Program(compiled, tuple(arrays), jax.tree.structure(shapes), trace.is_wide)

    def _compute(
        self, trace: _Trace, weights: dict[int, jax.Array], results: Sequence[int]
    ) -> list[jax.Array]:
        """Values of weights alone; those that another shape needed are there."""
        steps = _needed(trace.steps, results)
        keys = self._keys(trace, steps, weights)
        missing = [n for n in results if n not in weights and keys[n] not in self._held]
        if missing:
            steps = _needed(steps, missing)

            def run(arrays: dict[int, jax.Array]) -> list[jax.Array]:
                return trace.evaluate(steps, arrays, missing)

            with _width(trace.is_wide):
                computed = jax.jit(run, compiler_options=self._options)(weights)
            self._held.update(zip([keys[n] for n in missing], computed))
        return [weights[n] if n in weights else self._held[keys[n]] for n in results]

    def _keys(self, trace: _Trace, steps: Sequence[_Step], weights: Iterable[int]) -> dict[int, int]:
        """Value -> a number that is the same for what is computed alike of the same weights, in any program."""
        keys = {number: self._number(("weight", i)) for i, number in enumerate(weights)}
        for step in steps:
            for number in step.inputs:
                if number not in keys:
                    keys[number] = self._number(_constant_key(trace.constants[number]))
            params = step.equation.params
            settings = repr(sorted(params.items())) if _is_plain(tuple(params.values())) else object()
            operands = tuple(keys[number] for number in step.inputs)
            origin = (step.equation.primitive.name, settings, operands)
            keys.update((n, self._number((*origin, i))) for i, n in enumerate(step.outputs))
        return keys

    def _number(self, key: tuple) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _width(is_wide: bool) -> contextlib.AbstractContextManager[object]:
    return jax.enable_x64(True) if is_wide else contextlib.nullcontext()


def _is_random_key(dtype: jax.typing.DTypeLike) -> bool:
    """Whether it is a type of jax's keys of random numbers, which numpy does not know."""
    return jnp.issubdtype(dtype, jax.dtypes.extended)


def _constant_key(constant: np.ndarray | jax.Array) -> tuple:
    if _is_random_key(constant.dtype):
        constant = jax.random.key_data(cast("jax.Array", constant))
    array = np.asarray(constant)
    content = array.tobytes() if array.nbytes <= _SHARED_BYTES else object()
    return "constant", array.shape, array.dtype.name, content


def _is_plain(value: object) -> bool:
    """Whether the text of a value says all of it."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, int | float | str | bool | Enum | np.dtype | type)
