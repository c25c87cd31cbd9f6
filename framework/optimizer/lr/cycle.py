"""Schedules that rise or come back: warmup, lines, cosines and cycles."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Literal

import jax.numpy as jnp

from framework.config.registry import register
from framework.optimizer.lr import formulas
from framework.optimizer.lr.base import Constant, LRScheduler, Rate, ReduceOnPlateau, call
from framework.optimizer.lr.formulas import Number, cosine, line

_log = logging.getLogger("oar")

# YAML holds no functions: for it this field is always null.
if TYPE_CHECKING:
    ScaleFunction = Callable[[Number], Number] | None
else:
    ScaleFunction = None


@register("schedule")
@dataclass(frozen=True)
class LinearWarmup(LRScheduler):
    """From `start_lr` towards `end_lr` within `warmup_steps`, then `learning_rate`: a number, or a schedule that starts
    with its step 0 there and, where its length is open, lasts for the rest of the training."""

    learning_rate: Rate
    warmup_steps: int
    start_lr: float
    end_lr: float
    by_epoch: bool = False
    counts: ClassVar = ("warmup_steps",)

    def __post_init__(self) -> None:
        self.check(warmup_steps=0)
        if not self.start_lr < self.end_lr:
            raise self.error(
                "a warmup rises", f"start_lr {self.start_lr}, end_lr {self.end_lr}", "start_lr below end_lr"
            )

    @property
    def inner(self) -> LRScheduler:
        rate = self.learning_rate
        return rate if isinstance(rate, LRScheduler) else Constant(float(rate))

    def rate(self, step: Number, xp: ModuleType) -> Number:
        rising = line(self.start_lr, self.end_lr, step, self.warmup_steps)
        after = self.inner.rate(xp.maximum(step - self.warmup_steps, 0), xp)
        return xp.where(step < self.warmup_steps, rising, after)

    def open_ends(self) -> list[str]:
        return super().open_ends() + [f"learning_rate.{name}" for name in self.inner.open_ends()]

    def resolve(self, total_steps: int, steps_per_epoch: float | None = None) -> LRScheduler:
        own = super().resolve(total_steps, steps_per_epoch)
        assert isinstance(own, LinearWarmup)
        if not self.inner.open_ends():
            return own
        if total_steps == 1:  # it would have no rate but `start_lr`, which is 0 most often
            _log.warning(
                "the warmup is left out, as the training has one step; a larger train.epochs makes it longer"
            )
            return Constant(float(self.inner.resolve(1, steps_per_epoch).at(0)))
        if own.warmup_steps >= total_steps:
            # A run of a few steps, as a first try of own data is, still has to learn something.
            shorter = max(1, total_steps // 10)
            _log.warning(
                f"the warmup takes {shorter} of {total_steps} steps in place of {own.warmup_steps}, which are "
                "more than the training has; optim.learning_rate.warmup_steps sets it"
            )
            own = replace(own, warmup_steps=shorter)
        rest = max(1, total_steps - own.warmup_steps)
        return replace(own, learning_rate=self.inner.resolve(rest, steps_per_epoch))

    @property
    def plateau(self) -> ReduceOnPlateau | None:
        return self.inner.plateau


@register("schedule")
@dataclass(frozen=True)
class LinearLR(LRScheduler):
    """From `lr * start_factor` to `lr * end_factor` in a line of `total_steps`, then constant."""

    learning_rate: float
    total_steps: int | None = None
    start_factor: float = 1.0 / 3
    end_factor: float = 1.0
    by_epoch: bool = False
    whole: ClassVar = "total_steps"

    def __post_init__(self) -> None:
        self.check(total_steps=0)
        if not (0 < self.start_factor <= 1 and 0 <= self.end_factor <= 1):
            received = f"start_factor {self.start_factor}, end_factor {self.end_factor}"
            raise self.error("a factor is out of range", received, "start_factor above 0, both up to 1")

    def rate(self, step: Number, xp: ModuleType) -> Number:
        assert self.total_steps is not None
        step = xp.minimum(step, self.total_steps)
        return self.learning_rate * line(self.start_factor, self.end_factor, step, self.total_steps)


@register("schedule")
@dataclass(frozen=True)
class CosineAnnealingDecay(LRScheduler):
    """Half a cosine from lr to `eta_min` within `T_max` steps, and up again as long after it.

    Source: SGDR (arXiv 1608.03983), eq. 5, without restarts.
    """

    learning_rate: float
    T_max: int | None = None
    eta_min: float = 0.0
    by_epoch: bool = False
    whole: ClassVar = "T_max"

    def __post_init__(self) -> None:
        self.check(T_max=0)

    def rate(self, step: Number, xp: ModuleType) -> Number:
        assert self.T_max is not None
        step = step % (2 * self.T_max) if xp is jnp else step  # float32 keeps too little of a large angle
        angle = math.pi * step / self.T_max
        return cosine(self.learning_rate, self.eta_min, angle, xp)


@register("schedule")
@dataclass(frozen=True)
class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from lr to `eta_min` within `T_0` steps, then again within `T_0 * T_mult`, and so on.

    Source: SGDR (arXiv 1608.03983), eq. 5.
    """

    learning_rate: float
    T_0: int
    T_mult: int = 1
    eta_min: float = 0.0
    by_epoch: bool = False
    counts: ClassVar = ("T_0",)

    def __post_init__(self) -> None:
        self.check(T_0=0, T_mult=0)

    def rate(self, step: Number, xp: ModuleType) -> Number:
        if self.T_mult == 1:
            return cosine(self.learning_rate, self.eta_min, math.pi * (step % self.T_0) / self.T_0, xp)
        starts, length = [0], self.T_0  # a table: a logarithm would miss restarts by rounding
        while starts[-1] + length < 2**31:
            starts.append(starts[-1] + length)
            length *= self.T_mult
        at = xp.searchsorted(xp.asarray(starts), step, side="right") - 1
        since = step - xp.asarray(starts)[at]
        span = self.T_0 * xp.power(xp.asarray(float(self.T_mult)), at)
        return cosine(self.learning_rate, self.eta_min, math.pi * since / span, xp)


