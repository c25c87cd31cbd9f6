import math

import numpy as np

from zoo.layers.mlp import Mlp, narrow_linear


def test_linear_gelu_linear() -> None:
    model = Mlp(1, 2)
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


def test_start() -> None:
    layer = narrow_linear(100, 100, bias=False)
    assert list(layer.state_shapes()) == ["weight"]
    assert abs(float(np.std(layer.weight)) - 0.02) < 0.001
