"""What schedules share: `at`, `resolve`, the checks of their fields; the constant one and the one a metric drives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Annotated, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from framework.config.registry import Kind, register
from framework.core.errors import ConfigError, InputError, TraceError, WeightError
from framework.optimizer.lr.formulas import Number, is_better, reduced


@dataclass(frozen=True)
class LRScheduler:
    """Base of the schedules. A subclass is a frozen dataclass that defines `rate`.

    `counts` names the fields that count steps (ints or tuples of ints). `whole` is the one that may be None, and alone
    where `counts` is empty.
    """

    counts: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[str | None] = None

    def rate(self, step: Number, xp: ModuleType) -> Number:
        """The learning rate after `step` optimizer steps; `xp` is numpy for an int, jax.numpy for an array."""
        raise NotImplementedError(f"{type(self).__name__} defines no rate")

    def at(self, step: int | jax.Array) -> float | jax.Array:
        """The learning rate of the next step when `step` steps are done: a float, or float32 [] for an array.

        Raises:
            ConfigError: the schedule counts epochs or the whole training, and `resolve` was not called.
        """
        if found := self.open_ends():
            raise ConfigError(
                "the schedule has open ends",
                where=type(self).__name__,
                received=", ".join(found),
                allowed="counts in steps",
                fix="call schedule.resolve(total_steps, steps_per_epoch) first, or give the counts in steps",
            )
        if isinstance(step, jax.Array):
            with jax.numpy_dtype_promotion("standard"):  # formulas mix the step, an integer, with floats
                return jnp.asarray(self.rate(step, jnp), jnp.float32)
        return float(self.rate(int(step), np))

    def open_ends(self) -> list[str]:
        """What `resolve` has yet to fill in."""
        found = ["by_epoch"] if getattr(self, "by_epoch", False) else []
        return found + ([self.whole] if self.whole and getattr(self, self.whole) is None else [])

    def resolve(self, total_steps: int, steps_per_epoch: float | None = None) -> LRScheduler:
        """The schedule in steps for a training of `total_steps`; epochs are `steps_per_epoch` steps, of which the last
        may be a part, where gradients of several batches make one step.

        Raises:
            ConfigError: it counts epochs and `steps_per_epoch` is not given, or no step is left for it.
        """
        if total_steps < 1:
            raise self.error("no step is left for the schedule", total_steps, "a training of steps")
        by_epoch, changes = getattr(self, "by_epoch", False), {}
        if by_epoch and steps_per_epoch is None:
            raise self.error("the schedule counts epochs", "no steps_per_epoch", "the steps of an epoch")
        for name in self.counts or ((self.whole,) if self.whole else ()):
            value = getattr(self, name)
            if value is None and name == self.whole:
                changes[name] = total_steps
            elif value is not None and by_epoch:
                assert steps_per_epoch is not None
                many = isinstance(value, tuple)
                steps = [_whole(v * steps_per_epoch) for v in (value if many else (value,))]
                changes[name] = tuple(steps) if many else steps[0]
        return replace(self, **changes, **({"by_epoch": False} if by_epoch else {}))

    def resolved(self, total_steps: int, steps_per_epoch: float | None = None) -> LRScheduler:
        """`resolve` under its name of the last release."""
        return self.resolve(total_steps, steps_per_epoch)

    @property
    def plateau(self) -> ReduceOnPlateau | None:
        """The part that a metric drives, for which the caller keeps a PlateauState."""
        return None

    def error(self, problem: str, received: object, allowed: str) -> ConfigError:
        return ConfigError(problem, where=type(self).__name__, received=received, allowed=allowed)

    def check(self, **above: float) -> None:
        """Every field named is a number (or numbers) above the given one, or None; used by `__post_init__`."""
        for name, limit in above.items():
            value = getattr(self, name)
            for number in value if isinstance(value, tuple) else (value,):
                if number is not None and not number > limit:
                    raise self.error(f"{name} is out of range", value, f"above {limit}")

    def check_gamma(self) -> None:
        gamma = getattr(self, "gamma", 0.5)
        if not 0 < gamma < 1:
            raise self.error("gamma is out of range", gamma, "above 0, below 1")


def _whole(steps: float) -> float:
    """An int where it is a whole number, as most epochs are."""
    return int(steps) if steps == int(steps) else steps


Rate = float | Annotated[LRScheduler, Kind("schedule")]


@register("schedule")
@dataclass(frozen=True)
class Constant(LRScheduler):
    """The same learning rate for ever."""

    learning_rate: float

    def rate(self, step: Number, xp: ModuleType) -> Number:
        return self.learning_rate


@register("schedule")
@dataclass(frozen=True)
class ReduceOnPlateau(LRScheduler):
    """Multiplies the rate by `factor` when a metric has not become better for more than `patience` observations.

    `at` gives `learning_rate`; what the metric did to it is the factor of a PlateauState (below), with which the
    caller multiplies the rate. Better is lower with mode "min", by `threshold` of the best value ("rel") or by
    `threshold` ("abs"). After a reduction `cooldown` observations count for nothing. A reduction that is not above
    `epsilon` is not made.
    """

    learning_rate: float
    mode: Literal["min", "max"] = "min"
    factor: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    threshold_mode: Literal["rel", "abs"] = "rel"
    cooldown: int = 0
    min_lr: float = 0.0
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if not (0 < self.factor < 1 and self.learning_rate > 0):
            received = f"factor {self.factor}, learning_rate {self.learning_rate}"
            raise self.error("no rate can be reduced", received, "factor above 0, below 1; a positive rate")

    def rate(self, step: Number, xp: ModuleType) -> Number:
        return self.learning_rate

    @property
    def plateau(self) -> ReduceOnPlateau:
        return self


def call(function: Callable[[Number], Number], value: Number) -> Number:
    """What a user's function of the step gives. Raises: TraceError when it asks for the value in a compiled program."""
    try:
        return function(value)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerIntegerConversionError) as error:
        raise TraceError(
            "the function of a schedule asks for the value of the step in a compiled program",
            received=str(error).splitlines()[0],
            allowed="arithmetic and jax.numpy: jnp.where instead of if, jnp.exp instead of math.exp",
            fix="write it so, or compute schedule.at(int(step)) outside of the compiled step and pass the number in",
        ) from error


