"""Activations by the names of config.json: values of transformers 5.24 in float64."""

import jax.numpy as jnp
import numpy as np
import pytest

from zoo.layers.hidden_activations import ACTIVATIONS

_INPUTS = (-20.0, -3.0, -1.0, -0.25, 0.0, 0.5, 2.0, 20.0)
_TANH_GELU = (0.0, -0.003637392, -0.158808, -0.1003246, 0.0, 0.345714, 1.954598, 20.0)
_GELU = (0.0, -0.004049694, -0.1586553, -0.1003234, 0.0, 0.3457312, 1.9545, 20.0)
_SILU = (-4.122307e-08, -0.1422776, -0.2689414, -0.1094559, 0.0, 0.3112297, 1.761594, 20.0)
_EXPECTED = {
    **dict.fromkeys(("gelu", "gelu_python"), _GELU),
    **dict.fromkeys(
        ("gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate", "gelu_fast"), _TANH_GELU
    ),
    **dict.fromkeys(("silu", "swish"), _SILU),
    "quick_gelu": (-3.29341e-14, -0.01807131, -0.1542042, -0.09880035, 0.0, 0.3503884, 1.935659, 20.0),
    "relu": (0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 2.0, 20.0),
    "relu2": (0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 4.0, 400.0),
    "relu6": (0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 2.0, 6.0),
    "leaky_relu": (-0.2, -0.03, -0.01, -0.0025, 0.0, 0.5, 2.0, 20.0),
    "sigmoid": (2.061154e-09, 0.04742587, 0.2689414, 0.4378235, 0.5, 0.6224593, 0.8807971, 1.0),
    "tanh": (-1.0, -0.9950548, -0.7615942, -0.2449187, 0.0, 0.4621172, 0.9640276, 1.0),
    "hardswish": (0.0, 0.0, -0.3333333, -0.1145833, 0.0, 0.2916667, 1.666667, 20.0),
    "mish": (-4.122307e-08, -0.1456475, -0.3034015, -0.129927, 0.0, 0.3752452, 1.943959, 20.0),
    "linear": _INPUTS,
}


def test_all_names_have_values() -> None:
    assert ACTIVATIONS.keys() == _EXPECTED.keys()


@pytest.mark.parametrize("name", _EXPECTED)
def test_values(name: str) -> None:
    values = ACTIVATIONS[name](jnp.array(_INPUTS, jnp.float32))
    np.testing.assert_allclose(values, np.array(_EXPECTED[name]), rtol=2e-6, atol=2e-7)
