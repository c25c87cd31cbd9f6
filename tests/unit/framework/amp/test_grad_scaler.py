from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import amp
from framework.core.errors import ConfigError

GRADS = {"w": jnp.asarray([2.0, 4.0]), "b": jnp.asarray(8.0)}


def state(scale: float, good: int = 0, bad: int = 0) -> amp.ScalerState:
    return amp.ScalerState(jnp.float32(scale), jnp.int32(good), jnp.int32(bad))


def test_the_first_state_is_paddles():
    first = amp.GradScaler().init()
    assert [float(v) for v in first] == [65536.0, 0, 0]
    assert amp.GradScaler().incr_every_n_steps == 2000


# What paddle 2.6.2's update_loss_scaling_ returned with incr_every_n_steps=2, ratios 2 and 0.5:
# (decr_every, non-finite, before, after)
RULES = [
    (1, False, (4.0, 0, 0), (4.0, 1, 0)),
    (1, False, (4.0, 1, 0), (8.0, 0, 0)),
    (1, True, (4.0, 1, 0), (2.0, 0, 0)),
    (1, True, (1.0, 0, 0), (1.0, 0, 0)),
    (1, True, (1.5, 0, 0), (1.0, 0, 0)),
    (1, False, (3e38, 1, 0), (3e38, 0, 0)),
    (1, False, (4.0, 0, 1), (4.0, 1, 0)),
    (2, True, (4.0, 1, 0), (4.0, 0, 1)),
    (2, True, (4.0, 1, 1), (2.0, 0, 0)),
]


@pytest.mark.parametrize(("every", "broken", "before", "after"), RULES)
def test_the_rule_of_paddle(every, broken, before, after):
    scaler = amp.GradScaler(incr_every_n_steps=2, decr_every_n_nan_or_inf=every)
    grads = {**GRADS, "b": jnp.asarray(jnp.inf)} if broken else GRADS
    _, finite, found = jax.jit(scaler.unscale_and_update)(grads, state(*before))
    assert bool(finite) is not broken
    np.testing.assert_allclose([float(v) for v in found], after, rtol=1e-6)


def test_gradients_come_back_unscaled_and_nan_is_seen():
    scaler = amp.GradScaler(init_loss_scaling=2.0)
    assert float(scaler.scale(jnp.float16(3.0), scaler.init())) == 6.0
    grads, finite, _ = scaler.unscale_and_update(GRADS, scaler.init())
    assert grads["w"].tolist() == [1, 2] and float(grads["b"]) == 4.0 and bool(finite)
    _, finite, _ = scaler.unscale_and_update({"w": jnp.asarray([1.0, jnp.nan])}, scaler.init())
    assert not bool(finite)
    grads, finite, _ = scaler.unscale_and_update({}, scaler.init())
    assert grads == {} and bool(finite)


def test_it_saves_gradients_that_float16_loses():
    """A product of 1e-5 and 1e-4 lies below the smallest float16, 6e-8."""
    x = jnp.asarray(1e-4, jnp.float32)

    def loss(w, scaled):
        low = (w.astype(jnp.float16) * x.astype(jnp.float16)).astype(jnp.float32) * 1e-5
        return scaler.scale(low, scaler.init()) if scaled else low

    scaler = amp.GradScaler()
    w = jnp.asarray(1.0)
    assert float(jax.grad(loss)(w, False)) == 0.0
    grad, finite, _ = scaler.unscale_and_update(jax.grad(loss)(w, True), scaler.init())
    assert bool(finite)
    np.testing.assert_allclose(grad, 1e-9, rtol=1e-2)


def test_switched_off_or_static():
    off = amp.GradScaler(enable=False)
    assert float(off.scale(jnp.asarray(3.0), off.init())) == 3.0
    grads, finite, after = off.unscale_and_update({"w": jnp.asarray(jnp.inf)}, off.init())
    assert np.isinf(grads["w"]) and bool(finite) and float(after.scale) == 1.0
    fixed = amp.GradScaler(use_dynamic_loss_scaling=False, incr_every_n_steps=1)
    assert float(fixed.unscale_and_update(GRADS, fixed.init())[2].scale) == 65536.0


@pytest.mark.parametrize(
    "numbers",
    [
        {"init_loss_scaling": 0.0},
        {"incr_ratio": 1.0},
        {"decr_ratio": 1.0},
        {"incr_every_n_steps": 0},
        {"decr_every_n_nan_or_inf": 0},
    ],
)
def test_numbers_out_of_range(numbers):
    (name,) = numbers
    with pytest.raises(
        ConfigError, match=rf"GradScaler.{name}: a number of the loss scaling is out of range"
    ):
        amp.GradScaler(**numbers)
