"""ReduceOnPlateau: a learning rate that a metric moves."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from framework.optimizer.lr import base as core
from framework.optimizer.lr.formulas import is_better, reduced
from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.constructors import Rowed, make_class, parameters
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.optimizer.lr.base import LRScheduler


class _ReduceOnPlateau(Rowed, LRScheduler):
    mode: str
    threshold_mode: str
    factor: float
    patience: int
    threshold: float
    cooldown: int
    min_lr: float
    epsilon: float

    def _begin(self, settings: dict[str, Any]) -> None:
        for name, allowed in (("mode", ("min", "max")), ("threshold_mode", ("rel", "abs"))):
            settings[name] = settings[name].lower()
            if settings[name] not in allowed:
                words = " or ".join(allowed)
                raise ValueError(f"ReduceOnPlateau: {name} is {words}, received {settings[name]!r}")
        if settings["factor"] >= 1.0:
            raise ValueError(f"ReduceOnPlateau: factor must be below 1, received {settings['factor']}")
        rate, verbose = settings.pop("learning_rate"), settings.pop("verbose")
        vars(self).update(settings)
        self.cooldown_counter = self.num_bad_epochs = 0
        self.best: Any = None
        self._start(rate, 0, verbose)

    def state_keys(self) -> None:
        self.keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]

    def step(self, metrics: TensorLike, epoch: int | None = None) -> None:  # type: ignore[override]
        """Count one value of the metric: a number, or an array or Tensor of one element."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if isinstance(metrics, Tensor | np.ndarray):
            if metrics.size != 1:
                raise AssertionError(f"ReduceOnPlateau.step takes one number, received {metrics.size}")
        elif not isinstance(metrics, int | float | np.floating):
            raise TypeError(f"ReduceOnPlateau.step takes a number, received {type(metrics).__name__}")
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        margin = self.mode, self.threshold, self.threshold_mode
        if self.best is None or is_better(metrics, self.best, *margin):
            self.best, self.num_bad_epochs = metrics, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            lower = reduced(self.last_lr, self.factor, self.min_lr, self.epsilon)
            if lower != self.last_lr:
                self.last_lr = lower
                self._say()


_FIELDS = {field.name: field.default for field in dataclasses.fields(core.ReduceOnPlateau)}
_DEFAULTS = {n: v for n, v in _FIELDS.items() if v is not dataclasses.MISSING} | {"verbose": False}
ReduceOnPlateau = make_class(
    "ReduceOnPlateau",
    _ReduceOnPlateau,
    parameters([*_FIELDS, "verbose"], _DEFAULTS),
    __name__,
    (core.ReduceOnPlateau.__doc__ or "").split("\n\n")[0],
)
