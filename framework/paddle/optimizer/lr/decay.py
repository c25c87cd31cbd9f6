"""Schedules that fall: by a formula, by steps, by a function.

The classes stand here too, not only in framework.optimizer.lr, because a program moves its schedule on and may change
its settings; those of the core are values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from framework.optimizer.lr import formulas
from framework.optimizer.lr.formulas import HOST
from framework.paddle.optimizer.lr.base import LRScheduler, positive


class NoamDecay(LRScheduler):
    """`lr * d_model**-0.5 * min(t**-0.5, t * warmup_steps**-1.5)`."""

    def __init__(
        self,
        d_model: float,
        warmup_steps: int,
        learning_rate: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if d_model <= 0:
            raise ValueError(f"NoamDecay: d_model must be above 0, received {d_model}")
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return float(formulas.noam(self.last_epoch, self.base_lr, self.d_model, self.warmup_steps, HOST))


class PiecewiseDecay(LRScheduler):
    """`values[i]` before `boundaries[i]`, and the last value from the last boundary on."""

    def __init__(
        self, boundaries: Sequence[int], values: Sequence[float], last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if len(boundaries) == 0 or len(values) <= len(boundaries):
            raise ValueError(
                f"PiecewiseDecay: {len(boundaries)} boundaries (at least one) need one value more, "
                f"received {len(values)}"
            )
        self.boundaries, self.values = boundaries, values
        super().__init__(last_epoch=last_epoch, verbose=verbose)

    def get_lr(self) -> float:
        index = formulas.passed(self.boundaries, self.last_epoch, HOST)
        return self.values[index if index < len(self.boundaries) else -1]


class NaturalExpDecay(LRScheduler):
    """`lr * exp(-gamma * t)`."""

    def __init__(
        self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        assert gamma > 0.0, f"NaturalExpDecay: gamma must be above 0, received {gamma}"
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return float(formulas.natural_exp(self.last_epoch, self.base_lr, self.gamma, HOST))


class InverseTimeDecay(LRScheduler):
    """`lr / (1 + gamma * t)`."""

    def __init__(
        self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return float(formulas.inverse_time(self.last_epoch, self.base_lr, self.gamma))


class ExponentialDecay(LRScheduler):
    """`lr * gamma**t`."""

    def __init__(
        self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        assert 0.0 < gamma < 1.0, f"ExponentialDecay: gamma must be between 0 and 1, received {gamma}"
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return float(formulas.exponential(self.last_epoch, self.base_lr, self.gamma, HOST))


class PolynomialDecay(LRScheduler):
    """From lr to `end_lr` as `(1 - t / decay_steps)**power`; then constant, or with `cycle` over again and longer."""

    def __init__(
        self,
        learning_rate: float,
        decay_steps: int,
        end_lr: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        positive(decay_steps, "decay_steps", "PolynomialDecay")
        assert power > 0.0, f"PolynomialDecay: power must be above 0, received {power}"
        self.decay_steps, self.end_lr, self.power, self.cycle = decay_steps, end_lr, power, cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        step, rate = self.last_epoch, self.base_lr
        return float(
            formulas.polynomial(step, rate, self.decay_steps, self.end_lr, self.power, self.cycle, HOST)
        )


class MultiStepDecay(LRScheduler):
    """`lr * gamma**k` when k milestones are reached."""

    def __init__(
        self,
        learning_rate: float,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(milestones, tuple | list):
            raise TypeError(
                f"MultiStepDecay: milestones is a list or tuple, received {type(milestones).__name__}"
            )
        if list(milestones) != sorted(set(milestones)):
            raise ValueError(f"MultiStepDecay: milestones must rise, received {milestones}")
        if gamma >= 1.0:
            raise ValueError(f"MultiStepDecay: gamma must be below 1, received {gamma}")
        self.milestones, self.gamma = milestones, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        count = formulas.passed(self.milestones, self.last_epoch, HOST)
        return float(formulas.exponential(count, self.base_lr, self.gamma, HOST))


class StepDecay(LRScheduler):
    """`lr * gamma**(t // step_size)`."""

    def __init__(
        self,
        learning_rate: float,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(step_size, int):
            raise TypeError(f"StepDecay: step_size is an int, received {type(step_size).__name__}")
        if gamma >= 1.0:
            raise ValueError(f"StepDecay: gamma must be below 1, received {gamma}")
        positive(step_size, "step_size", "StepDecay")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        count = self.last_epoch // self.step_size
        return float(formulas.exponential(count, self.base_lr, self.gamma, HOST))


class LambdaDecay(LRScheduler):
    """`lr * lr_lambda(t)`."""

    def __init__(
        self,
        learning_rate: float,
        lr_lambda: Callable[[int], float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not callable(lr_lambda):
            raise TypeError(
                f"{type(self).__name__}: lr_lambda is a function, received {type(lr_lambda).__name__}"
            )
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(LambdaDecay):
    """`lr * lr_lambda(1) * ... * lr_lambda(t)`."""

    def get_lr(self) -> float:
        rate = self.base_lr
        for epoch in range(1, self.last_epoch + 1):
            rate = rate * self.lr_lambda(epoch)
        return rate
