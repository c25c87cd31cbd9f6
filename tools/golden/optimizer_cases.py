"""The cases of the optimizers' parity tests: parameters, gradients, settings. Needs numpy alone: both sides use it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

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


_ATTRS: dict[str, dict[str, Any]] = {
    "weight": {"learning_rate": 0.5},
    "bias": {"need_clip": False, "regularizer": ("l1", 0.02)},
    "scale": {"regularizer": ("l2", 0.0)},
}
CASES = {
    "sgd": Case("SGD"),
    "sgd_l1": Case("SGD", decay=("l1", 0.05)),
    "sgd_l2_clip_value": Case("SGD", decay=("l2", 0.05), clip=("value", (-0.2, 0.3))),
    "momentum": Case("Momentum"),
    "momentum_nesterov_l2_clip_global": Case(
        "Momentum", {"momentum": 0.8, "use_nesterov": True}, ("l2", 0.01), ("global_norm", 1.5)
    ),
    "momentum_attrs": Case("Momentum", {}, ("l2", 0.01), ("global_norm", 1.5), _ATTRS),
    "adam": Case("Adam"),
    "adam_l2_clip_norm": Case("Adam", {"beta1": 0.8, "beta2": 0.99}, ("l2", 0.1), ("norm", 0.8)),
    "adamw": Case("AdamW", {"weight_decay": 0.1}),
    "adamw_attrs": Case("AdamW", {"weight_decay": 0.1}, None, ("global_norm", 1.5), _ATTRS),
    "adamw_filter": Case("AdamW", {"weight_decay": 0.1, "apply_decay_param_fun": "weight"}),
    "adamax": Case("Adamax", {"epsilon": 1e-3}),
    "adagrad": Case("Adagrad", {"initial_accumulator_value": 0.1, "epsilon": 1e-2}),
    "adagrad_default": Case("Adagrad"),
    "adadelta": Case("Adadelta", {"rho": 0.9}, lr=1.0),
    "rmsprop": Case("RMSProp", {"rho": 0.9, "momentum": 0.9}),
    "rmsprop_centered": Case("RMSProp", {"rho": 0.9, "momentum": 0.5, "centered": True, "epsilon": 1e-3}),
    "lamb": Case("Lamb", {"lamb_weight_decay": 0.05}),
    "lamb_filter": Case("Lamb", {"lamb_weight_decay": 0.05, "exclude_from_weight_decay_fn": "bias"}),
    "lamb_no_decay": Case("Lamb", {"lamb_weight_decay": 0.0}),
    "lamb_always": Case("Lamb", {"lamb_weight_decay": 0.0, "always_adapt": True}),
    "nadam": Case("NAdam", decay=("l2", 0.01)),
    "radam": Case("RAdam", decay=("l2", 0.01)),
    "radam_short": Case("RAdam", {"beta1": 0.8, "beta2": 0.9}),
    "rprop": Case("Rprop"),
    "rprop_range": Case("Rprop", {"learning_rate_range": (0.008, 0.02), "etas": (0.7, 1.5)}),
    "asgd": Case("ASGD", decay=("l2", 0.05)),
    "asgd_batches": Case("ASGD", {"batch_num": 3}, clip=("global_norm", 1.5)),
}
TORCH = ("nadam", "radam", "radam_short")  # not in Paddle 2.6
PADDLE_3 = ("rprop", "rprop_range", "asgd", "asgd_batches")  # nor these

SCHEDULES: dict[str, tuple[str, dict[str, Any]]] = {
    "noam": ("NoamDecay", {"d_model": 64, "warmup_steps": 10, "learning_rate": 2.0}),
    "piecewise": ("PiecewiseDecay", {"boundaries": [10, 25, 40], "values": [0.1, 0.05, 0.01, 0.001]}),
    "natural_exp": ("NaturalExpDecay", {"learning_rate": 0.5, "gamma": 0.1}),
    "inverse_time": ("InverseTimeDecay", {"learning_rate": 0.5, "gamma": 0.1}),
    "polynomial": (
        "PolynomialDecay",
        {"learning_rate": 0.5, "decay_steps": 40, "end_lr": 0.01, "power": 0.9},
    ),
    "polynomial_cycle": (
        "PolynomialDecay",
        {"learning_rate": 0.5, "decay_steps": 20, "power": 2.0, "cycle": True},
    ),
    "exponential": ("ExponentialDecay", {"learning_rate": 0.5, "gamma": 0.9}),
    "multi_step": ("MultiStepDecay", {"learning_rate": 0.5, "milestones": [10, 30, 45], "gamma": 0.3}),
    "step": ("StepDecay", {"learning_rate": 0.5, "step_size": 7, "gamma": 0.8}),
    "cosine": ("CosineAnnealingDecay", {"learning_rate": 0.5, "T_max": 25, "eta_min": 0.01}),
    "restarts": ("CosineAnnealingWarmRestarts", {"learning_rate": 0.5, "T_0": 10, "eta_min": 0.01}),
    "restarts_longer": ("CosineAnnealingWarmRestarts", {"learning_rate": 0.5, "T_0": 5, "T_mult": 2}),
    "one_cycle": ("OneCycleLR", {"max_learning_rate": 1.0, "total_steps": 60}),
    "one_cycle_three": (
        "OneCycleLR",
        {"max_learning_rate": 1.0, "total_steps": 60, "three_phase": True, "anneal_strategy": "linear"},
    ),
    "cyclic": (
        "CyclicLR",
        {"base_learning_rate": 0.1, "max_learning_rate": 1.0, "step_size_up": 7, "step_size_down": 5},
    ),
    "cyclic_halved": (
        "CyclicLR",
        {"base_learning_rate": 0.1, "max_learning_rate": 1.0, "step_size_up": 6, "mode": "triangular2"},
    ),
    "cyclic_range": (
        "CyclicLR",
        {
            "base_learning_rate": 0.1,
            "max_learning_rate": 1.0,
            "step_size_up": 6,
            "mode": "exp_range",
            "exp_gamma": 0.97,
        },
    ),
    "linear": ("LinearLR", {"learning_rate": 0.5, "total_steps": 40, "start_factor": 0.2, "end_factor": 0.9}),
    "lambda": ("LambdaDecay", {"learning_rate": 0.5, "lr_lambda": "0.95 ** t"}),
    "multiplicative": ("MultiplicativeDecay", {"learning_rate": 0.5, "lr_lambda": "1 - 0.01 * t"}),
    "warmup": ("LinearWarmup", {"learning_rate": 0.5, "warmup_steps": 12, "start_lr": 0.1, "end_lr": 0.5}),
    "warmup_cosine": (
        "LinearWarmup",
        {"learning_rate": "cosine", "warmup_steps": 12, "start_lr": 0.0, "end_lr": 0.5},
    ),
}
LAMBDAS = {"0.95 ** t": lambda t: 0.95**t, "1 - 0.01 * t": lambda t: 1 - 0.01 * t}
PLATEAUS: dict[str, dict[str, Any]] = {
    "min_rel": {"patience": 2, "factor": 0.5, "cooldown": 1},
    "max_abs": {"mode": "max", "threshold_mode": "abs", "threshold": 0.05, "patience": 1, "min_lr": 0.02},
    "min_abs": {"threshold_mode": "abs", "threshold": 0.02, "patience": 3, "factor": 0.3, "epsilon": 0.01},
    "max_rel": {"mode": "max", "threshold": 0.1, "patience": 2, "factor": 0.7},
}


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
