"""Schedules that fall: by a formula, by steps, by a function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import jax
import jax.numpy as jnp

from framework.config.registry import register
from framework.optimizer.lr.base import LRScheduler, call
from framework.optimizer.lr.formulas import Number, passed, pick, power


@register("schedule")
@dataclass(frozen=True)
class NoamDecay(LRScheduler):
    """`lr * d_model**-0.5 * min(t**-0.5, t * warmup_steps**-1.5)`. Source: Attention Is All You Need, eq. 3."""

    d_model: int
    warmup_steps: int
    learning_rate: float = 1.0

    def __post_init__(self) -> None:
        self.check(d_model=0, warmup_steps=0)

    def rate(self, step: Number, xp: ModuleType) -> Number:
        fall, rise = xp.maximum(step, 1) ** -0.5, self.warmup_steps**-1.5 * step
        return self.learning_rate * self.d_model**-0.5 * xp.minimum(fall, rise)


@register("schedule")
@dataclass(frozen=True)
class PiecewiseDecay(LRScheduler):
    """`values[i]` before step `boundaries[i]`, and the last value from the last boundary on."""

    boundaries: tuple[int, ...]
    values: tuple[float, ...]
    by_epoch: bool = False
    counts: ClassVar = ("boundaries",)

    def __post_init__(self) -> None:
        rising = list(self.boundaries) == sorted(set(self.boundaries))
        if not self.boundaries or not rising or len(self.values) != len(self.boundaries) + 1:
            raise self.error(
                "boundaries and values do not fit",
                f"boundaries {list(self.boundaries)}, values {list(self.values)}",
                "rising boundaries, at least one, and one value more",
            )

    def rate(self, step: Number, xp: ModuleType) -> Number:
        index = passed(self.boundaries, step, xp)
        return pick(self.values, xp.where(index < len(self.boundaries), index, -1), xp)


@register("schedule")
@dataclass(frozen=True)
class MultiStepDecay(LRScheduler):
    """`lr * gamma**k` when k milestones are reached."""

    learning_rate: float
    milestones: tuple[int, ...]
    gamma: float = 0.1
    by_epoch: bool = False
    counts: ClassVar = ("milestones",)

    def __post_init__(self) -> None:
        self.check_gamma()
        if not self.milestones or list(self.milestones) != sorted(set(self.milestones)):
            raise self.error("milestones do not rise", list(self.milestones), "rising numbers, at least one")

    def rate(self, step: Number, xp: ModuleType) -> Number:
        return self.learning_rate * power(self.gamma, passed(self.milestones, step, xp), xp)


@register("schedule")
@dataclass(frozen=True)
class StepDecay(LRScheduler):
    """`lr * gamma**(step // step_size)`."""

    learning_rate: float
    step_size: int
    gamma: float = 0.1
    by_epoch: bool = False
    counts: ClassVar = ("step_size",)

    def __post_init__(self) -> None:
        self.check(step_size=0)
        self.check_gamma()

    def rate(self, step: Number, xp: ModuleType) -> Number:
        return self.learning_rate * power(self.gamma, step // self.step_size, xp)


@dataclass(frozen=True)
class _PeriodicDecay(LRScheduler):
    """What falls by the count of periods of `every` steps, or of `every` epochs with `by_epoch`."""

    learning_rate: float
    gamma: float
    every: int = 1
    by_epoch: bool = False
    counts: ClassVar = ("every",)

    def __post_init__(self) -> None:
        self.check(gamma=0, every=0)


@register("schedule")
@dataclass(frozen=True)
class NaturalExpDecay(_PeriodicDecay):
    """`lr * exp(-gamma * t)` with `t = step // every`; with `by_epoch` t counts epochs."""

    def rate(self, step: Number, xp: ModuleType) -> Number:
        return self.learning_rate * xp.exp(-self.gamma * (step // self.every))


@register("schedule")
@dataclass(frozen=True)
class ExponentialDecay(_PeriodicDecay):
    """`lr * gamma**t` with `t = step // every`; with `by_epoch` t counts epochs."""

    def __post_init__(self) -> None:
        self.check(every=0)
        self.check_gamma()

    def rate(self, step: Number, xp: ModuleType) -> Number:
        return self.learning_rate * power(self.gamma, step // self.every, xp)


@register("schedule")
@dataclass(frozen=True)
class InverseTimeDecay(_PeriodicDecay):
    """`lr / (1 + gamma * t)` with `t = step // every`; with `by_epoch` t counts epochs."""

    def rate(self, step: Number, xp: ModuleType) -> Number:
        return self.learning_rate / (1 + self.gamma * (step // self.every))


@register("schedule")
@dataclass(frozen=True)
class PolynomialDecay(LRScheduler):
    """From lr to `end_lr` as `(1 - t / decay_steps)**power`; then constant, or with `cycle` over again and longer."""

    learning_rate: float
    decay_steps: int | None = None
    end_lr: float = 0.0001
    power: float = 1.0
    cycle: bool = False
    by_epoch: bool = False
    whole: ClassVar = "decay_steps"

    def __post_init__(self) -> None:
        self.check(decay_steps=0, power=0)

    def rate(self, step: Number, xp: ModuleType) -> Number:
        assert self.decay_steps is not None
        steps = self.decay_steps
        length = steps * xp.maximum(-(-step // steps), 1) if self.cycle else steps
        left = xp.maximum(
            1 - xp.minimum(step, length) / length, 0
        )  # a compiled division may round to more than 1
        return (self.learning_rate - self.end_lr) * left**self.power + self.end_lr


@dataclass(frozen=True)
class LambdaDecay(LRScheduler):
    """`lr * lr_lambda(t)` with `t = step // every`. Python only. In a compiled step `lr_lambda` gets a traced array."""

    learning_rate: float
    lr_lambda: Callable[[Number], Number]
    every: int = 1
    by_epoch: bool = False
    counts: ClassVar = ("every",)

    def rate(self, step: Number, xp: ModuleType) -> Number:
        return self.learning_rate * call(self.lr_lambda, step // self.every)


@dataclass(frozen=True)
class MultiplicativeDecay(LambdaDecay):
    """`lr * lr_lambda(1) * ... * lr_lambda(t)` with `t = step // every`. Python only; as LambdaDecay when compiled."""

    def rate(self, step: Number, xp: ModuleType) -> Number:
        count = step // self.every
        if xp is not jnp:
            return math.prod((self.lr_lambda(t) for t in range(1, int(count) + 1)), start=self.learning_rate)
        start = jnp.float32(self.learning_rate)
        return jax.lax.fori_loop(1, count + 1, lambda t, rate: rate * call(self.lr_lambda, t), start)
