"""Gradients and training in static programs: entries that use the tape when the program runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from framework.paddle._kernel import tape
from framework.paddle._kernel.tensor import Parameter, Tensor, wrap
from framework.paddle.static.program import (
    Op,
    Program,
    StepOp,
    Values,
    Variable,
    ancestors,
    default_main_program,
    program_of,
)
from framework.paddle.static.variable import new_variable, value_of
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle.optimizer.base import Optimizer


class GradientOp(Op):
    """Gradients of `targets` by `sources`, none of which go through `barred`; zeros where there is none."""

    type = "gradients"
    trains = True

    def __init__(
        self,
        targets: Sequence[Tensor],
        sources: Sequence[Tensor],
        starts: Any,
        outputs: Any,
        barred: Sequence[Tensor],
        program: Program,
    ) -> None:
        self.targets, self.sources, self.starts, self.outputs = targets, sources, starts, outputs
        self.barred = barred
        self.inputs = [*targets, *sources, *[s for s in starts or () if s is not None]]
        # A compiled loop has no gradient; the tape has those of its steps where they run one by one.
        self.reads_values = any(op.steps_vary for op in ancestors(program, targets))

    def gradient_of(self, source: Tensor, program: Program) -> Variable | None:
        """See `Op.gradient_of`: Paddle has gradients of all variables, here they are computed where one is named."""
        for present, output in zip(self.sources, self.outputs, strict=True):
            if present is source:
                return output
        below = (_below(program, target, self.barred) for target in self.targets)
        if source.stop_gradient or not any(source in tensors for tensors in below):
            return None
        (output,) = _gradient_variables(program, [source])
        self.sources, self.outputs = [*self.sources, source], [*self.outputs, output]
        self.inputs = [*self.inputs, source]
        return output

    def replay(self, values: Values, for_test: bool) -> None:
        sources = [value_of(s, values) for s in self.sources]
        starts = None if self.starts is None else [value_of(s, values) for s in self.starts]
        targets = [value_of(t, values) for t in self.targets]
        # The history is kept: other entries may ask for gradients of the same variables, or of these gradients.
        barred = [value_of(variable, values) for variable in self.barred]
        found = tape.grad(targets, sources, starts, True, True, allow_unused=True, no_grad_vars=barred)
        for variable, source, gradient in zip(self.outputs, sources, found, strict=True):
            if gradient is None:
                gradient = wrap(jnp.zeros_like(source._value))
            values[id(variable)] = gradient
        for variable, source in zip(self.outputs, self.sources, strict=True):
            if id(source) in values.lengths:
                values.lengths[id(variable)] = values.lengths[id(source)]


def _barred(program: Program, no_grad_set: Iterable[Tensor | str] | None) -> list[Tensor]:
    """The Tensors of the program that no gradients go through."""
    names = {v.name if isinstance(v, Tensor) else v for v in no_grad_set or ()}
    return [tensor for tensor in program.list_vars() if tensor.name in names] if names else []


def _gradient_variables(program: Program, sources: Sequence[Tensor]) -> list[Variable]:
    made = []
    for source in sources:
        value: Any = source._value
        other = value.other if isinstance(source, Variable) else value.shape
        name = f"{source.name}@GRAD"
        if name in {o.name for op in program.ops for o in op.outputs}:
            name = unique_name.generate(name)
        made.append(new_variable(value.shape, other, value.dtype, name, False))
    return made


def append_backward(
    loss: Tensor,
    parameter_list: Sequence[Parameter | str] | None = None,
    no_grad_set: Iterable[Tensor | str] | None = None,
    callbacks: object = None,
    checkpoints: object = None,
    distop_context: object = None,
) -> list[tuple[Parameter, Variable]]:
    """Gradients of the loss by the parameters (all that are trained): [(parameter, gradient), …]."""
    program = program_of(loss)
    if parameter_list:
        block = program.global_block()
        chosen: list[Any] = [block.var(p) if isinstance(p, str) else p for p in parameter_list]
    else:
        chosen = program.all_parameters()
    barred = _barred(program, no_grad_set)
    reached = _below(program, loss, barred)
    chosen = [p for p in chosen if not p.stop_gradient and p in reached]
    outputs = _gradient_variables(program, chosen)
    program.ops.append(GradientOp([loss], chosen, None, outputs, barred, program))
    return list(zip(chosen, outputs, strict=True))


class _below:
    """The Tensors that a variable is computed from other than through `barred`."""

    def __init__(self, program: Program, target: Tensor, barred: Sequence[Tensor]) -> None:
        excluded = {id(tensor) for tensor in barred}
        self.found = {id(target)} - excluded
        for op in reversed(program.ops):
            if any(id(o) in self.found for o in op.outputs):
                self.found.update(id(t) for t in op.reads() if id(t) not in excluded)

    def __contains__(self, tensor: Tensor) -> bool:
        return id(tensor) in self.found


def gradients(
    targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Iterable[Tensor | str] | None = None
) -> list[Variable]:
    """Gradients of the sum of `targets` by `inputs`."""
    goals = targets if isinstance(targets, list | tuple) else [targets]
    sources = inputs if isinstance(inputs, list | tuple) else [inputs]
    starts = target_gradients
    if starts is not None and not isinstance(starts, list | tuple):
        starts = [starts]
    for source in sources:
        source.stop_gradient = False
    program = program_of(goals[0])
    outputs = _gradient_variables(program, sources)
    barred = _barred(program, no_grad_set)
    program.ops.append(GradientOp(list(goals), list(sources), starts, outputs, barred, program))
    return outputs


def minimize(
    optimizer: Optimizer,
    loss: Tensor,
    parameters: Sequence[Parameter | str] | None = None,
    no_grad_set: Iterable[Tensor | str] | None = None,
) -> tuple[list[Op], list]:
    """Append the gradients and the step of an optimizer; returns (entries, [(parameter, gradient), …])."""
    pairs = append_backward(loss, parameters or own_parameters(optimizer), no_grad_set)
    return [append_step(optimizer, pairs, program_of(loss))], pairs


def own_parameters(optimizer: Optimizer) -> list[Parameter] | None:
    """What the optimizer was made with; None: nothing."""
    return optimizer._all_parameters() or None


def append_step(
    optimizer: Optimizer, pairs: Sequence[tuple[Parameter, Variable]], program: Program | None = None
) -> StepOp:
    """Append the step of an optimizer for these gradients to a program, the one that is recorded into by default."""
    if not optimizer._param_groups:
        optimizer._param_groups = [parameter for parameter, _ in pairs]
    step = StepOp(optimizer, pairs)
    (program or default_main_program()).ops.append(step)
    return step
