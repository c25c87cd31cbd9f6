"""What schedules share: `at`, `resolved`, the checks of their fields, and the constant one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework.config.registry import Kind, register
from framework.core.errors import ConfigError, TraceError

if TYPE_CHECKING:
    from framework.optimizer.lr.plateau import ReduceOnPlateau


@dataclass(frozen=True)
class LRScheduler:
    """Base of the schedules. A subclass is a frozen dataclass that defines `rate`.

    `counts` names the fields that count steps (ints or tuples of ints); of these, `whole` may be None.
    """

    counts: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[str | None] = None

    def rate(self, step: Any, xp: Any) -> Any:
        """The learning rate after `step` optimizer steps; `xp` is numpy for an int, jax.numpy for an array."""
        raise NotImplementedError(f"{type(self).__name__} defines no rate")

    def at(self, step: int | jax.Array) -> Any:
        """The learning rate of the next step when `step` steps are done: a float, or float32 [] for an array.

        Raises:
            ConfigError: the schedule counts epochs or the whole training, and `resolved` was not called.
        """
        if found := self.open_ends():
            raise ConfigError(
                "the schedule has open ends",
                where=type(self).__name__,
                received=", ".join(found),
                allowed="counts in steps",
                fix="call schedule.resolved(total_steps, steps_per_epoch) first, or give the counts in steps",
            )
        if isinstance(step, jax.Array):
            with jax.numpy_dtype_promotion("standard"):  # formulas mix the step, an integer, with floats
                return jnp.asarray(self.rate(step, jnp), jnp.float32)
        return float(self.rate(int(step), np))

    def open_ends(self) -> list[str]:
        """What `resolved` has yet to fill in."""
        found = ["by_epoch"] if getattr(self, "by_epoch", False) else []
        return found + ([self.whole] if self.whole and getattr(self, self.whole) is None else [])

    def resolved(self, total_steps: int, steps_per_epoch: int | None = None) -> LRScheduler:
        """The schedule in steps for a training of `total_steps`; epochs are `steps_per_epoch` steps.

        Raises:
            ConfigError: it counts epochs and `steps_per_epoch` is not given, or no step is left for it.
        """
        if total_steps < 1:
            raise self.error(
                "no step is left for the schedule", total_steps, "a training longer than its warmup"
            )
        by_epoch, changes = getattr(self, "by_epoch", False), {}
        if by_epoch and steps_per_epoch is None:
            raise self.error("the schedule counts epochs", "no steps_per_epoch", "the steps of an epoch")
        for name in self.counts:
            value = getattr(self, name)
            if value is None and name == self.whole:
                changes[name] = total_steps
            elif value is not None and by_epoch:
                assert steps_per_epoch is not None
                many = isinstance(value, tuple)
                changes[name] = tuple(v * steps_per_epoch for v in value) if many else value * steps_per_epoch
        return replace(self, **changes, **({"by_epoch": False} if by_epoch else {}))

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


Rate = float | Annotated[LRScheduler, Kind("schedule")]


@register("schedule")
@dataclass(frozen=True)
class Constant(LRScheduler):
    """The same learning rate for ever."""

    learning_rate: float

    def rate(self, step: Any, xp: Any) -> Any:
        return self.learning_rate


def power(base: float, exponent: Any, xp: Any) -> Any:
    """base**exponent; float32 would keep too little of a base near 1."""
    return xp.exp(math.log(base) * exponent)


def cosine(start: float, end: float, share: Any, xp: Any) -> Any:
    """From start (share 0) to end (share 1) along half a cosine."""
    return end + (start - end) * (1 + xp.cos(math.pi * share)) / 2


def called(function: Callable[[Any], Any], value: Any) -> Any:
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
