from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from framework import nn
from framework.nn._nnx import from_nnx, to_nnx

X = jnp.asarray(np.random.default_rng(0).standard_normal((6, 3)), jnp.float32)


class Module(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(3, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.rest = nnx.List([nnx.Linear(4, 2, rngs=rngs)])

    def __call__(self, x):
        return self.rest[0](self.drop(self.norm(self.first(x))))


def test_a_layer_as_a_module_computes_the_same_and_updates_its_buffers():
    layer = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1D(4))
    module = to_nnx(layer)
    np.testing.assert_allclose(module(X), layer(X), atol=1e-6)
    np.testing.assert_allclose(module.buffers["1._mean"][...], layer[1]._mean, atol=1e-6)
    module.eval()
    np.testing.assert_allclose(module(X), layer.eval()(X), atol=1e-6)


def test_a_layer_as_a_module_trains_in_nnx():
    module = to_nnx(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1D(4), nn.Dropout(0.5)))

    @nnx.jit
    def step(module, x, key):
        return nnx.value_and_grad(lambda m: jnp.square(m(x, key=key)).mean())(module)

    before = np.asarray(module.buffers["1._mean"][...])
    loss, grads = step(module, X, jax.random.key(0))
    assert np.isfinite(loss) and grads["params"]["0.weight"][...].shape == (3, 4)
    assert not np.array_equal(module.buffers["1._mean"][...], before)


def test_a_module_as_a_layer_computes_the_same():
    module = Module(nnx.Rngs(0))
    layer = from_nnx(module).eval()
    module.eval()
    np.testing.assert_allclose(layer(X), module(X), atol=1e-6)
    assert "first.kernel" in layer.state_dict() and "norm.mean" in layer.state_dict()
    assert not any("rng" in name for name in layer.state_dict())


def test_a_module_inside_a_model_trains_and_updates_its_statistics():
    model = nn.Sequential(nn.Linear(3, 3), from_nnx(Module(nnx.Rngs(0))))
    step = nn.value_and_grad(model, lambda m, x: jnp.square(m(x)).mean())
    before = np.asarray(model[1]._buffers["norm.mean"])
    losses = [float(step(X)[0]) for _ in range(2)]
    _, grads = step(X)
    assert set(grads) >= {"0.weight", "1.first.kernel", "1.norm.scale", "1.rest.0.bias"}
    assert losses[0] != losses[1]  # each step has its own dropout mask
    assert not np.array_equal(model[1]._buffers["norm.mean"], before)
    model.eval()
    np.testing.assert_array_equal(model(X), model(X))
