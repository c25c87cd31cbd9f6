"""Parity of framework.optimizer with Paddle 2.6.2 and, for what Paddle has only since 3.0, with torch or 3.3.1."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn, optimizer
from framework.optimizer import lr
from tools.golden.optimizers import (
    CASES,
    KEPT,
    LAMBDAS,
    PADDLE_3,
    PLATEAUS,
    SCHEDULES,
    SHAPES,
    TORCH,
    Case,
    gradients,
    metrics,
    parameters,
    rate,
)

DATA = Path(__file__).parent / "data" / "optimizer"
TOLERANCE = 1e-6  # of the largest value of a parameter


@functools.cache
def reference(file: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{file}.npz") as stored:
        return dict(stored)


def regularizer(decay: tuple[str, float] | None) -> optimizer.WeightDecay | None:
    return decay and getattr(optimizer, decay[0].upper() + "Decay")(decay[1])


def build_layer(case: Case) -> nn.Layer:
    layer = nn.Layer()
    for name, value in parameters().items():
        options = dict(case.attrs.get(name, {}))
        options["regularizer"] = regularizer(options.get("regularizer"))
        parameter = layer.create_parameter(SHAPES[name], nn.ParamAttr(**options))
        parameter.set_value(value)
        layer.add_parameter(name, parameter)
    return layer


def build_optimizer(case: Case) -> optimizer.Optimizer:
    options: dict[str, Any] = dict(case.options)
    for filtered in ("apply_decay_param_fun", "exclude_from_weight_decay_fn"):
        if filtered in options:
            options[filtered] = functools.partial(str.__eq__, options[filtered])
    if case.decay is not None:
        options["weight_decay"] = regularizer(case.decay)
    if case.clip is not None:
        options["grad_clip"] = optimizer.GradClip(**{case.clip[0]: case.clip[1]})
    return getattr(optimizer, case.optimizer)(case.lr, **options)


@pytest.mark.parametrize("name", CASES)
def test_fifty_steps(name: str) -> None:
    case = CASES[name]
    ours, layer = build_optimizer(case), build_layer(case)
    how = ours.param_groups(layer)
    _, params, _ = nn.split(layer)
    state = ours.init(params, how)
    step = jax.jit(lambda *args: ours.update(*args, how))
    want = reference("torch" if name in TORCH else "paddle_3" if name in PADDLE_3 else "paddle")
    limits = {n: TOLERANCE * np.abs(want[f"{name}/{n}"]).max() for n in SHAPES}
    moved = 0.0
    for number, grads in enumerate(gradients()):
        params, state, _ = step(grads, state, params, np.float32(rate(case, number)))
        if number + 1 in KEPT:
            for n, value in params.items():
                expected = want[f"{name}/{n}"][KEPT.index(number + 1)]
                moved = max(moved, float(np.abs(expected - parameters()[n]).max()))
                np.testing.assert_allclose(
                    value, expected, rtol=0, atol=limits[n], err_msg=f"{n} {number + 1}"
                )
    assert moved > 0.05 and int(state["step"]) == 50


def build_schedule(name: str) -> lr.LRScheduler:
    kind, options = SCHEDULES[name]
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    if "lr_lambda" in options:
        options["lr_lambda"] = LAMBDAS[options["lr_lambda"]]
    if isinstance(options.get("learning_rate"), str):
        options["learning_rate"] = build_schedule(options["learning_rate"])
    return getattr(lr, kind)(**options)


@pytest.mark.parametrize("name", SCHEDULES)
def test_sixty_rates(name: str) -> None:
    schedule, want = build_schedule(name), reference("schedules")[f"schedule/{name}"]
    assert len(want) == 60 and np.ptp(want) > 0
    np.testing.assert_allclose([schedule.at(t) for t in range(60)], want, rtol=1e-12, atol=1e-12)
    traced = jax.jit(jax.vmap(schedule.at))(jnp.arange(60, dtype=jnp.int32))
    assert traced.dtype == jnp.float32
    np.testing.assert_allclose(traced, want, rtol=1e-6, atol=1e-6 * want.max())


@pytest.mark.parametrize("name", PLATEAUS)
def test_plateau(name: str) -> None:
    schedule = lr.ReduceOnPlateau(0.5, **PLATEAUS[name])
    state, want = lr.PlateauState(schedule), reference("schedules")[f"plateau/{name}"]
    assert len(set(want)) > 1
    np.testing.assert_allclose([0.5 * state.observe(m) for m in metrics()], want, rtol=1e-12)