@register("schedule")
@dataclass(frozen=True)
class OneCycleLR(LRScheduler):
    """Up from `max_learning_rate / divide_factor` within `phase_pct` of the steps and down to `end_learning_rate`.

    With `three_phase` it goes down to the initial rate as fast as it rose, and to the end in the rest. After
    `total_steps` the last rate stays, where Paddle follows the last phase for one step more and then raises an error.
    As Paddle's it leaves the momentum as it is; torch's changes it unless `cycle_momentum=False`.
    Source: Super-Convergence (arXiv 1708.07120).
    """

    max_learning_rate: float
    total_steps: int | None = None
    divide_factor: float = 25.0
    end_learning_rate: float = 0.0001
    phase_pct: float = 0.3
    anneal_strategy: Literal["cos", "linear"] = "cos"
    three_phase: bool = False
    by_epoch: bool = False
    whole: ClassVar = "total_steps"

    def __post_init__(self) -> None:
        self.check(total_steps=0, divide_factor=0)
        limit = 0.5 if self.three_phase else 1
        if not 0 < self.phase_pct < limit:
            raise self.error("phase_pct is out of range", self.phase_pct, f"above 0, below {limit}")
        if self.total_steps is not None and self.phase_pct * self.total_steps <= 1 and not self.by_epoch:
            raise self.error(
                "the first phase has no step",
                f"phase_pct {self.phase_pct} of {self.total_steps} steps",
                "more than one step",
            )

    def rate(self, step: Number, xp: ModuleType) -> Number:
        assert self.total_steps is not None
        bounds, rates = formulas.one_cycle_phases(
            self.max_learning_rate,
            self.total_steps,
            self.divide_factor,
            self.end_learning_rate,
            self.phase_pct,
            self.three_phase,
        )
        step = xp.minimum(step, bounds[-1])
        return formulas.one_cycle(step, bounds, rates, self.anneal_strategy == "linear", xp)


@register("schedule")
@dataclass(frozen=True)
class CyclicLR(LRScheduler):
    """Up and down between two rates, in `step_size_up` and `step_size_down` steps (as many by default).

    `triangular2` halves the height with each cycle, `exp_range` multiplies it with `exp_gamma**step`. `scale_fn`
    (Python only) takes the place of `mode`: it gets the number of the cycle from 1, or the step when `scale_mode` is
    "iterations". Source: Cyclical Learning Rates (arXiv 1506.01186).
    """

    base_learning_rate: float
    max_learning_rate: float
    step_size_up: int
    step_size_down: int | None = None
    mode: Literal["triangular", "triangular2", "exp_range"] = "triangular"
    exp_gamma: float = 1.0
    scale_fn: ScaleFunction = None
    scale_mode: Literal["cycle", "iterations"] = "cycle"
    by_epoch: bool = False
    counts: ClassVar = ("step_size_up", "step_size_down")

    def __post_init__(self) -> None:
        self.check(step_size_up=0, step_size_down=0, exp_gamma=0)

    def rate(self, step: Number, xp: ModuleType) -> Number:
        up = self.step_size_up
        down = up if self.step_size_down is None else self.step_size_down
        cycle, size = step // (up + down), up + down
        height = formulas.triangle(step % size / size, up / size, xp)
        if self.scale_fn is not None:
            scale = call(self.scale_fn, cycle + 1 if self.scale_mode == "cycle" else step)
        else:
            scale = formulas.triangle_scale(self.mode, cycle, step, self.exp_gamma, xp)
        return self.base_learning_rate + (self.max_learning_rate - self.base_learning_rate) * height * scale
