"""Operations of programs: compiled ones, what gives a variable to a Tensor, and the step of an optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from framework.paddle._kernel.dispatch import Compiled, execute
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.static.initial_operations import Beginning
from framework.paddle.static.operator_names import operator_name, optimizer_name
from framework.paddle.static.state import state
from framework.paddle.static.test_forms import FORMS, TEST_FORMS
from framework.paddle.static.variable import Op, Values, Variable, value_of

if TYPE_CHECKING:
    from framework.paddle.optimizer.base import Optimizer


class CallOp(Op):
    """A compiled operation."""

    def __init__(
        self, compiled: Compiled, inputs: Sequence[object], outputs: Sequence[Variable], recorded: bool
    ) -> None:
        self.compiled, self.inputs, self.outputs = compiled, tuple(inputs), outputs
        self.operation, self.recorded = compiled.name, recorded
        self.type = operator_name(compiled.name, self.inputs)

    @property
    def attrs(self) -> Mapping[str, object]:
        return self.compiled.settings

    def replay(self, values: Values, for_test: bool) -> None:
        args: Sequence[object] = [value_of(a, values) for a in self.inputs]
        if values.cast is not None:
            args = values.cast(self.compiled, args)
        form = (TEST_FORMS if for_test else FORMS).get(self.operation)
        enabled, mode.grad_enabled = mode.grad_enabled, self.recorded
        try:
            output = execute(self.compiled, args) if form is None else form(self.compiled.settings, args)
        finally:
            mode.grad_enabled = enabled
        results = output if isinstance(output, tuple) else (output,)
        for variable, result in zip(self.outputs, results, strict=False):
            if variable.stop_gradient and not result.stop_gradient:
                result = result.detach()
            elif result.stop_gradient and not variable.stop_gradient:
                result.stop_gradient = False  # set by the program: gradients begin here
            values[id(variable)] = result


class AssignOp(Op):
    """A variable, or a Tensor of the outside, gets the value of a variable."""

    type = "assign"

    def __init__(self, target: Tensor, source: Variable) -> None:
        self.target, self.inputs = target, (source,)
        self.trains = not isinstance(target, Variable)
        self.outputs = (target,) if isinstance(target, Variable) else ()

    def replay(self, values: Values, for_test: bool) -> None:
        value = value_of(self.inputs[0], values)
        if isinstance(self.target, Variable):
            values[id(self.target)] = value
        else:
            self.target._value = value._value


class StepOp(Op):
    """An optimizer moves its parameters."""

    trains = True

    def __init__(self, optimizer: Optimizer, pairs: Sequence[tuple[Parameter, Variable]]) -> None:
        self.optimizer, self.pairs = optimizer, pairs
        self.type = optimizer_name(type(optimizer))
        self.inputs = [part for pair in pairs for part in pair]
        state.startup.beginnings[id(optimizer)] = Beginning(optimizer._begin_anew)

    def replay(self, values: Values, for_test: bool) -> None:
        for parameter, gradient in self.pairs:
            parameter._grad = value_of(gradient, values)
        self._step()
        for parameter, _ in self.pairs:
            parameter._grad = None

    def _step(self) -> None:
        self.optimizer.step()
