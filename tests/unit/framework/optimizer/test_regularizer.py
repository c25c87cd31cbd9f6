"""L1 and L2 decay."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError
from framework.optimizer import L1Decay, L2Decay, WeightDecay

GRAD, PARAM = jnp.array([1.0, 1.0, 1.0]), jnp.array([2.0, -3.0, 0.0])


def test_what_is_added() -> None:
    np.testing.assert_allclose(L1Decay(0.5).add_to(GRAD, PARAM), [1.5, 0.5, 1.0])
    np.testing.assert_allclose(L2Decay(0.5).add_to(GRAD, PARAM), [2.0, -0.5, 1.0])
    assert WeightDecay().add_to(GRAD, PARAM) is GRAD


def test_of() -> None:
    assert WeightDecay.of(0.1) == L2Decay(0.1)
    assert WeightDecay.of(None) == WeightDecay(0.0, 0.0)
    assert WeightDecay.of(L1Decay(0.1)) == WeightDecay(l1=0.1)


def test_errors() -> None:
    wrong: Any = "0.1"
    with pytest.raises(ConfigError, match="the weight decay must be a number or a regularizer"):
        WeightDecay.of(wrong)
    with pytest.raises(ConfigError, match="weight decay is negative"):
        L2Decay(-0.1)
