"""Schedules that fall: by a formula, by steps, by a function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework.config.registry import register
from framework.optimizer.lr import formulas
from framework.optimizer.lr.base import LRScheduler, call
from framework.optimizer.lr.formulas import Number, passed, pick


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
        return formulas.noam(step, self.learning_rate, self.d_model, self.warmup_steps, xp)


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
        return pick(self.values, passed(self.boundaries, step, xp), xp)


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
        return formulas.exponential(passed(self.milestones, step, xp), self.learning_rate, self.gamma, xp)


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
        return formulas.exponential(step // self.step_size, self.learning_rate, self.gamma, xp)


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
        return formulas.natural_exp(step // self.every, self.learning_rate, self.gamma, xp)


@register("schedule")
@dataclass(frozen=True)
class ExponentialDecay(_PeriodicDecay):
    """`lr * gamma**t` with `t = step // every`; with `by_epoch` t counts epochs."""

    def __post_init__(self) -> None:
        self.check(every=0)
        self.check_gamma()

    def rate(self, step: Number, xp: ModuleType) -> Number:
        return formulas.exponential(step // self.every, self.learning_rate, self.gamma, xp)


@register("schedule")
@dataclass(frozen=True)
class InverseTimeDecay(_PeriodicDecay):
    """`lr / (1 + gamma * t)` with `t = step // every`; with `by_epoch` t counts epochs."""

    def rate(self, step: Number, xp: ModuleType) -> Number:
        return formulas.inverse_time(step // self.every, self.learning_rate, self.gamma)


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
        return formulas.polynomial(
            step, self.learning_rate, self.decay_steps, self.end_lr, self.power, self.cycle, xp
        )


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
        if xp is np:
            return self.learning_rate * math.prod(self.lr_lambda(t) for t in range(1, int(count) + 1))
        start = jnp.float32(self.learning_rate)
        return jax.lax.fori_loop(1, count + 1, lambda t, rate: rate * call(self.lr_lambda, t), start)
