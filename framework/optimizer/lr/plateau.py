"""The state of `ReduceOnPlateau`: what a metric has done to the learning rate so far."""

from __future__ import annotations

import math
from collections.abc import Mapping

from framework.core.errors import InputError, WeightError
from framework.optimizer.lr.base import ReduceOnPlateau

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
        if not math.isnan(value) and (self.best is None or self._better(value, self.best)):
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.bad > schedule.patience:
            self.cooldown, self.bad = schedule.cooldown, 0
            lower = max(self.rate * schedule.factor, schedule.min_lr)
            if self.rate - lower > schedule.epsilon:
                self.rate = lower
        return self.factor

    def _better(self, value: float, best: float) -> bool:
        schedule = self.schedule
        margin = schedule.threshold * (best if schedule.threshold_mode == "rel" else 1)
        return value < best - margin if schedule.mode == "min" else value > best + margin

    def state_dict(self) -> dict[str, float | None]:
        return {key: getattr(self, key) for key in _KEYS}

    def set_state_dict(self, state: Mapping[str, float | None]) -> None:
        """Continue from what `state_dict` gave. Raises: WeightError when it holds other keys."""
        if set(state) != set(_KEYS):
            raise WeightError(
                "this is no state of a plateau", received=sorted(state), allowed=", ".join(_KEYS)
            )
        for key, value in state.items():
            setattr(self, key, value)
