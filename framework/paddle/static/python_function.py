"""Python functions of values in static programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from jax.core import Tracer

from framework.core.errors import TraceError
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dtypes import INEXACT
from framework.paddle._kernel.lod_tensor import LoDTensor
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.autograd import PyLayer
from framework.paddle.static.program import Op, Values, Variable, default_main_program
from framework.paddle.static.variable import COMPUTED, value_of

if TYPE_CHECKING:
    from framework.paddle._kernel.arguments import TensorLike

Function: TypeAlias = "Callable[..., TensorLike | Sequence[TensorLike | None] | None]"


def _listed(results: object) -> list[TensorLike | None]:
    return list(results) if isinstance(results, list | tuple) else [results]  # type: ignore[list-item]


def _on_host(tensors: Sequence[Tensor]) -> list[LoDTensor]:
    """As Paddle hands values to a function, which numpy's functions take."""
    values = [LoDTensor() for _ in tensors]
    for value, tensor in zip(values, tensors, strict=True):
        value.set(tensor.numpy(), None)
    return values


class PythonOp(Op):
    """A function of the values of Tensors: the program runs operation by operation, and results have the shapes that
    the function gives."""

    type = "py_func"
    reads_values = True

    def __init__(
        self,
        func: Function,
        inputs: Sequence[Tensor],
        outputs: Sequence[Variable],
        backward: Function | None,
        skipped: Sequence[Tensor],
    ) -> None:
        self.func, self.backward, self.inputs, self.outputs = func, backward, inputs, outputs
        identities = [id(tensor) for tensor in (*inputs, *outputs)]
        left_out = {id(tensor) for tensor in skipped}
        self.backward_inputs = [index for index, key in enumerate(identities) if key not in left_out]
        self.dtypes = [variable.dtype for variable in outputs]

    def replay(self, values: Values, for_test: bool) -> None:
        arguments = [value_of(tensor, values) for tensor in self.inputs]
        if any(isinstance(tensor._value, Tracer) for tensor in arguments):
            raise TraceError(
                "py_func needs values, which a compiled program has not",
                received=getattr(self.func, "__name__", "a function"),
                fix="run the program by Executor.run, or write the function by operations of paddle to save it",
            )
        results = _PythonFunction.apply(self, *arguments) if self.backward else self.results(arguments)
        for variable, result in zip(self.outputs, results, strict=True):
            values[id(variable)] = result

    def results(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """The results of the function, of the declared types."""
        results = _listed(self.func(*_on_host(arguments)))
        return [wrap(as_array(np.asarray(one), kind)) for one, kind in zip(results, self.dtypes, strict=True)]


class _PythonFunction(PyLayer):
    @staticmethod
    def forward(ctx: PyLayer, op: PythonOp, *arguments: Tensor) -> list[Tensor]:  # type: ignore[override]
        results = op.results(arguments)
        ctx.op, ctx.tensors = op, (*arguments, *results)  # type: ignore[attr-defined]
        return results

    @staticmethod
    def backward(ctx: PyLayer, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        op: PythonOp = ctx.op  # type: ignore[attr-defined]
        tensors: Sequence[Tensor] = ctx.tensors  # type: ignore[attr-defined]
        assert op.backward is not None
        arguments = [tensors[index] for index in op.backward_inputs]
        results = _listed(op.backward(*_on_host([*arguments, *gradients])))
        return tuple(
            None if one is None else wrap(as_array(np.asarray(one), tensor.dtype))
            for one, tensor in zip(results, op.inputs, strict=True)
        )


@checked
def py_func(
    func: Function,
    x: Tensor | Sequence[Tensor],
    out: Variable | Sequence[Variable],
    backward_func: Function | None = None,
    skip_vars_in_backward_input: Tensor | Sequence[Tensor] | None = None,
) -> Variable | Sequence[Variable]:
    """Call a Python function of the values when the program runs; `out` are variables of `Block.create_var` for its
    results.

    Args:
        backward_func: From the inputs, the outputs and the gradients of the outputs to those of the inputs, None for
            none. Without it there is no gradient.
        skip_vars_in_backward_input: Of inputs and outputs, those that `backward_func` does not take.
    """
    inputs = [x] if isinstance(x, Tensor) else list(x)
    outputs = [out] if isinstance(out, Variable) else list(out)
    skip = skip_vars_in_backward_input
    skipped = [skip] if isinstance(skip, Tensor) else list(skip or ())
    differentiable = backward_func is not None and any(not tensor.stop_gradient for tensor in inputs)
    op = PythonOp(func, inputs, outputs, backward_func, skipped)
    for variable in outputs:
        variable.stop_gradient = not (differentiable and variable.dtype.numpy in INEXACT)
        if not variable.stop_gradient:
            variable._node = COMPUTED
    default_main_program().ops.append(op)
    return out
