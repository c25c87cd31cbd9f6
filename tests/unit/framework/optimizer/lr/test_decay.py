"""Falling schedules: points by hand, functions of the user, errors."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from framework.core.errors import ConfigError, TraceError
from framework.optimizer import lr


def at(schedule: lr.LRScheduler, *steps: int) -> list[float]:
    return [schedule.at(step) for step in steps]


def test_points() -> None:
    assert at(lr.NoamDecay(4, 4), 0, 2, 4, 16) == pytest.approx([0.0, 0.125, 0.25, 0.125])
    assert at(lr.PiecewiseDecay((2, 4), (3.0, 2.0, 1.0)), 0, 1, 2, 3, 4, 99) == [3.0, 3.0, 2.0, 2.0, 1.0, 1.0]
    assert at(lr.MultiStepDecay(8.0, (2, 4), 0.5), 1, 2, 4) == pytest.approx([8.0, 4.0, 2.0])
    assert at(lr.StepDecay(8.0, 2, 0.5), 1, 2, 5) == pytest.approx([8.0, 4.0, 2.0])
    assert at(lr.NaturalExpDecay(1.0, math.log(2)), 0, 1, 3) == pytest.approx([1.0, 0.5, 0.125])
    assert at(lr.InverseTimeDecay(1.0, 0.5), 0, 2, 6) == pytest.approx([1.0, 0.5, 0.25])
    assert at(lr.PolynomialDecay(1.0, 10, 0.0, 2.0), 0, 5, 10, 11) == pytest.approx([1.0, 0.25, 0.0, 0.0])
    # the second cycle is twice as long: 15 of 20 steps
    assert at(lr.PolynomialDecay(1.0, 10, 0.0, cycle=True), 0, 10, 15) == pytest.approx([1.0, 0.0, 0.25])
    assert at(lr.InverseTimeDecay(1.0, 1.0, every=10), 9, 10, 20) == pytest.approx([1.0, 0.5, 1 / 3])


def test_functions() -> None:
    halves, growing = lr.LambdaDecay(1.0, lambda t: 0.5**t), lr.MultiplicativeDecay(1.0, lambda t: t)
    assert at(halves, 0, 3) == [1.0, 0.125]
    assert at(growing, 0, 1, 4) == [1.0, 1.0, 24.0]
    assert float(jax.jit(growing.at)(jnp.int32(4))) == 24.0
    assert at(lr.LambdaDecay(1.0, lambda t: 0.5**t, by_epoch=True).resolve(90, 10), 9, 10) == [1.0, 0.5]


@pytest.mark.parametrize("kind", [lr.LambdaDecay, lr.MultiplicativeDecay])
@pytest.mark.parametrize("function", [lambda t: 1.0 if t < 3 else 0.5, math.exp, lambda t: [1.0, 0.5][t]])
def test_functions_that_ask_for_the_value(kind: Any, function: Any) -> None:
    with pytest.raises(TraceError, match=r"the function of a schedule asks for the value[\s\S]*jnp.where"):
        jax.jit(kind(1.0, function).at)(jnp.int32(4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lr.NoamDecay(0, 4), "d_model is out of range"),
        (lambda: lr.PiecewiseDecay((), (1.0,)), "boundaries and values do not fit"),
        (lambda: lr.PiecewiseDecay((2, 1), (1.0, 2.0, 3.0)), "boundaries and values do not fit"),
        (lambda: lr.PiecewiseDecay((1, 2), (1.0, 2.0)), "boundaries and values do not fit"),
        (lambda: lr.MultiStepDecay(1.0, ()), "milestones do not rise"),
        (lambda: lr.MultiStepDecay(1.0, (3, 3)), "milestones do not rise"),
        (lambda: lr.MultiStepDecay(1.0, (3,), 1.0), "gamma is out of range"),
        (lambda: lr.StepDecay(1.0, 0), "step_size is out of range"),
        (lambda: lr.ExponentialDecay(1.0, 0.0), "gamma is out of range"),
        (lambda: lr.NaturalExpDecay(1.0, 0.0), "gamma is out of range"),
        (lambda: lr.InverseTimeDecay(1.0, 0.1, every=0), "every is out of range"),
        (lambda: lr.PolynomialDecay(1.0, 0), "decay_steps is out of range"),
        (lambda: lr.PolynomialDecay(1.0, power=0.0), "power is out of range"),
    ],
)
def test_errors(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