_KEYS = ("rate", "best", "bad", "cooldown")


class PlateauState:
    """Follows one metric. `factor` multiplies the scheduled learning rate; `state_dict()` is plain numbers for JSON."""

    def __init__(self, schedule: ReduceOnPlateau) -> None:
        self.schedule = schedule
        self.rate = schedule.learning_rate
        self.best: float | None = None
        self.bad = self.cooldown = 0

    @property
    def factor(self) -> float:
        return self.rate / self.schedule.learning_rate

    def observe(self, metric: float) -> float:
        """Count one value of the metric; returns the factor from now on. A NaN is no improvement.

        Raises:
            InputError: the metric is no single number.
        """
        schedule = self.schedule
        try:
            value = float(metric)
        except TypeError:
            raise InputError(
                "a plateau needs a number", received=type(metric).__name__, allowed="one number"
            ) from None
        if self.cooldown > 0:
            self.cooldown -= 1
            return self.factor
        margin = schedule.mode, schedule.threshold, schedule.threshold_mode
        if not math.isnan(value) and (self.best is None or is_better(value, self.best, *margin)):
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.bad > schedule.patience:
            self.cooldown, self.bad = schedule.cooldown, 0
            self.rate = reduced(self.rate, schedule.factor, schedule.min_lr, schedule.epsilon)
        return self.factor

    def state_dict(self) -> dict[str, float | None]:
        return {key: getattr(self, key) for key in _KEYS}

    def set_state_dict(self, state: Mapping[str, float | None]) -> None:
        """Continue from what `state_dict` gave. Raises: WeightError when it holds other keys."""
        if set(state) != set(_KEYS):
            raise WeightError(
                "the state of a plateau must have its keys", received=sorted(state), allowed=", ".join(_KEYS)
            )
        for key, value in state.items():
            setattr(self, key, value)
