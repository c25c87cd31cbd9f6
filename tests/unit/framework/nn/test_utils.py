from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import WeightError

X = jnp.asarray(np.random.default_rng(0).standard_normal((2, 5, 5, 3)), jnp.float32)


def test_weight_norm_keeps_the_function_and_renames_the_parameters():
    layer = nn.Conv2D(3, 4, 3)
    before = layer(X)
    assert nn.utils.weight_norm(layer) is layer
    assert layer.state_shapes() == {"bias": (4,), "weight_v": (4, 3, 3, 3), "weight_g": (4,)}
    np.testing.assert_allclose(layer(X), before, atol=1e-5)
    layer.weight_g = np.asarray(layer.weight_g) * 2
    np.testing.assert_allclose(layer(X) - layer.bias, 2 * (before - layer.bias), atol=1e-5)


@pytest.mark.parametrize(("dim", "shape"), [(1, (4,)), (0, (3,)), (None, ()), (-1, ())])
def test_weight_norm_along_an_axis(dim, shape):
    layer = nn.utils.weight_norm(nn.Linear(3, 4), dim=dim)
    assert layer.weight_g.shape == shape
    axes = {1: 0, 0: 1}.get(dim)
    np.testing.assert_allclose(np.linalg.norm(np.asarray(layer.weight), axis=axes), layer.weight_g, rtol=1e-5)


def test_weight_norm_trains_and_can_be_removed():
    layer = nn.utils.weight_norm(nn.Conv2D(3, 4, 3))
    _, grads = nn.value_and_grad(layer, lambda m, x: jnp.square(m(x)).mean())(X)
    assert set(grads) == {"bias", "weight_v", "weight_g"}
    assert nn.split(nn.utils.weight_norm(nn.Conv2D(3, 4, 3)))[0] == nn.split(layer)[0]
    before = layer(X)
    nn.utils.remove_weight_norm(layer)
    assert type(layer) is nn.Conv2D and set(layer.state_dict()) == {"weight", "bias"}
    np.testing.assert_allclose(layer(X), before, atol=1e-6)


def test_spectral_norm_bounds_the_weight_and_refines_in_training_only():
    layer = nn.utils.spectral_norm(nn.Linear(6, 5), n_power_iterations=5)
    assert set(layer.state_dict()) == {"weight_orig", "weight_u", "weight_v", "bias"}
    assert layer.weight_u.shape == (5,) and layer.weight_v.shape == (6,)
    layer.eval()
    vectors = np.asarray(layer.weight_u)
    layer(jnp.ones((1, 6)))
    np.testing.assert_array_equal(layer.weight_u, vectors)
    layer.train()
    for _ in range(20):
        layer(jnp.ones((1, 6)))
    assert np.linalg.norm(np.asarray(layer.weight), 2) == pytest.approx(1.0, abs=1e-3)
    assert not np.array_equal(layer.weight_u, vectors)


def test_spectral_norm_works_through_value_and_grad():
    layer = nn.utils.spectral_norm(nn.Conv2D(3, 4, 3))
    before = np.asarray(layer.weight_u)
    _, grads = nn.value_and_grad(layer, lambda m, x: jnp.square(m(x)).mean())(X)
    assert set(grads) == {"bias", "weight_orig"} and np.isfinite(grads["weight_orig"]).all()
    assert not np.array_equal(layer.weight_u, before)


def test_the_default_axis_is_that_of_the_outputs():
    assert nn.utils.spectral_norm(nn.Conv2DTranspose(3, 4, 2)).weight_u.shape == (4,)
    assert nn.utils.spectral_norm(nn.Conv2D(3, 4, 2)).weight_u.shape == (4,)
    assert nn.utils.spectral_norm(nn.Linear(3, 4), dim=0).weight_u.shape == (3,)


def test_errors():
    for wrap in (nn.utils.weight_norm, nn.utils.spectral_norm):
        with pytest.raises(WeightError, match=r"Linear: unknown parameter to normalise(.|\n)*weight, bias"):
            wrap(nn.Linear(2, 2), "kernel")
    with pytest.raises(WeightError, match="has no weight_norm"):
        nn.utils.remove_weight_norm(nn.Linear(2, 2))
