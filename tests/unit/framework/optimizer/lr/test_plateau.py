"""ReduceOnPlateau and its state. The parity with Paddle is in tests/golden."""

from __future__ import annotations

import json
from typing import Any

import pytest

from framework.core.errors import ConfigError, InputError, WeightError
from framework.optimizer import lr

SCHEDULE = lr.ReduceOnPlateau(0.4, factor=0.5, patience=1, cooldown=1, min_lr=0.15)


def test_observations() -> None:
    state = lr.PlateauState(SCHEDULE)
    # first, better, bad, bad: reduced; one of cooldown; bad, bad: down to min_lr
    seen = [state.observe(metric) for metric in (1.0, 0.5, 0.5, 0.6, 0.9, 0.5, 0.5)]
    assert seen == pytest.approx([1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.375])
    for _ in range(9):
        assert state.observe(0.5) == pytest.approx(0.375)  # it stays at min_lr


def test_a_nan_is_no_improvement() -> None:
    state = lr.PlateauState(SCHEDULE)
    assert state.observe(float("nan")) == 1.0 and state.best is None
    assert state.observe(float("nan")) == 0.5


def test_the_state_is_json() -> None:
    state, other = lr.PlateauState(SCHEDULE), lr.PlateauState(SCHEDULE)
    for metric in (1.0, 1.0, 1.0):
        state.observe(metric)
    other.set_state_dict(json.loads(json.dumps(state.state_dict())))
    rest = (1.0, 1.0, 1.0, 1.0)
    assert [other.observe(m) for m in rest] == [state.observe(m) for m in rest]


def test_the_schedule_itself_is_constant_and_is_found_in_a_warmup() -> None:
    assert SCHEDULE.at(0) == SCHEDULE.at(1000) == 0.4
    assert lr.LinearWarmup(SCHEDULE, 5, 0.0, 0.4).plateau is SCHEDULE and SCHEDULE.plateau is SCHEDULE
    assert lr.Constant(0.1).plateau is None


def test_errors() -> None:
    wrong: Any = None
    with pytest.raises(InputError, match="a plateau needs a number"):
        lr.PlateauState(SCHEDULE).observe(wrong)
    with pytest.raises(WeightError, match="the state of a plateau must have its keys"):
        lr.PlateauState(SCHEDULE).set_state_dict({"best": 1.0})
    for options in ({"factor": 1.0}, {"factor": 0.0}):
        with pytest.raises(ConfigError, match="no rate can be reduced"):
            lr.ReduceOnPlateau(0.1, **options)
    with pytest.raises(ConfigError, match="no rate can be reduced"):
        lr.ReduceOnPlateau(0.0)
