"""`static.nn.control_flow.While`: a loop around what a block records, which assigns to variables of the outside."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from framework.paddle._kernel.errors import ArgumentTypeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.jit import control
from framework.paddle.static.program import (
    AssignOp,
    Op,
    Values,
    Variable,
    default_main_program,
    recorded_apart,
)
from framework.paddle.static.variable import replay_all, value_of


class WhileOp(Op):
    """Runs operations as long as a variable is true."""

    type = "while"

    def __init__(self, condition: Variable, ops: Sequence[Op]) -> None:
        self.condition, self.ops = condition, ops
        self.outputs = list({id(o): o for op in ops for o in op.outputs}.values())
        # What is assigned to is read too: it stays as it is where the block does not run.
        assigned = [op.target for op in ops if isinstance(op, AssignOp)]
        reads = [condition, *assigned, *[tensor for op in ops for tensor in op.reads()]]
        self.inputs = list({id(tensor): tensor for tensor in reads}.values())
        self.reads_values = any(op.reads_values for op in ops)
        self.steps_vary = any(not tensor.stop_gradient for tensor in self.inputs)

    def replay(self, values: Values, for_test: bool) -> None:
        if not control.is_traced(value_of(self.condition, values)):
            while bool(value_of(self.condition, values)):
                replay_all(self.ops, values, for_test)
            return
        carried = [output for output in self.outputs if id(output) in values]
        if not any(one is self.condition for one in carried):
            carried.append(self.condition)

        def step(*now: Tensor) -> list[Tensor]:
            inner = Values(values)
            inner.update({id(one): value for one, value in zip(carried, now, strict=True)})
            replay_all(self.ops, inner, for_test)
            return [value_of(one, inner) for one in carried]

        index = next(number for number, one in enumerate(carried) if one is self.condition)
        results = control.while_loop(
            lambda *now: now[index], step, [value_of(one, values) for one in carried]
        )
        for one, result in zip(carried, results, strict=True):
            assert isinstance(result, Tensor)
            values[id(one)] = result


class While:
    """A loop that runs what its block records as long as `cond` is true; the block assigns to `cond`.

    Raises:
        TypeError: `cond` is no variable of one boolean.
    """

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        if not isinstance(cond, Variable) or cond.dtype != "bool" or cond.size != 1:
            raise ArgumentTypeError(
                "cond is not what it may be",
                where="static.nn.control_flow.While",
                received=f"{cond!r:.80}",
                allowed="a variable of one bool, of shape [1] or []",
            )
        self.cond_var, self.is_test = cond, is_test

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """Record into the loop within the block."""
        with recorded_apart() as ops:
            yield
        default_main_program().ops.append(WhileOp(self.cond_var, ops))
