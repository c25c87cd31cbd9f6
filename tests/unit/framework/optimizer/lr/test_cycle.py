"""Schedules that rise or come back: points by hand, errors."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest

from framework.core.errors import ConfigError
from framework.optimizer import lr


def at(schedule: lr.LRScheduler, *steps: int) -> list[float]:
    return [schedule.at(step) for step in steps]


def test_points() -> None:
    assert at(lr.LinearLR(1.0, 4, 0.5), 0, 2, 4, 9) == pytest.approx([0.5, 0.75, 1.0, 1.0])
    assert at(lr.CosineAnnealingDecay(1.0, 4, 0.2), 0, 2, 4, 8) == pytest.approx([1.0, 0.6, 0.2, 1.0])
    restarts = lr.CosineAnnealingWarmRestarts(1.0, 4, 2)  # restarts at 4, 12, 28
    assert at(restarts, 0, 2, 4, 8, 12, 28) == pytest.approx([1.0, 0.5, 1.0, 0.5, 1.0, 1.0])
    assert at(lr.CyclicLR(0.0, 1.0, 4, 2), 0, 2, 4, 5, 6) == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])
    halved = lr.CyclicLR(0.0, 1.0, 2, mode="triangular2")
    assert at(halved, 2, 6, 10) == pytest.approx([1.0, 0.5, 0.25])
    shrinking = lr.CyclicLR(0.0, 1.0, 2, mode="exp_range", exp_gamma=0.5)
    assert at(shrinking, 2, 6) == pytest.approx([0.25, 0.015625])


def test_the_scale_of_the_user() -> None:
    by_cycle = lr.CyclicLR(0.0, 1.0, 2, scale_fn=lambda cycle: 1 / cycle)
    assert at(by_cycle, 2, 6, 10) == pytest.approx([1.0, 1 / 2, 1 / 3])
    by_step = lr.CyclicLR(0.0, 1.0, 2, scale_fn=lambda step: 1 / step, scale_mode="iterations")
    assert at(by_step, 2, 6) == pytest.approx([1 / 2, 1 / 6])


def test_one_cycle() -> None:
    # up until step 0.3 * 20 - 1 = 5, down until 19
    schedule = lr.OneCycleLR(1.0, 20, divide_factor=5.0, end_learning_rate=0.0)
    assert at(schedule, 0, 5, 12, 19) == pytest.approx([0.2, 1.0, 0.5, 0.0], abs=1e-9)
    assert schedule.at(40) == schedule.at(19)
    assert float(schedule.at(jnp.int32(40))) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lr.LinearWarmup(0.1, 0, 0.0, 0.1), "warmup_steps is out of range"),
        (lambda: lr.LinearWarmup(0.1, 5, 0.1, 0.1), "a warmup rises"),
        (lambda: lr.LinearLR(1.0, 0), "total_steps is out of range"),
        (lambda: lr.LinearLR(1.0, 5, 0.0), "a factor is out of range"),
        (lambda: lr.LinearLR(1.0, 5, 0.5, 1.5), "a factor is out of range"),
        (lambda: lr.CosineAnnealingDecay(1.0, 0), "T_max is out of range"),
        (lambda: lr.CosineAnnealingWarmRestarts(1.0, 0), "T_0 is out of range"),
        (lambda: lr.CosineAnnealingWarmRestarts(1.0, 5, 0), "T_mult is out of range"),
        (lambda: lr.OneCycleLR(1.0, 0), "total_steps is out of range"),
        (lambda: lr.OneCycleLR(1.0, 100, phase_pct=1.0), "phase_pct is out of range"),
        (lambda: lr.OneCycleLR(1.0, 100, phase_pct=0.5, three_phase=True), "phase_pct is out of range"),
        (lambda: lr.OneCycleLR(1.0, 3), "the first phase has no step"),
        (lambda: lr.CyclicLR(0.1, 1.0, 0), "step_size_up is out of range"),
        (lambda: lr.CyclicLR(0.1, 1.0, 5, 0), "step_size_down is out of range"),
        (lambda: lr.CyclicLR(0.1, 1.0, 5, exp_gamma=0.0), "exp_gamma is out of range"),
    ],
)
def test_errors(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
