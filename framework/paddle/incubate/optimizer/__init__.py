"""paddle.incubate.optimizer: optimizers around another one, which keep a slow or an average copy of the parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from framework import paddle
from framework.optimizer.rules import StateSlot
from framework.paddle._kernel import tape
from framework.paddle._kernel.arguments import Parameters
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.optimizer import LBFGS as LBFGS
from framework.paddle.optimizer.base import Optimizer

__all__ = ["LBFGS"]

_ZEROS = StateSlot(0.0)
_SHIFT = 16384  # so many values are added into one sum before it moves on, which keeps float32 exact enough


def _trained(optimizer: Optimizer) -> list[Parameter]:
    """The parameters that take part in this step: trainable ones with a gradient."""
    return [p for p in optimizer._all_parameters() if p.trainable and p.grad is not None]


class LookAhead(Optimizer):
    """Every `k` steps of the inner optimizer the slow copy of a parameter goes a share of the way to it, and the
    parameter begins again from there (https://arxiv.org/abs/1907.08610).

    Args:
        inner_optimizer: what moves the parameters.
        alpha: the share of the way, 0 to 1.
        k: steps of the inner optimizer between two of the slow copy.
        name: stands before the names of the state.
    """

    def __init__(
        self, inner_optimizer: Optimizer, alpha: float = 0.5, k: int = 5, name: str | None = None
    ) -> None:
        if inner_optimizer is None:
            raise AssertionError("inner optimizer can not be None")
        if not 0.0 <= alpha <= 1.0:
            raise AssertionError(
                f"alpha should be larger or equal to 0.0, and less or equal than 1.0, received {alpha}"
            )
        if not isinstance(k, int) or k <= 0:
            raise AssertionError(f"k should be a positive integer, received {k!r}")
        super().__init__(float(alpha), inner_optimizer._parameter_list, None, None, name)
        self.inner_optimizer, self.alpha, self.k = inner_optimizer, alpha, k
        self.type = "lookahead"
        self._steps = 0

    def step(self) -> None:
        """A step of the inner optimizer, and every `k`th one of the slow copies."""
        self.inner_optimizer.step()
        self._follow()

    @tape.no_grad()
    def _follow(self) -> None:
        self._steps += 1
        for parameter in _trained(self):
            slow = self._accumulator("slow", _ZEROS, parameter, parameter)
            if self._steps == 1:
                slow.set_value(parameter)
            if self._steps % self.k == 0:
                slow.set_value(self.alpha * parameter + (1.0 - self.alpha) * slow)
                parameter.set_value(slow)

    def minimize(
        self,
        loss: Tensor,
        startup_program: object = None,
        parameters: Sequence[Parameter] | None = None,
        no_grad_set: Iterable[Tensor | str] | None = None,
    ) -> tuple[Sequence[object], Sequence[tuple[Parameter, Tensor]]]:
        """`step()` after the caller's `loss.backward()`; returns ([], [(parameter, gradient), …])."""
        pairs = self.inner_optimizer.minimize(loss, startup_program, parameters, no_grad_set)
        self._follow()
        return pairs


class ModelAverage(Optimizer):
    """The average of the parameters over the last steps, for evaluation.

    Args:
        average_window_rate: the window is this share of the steps so far.
        parameters: whose average is wanted.
        min_average_window: the window is at least so many steps,
        max_average_window: and at most so many.
        name: stands before the names of the state.

    Another optimizer moves the parameters; `step()` after its step adds them to the sums, `apply()` puts the average
    in their place for a while.
    """

    def __init__(
        self,
        average_window_rate: float,
        parameters: Parameters | None = None,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        name: str | None = None,
    ) -> None:
        super().__init__(0.0, parameters, None, None, name)
        self.average_window = average_window_rate
        self.min_average_window, self.max_average_window = min_average_window, max_average_window
        self.type = "average_accumulates"
        self._states: dict[str, dict[str, Tensor]] = {}

    def _state(self, parameter: Parameter) -> dict[str, Tensor]:
        if parameter.name in self._states:
            return self._states[parameter.name]
        state = {
            name: self._accumulator(name, _ZEROS, parameter, parameter)
            for name in ("sum_1", "sum_2", "sum_3", "restore")
        }
        counter = paddle.zeros([1], "int64")
        counter.name = parameter.name
        for name in ("num_accumulates", "old_num_accumulates", "num_updates"):
            state[name] = self._accumulator(name, _ZEROS, parameter, counter)
        self._states[parameter.name] = state
        return state

    @tape.no_grad()
    def step(self) -> None:
        """Add the parameters that have a gradient to their sums."""
        for parameter in _trained(self):
            state = self._state(parameter)
            updates, count = int(state["num_updates"]) + 1, int(state["num_accumulates"]) + 1
            state["sum_1"].set_value(state["sum_1"] + parameter)
            if updates % _SHIFT == 0:
                state["sum_2"].set_value(state["sum_2"] + state["sum_1"])
                state["sum_1"].zero_()
            longest = min(self.max_average_window, int(updates * self.average_window))
            if count >= self.min_average_window and count >= longest:
                state["sum_3"].set_value(state["sum_1"] + state["sum_2"])
                state["sum_1"].zero_()
                state["sum_2"].zero_()
                state["old_num_accumulates"].fill_(count)
                count = 0
            state["num_accumulates"].fill_(count)
            state["num_updates"].fill_(updates)

    def minimize(
        self,
        loss: Tensor,
        startup_program: object = None,
        parameters: Sequence[Parameter] | None = None,
        no_grad_set: Iterable[Tensor | str] | None = None,
    ) -> tuple[Sequence[object], Sequence[tuple[Parameter, Tensor]]]:
        """`step()`; returns ([], [])."""
        self.step()
        return [], []

    @contextmanager
    def apply(self, executor: object = None, need_restore: bool = True) -> Iterator[None]:
        """Within it the parameters are their average; `need_restore`: afterwards they are what they were."""
        with tape.no_grad():
            for parameter in self._all_parameters():
                state = self._state(parameter)
                count = int(state["num_accumulates"]) + int(state["old_num_accumulates"])
                state["restore"].set_value(parameter)
                parameter.set_value((state["sum_1"] + state["sum_2"] + state["sum_3"]) / float(count))
        try:
            yield
        finally:
            if need_restore:
                self.restore()

    @tape.no_grad()
    def restore(self, executor: object = None) -> None:
        """Give the parameters back the values that they had before `apply`."""
        for parameter in self._all_parameters():
            parameter.set_value(self._state(parameter)["restore"])


_complete(__name__)
