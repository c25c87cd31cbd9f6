from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError
from framework.nn import functional as F

X = jnp.array([-4.0, -1.0, 0.0, 2.0, 8.0])
LAYERS = {
    "ReLU": (nn.ReLU(), F.relu),
    "ReLU6": (nn.ReLU6(), F.relu6),
    "Sigmoid": (nn.Sigmoid(), F.sigmoid),
    "LogSigmoid": (nn.LogSigmoid(), F.log_sigmoid),
    "Tanh": (nn.Tanh(), F.tanh),
    "Silu": (nn.Silu(), F.silu),
    "Swish": (nn.Swish(), F.swish),
    "Mish": (nn.Mish(), F.mish),
    "Hardswish": (nn.Hardswish(), F.hardswish),
    "Softsign": (nn.Softsign(), F.softsign),
    "Tanhshrink": (nn.Tanhshrink(), F.tanhshrink),
    "Hardsigmoid": (nn.Hardsigmoid(0.2), lambda x: F.hardsigmoid(x, 0.2)),
    "Hardtanh": (nn.Hardtanh(-2, 3), lambda x: F.hardtanh(x, -2, 3)),
    "GELU": (nn.GELU(True), lambda x: F.gelu(x, True)),
    "LeakyReLU": (nn.LeakyReLU(0.3), lambda x: F.leaky_relu(x, 0.3)),
    "ELU": (nn.ELU(2.0), lambda x: F.elu(x, 2.0)),
    "CELU": (nn.CELU(2.0), lambda x: F.celu(x, 2.0)),
    "SELU": (nn.SELU(), F.selu),
    "Softplus": (nn.Softplus(2.0, 3.0), lambda x: F.softplus(x, 2.0, 3.0)),
    "Softshrink": (nn.Softshrink(1.0), lambda x: F.softshrink(x, 1.0)),
    "Hardshrink": (nn.Hardshrink(1.0), lambda x: F.hardshrink(x, 1.0)),
    "ThresholdedReLU": (nn.ThresholdedReLU(3.0), lambda x: F.thresholded_relu(x, 3.0)),
    "Softmax": (nn.Softmax(0), lambda x: F.softmax(x, 0)),
    "LogSoftmax": (nn.LogSoftmax(0), lambda x: F.log_softmax(x, 0)),
    "GLU": (nn.GLU(), None),
    "Maxout": (nn.Maxout(2), None),
}


@pytest.mark.parametrize("name", [name for name, (_, function) in LAYERS.items() if function])
def test_layers_are_their_functions(name):
    layer, function = LAYERS[name]
    assert type(layer).__name__ == name and type(layer).__doc__
    np.testing.assert_array_equal(layer(X), function(X))


def test_values_by_hand():
    assert F.relu6(X).tolist() == [0, 0, 0, 2, 6]
    assert F.hardsigmoid(X).tolist() == pytest.approx([0, 1 / 3, 0.5, 5 / 6, 1])
    assert F.hardsigmoid(X, slope=0.2).tolist() == pytest.approx([0, 0.3, 0.5, 0.9, 1])
    assert F.hardswish(X).tolist() == pytest.approx([0, -1 / 3, 0, 5 / 3, 8])
    assert F.leaky_relu(X).tolist() == pytest.approx([-0.04, -0.01, 0, 2, 8])
    assert F.gelu(jnp.array([1.0])).tolist() == pytest.approx([0.8413447])
    assert nn.GLU()(jnp.array([3.0, 0.0])).tolist() == [1.5]
    assert nn.Maxout(2)(jnp.array([[1.0, 4.0, 3.0, 2.0]])).tolist() == [[4.0, 3.0]]
    assert nn.PReLU(1, init=0.5)(X).tolist() == [-2, -0.5, 0, 2, 8]


def test_layers_of_the_same_settings_share_a_program():
    assert nn.split(nn.Hardsigmoid(0.2))[0] == nn.split(nn.Hardsigmoid(0.2))[0]
    assert nn.split(nn.Hardsigmoid(0.2))[0] != nn.split(nn.Hardsigmoid())[0]
    assert repr(nn.LeakyReLU(0.2)) == "LeakyReLU(negative_slope=0.2)" and repr(nn.ReLU()) == "ReLU()"


def test_prelu_is_called_weight_with_an_underscore():
    assert list(nn.PReLU(3).state_dict()) == ["_weight"] and nn.PReLU().state_dict()["_weight"].tolist() == [
        0.25
    ]


def test_nan_is_not_hidden():
    bad = jnp.array([jnp.nan])
    for function in (F.relu, F.relu6, F.hardswish, F.hardsigmoid, F.leaky_relu, F.elu):
        assert jnp.isnan(function(bad)).all(), function


@pytest.mark.parametrize(
    "name", ["sigmoid", "log_sigmoid", "silu", "mish", "softplus", "elu", "celu", "gelu", "softmax"]
)
def test_large_inputs_have_finite_values_and_gradients(name):
    function = getattr(F, name)
    value, grad = jax.value_and_grad(lambda x: function(x).sum())(jnp.array([-1e4, -100.0, 100.0, 1e4]))
    assert np.isfinite(value) and np.isfinite(grad).all()


def test_bfloat16_stays():
    x = X.astype(jnp.bfloat16)
    for name, (layer, function) in LAYERS.items():
        if function:
            assert layer(x).dtype == jnp.bfloat16, name
    assert nn.PReLU()(x).dtype == jnp.bfloat16
    assert F.softmax(x, dtype=jnp.float32).dtype == F.log_softmax(x, dtype=jnp.float32).dtype == jnp.float32


def test_argmax_last_takes_the_first_maximum():
    x = jnp.array([[1.0, 3.0, 3.0], [-jnp.inf, -jnp.inf, -jnp.inf], [jnp.nan, 1.0, 2.0]])
    assert F.argmax_last(x).tolist()[:2] == [1, 0]
    assert 0 <= F.argmax_last(x)[2] <= 2
    values = jnp.asarray(np.random.default_rng(0).standard_normal((2, 5, 301)), jnp.float32)
    assert F.argmax_last(values).tolist() == values.argmax(-1).tolist()
    assert F.argmax_last(jnp.ones((2, 1))).tolist() == [0, 0]


def test_gumbel_softmax():
    x = jnp.log(jnp.array([0.2, 0.8])) * jnp.ones((2000, 1))
    soft = F.gumbel_softmax(x, temperature=0.5, key=jax.random.key(0))
    np.testing.assert_allclose(soft.sum(-1), 1, rtol=1e-5)
    hard = F.gumbel_softmax(x, hard=True, key=jax.random.key(0))
    assert hard[:, 1].mean() == pytest.approx(0.8, abs=0.03)
    np.testing.assert_allclose(np.sort(hard, -1), np.tile([0.0, 1.0], (2000, 1)), atol=1e-6)
    grad = jax.grad(lambda x: F.gumbel_softmax(x, hard=True, key=jax.random.key(0))[:, 0].sum())(x)
    assert np.abs(grad).max() > 0


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            lambda: F.prelu(jnp.ones((2, 3)), jnp.ones(2)),
            r"prelu: the weight has one value or one for each channel",
        ),
        (lambda: F.maxout(jnp.ones((2, 3)), 2), "maxout: channels divide into groups"),
        (lambda: F.glu(jnp.ones(3)), "glu: the axis splits into two halves"),
    ],
)
def test_errors(run, message):
    with pytest.raises(ShapeError, match=message):
        run()
