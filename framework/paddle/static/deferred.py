"""Operations whose settings are variables: sizes, axes and counts that a program computes or is fed.

A compiled program has fixed shapes, so such a call is recorded whole. Before a program is traced the Executor computes
these variables (`settings_of`), calls the function with their values, and keeps a compiled form for each set of them.

Functions whose results have as many rows as values say (nonzero, unique, bincount, masked_select) have no such form:
they are recorded as a ValueOp, and a program with one runs operation by operation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from framework.core.errors import TraceError
from framework.paddle._kernel.dispatch import KEY
from framework.paddle._kernel.errors import ShapeError, UnknownSetting, ValueNeeded
from framework.paddle._kernel.mode import mode, recorder_scope
from framework.paddle._kernel.tensor import Parameter, Tensor, as_array, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.static.operator_names import operator_name
from framework.paddle.static.program import (
    Op,
    Program,
    Values,
    Variable,
    ancestors,
    default_main_program,
    defer_by,
    result_variables,
)
from framework.paddle.static.test_forms import FORMS
from framework.paddle.static.variable import SIZES, replay_all, value_of

# What stands for a setting while shapes are found, two ways: sizes that differ are not known.
_GUESSES = (SIZES, (1, 2), (0, 1), (1, 1), (0, 0))


class DeferredOp(Op):
    """A call of a function some of whose arguments must be numbers."""

    def __init__(
        self, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.operation = function.__name__
        self.type = operator_name(self.operation, args)
        self.settings: dict[int, Variable] = {}  # what must be numbers, by id
        self.constants: dict[int, np.ndarray] = {}  # those that nothing fed decides
        self.inputs = [t for t in _leaves([*args, *kwargs.values()]) if isinstance(t, Tensor)]
        self.recorded = mode.grad_enabled

    def call(self, value: Callable[[Tensor], object]) -> object:
        """The result for the values of Tensors that `value` gives."""
        args = [_mapped(arg, value) for arg in self.args]
        return self.function(*args, **{name: _mapped(arg, value) for name, arg in self.kwargs.items()})

    def replay(self, values: Values, for_test: bool) -> None:
        def value(tensor: Tensor) -> object:
            number = values.settings.get(id(tensor), self.constants.get(id(tensor)))
            return value_of(tensor, values) if number is None else _plain(number)

        enabled, mode.grad_enabled = mode.grad_enabled, self.recorded
        try:
            results = self.call(value)
        finally:
            mode.grad_enabled = enabled
        for variable, result in zip(self.outputs, _leaves([results]), strict=False):
            values[id(variable)] = result.detach() if variable.stop_gradient else result


class ValueOp(DeferredOp):
    """A call of a function that looks at the values of its Tensors."""

    reads_values = True

    def append(self) -> object:
        """Append it to the program; returns its variables. Raises: what the function raises."""
        first, structure = self._results(False)
        second = self._results(True)[0]
        if [a.ndim for a in first] != [b.ndim for b in second]:
            raise ValueError(f"{self.type}: as many axes as values say")
        shapes, others = _unknown_where_empty(first, 0), _unknown_where_empty(second, 1)
        return _append(self, shapes, others, structure)

    def _results(self, other: bool) -> tuple[list[jax.ShapeDtypeStruct], type | None]:
        """The results for inputs of ones, or for others of all different numbers: sizes that differ are not known."""
        stand_ins: dict[int, Tensor] = {}
        for tensor in self.inputs:
            if isinstance(tensor, Variable):
                spec = _spec(tensor, other)
                size = int(np.prod(spec.shape))
                values = 2 * np.arange(size) if other else np.ones(size)
                stand_ins[id(tensor)] = wrap(as_array(values.reshape(spec.shape).astype(spec.dtype)))
        with x64(), recorder_scope(None):
            results = self.call(lambda t: stand_ins.get(id(t), t))
        arrays = [t._value for t in _leaves([results])]
        structure = type(results) if isinstance(results, list | tuple) else None
        return [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays], structure


def looks_at_values(program: Program) -> bool:
    """Whether a program has sizes that hang on values, and must run operation by operation."""
    return any(op.reads_values for op in program.ops)


def defer(
    error: ValueNeeded, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> object:
    """Record a call that stopped at a variable whose value it needs; returns its variables.

    Raises:
        ValueNeeded: the variable is not an argument, or the shapes of the results cannot be told.
        What the function raises.
    """
    if getattr(function, "reads_values", False):
        return ValueOp(function, args, kwargs).append()
    op = DeferredOp(function, args, kwargs)
    while True:
        variable = error.variable
        if not isinstance(variable, Variable) or id(variable) not in {id(t) for t in op.inputs}:
            raise error
        if id(variable) in op.settings:
            raise error
        for setting in (variable, *_bounds([*args, *kwargs.values()])):
            op.settings[id(setting)] = setting
            number = constant(default_main_program(), setting)
            if number is not None:
                op.constants[id(setting)] = number
        try:
            return _recorded(op)
        except ValueNeeded as another:
            error = another


def _recorded(op: DeferredOp) -> object:
    """Append the operation; returns its variables in the structure of its results."""
    return _append(op, *_shapes(op))


def _append(
    op: DeferredOp,
    shapes: Sequence[jax.ShapeDtypeStruct],
    others: Sequence[jax.ShapeDtypeStruct],
    structure: type | None,
) -> object:
    differentiable = mode.grad_enabled and any(not t.stop_gradient for t in op.inputs)
    op.outputs = result_variables(op.operation, shapes, others, differentiable)
    default_main_program().ops.append(op)
    return structure(op.outputs) if structure is not None else op.outputs[0]


def _shapes(op: DeferredOp) -> tuple[list[jax.ShapeDtypeStruct], list[jax.ShapeDtypeStruct], type | None]:
    """The shapes of the results for both stand-ins of unknown sizes, and list, tuple or None for one result."""
    problem: Exception | None = None
    for guess in _GUESSES:
        try:
            first, structure = _evaluated(op, guess[0], False)
            second = _evaluated(op, guess[1], True)[0]
            if [a.ndim for a in first] == [b.ndim for b in second]:
                return _unknown_where_empty(first, 0), _unknown_where_empty(second, 1), structure
        except ValueNeeded:
            raise
        except (TypeError, ValueError) as error:
            problem = error
        if len(op.constants) == len(op.settings):
            break  # nothing is guessed
    if (like := _sizes(op)) is None:
        assert problem is not None
        raise problem
    return [like[0]], [like[1]], None


def _unknown_where_empty(results: Sequence[jax.ShapeDtypeStruct], index: int) -> list[jax.ShapeDtypeStruct]:
    """Sizes that are 0 for the stand-ins of settings say nothing of those for the settings."""
    return [jax.ShapeDtypeStruct([size or SIZES[index] for size in r.shape], r.dtype) for r in results]


def _evaluated(op: DeferredOp, number: int, other: bool) -> tuple[list[jax.ShapeDtypeStruct], type | None]:
    data = [t for t in op.inputs if isinstance(t, Variable) and id(t) not in op.settings]
    specs = [_spec(t, other) for t in data]
    structures: list[type | None] = []

    def run(arrays: Sequence[jax.Array]) -> list[jax.Array]:
        values: dict[int, object] = {id(t): wrap(a) for t, a in zip(data, arrays, strict=True)}
        for key, variable in op.settings.items():
            constant = op.constants.get(key)
            unknown = np.full(_spec(variable, other).shape, number, variable.dtype.numpy)
            values[key] = _plain(unknown if constant is None else constant)
        try:
            results = op.call(lambda t: values.get(id(t), t))
        except UnknownSetting as error:  # another argument that must be a number
            setting = next((t for t in data if values[id(t)] is error.tensor), None)
            raise (ValueNeeded(setting, defer) if setting is not None else error) from error
        structures.append(type(results) if isinstance(results, list | tuple) else None)
        return [t._value for t in _leaves([results])]

    with x64(), recorder_scope(None):
        return jax.eval_shape(run, specs), structures[0]


def _spec(variable: Tensor, other: bool) -> jax.ShapeDtypeStruct:
    symbol: Any = variable._value
    return jax.ShapeDtypeStruct(symbol.other if other else symbol.shape, symbol.dtype)


def _sizes(op: DeferredOp) -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct] | None:
    """A result of unknown sizes in as many axes as the shape that is a variable, or has some in it; None: there is no
    such shape."""
    data = [t for t in op.inputs if id(t) not in op.settings]
    for argument in [*op.args, *op.kwargs.values()]:
        sizes = list(_leaves(argument))
        if not data or not any(id(size) in op.settings for size in sizes):
            continue
        if isinstance(argument, Tensor):
            sizes *= max(argument.size, 0)
        kind = data[0]._value.dtype
        first, second = (
            jax.ShapeDtypeStruct(
                [size if isinstance(size, int) and size > 0 else unknown for size in sizes], kind
            )
            for unknown in SIZES
        )
        return first, second
    return None


def settings_of(program: Program, values: Values) -> dict[int, np.ndarray]:
    """The values of all variables that are settings in a program, computed from what is fed."""
    requested = _requested(program)
    return _computed(program, requested, values) if requested else {}


def free_settings_of(program: Program) -> dict[int, np.ndarray]:
    """The values of the settings of a program that is exported, whose free sizes are -1 in `reshape` and `expand`;
    without those that hang on what is fed otherwise."""
    sizes = {
        id(op.outputs[0]): FORMS[op.operation]({}, op.inputs)
        for op in program.ops
        if op.operation in FORMS and isinstance(op.inputs[0], Variable)
    }
    settings: dict[int, np.ndarray] = {}
    for variable in _requested(program):
        inner = Values(sizes)
        with recorder_scope(None), contextlib.suppress(ShapeError):  # a variable without a value: it is fed
            replay_all(ancestors(program, [variable], sizes), inner, program.for_test)
            settings[id(variable)] = np.asarray(value_of(variable, inner)._value)
    return settings


def _requested(program: Program) -> list[Variable]:
    """The settings that are no constants."""
    return [
        variable
        for op in program.ops
        if isinstance(op, DeferredOp)
        for key, variable in op.settings.items()
        if key not in op.constants
    ]


def constant(program: Program, variable: Variable) -> np.ndarray | None:
    """The value of a variable that no data, parameter or random number decides; None: something does."""
    ops = ancestors(program, [variable])
    computed: set[int] = set()
    for op in ops:
        for value in op.inputs:
            if value is KEY or isinstance(value, Parameter):
                return None
            if isinstance(value, Variable) and id(value) not in computed:
                return None  # fed, or of the outside of a block, whatever the block assigns to it later
        computed.update(id(output) for output in op.outputs)
    if id(variable) not in computed:
        return None
    return _computed(program, [variable], Values())[id(variable)]


def _computed(program: Program, variables: Sequence[Variable], values: Values) -> dict[int, np.ndarray]:
    inner = Values(values)
    with recorder_scope(None):
        replay_all(ancestors(program, variables), inner, program.for_test)
    try:
        return {id(v): np.asarray(value_of(v, inner)._value) for v in variables}
    except jax.errors.TracerArrayConversionError:
        raise TraceError(
            "a setting of a program that is exported depends on what is fed",
            received=", ".join(v.name for v in variables),
            fix="compute sizes and axes with Python numbers",
        ) from None


def _plain(setting: np.ndarray) -> object:
    """A setting as Python's numbers: a Tensor would count as one of the outside while a program is traced."""
    return setting.item() if setting.size == 1 else setting.tolist()


def _leaves(value: object) -> Iterable[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, slice):
        yield from (value.start, value.stop, value.step)
    else:
        yield value


def _bounds(value: object) -> Iterable[Variable]:
    """The variables that bound slices: all of them are numbers, where one must be."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _bounds(item)
    elif isinstance(value, slice):
        yield from (bound for bound in _leaves(value) if isinstance(bound, Variable))


def _mapped(value: object, function: Callable[[Tensor], object]) -> object:
    if isinstance(value, list | tuple):
        return type(value)([_mapped(item, function) for item in value])
    if isinstance(value, slice):
        return slice(*(_mapped(bound, function) for bound in (value.start, value.stop, value.step)))
    return function(value) if isinstance(value, Tensor) else value


defer_by(defer)
