"""The moving average: each rule by hand, exclusion, dtypes, errors."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError, WeightError
from framework.optimizer import EMA

VALUES = (1.0, 3.0, 8.0)


def run(ema: EMA, first: float = 10.0) -> list[float]:
    """The average after each of VALUES."""
    state, seen = ema.init({"w": jnp.array([first])}), []
    for value in VALUES:
        params = {"w": jnp.array([value])}
        state = jax.jit(ema.update)(state, params)
        seen.append(float(ema.values(state, params)["w"][0]))
    return seen


def mean(decays: list[float]) -> list[float]:
    """What a mean of the values is with these decays, with weights that add up to 1."""
    out = []
    for count in range(1, 4):
        weights = [(1 - decays[i]) * float(np.prod(decays[i + 1 : count])) for i in range(count)]
        out.append(float(np.dot(weights, VALUES[:count]) / sum(weights)))
    return out


@pytest.mark.parametrize(
    ("rule", "decays"),
    [
        ("threshold", [1 / 10, 2 / 11, 3 / 12]),
        ("normal", [0.9] * 3),
        ("exponential", [0.9 * (1 - np.exp(-t / 2000)) for t in (1, 2, 3)]),
        ("running", [0.0, 1 / 2, 2 / 3]),
    ],
)
def test_rules(rule: Literal["threshold", "normal", "exponential", "running"], decays: list[float]) -> None:
    np.testing.assert_allclose(run(EMA(0.9, rule)), mean(decays), rtol=1e-5)


def test_the_decay_is_a_limit() -> None:
    np.testing.assert_allclose(run(EMA(0.15, "threshold")), mean([0.1, 0.15, 0.15]), rtol=1e-5)
    np.testing.assert_allclose(run(EMA(0.25, "running")), mean([0.0, 0.25, 0.25]), rtol=1e-5)


def test_plain_begins_with_the_parameters() -> None:
    np.testing.assert_allclose(run(EMA(0.5, "plain")), [5.5, 4.25, 6.125])


def test_values_before_the_first_update_are_the_parameters() -> None:
    params = {"w": jnp.array([2.0, 3.0])}
    ema = EMA()
    assert ema.values(ema.init(params), params)["w"].tolist() == [2.0, 3.0]


def test_excluded_and_low_precision() -> None:
    params = {"conv.weight": jnp.array([1.0], jnp.bfloat16), "head.weight": jnp.array([1.0])}
    ema = EMA(0.5, "plain", exclude=("^head",))
    state = ema.init(params)
    assert list(state["average"]) == ["conv.weight"] and state["average"]["conv.weight"].dtype == jnp.float32
    params = {name: value * 3 for name, value in params.items()}
    values = ema.values(ema.update(state, params), params)
    assert values["conv.weight"].dtype == jnp.bfloat16
    assert (float(values["conv.weight"][0]), float(values["head.weight"][0])) == (2.0, 3.0)


def test_the_average_is_no_alias_of_the_parameters() -> None:
    params = {"w": jnp.ones((2,))}
    state = EMA(rule="plain").init(params)
    step = jax.jit(
        lambda state, params: (EMA(rule="plain").update(state, params), params), donate_argnums=(0, 1)
    )
    assert step(state, params)[1]["w"].tolist() == [1.0, 1.0]


def test_errors() -> None:
    with pytest.raises(ConfigError, match="decay is out of range"):
        EMA(1.0)
    with pytest.raises(WeightError, match="averaged parameters are missing"):
        EMA().update(EMA().init({"w": jnp.ones(())}), {})
