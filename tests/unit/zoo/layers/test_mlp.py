import math

import jax
import jax.numpy as jnp
import numpy as np

from zoo.layers.mlp import MLP, narrow_linear


def test_linear_gelu_linear() -> None:
    model = MLP(1, 2)
    model.set_state_dict(
        {
            "fc1.weight": np.array([[1.0, -1.0]]),
            "fc1.bias": np.array([0.0, 1.0]),
            "fc2.weight": np.array([[2.0], [10.0]]),
            "fc2.bias": np.array([0.5]),
        }
    )

    def gelu(v: float) -> float:
        return v * (1 + math.erf(v / math.sqrt(2))) / 2

    out = model(np.array([[[1.0]], [[3.0]]], np.float32))
    want = [2 * gelu(1) + 10 * gelu(0) + 0.5, 2 * gelu(3) + 10 * gelu(-2) + 0.5]
    np.testing.assert_allclose(np.asarray(out).reshape(-1), want, rtol=1e-5)


def test_names_and_activation() -> None:
    layer = MLP(1, 1, jax.nn.relu, ("w_1", "w_2"))
    one, zero = np.ones((1, 1)), np.zeros(1)
    layer.set_state_dict({"w_1.weight": one, "w_1.bias": zero, "w_2.weight": 2 * one, "w_2.bias": zero + 1})
    assert np.asarray(layer(jnp.array([[3.0], [-3.0]]))).tolist() == [[7.0], [1.0]]


def test_start() -> None:
    layer = narrow_linear(100, 100, bias=False)
    assert list(layer.state_shapes()) == ["weight"]
    assert abs(float(np.std(layer.weight)) - 0.02) < 0.001
