"""What schedules share: floats and traced values, resolved lengths, epochs, checks, YAML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import pytest

from framework.config import Kind, available, bind
from framework.core.errors import ConfigError
from framework.optimizer import lr

HINT: Any = Annotated[Any, Kind("schedule")]


def test_a_float_for_an_int_and_float32_for_an_array() -> None:
    schedule = lr.LinearLR(0.4, 10, 0.5)
    assert schedule.at(5) == pytest.approx(0.3) and type(schedule.at(5)) is float
    for value in (schedule.at(jnp.int32(5)), jax.jit(schedule.at)(jnp.int32(5))):
        assert value.dtype == jnp.float32 and value.shape == () and float(value) == pytest.approx(0.3)


def test_late_steps() -> None:
    """A million steps in, float32 still knows where in its cycle a schedule is."""
    for schedule in (
        lr.CyclicLR(0.1, 1.0, 1500, 500),
        lr.CosineAnnealingDecay(1.0, 700),
        lr.CosineAnnealingWarmRestarts(1.0, 10, 2),
        lr.PolynomialDecay(1.0, 1_000_000),
        lr.ExponentialDecay(1.0, 0.99999),
    ):
        for step in (999_990, 1_000_001):
            assert float(schedule.at(jnp.int32(step))) == pytest.approx(schedule.at(step), rel=3e-6, abs=1e-7)


def test_open_lengths_are_the_whole_training() -> None:
    assert lr.CosineAnnealingDecay(0.1).resolve(90) == lr.CosineAnnealingDecay(0.1, 90)
    assert lr.PolynomialDecay(0.1).resolve(90) == lr.PolynomialDecay(0.1, 90)
    assert lr.OneCycleLR(0.1).resolve(90) == lr.OneCycleLR(0.1, 90)
    assert lr.LinearLR(0.1).resolve(90) == lr.LinearLR(0.1, 90)
    assert lr.StepDecay(0.1, 30).resolve(90) == lr.StepDecay(0.1, 30)


def test_epochs_become_steps() -> None:
    resolved = lr.MultiStepDecay(0.1, (30, 60), by_epoch=True).resolve(900, 10)
    assert resolved == lr.MultiStepDecay(0.1, (300, 600))
    assert lr.CosineAnnealingDecay(0.1, by_epoch=True).resolve(900, 10) == lr.CosineAnnealingDecay(0.1, 900)
    schedule = lr.ExponentialDecay(1.0, 0.5, by_epoch=True).resolve(100, 10)
    assert [schedule.at(t) for t in (0, 9, 10, 25)] == pytest.approx([1.0, 1.0, 0.5, 0.25])
    assert lr.CyclicLR(0.1, 1.0, 2, by_epoch=True).resolve(100, 10) == lr.CyclicLR(0.1, 1.0, 20)


def test_what_is_inside_a_warmup_lasts_for_the_rest() -> None:
    schedule = lr.LinearWarmup(lr.CosineAnnealingDecay(0.4), 2, 0.0, 0.4, by_epoch=True)
    resolved = schedule.resolve(60, 10)
    assert resolved == lr.LinearWarmup(lr.CosineAnnealingDecay(0.4, 40), 20, 0.0, 0.4)
    assert [resolved.at(t) for t in (0, 10, 20, 40, 60)] == pytest.approx([0.0, 0.2, 0.4, 0.2, 0.0])
    constant = lr.LinearWarmup(0.4, 2, 0.0, 0.4)
    assert constant.resolve(60) == constant and [constant.at(t) for t in (1, 2, 9)] == [0.2, 0.4, 0.4]


def test_an_open_schedule_has_no_rate() -> None:
    with pytest.raises(ConfigError, match=r"open ends[\s\S]*received: T_max[\s\S]*resolve\(total_steps"):
        lr.CosineAnnealingDecay(0.1).at(0)
    with pytest.raises(ConfigError, match="received: by_epoch"):
        lr.StepDecay(0.1, 30, by_epoch=True).at(0)
    with pytest.raises(ConfigError, match=r"received: learning_rate\.T_max"):
        lr.LinearWarmup(lr.CosineAnnealingDecay(0.1), 5, 0.0, 0.1).at(0)


def test_errors_of_resolved() -> None:
    with pytest.raises(ConfigError, match="the schedule counts epochs"):
        lr.StepDecay(0.1, 30, by_epoch=True).resolve(90)
    with pytest.raises(ConfigError, match="no step is left for the schedule"):
        lr.CosineAnnealingDecay(0.1).resolve(0)


def test_a_warmup_longer_than_the_training_is_shortened(caplog: pytest.LogCaptureFixture) -> None:
    schedule = lr.LinearWarmup(lr.CosineAnnealingDecay(0.1), 100, 0.0, 0.1).resolve(60)
    assert "the warmup takes 6 of 60 steps in place of 100" in caplog.text
    assert schedule.at(0) == 0 and schedule.at(6) == pytest.approx(0.1) and float(schedule.at(59)) < 0.001
    by_epoch = lr.LinearWarmup(lr.CosineAnnealingDecay(0.1), 3, 0.0, 0.1, by_epoch=True).resolve(60, 20)
    assert by_epoch.at(6) == pytest.approx(0.1)
    assert lr.LinearWarmup(lr.CosineAnnealingDecay(0.1), 5, 0.0, 0.1).resolve(1).at(1) == pytest.approx(0.1)


def test_a_training_of_one_step_has_no_warmup(caplog: pytest.LogCaptureFixture) -> None:
    """Its one step had the rate from which the warmup rises: 0, and nothing was learnt."""
    for inner in (lr.CosineAnnealingDecay(0.1), lr.PolynomialDecay(0.1)):
        assert lr.LinearWarmup(inner, 1, 0.0, 0.1).resolve(1).at(0) == pytest.approx(0.1)
    assert "the warmup is left out, as the training has one step" in caplog.text


def test_a_schedule_of_the_user() -> None:
    @dataclass(frozen=True)
    class Sawtooth(lr.LRScheduler):
        learning_rate: float
        length: int

        def rate(self, step: Any, xp: Any) -> Any:
            return self.learning_rate * (1 - step % self.length / self.length)

    schedule = Sawtooth(0.4, 4)
    assert [schedule.at(t) for t in range(5)] == pytest.approx([0.4, 0.3, 0.2, 0.1, 0.4])
    assert float(jax.jit(schedule.at)(jnp.int32(3))) == pytest.approx(0.1)
    assert lr.LinearWarmup(schedule, 2, 0.0, 0.4).at(3) == pytest.approx(0.3)
    with pytest.raises(NotImplementedError, match="LRScheduler defines no rate"):
        lr.LRScheduler().at(0)


def test_constant() -> None:
    assert lr.Constant(0.3).at(0) == lr.Constant(0.3).at(10**9) == 0.3


def test_yaml() -> None:
    text = {
        "type": "LinearWarmup",
        "learning_rate": {"type": "PiecewiseDecay", "boundaries": [30, 60], "values": [0.1, 0.01, 0.001]},
        "warmup_steps": 5,
        "start_lr": 0,
        "end_lr": 0.1,
    }
    bound = bind(text, HINT, ("framework",))
    assert bound == lr.LinearWarmup(lr.PiecewiseDecay((30, 60), (0.1, 0.01, 0.001)), 5, 0.0, 0.1)
    assert set(available("schedule", ("framework",))) == set(lr.__all__) - {
        "LRScheduler", "PlateauState", "LambdaDecay", "MultiplicativeDecay"
    }  # fmt: skip
    with pytest.raises(ConfigError, match="wrong type"):
        bind({"type": "CyclicLR", "scale_fn": "f"}, HINT, ("framework",))


def test_epochs_that_end_within_a_step() -> None:
    """10 batches an epoch, of which 4 make a step: epoch 30 begins after 75 steps."""
    schedule = lr.MultiStepDecay(0.1, (30, 61), by_epoch=True).resolve(225, 10 / 4)
    assert schedule == lr.MultiStepDecay(0.1, (75, 152.5))  # type: ignore[arg-type]
    assert [schedule.at(step) for step in (74, 75, 152, 153)] == pytest.approx([0.1, 0.01, 0.01, 0.001])
    every = lr.ExponentialDecay(1.0, 0.5, by_epoch=True).resolve(225, 10 / 4)
    assert [every.at(step) for step in range(6)] == [1, 1, 1, 0.5, 0.5, 0.25]
    assert [float(every.at(jnp.int32(step))) for step in range(6)] == [1, 1, 1, 0.5, 0.5, 0.25]
