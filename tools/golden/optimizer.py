"""Makes tests/golden/data/optimizer/*.npz: what Paddle and torch compute for the cases in optimizer_cases.py.

Run it from the root of the repository, once in an environment with paddlepaddle 2.6.2 and numpy and, for the
optimizers that Paddle 2.6 has not, in one with torch and one with paddlepaddle 3.3.1 (no jax, none of our code):

    python tools/golden/optimizer.py paddle
    python tools/golden/optimizer.py torch
    python tools/golden/optimizer.py paddle_3
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from optimizer_cases import (
    CASES,
    KEPT,
    LAMBDAS,
    PADDLE_3,
    PLATEAUS,
    SCHEDULES,
    STEPS,
    TORCH,
    Case,
    gradients,
    metrics,
    parameters,
    rate,
)

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "optimizer"


def paddle_decay(decay: tuple[str, float] | None) -> Any:
    import paddle  # type: ignore[import-not-found]

    return decay and getattr(paddle.regularizer, decay[0].upper() + "Decay")(decay[1])


def paddle_run(case: Case) -> dict[str, np.ndarray]:
    import paddle  # type: ignore[import-not-found]

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
    import paddle  # type: ignore[import-not-found]

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
    import paddle  # type: ignore[import-not-found]

    schedule, values = paddle.optimizer.lr.ReduceOnPlateau(0.5, **PLATEAUS[name]), []
    for metric in metrics():
        schedule.step(metric)
        values.append(schedule())
    return np.asarray(values, np.float64)


def save(name: str, runs: dict[str, dict[str, np.ndarray]]) -> None:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    flat = {f"{case}/{key}": value for case, values in runs.items() for key, value in values.items()}
    np.savez_compressed(OUTPUT / f"{name}.npz", **flat)


def main() -> None:
    if sys.argv[1] == "torch":
        save("torch", {name: torch_run(CASES[name]) for name in TORCH})
        return
    if sys.argv[1] == "paddle_3":
        save("paddle_3", {name: paddle_run(CASES[name]) for name in PADDLE_3})
        return
    others = {*TORCH, *PADDLE_3}
    save("paddle", {name: paddle_run(case) for name, case in CASES.items() if name not in others})
    schedules = {name: schedule_values(name) for name in SCHEDULES}
    save("schedules", {"schedule": schedules, "plateau": {name: plateau_values(name) for name in PLATEAUS}})


if __name__ == "__main__":
    main()
