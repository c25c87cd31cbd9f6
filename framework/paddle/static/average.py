"""ExponentialMovingAverage: averages of the parameters of a static program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from framework.paddle._kernel.tensor import Parameter, Tensor, as_array, wrap
from framework.paddle._kernel.watch import unwatched
from framework.paddle.static.program import Op, Program, Values, default_main_program

if TYPE_CHECKING:
    from framework.paddle.static.executor import Executor


class _UpdateOp(Op):
    """Moves the averages; after the optimizer's step in the program."""

    type = "ema"
    trains = True

    def __init__(self, average: ExponentialMovingAverage) -> None:
        self.average = average

    def replay(self, values: Values, for_test: bool) -> None:
        self.average.move()


class ExponentialMovingAverage:
    """average = decay * average + (1 - decay) * parameter, divided by 1 - decay^steps when it is applied.

    Args:
        thres_steps: a Tensor t: the decay is at most (1 + t) / (10 + t).
    """

    def __init__(
        self, decay: float = 0.999, thres_steps: Tensor | None = None, name: str | None = None
    ) -> None:
        self._decay, self._steps, self._name = decay, thres_steps, name
        self._pairs: list[tuple[Parameter, Tensor]] = []
        self._kept: list[Any] = []
        with unwatched():
            self._weight = wrap(as_array(np.zeros((), np.float32)))  # 1 - the product of all decays

    def update(self) -> None:
        """Append the averaging of all trained parameters to the program; call it after minimize()."""
        program: Program = default_main_program()
        with unwatched():
            self._pairs = [
                (p, wrap(as_array(np.zeros(p.shape, p.dtype.numpy))))
                for p in program.all_parameters()
                if p.trainable
            ]
        program.ops.append(_UpdateOp(self))

    def move(self) -> None:
        """One step of averaging."""
        decay: Any = self._decay
        if self._steps is not None:
            from framework import paddle

            steps = paddle.cast(self._steps, "float32")
            decay = paddle.minimum((steps + 1) / (steps + 10), paddle.full([], self._decay)).reshape([])
        for parameter, average in self._pairs:
            new = average.detach() * decay + parameter.detach() * (1 - decay)
            average._value = new._value
        self._weight._value = (self._weight.detach() * decay + (1 - decay))._value

    @contextlib.contextmanager
    def apply(self, executor: Executor, need_restore: bool = True) -> Iterator[None]:
        """Within the block the parameters have the averages as their values."""
        self._kept = [parameter._value for parameter, _ in self._pairs]
        weight = float(np.asarray(self._weight._value)) or 1.0
        for parameter, average in self._pairs:
            parameter._value = as_array(np.asarray(average._value) / weight, parameter.dtype)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Executor) -> None:
        """Give the parameters their own values again."""
        for (parameter, _), value in zip(self._pairs, self._kept, strict=True):
            parameter._value = value
