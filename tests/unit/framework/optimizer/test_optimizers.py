"""The optimizers: first steps by hand, the names of YAML, what only Python can say. Parity is in tests/golden."""

from __future__ import annotations

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn, optimizer
from framework.config import Kind, available, bind, dump, find, schema
from framework.core.errors import ConfigError

PACKAGES = ("framework",)
HINT: Any = Annotated[Any, Kind("optimizer")]
NAMES = list(available("optimizer", PACKAGES))


class Two(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.weight = self.create_parameter((1, 2), nn.initializer.Assign(np.array([[1.0, -2.0]])))
        self.bias = self.create_parameter((1,), nn.initializer.Constant(4.0))


def stepped(opt: optimizer.Optimizer, *grads: tuple[float, float, float]) -> list[float]:
    layer = Two()
    for a, b, c in grads:
        opt.step(layer, {"weight": jnp.array([[a, b]]), "bias": jnp.array([c])})
    return [*layer.weight[0].tolist(), *layer.bias.tolist()]


G = (0.5, -1.0, 2.0)
FIRST = {
    "SGD": (optimizer.SGD(0.1), [0.95, -1.9, 3.8]),
    "Momentum": (optimizer.Momentum(0.1, 0.5, use_nesterov=True), [0.925, -1.85, 3.7]),
    "Adam": (optimizer.Adam(0.1), [0.9, -1.9, 3.9]),
    "AdamW": (optimizer.AdamW(0.1, weight_decay=0.5), [0.85, -1.8, 3.7]),
    "Adamax": (optimizer.Adamax(0.1), [0.9, -1.9, 3.9]),
    "Adagrad": (optimizer.Adagrad(0.1), [0.9, -1.9, 3.9]),
    "RMSProp": (optimizer.RMSProp(0.1, rho=0.75), [0.8, -1.8, 3.8]),
    "Lion": (optimizer.Lion(0.1, weight_decay=0.5), [0.85, -1.8, 3.7]),
    "RAdam": (optimizer.RAdam(0.1), [0.95, -1.9, 3.8]),
    # weight: norm sqrt(5), direction (1, -1) of norm sqrt(2); bias: norm 4, direction 1
    "Lamb": (
        optimizer.Lamb(0.1, 0.0, always_adapt=True),
        [1 - 0.1 * 2.5**0.5, -2 + 0.1 * 2.5**0.5, 3.6],
    ),
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_step(name: str) -> None:
    opt, expected = FIRST[name]
    np.testing.assert_allclose(stepped(opt, G), expected, rtol=1e-5)


def test_momentum_remembers() -> None:
    # v = 0.5, then 0.5 * 0.5 + 1 = 1.25 for the first element
    after = stepped(optimizer.Momentum(0.1, 0.5), (0.5, 0.0, 0.0), (1.0, 0.0, 0.0))
    np.testing.assert_allclose(after, [1 - 0.1 * 0.5 - 0.1 * 1.25, -2.0, 4.0], rtol=1e-6)


def test_lion_is_the_rule_of_its_paper() -> None:
    grads = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    p, m = np.array([1.0, -2.0, 4.0]), np.zeros(3)
    for g in grads:
        p = p - 0.01 * (np.sign(0.9 * m + 0.1 * g) + 0.2 * p)
        m = 0.99 * m + 0.01 * g
    ours = stepped(optimizer.Lion(0.01, weight_decay=0.2), *[(*map(float, g),) for g in grads])  # type: ignore[misc]
    np.testing.assert_allclose(ours, p, rtol=1e-6)


def test_a_zero_beta() -> None:
    np.testing.assert_allclose(stepped(optimizer.Adam(0.1, beta1=0.0), G), [0.9, -1.9, 3.9], rtol=1e-5)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("AdamW", "Lamb")]
)  # these decay by default
def test_a_zero_gradient(name: str) -> None:
    assert stepped(getattr(optimizer, name)(0.1), (0.0, 0.0, 0.0)) == [1.0, -2.0, 4.0]


