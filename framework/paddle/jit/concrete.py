"""Static programs of compiled functions: what a StaticFunction does, recorded for the shapes and types of arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.jit.dy2static.function_spec import FunctionSpec
from framework.paddle.jit.spec import InputSpec
from framework.paddle.utils.structure import flatten, map_structure

if TYPE_CHECKING:
    from framework.paddle.jit.to_static import StaticFunction
    from framework.paddle.static.program import Program


@dataclass(eq=False)
class ConcreteProgram:
    """A function as a static program.

    Attributes:
        inputs: Its arguments; Tensors among them are variables to feed.
        outputs: Its results.
        parameters: What it reads of the parameters.
        function: The function with its control flow converted.
    """

    inputs: list[object]
    outputs: list[object]
    parameters: list[Parameter]
    function: object
    main_program: Program
    startup_program: Program
    name: str


class ProgramCache:
    """The programs of a function, one for each kind of arguments, recorded when they are asked for."""

    def __init__(self, function: StaticFunction) -> None:
        self._function = function
        self._arguments: dict[str, tuple[Sequence[object], Mapping[str, object]]] = {}
        self._programs: dict[str, ConcreteProgram] = {}

    def __len__(self) -> int:
        return len(self._arguments)

    def note(self, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
        """Remember arguments by their shapes and types; returns their key."""
        written = self._function.rollback()
        bound = inspect.signature(written).bind(*args, **kwargs)
        bound.apply_defaults()
        specs = self._function.input_spec
        spec = FunctionSpec(written, None if specs is None else list(specs))
        described, named = spec.args_to_input_spec(bound.args, {} if specs is not None else bound.kwargs)
        key = repr([_shape_and_type(value) for value in flatten([described, named])])
        self._arguments.pop(key, None)  # the last one is the last
        self._arguments[key] = (described, named)
        return key

    def program(self, key: str) -> ConcreteProgram:
        """The program of these arguments. Raises: TraceError: the function is not one program."""
        if key not in self._programs:
            self._programs[key] = record(self._function, *self._arguments[key])
        return self._programs[key]

    def concrete_programs(self) -> list[ConcreteProgram]:
        """All of them."""
        return [self.program(key) for key in self._arguments]

    def last(self) -> tuple[str, tuple[ConcreteProgram, StaticFunction]]:
        """The key and the program of the arguments that came last. Raises AssertionError: there were none."""
        assert self._arguments, "No valid cached program in ProgramCache."
        key = next(reversed(self._arguments))
        return key, (self.program(key), self._function)


def _shape_and_type(value: object) -> object:
    return (value.shape, value.dtype.name) if isinstance(value, InputSpec) else value


def expect_dynamic_mode(what: str) -> None:
    """Raises: RuntimeError: the mode is static."""
    from framework import paddle  # here: paddle.static stands above paddle.jit

    if not paddle.in_dynamic_mode():
        raise RuntimeError(
            f"{what} of a decorated function is only available in dynamic mode: call paddle.disable_static() before it"
        )


def record(function: StaticFunction, args: Sequence[object], kwargs: Mapping[str, object]) -> ConcreteProgram:
    """What the function does with such arguments, as a static program."""
    from framework import paddle

    expect_dynamic_mode("concrete_program")
    program, startup = paddle.static.Program(), paddle.static.Program()
    count = 0

    def variable(value: object) -> object:
        nonlocal count
        if not isinstance(value, InputSpec):
            return value
        result = paddle.static.data(value.name or f"feed_{count}", value.shape, value.dtype)
        result.stop_gradient = value.stop_gradient
        count += 1
        return result

    paddle.enable_static()
    try:
        with paddle.static.program_guard(program, startup), function.conversion(args, kwargs):
            inputs = [map_structure(variable, value) for value in args]
            named = {name: map_structure(variable, value) for name, value in kwargs.items()}
            outputs = function.python_function(*inputs, **named)
    finally:
        paddle.disable_static()
    return ConcreteProgram(
        inputs,
        flatten(outputs),
        program.all_parameters(),
        function.python_function,
        program,
        startup,
        function.name,
    )


def tensors_of(values: Sequence[object]) -> list[Tensor]:
    """The variables among arguments or results."""
    return [value for value in flatten(list(values)) if isinstance(value, Tensor)]
