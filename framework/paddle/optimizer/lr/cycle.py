"""Schedules that rise or come back: warmup, lines, cosines and cycles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from framework.optimizer.lr import cycle as core
from framework.optimizer.lr import formulas
from framework.optimizer.lr.formulas import HOST
from framework.paddle.optimizer.lr.base import LRScheduler, positive
from framework.paddle.optimizer.lr.faces import (
    COUNT,
    FLOAT,
    FLOAT_FROM_ZERO,
    FROM_ZERO,
    NOT_NEGATIVE,
    NUMBER,
    OPTIONAL_STEPS,
    PERIOD,
    POSITIVE,
    STEPS,
    UP_TO_ONE,
    Face,
    make_schedule,
    one_of,
)


class LinearWarmup(LRScheduler):
    """From `start_lr` to `end_lr` within `warmup_steps`, then `learning_rate`: a number, or a schedule that starts
    there."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        warmup_steps: int,
        start_lr: float,
        end_lr: float,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(learning_rate, float | int | LRScheduler):
            raise TypeError(
                f"LinearWarmup: learning_rate is a number or a schedule, received {type(learning_rate).__name__}"
            )
        positive(warmup_steps, "warmup_steps", "LinearWarmup")
        assert end_lr > start_lr, f"LinearWarmup: end_lr {end_lr} must be above start_lr {start_lr}"
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps
        self.start_lr, self.end_lr = start_lr, end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def state_dict(self) -> dict[str, object]:
        state = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            state["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().set_state_dict({k: v for k, v in state_dict.items() if k != "LinearWarmup_LR"})
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.set_state_dict(state_dict["LinearWarmup_LR"])

    set_dict = set_state_dict

    def get_lr(self) -> float:
        if self.last_epoch < self.warmup_steps:
            return float(formulas.line(self.start_lr, self.end_lr, self.last_epoch, self.warmup_steps))
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return self.learning_rate


class _Linear(Face):
    """From `lr * start_factor` to `lr * end_factor` in a line of `total_steps`, then constant. Each rate goes on from
    the one before, so a rate that was changed by hand is kept."""

    total_steps: int
    start_factor: float
    end_factor: float

    def get_lr(self) -> float:
        if self.last_epoch == 0:
            return self.base_lr * self.start_factor
        if self.last_epoch > self.total_steps:
            return self.last_lr
        rise = self.end_factor - self.start_factor
        before = self.total_steps * self.start_factor + (self.last_epoch - 1) * rise
        return self.last_lr * (1.0 + rise / before)


class _Cosine(Face):
    """Half a cosine from lr to `eta_min` within `T_max` steps, and up again as long after it. Each rate goes on from
    the one before, so a rate that was changed by hand is kept."""

    T_max: int
    eta_min: float

    def get_lr(self) -> float:
        if self.last_epoch == 0:
            return self.base_lr
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # at the bottom: nothing to go on from
            return self.last_lr + (self.base_lr - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        height, before = (
            1 + math.cos(math.pi * n / self.T_max) for n in (self.last_epoch, self.last_epoch - 1)
        )
        return height / before * (self.last_lr - self.eta_min) + self.eta_min

    def _get_closed_form_lr(self) -> float:
        return super().get_lr()


class _WarmRestarts(Face):
    """Half a cosine from lr to `eta_min` within `T_0` steps, then again within `T_0 * T_mult`, and so on."""

    T_0: int
    T_mult: int
    eta_min: float

    def _start_rate(self, settings: dict[str, Any]) -> float:
        self.T_i: int = settings["T_0"]
        self.T_cur: float = self.last_epoch
        return super()._start_rate(settings)

    def get_lr(self) -> float:
        angle = math.pi * self.T_cur / self.T_i
        return float(formulas.cosine(self.base_lr, self.eta_min, angle, HOST))

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Go on to the next rate, or to that of `epoch`, which may be a part of one: `epoch + batch / batches`."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(
                f"CosineAnnealingWarmRestarts.step: epoch must not be negative, received {epoch}"
            )
        elif epoch < self.T_0:
            self.T_cur, self.T_i = epoch, self.T_0
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts
        self.last_epoch = math.floor(epoch)
        self.last_lr = self.get_lr()
        self._say()


class _OneCycle(Face):
    """Up from `max_learning_rate / divide_factor` within `phase_pct` of the steps and down to `end_learning_rate`;
    with `three_phase` first down to the initial rate as fast as it rose."""

    total_steps: int
    anneal_strategy: str

    def _start_rate(self, settings: dict[str, Any]) -> float:
        share, three_phase = settings["phase_pct"], settings["three_phase"]
        if three_phase and share >= 0.5:
            raise ValueError(f"OneCycleLR: phase_pct must be below 0.5 with three phases, received {share}")
        self._bounds, self._rates = formulas.one_cycle_phases(
            settings["max_learning_rate"],
            settings["total_steps"],
            settings["divide_factor"],
            settings["end_learning_rate"],
            share,
            three_phase,
        )
        return self._rates[0]

    def get_lr(self) -> float:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: step {step} of a schedule of {self.total_steps} steps")
        is_linear = self.anneal_strategy == "linear"
        return float(formulas.one_cycle(step, self._bounds, self._rates, is_linear, HOST))


class _Cyclic(Face):
    """Up and down between two rates, in `step_size_up` and `step_size_down` steps (as many by default).

    `triangular2` halves the height with each cycle, `exp_range` multiplies it by `exp_gamma**step`. `scale_fn` takes
    the place of `mode`: it gets the number of the cycle from 1, or the step when `scale_mode` is "iterations".
    """

    mode: str
    scale_fn: Callable[[float], float] | None
    scale_mode: str

    def _start_rate(self, settings: dict[str, Any]) -> float:
        mode, up, down = settings["mode"], settings["step_size_up"], settings["step_size_down"]
        if mode not in ("triangular", "triangular2", "exp_range") and settings["scale_fn"] is None:
            raise ValueError(
                f"CyclicLR: mode is triangular, triangular2 or exp_range, or give scale_fn; received {mode!r}"
            )
        self.cycle_size = float(up + (up if down is None else down))
        self.step_up_pct = up / self.cycle_size
        self.max_lr, self.gamma = float(settings["max_learning_rate"]), settings["exp_gamma"]
        self.amplitude = self.max_lr - settings["base_learning_rate"]
        return settings["base_learning_rate"]

    def get_lr(self) -> float:
        cycle = 1 + self.last_epoch // self.cycle_size
        position = 1.0 + self.last_epoch / self.cycle_size - cycle
        height = formulas.triangle(position, self.step_up_pct, HOST)
        if self.scale_fn is not None:
            scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        else:
            scale = formulas.triangle_scale(self.mode, cycle - 1, self.last_epoch, self.gamma, HOST)
        return float(self.base_lr + self.amplitude * height * scale)


LinearLR = make_schedule(
    core.LinearLR, _Linear, total_steps=POSITIVE, start_factor=UP_TO_ONE, end_factor=FROM_ZERO
)
CosineAnnealingDecay = make_schedule(core.CosineAnnealingDecay, _Cosine, T_max=COUNT, eta_min=NUMBER)
CosineAnnealingWarmRestarts = make_schedule(
    core.CosineAnnealingWarmRestarts, _WarmRestarts, T_0=PERIOD, T_mult=PERIOD
)
OneCycleLR = make_schedule(
    core.OneCycleLR,
    _OneCycle,
    max_learning_rate=NOT_NEGATIVE,
    end_learning_rate=NOT_NEGATIVE,
    total_steps=STEPS,
    phase_pct=FLOAT_FROM_ZERO,
    divide_factor=NUMBER,
    anneal_strategy=one_of("cos", "linear"),
)
CyclicLR = make_schedule(
    core.CyclicLR,
    _Cyclic,
    max_learning_rate=NOT_NEGATIVE,
    step_size_up=STEPS,
    step_size_down=OPTIONAL_STEPS,
    exp_gamma=FLOAT,
    scale_mode=one_of("cycle", "iterations"),
)