def test_all_are_public() -> None:
    assert len(NAMES) == 14 and {"SGD", "AdamW", "Lion", "RAdam"} < set(NAMES)
    assert set(NAMES) <= set(optimizer.__all__)


def test_filters_of_python() -> None:
    opt = optimizer.AdamW(0.1, weight_decay=0.5, apply_decay_param_fun=lambda name: name == "weight")
    np.testing.assert_allclose(stepped(opt, G), [0.85, -1.8, 3.9], rtol=1e-5)
    opt = optimizer.AdamW(0.1, weight_decay=0.0, lr_ratio=lambda name: 0.5 if name == "bias" else 1.0)
    np.testing.assert_allclose(stepped(opt, G), [0.9, -1.9, 3.95], rtol=1e-5)
    # without decay Lamb does not scale the step of the bias
    opt = optimizer.Lamb(0.1, 0.5, exclude_from_weight_decay_fn=lambda name: name == "bias")
    np.testing.assert_allclose(stepped(opt, G)[2], 3.9, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_yaml(name: str) -> None:
    cls = find("optimizer", name, PACKAGES).config
    assert cls is getattr(optimizer, name)
    text: dict[str, Any] = {
        "type": name,
        "learning_rate": {"type": "CosineAnnealingDecay", "learning_rate": 0.1},
        "grad_clip": {"global_norm": 1.0},
        "no_decay": ["norm"],
        "lr_multipliers": {"backbone": 0.1},
    }
    if name != "Lamb":
        text["weight_decay"] = 0.001
    bound = bind(text, HINT, PACKAGES)
    assert type(bound) is cls and bound.grad_clip == optimizer.GradClip(global_norm=1.0)
    assert bound.learning_rate == optimizer.lr.CosineAnnealingDecay(0.1)
    assert dump(bound).startswith(f"type: {name}\nlearning_rate:")
    assert "lr_multipliers: a mapping of names to float = {}" in schema(cls, PACKAGES)


def test_yaml_of_decay_and_clip() -> None:
    bound = bind(
        {
            "type": "Momentum",
            "learning_rate": 0.1,
            "weight_decay": {"l1": 0.1},
            "grad_clip": {"value": [-1.0, 2]},
        },
        HINT,
        PACKAGES,
    )
    assert bound.weight_decay == optimizer.L1Decay(0.1)
    assert bound.grad_clip == optimizer.ClipGradByValue(2, -1)
    with pytest.raises(ConfigError, match="wrong type"):
        bind({"type": "AdamW", "apply_decay_param_fun": "norm"}, HINT, PACKAGES)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optimizer.Adam(beta1=1.0), "beta1 is out of range"),
        (lambda: optimizer.Adadelta(rho=-0.1), "rho is out of range"),
        (lambda: optimizer.Adam(epsilon=-1.0), "epsilon is negative"),
        (lambda: optimizer.Momentum(momentum=-0.1), "momentum is negative"),
        (lambda: optimizer.SGD(-0.1), "the learning rate is negative"),
        (lambda: optimizer.SGD(accumulate=0), "accumulate is too small"),
        (lambda: optimizer.SGD(layer_decay=1.5), "layer_decay is out of range"),
        (lambda: optimizer.SGD(lr_multipliers={"a": -1.0}), "a factor of lr_multipliers is negative"),
        (lambda: optimizer.SGD(frozen=("(",)), "a pattern must be a regular expression"),
        (lambda: optimizer.AdamW(weight_decay=optimizer.L1Decay(0.1)), "its decay is decoupled"),  # type: ignore[arg-type]
        (lambda: optimizer.Lamb(weight_decay=0.1), "the decay of Lamb has its own name"),
        (lambda: optimizer.Rprop(learning_rate_range=(2.0, 1.0)), "learning_rate_range is out of order"),
        (lambda: optimizer.Rprop(etas=(0.5, 0.9)), "etas are out of range"),
        (lambda: optimizer.ASGD(batch_num=0), "batch_num is too small"),
    ],
)
def test_errors(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
