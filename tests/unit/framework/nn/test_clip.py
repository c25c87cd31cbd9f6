"""Clipping by value, by each norm, by the global norm: hand-computed."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError
from framework.optimizer import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue, GradClip

GRADS = {"a": jnp.array([3.0, -4.0]), "b": jnp.array([[12.0]])}  # norms 5, 12 and together 13


def test_by_value() -> None:
    clipped = ClipGradByValue(3.5)(GRADS)
    assert clipped["a"].tolist() == [3.0, -3.5] and clipped["b"].tolist() == [[3.5]]
    assert ClipGradByValue(5, -1)(GRADS)["a"].tolist() == [3.0, -1.0]


def test_by_norm() -> None:
    clipped = ClipGradByNorm(6)(GRADS)
    assert clipped["a"].tolist() == [3.0, -4.0]  # its norm 5 is below the limit
    np.testing.assert_allclose(clipped["b"], [[6.0]], rtol=1e-6)


def test_by_global_norm() -> None:
    clipped = ClipGradByGlobalNorm(6.5)(GRADS)
    np.testing.assert_allclose(clipped["a"], [1.5, -2.0], rtol=1e-6)
    np.testing.assert_allclose(clipped["b"], [[6.0]], rtol=1e-6)
    assert ClipGradByGlobalNorm(14)(GRADS)["a"].tolist() == [3.0, -4.0]


def test_no_gradient_and_a_zero_gradient() -> None:
    assert ClipGradByGlobalNorm(1.0)({}) == {}
    zero = {"a": jnp.zeros((2,))}
    for clip in (GradClip(norm=1.0), GradClip(global_norm=1.0)):
        assert clip(zero)["a"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": 1.0, "global_norm": 1.0},
        {"norm": 0.0},
        {"global_norm": -1.0},
        {"value": -1.0},
        {"value": 0.0},
        {"value": (1.0, -1.0)},
    ],
)
def test_what_is_no_clip(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="gradients are clipped in one way"):
        GradClip(**options)
