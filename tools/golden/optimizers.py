"""Optimizers and schedules of Paddle and torch: what they are run on, which the tests draw too, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tools.golden.network import import_paddle
from tools.golden.tables import load

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "optimizer"
STEPS = 50
KEPT = (1, 2, 3, 5, 8, 13, 21, 34, 50)  # the steps after which parameters are stored
SHAPES = {"weight": (3, 4), "bias": (4,), "scale": (5,)}


class Case(NamedTuple):
    """`decay` is ("l1" or "l2", coefficient); `attrs` are arguments of ParamAttr by parameter."""

    optimizer: str
    options: Mapping[str, Any] = MappingProxyType({})
    decay: tuple[str, float] | None = None
    clip: tuple[str, Any] | None = None
    attrs: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    lr: float = 0.01


def _tuples(value: Any) -> Any:
    """Lists of settings as tuples, as programs write them; those of a schedule stay."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


_ROWS = load("optimizer")
CASES = {name: Case(**_tuples(row)) for name, row in _ROWS["cases"].items()}
TORCH, PADDLE_3 = tuple(_ROWS["torch"]), tuple(_ROWS["paddle_3"])
SCHEDULES: dict[str, tuple[str, dict[str, Any]]] = {
    name: tuple(row) for name, row in _ROWS["schedules"].items()
}
PLATEAUS: dict[str, dict[str, Any]] = _ROWS["plateaus"]
LAMBDAS = {"0.95 ** t": lambda t: 0.95**t, "1 - 0.01 * t": lambda t: 1 - 0.01 * t}


def parameters() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


def gradients() -> list[dict[str, np.ndarray]]:
    """One set a step: noise around a direction, of changing size."""
    rng = np.random.default_rng(2)
    mean = {name: rng.standard_normal(shape) * 0.3 for name, shape in SHAPES.items()}
    return [
        {
            n: ((mean[n] + rng.standard_normal(s) * 0.5) * (1 + np.sin(t / 3))).astype(np.float32)
            for n, s in SHAPES.items()
        }
        for t in range(STEPS)
    ]


def rate(case: Case, step: int) -> float:
    """The learning rate changes every step, so its place in a rule shows; Paddle's Rprop takes a number only."""
    if case.optimizer == "Rprop":
        return case.lr
    return case.lr * (1 - step / 100)


def metrics() -> list[float]:
    rng = np.random.default_rng(3)
    return [float(np.exp(-t / 8) + 0.05 * rng.standard_normal()) for t in range(60)]


def paddle_decay(decay: tuple[str, float] | None) -> Any:
    paddle = import_paddle()
    return decay and getattr(paddle.regularizer, decay[0].upper() + "Decay")(decay[1])


def paddle_run(case: Case) -> dict[str, np.ndarray]:
    paddle = import_paddle()
    made = {}
    for name, value in parameters().items():
        options = dict(case.attrs.get(name, {}))
        if "regularizer" in options:
            options["regularizer"] = paddle_decay(options["regularizer"])
        attr = paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(value), **options)
        made[name] = paddle.create_parameter(list(value.shape), "float32", attr=attr)
    names = {parameter.name: name for name, parameter in made.items()}
    options = dict(case.options)
    if only := options.get("apply_decay_param_fun"):
        options["apply_decay_param_fun"] = lambda name: names[name] == only
    if spared := options.get("exclude_from_weight_decay_fn"):
        options["exclude_from_weight_decay_fn"] = lambda parameter: names[parameter.name] == spared
    if case.decay is not None:
        options["weight_decay"] = paddle_decay(case.decay)
    if case.clip is not None:
        kind, limit = case.clip
        clips = {"value": "ClipGradByValue", "norm": "ClipGradByNorm", "global_norm": "ClipGradByGlobalNorm"}
        clip = getattr(paddle.nn, clips[kind])
        options["grad_clip"] = clip(limit[1], limit[0]) if kind == "value" else clip(limit)
    schedule = paddle.optimizer.lr.LambdaDecay(1.0, lambda step: rate(case, step))
    optimizer = getattr(paddle.optimizer, case.optimizer)(
        learning_rate=case.lr if case.optimizer == "Rprop" else schedule,
        parameters=list(made.values()),
        **options,
    )

    def step(grads: dict[str, np.ndarray]) -> None:
        for name, grad in grads.items():
            made[name].grad = paddle.to_tensor(grad)
        optimizer.step()
        schedule.step()

    return record(step, lambda: {name: parameter.numpy() for name, parameter in made.items()})


def torch_run(case: Case) -> dict[str, np.ndarray]:
    import torch

    made = {name: torch.nn.Parameter(torch.from_numpy(value)) for name, value in parameters().items()}
    options = dict(case.options)
    betas = (options.pop("beta1", 0.9), options.pop("beta2", 0.999))
    decay = case.decay[1] if case.decay else 0.0
    optimizer = getattr(torch.optim, case.optimizer)(
        made.values(), betas=betas, weight_decay=decay, **options
    )
    done = [0]

    def step(grads: dict[str, np.ndarray]) -> None:
        for name, grad in grads.items():
            made[name].grad = torch.from_numpy(grad)
        optimizer.param_groups[0]["lr"] = rate(case, done[0])
        optimizer.step()
        done[0] += 1

    return record(step, lambda: {name: parameter.detach().numpy() for name, parameter in made.items()})


def record(step: Any, values: Any) -> dict[str, np.ndarray]:
    """The parameters after the steps KEPT, stacked by name."""
    kept: dict[str, list[np.ndarray]] = {}
    for number, grads in zip(range(1, STEPS + 1), gradients()):
        step(grads)
        if number in KEPT:
            for name, value in values().items():
                kept.setdefault(name, []).append(value.copy())
    return {name: np.stack(rows) for name, rows in kept.items()}


def schedule_values(name: str) -> np.ndarray:
    paddle = import_paddle()

    def made(name: str) -> Any:
        kind, options = SCHEDULES[name]
        options = dict(options)
        if "lr_lambda" in options:
            options["lr_lambda"] = LAMBDAS[options["lr_lambda"]]
        if isinstance(options.get("learning_rate"), str):
            options["learning_rate"] = made(options["learning_rate"])
        return getattr(paddle.optimizer.lr, kind)(**options)

    schedule, values = made(name), []
    for _ in range(60):
        values.append(schedule())
        schedule.step()
    return np.asarray(values, np.float64)


def plateau_values(name: str) -> np.ndarray:
    paddle = import_paddle()
    schedule, values = paddle.optimizer.lr.ReduceOnPlateau(0.5, **PLATEAUS[name]), []
    for metric in metrics():
        schedule.step(metric)
        values.append(schedule())
    return np.asarray(values, np.float64)


def _flat(runs: dict[str, dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {f"{case}/{key}": value for case, values in runs.items() for key, value in values.items()}


def files(name: str, cases: list[str]) -> Iterator[tuple[Path, dict[str, np.ndarray]]]:
    for kind in cases or ["paddle"]:
        if kind == "torch":
            yield OUTPUT / "torch.npz", _flat({name: torch_run(CASES[name]) for name in TORCH})
            continue
        listed = PADDLE_3 if kind == "paddle_3" else [n for n in CASES if n not in (*TORCH, *PADDLE_3)]
        yield OUTPUT / f"{kind}.npz", _flat({name: paddle_run(CASES[name]) for name in listed})
        if kind == "paddle":
            schedules = {name: schedule_values(name) for name in SCHEDULES}
            plateaus = {name: plateau_values(name) for name in PLATEAUS}
            yield OUTPUT / "schedules.npz", _flat({"schedule": schedules, "plateau": plateaus})
