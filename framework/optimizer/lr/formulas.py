"""What schedules compute with: pure functions of the step, in Paddle's order of operations.

The schedules of `framework.optimizer.lr` and of `paddle.optimizer.lr` call them. `xp` computes: numpy for a step on the
host, jax.numpy under a trace, and `HOST` for floats whose last digits are Paddle's, which come from Python's math.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp

Number = float | jax.Array  # a number on the host, or a scalar under a trace
Condition = bool | jax.Array


class HOST:
    """The functions that formulas call, for Python's numbers."""

    exp = staticmethod(math.exp)
    cos = staticmethod(math.cos)
    minimum = staticmethod(min)
    maximum = staticmethod(max)

    @staticmethod
    def where(condition: Condition, yes: Number, no: Number) -> Number:
        return yes if condition else no


Functions = ModuleType | type[HOST]


def power(base: float, exponent: Number, xp: Functions) -> Number:
    """base**exponent; under a trace float32 would keep too little of a base near 1."""
    return xp.exp(math.log(base) * exponent) if xp is jnp else base**exponent


def passed(limits: Sequence[float], step: Number, xp: Functions, after: bool = False) -> int | jax.Array:
    """How many of the rising limits are reached, or with `after` are behind the step."""
    if xp is jnp:
        return jnp.searchsorted(jnp.asarray(limits), step, side="left" if after else "right")
    return bisect.bisect_left(limits, step) if after else bisect.bisect_right(limits, step)


def pick(values: Sequence[float], index: int | jax.Array, xp: Functions) -> Number:
    """`values[index]`, under a trace too."""
    return jnp.asarray(values)[index] if xp is jnp else values[int(index)]


def cosine(start: Number, end: Number, angle: Number, xp: Functions) -> Number:
    """From start (angle 0) to end (angle pi) along half a cosine. Source: SGDR (arXiv 1608.03983), eq. 5."""
    return end + (start - end) * (1 + xp.cos(angle)) / 2


def line(start: float, end: float, step: Number, steps: float) -> Number:
    """From start at step 0 to end at step `steps`."""
    return (end - start) * step / steps + start


def one_cycle_phases(
    top: float, steps: int, divisor: float, end: float, first_share: float, three_phase: bool
) -> tuple[list[float], list[float]]:
    """The steps at which the phases of a cycle meet, and the rates there."""
    low, first, last = top / divisor, first_share * steps - 1, float(steps - 1)
    if three_phase:
        return [0.0, first, 2 * first, last], [low, top, low, end]
    return [0.0, first, last], [low, top, end]


def one_cycle(
    step: Number, bounds: Sequence[float], rates: Sequence[float], is_linear: bool, xp: Functions
) -> Number:
    """The rate between the two `bounds` around `step`."""
    phase = passed(bounds[1:-1], step, xp, after=True)
    low, high = pick(bounds, phase, xp), pick(bounds, phase + 1, xp)
    start, end = pick(rates, phase, xp), pick(rates, phase + 1, xp)
    share = (step - low) / (high - low)
    return (end - start) * share + start if is_linear else cosine(start, end, math.pi * share, xp)


def triangle(position: Number, rising: float, xp: Functions) -> Number:
    """From 0 to 1 at the `rising` share of a cycle and back; `position` is the share of it that is over."""
    return xp.where(position <= rising, position / rising, (1 - position) / (1 - rising))


def triangle_scale(mode: str, cycle: Number, step: Number, gamma: float, xp: Functions) -> Number:
    """What the height of a triangle is multiplied with in cycle 0, 1, …"""
    if mode == "triangular2":
        return power(0.5, cycle, xp)
    return power(gamma, step, xp) if mode == "exp_range" else 1.0


def is_better(metric: Any, best: Any, mode: str, threshold: float, threshold_mode: str) -> bool:
    """Whether a metric improves on the best by more than the threshold."""
    margin = best * threshold if threshold_mode == "rel" else threshold
    return bool(metric < best - margin if mode == "min" else metric > best + margin)


def reduced(rate: float, factor: float, min_lr: float, epsilon: float) -> float:
    """The rate after a plateau; the same where it would not change by more than `epsilon`."""
    lower = max(rate * factor, min_lr)
    return lower if rate - lower > epsilon else rate
