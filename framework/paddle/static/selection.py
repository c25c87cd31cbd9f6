"""Operators that give a variable to one of several, and take one of several, by a number."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from framework import paddle
from framework.paddle._kernel.errors import ArgumentTypeError, ShapeError
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle.jit.control import is_traced
from framework.paddle.static.program import default_main_program
from framework.paddle.static.variable import SIZES, Op, Values, Variable, new_variable, value_of
from framework.paddle.utils import unique_name


class SelectOutputOp(Op):
    """The variable of the number gets the input; the others stay, or are zeros where they have no values."""

    type = "select_output"

    def __init__(self, source: Tensor, outputs: Sequence[Variable], mask: Tensor) -> None:
        self.source, self.outputs, self.mask = source, list(outputs), mask
        self.inputs = [source, mask]
        for output in self.outputs:
            output.stop_gradient = output.stop_gradient and source.stop_gradient

    def replay(self, values: Values, for_test: bool) -> None:
        source, mask = value_of(self.source, values), _number(value_of(self.mask, values))
        for number, output in enumerate(self.outputs):
            before = values.get(id(output))
            if before is None or before.shape != source.shape:
                before = paddle.zeros_like(source)
            values[id(output)] = paddle.where(mask == number, source, before)


class SelectInputOp(Op):
    """The variable of the number."""

    type = "select_input"

    def __init__(self, sources: Sequence[Tensor], mask: Tensor, output: Variable) -> None:
        self.sources, self.mask, self.outputs = list(sources), mask, [output]
        self.inputs = [*sources, mask]
        self.reads_values = len({tuple(one.shape) for one in sources}) > 1
        output.stop_gradient = all(one.stop_gradient for one in sources)

    def replay(self, values: Values, for_test: bool) -> None:
        sources = [value_of(one, values) for one in self.sources]
        mask = _number(value_of(self.mask, values))
        if not is_traced(mask):
            index = int(mask)
            if not 0 <= index < len(sources):
                raise ShapeError(
                    "the mask is no number of an input",
                    where="select_input",
                    received=index,
                    allowed=f"0 to {len(sources) - 1}",
                )
            values[id(self.outputs[0])] = sources[index]
            return
        result = sources[0]
        for number, source in enumerate(sources[1:], 1):
            result = paddle.where(mask == number, source, result)
        values[id(self.outputs[0])] = result


def _number(mask: Tensor) -> Tensor:
    return wrap(mask._value.reshape(()))


def _check(name: str, mask: object, several: object) -> None:
    if not isinstance(mask, Tensor) or mask.dtype.name != "int32":
        received = mask.dtype.name if isinstance(mask, Tensor) else type(mask).__name__
        raise ArgumentTypeError(f"the mask of {name} is a variable of int32", received=received)
    if not isinstance(several, list | tuple):
        raise ArgumentTypeError(f"{name} takes a list or tuple of variables", received=type(several).__name__)


def select_output(input: Tensor, outputs: Sequence[Variable], mask: Tensor) -> Sequence[Variable]:
    """Let the variable of `outputs` whose number `mask` holds be `input`; returns `outputs`.

    Raises:
        ArgumentTypeError: `input` is no variable, `outputs` no list of them, or `mask` none of int32.
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError("select_output takes a variable", received=type(input).__name__)
    _check("select_output", mask, outputs)
    default_main_program().ops.append(SelectOutputOp(input, outputs, mask))
    return outputs


def select_input(inputs: Sequence[Tensor], mask: Tensor) -> Variable:
    """The variable of `inputs` whose number `mask` holds. Sizes in which the first two differ are not known.

    Raises:
        ArgumentTypeError: `inputs` is no list of variables, or `mask` no variable of int32.
    """
    _check("select_input", mask, inputs)
    first, second = list(inputs[0].shape), list(inputs[1].shape)
    if len(first) != len(second):
        warnings.warn(
            f"the input shapes of select_input should have the same rank, but get {first}, {second}",
            stacklevel=2,
        )
        first = second
    sizes = [a if a == b else -1 for a, b in zip(first, second, strict=True)]
    shapes = [[free if size == -1 else size for size in sizes] for free in SIZES]
    name = unique_name.generate("select_input_0.tmp")
    output = new_variable(shapes[0], shapes[1], inputs[1]._value.dtype, name, True)
    op = SelectInputOp(inputs, mask, output)
    default_main_program().ops.append(op)
    return output
