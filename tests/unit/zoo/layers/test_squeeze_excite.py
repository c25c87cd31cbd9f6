import numpy as np

from zoo.layers.squeeze_excite import SqueezeExcite


def gated(x: np.ndarray, slope: float | None, shortcut: bool) -> np.ndarray:
    layer = SqueezeExcite(4, slope=slope, shortcut=shortcut)
    layer.set_state_dict(
        {
            "conv1.weight": np.ones((1, 4, 1, 1)),
            "conv1.bias": np.array([-2.0]),
            "conv2.weight": np.array([0.0, 0.25, 9.0, -9.0]).reshape(4, 1, 1, 1),
            "conv2.bias": np.zeros(4),
        }
    )
    return np.asarray(layer(x))


def test_gate_from_the_mean_by_hand() -> None:
    x = np.array([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 3.0, 3.0]], np.float32).reshape(1, 2, 1, 4)
    # means 1.5, 0.5, 2, 2: sum 6, minus 2 is 4; gates 0.5, 0.5 + slope * 1, 1, 0
    by_hand = np.array([0.5, 0.7, 1.0, 0.0])
    np.testing.assert_allclose(gated(x, 0.2, False), x * by_hand, atol=1e-6)
    np.testing.assert_allclose(gated(x, 1 / 6, False)[..., 1], x[..., 1] * (2 / 3), atol=1e-6)
    np.testing.assert_allclose(gated(x, 0.2, True), x + x * by_hand, atol=1e-6)
    assert gated(x[:, :1, :1], 0.2, False).shape == (1, 1, 1, 4)


def test_the_sigmoid_itself() -> None:
    x = np.full((1, 1, 1, 4), 1.5, np.float32)  # sum 6, minus 2 is 4; 4 * (0, 1/4, 9, -9) before the gate
    by_hand = 1 / (1 + np.exp([0.0, -1.0, -36.0, 36.0]))
    np.testing.assert_allclose(gated(x, None, False)[0, 0, 0], 1.5 * by_hand, atol=1e-6)
