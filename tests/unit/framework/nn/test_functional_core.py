from __future__ import annotations

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core import rng
from framework.core.errors import WeightError


def model() -> nn.Layer:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1D(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2))


X = jnp.asarray(np.random.default_rng(0).standard_normal((6, 3)), jnp.float32)


def test_split_names_everything_and_apply_is_the_layer():
    layer = model().eval()
    graphdef, params, buffers = nn.split(layer)
    assert list(params) == ["0.weight", "0.bias", "1.weight", "1.bias", "4.weight", "4.bias"]
    assert list(buffers) == ["1._mean", "1._variance"]
    out, after = nn.apply(graphdef, params, buffers, None, X)
    np.testing.assert_allclose(out, layer(X), rtol=1e-6)
    assert after == buffers


def test_apply_does_not_touch_the_layer():
    layer = model()
    graphdef, params, buffers = nn.split(layer)
    before = {k: np.asarray(v) for k, v in layer.state_dict().items()}
    doubled = {k: v * 2 for k, v in params.items()}
    _, after = nn.apply(graphdef, doubled, buffers, jax.random.key(0), X)
    for name, value in layer.state_dict().items():
        np.testing.assert_array_equal(value, before[name])
    assert np.abs(after["1._mean"]).max() > 0 and buffers["1._mean"].tolist() == [0.0] * 4


def test_apply_under_jit_returns_the_new_buffers():
    graphdef, params, buffers = nn.split(model())
    run = jax.jit(nn.apply, static_argnums=0)
    out, after = run(graphdef, params, buffers, jax.random.key(0), X)
    eager, eager_after = nn.apply(graphdef, params, buffers, jax.random.key(0), X)
    np.testing.assert_allclose(out, eager, atol=1e-6)
    np.testing.assert_allclose(after["1._mean"], eager_after["1._mean"], atol=1e-6)


def test_the_key_decides_the_dropout():
    graphdef, _params, _buffers = nn.split(nn.Dropout(0.5))
    x = jnp.ones((8, 8))
    one, two, three = (nn.apply(graphdef, {}, {}, jax.random.key(k), x)[0] for k in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, three)


def test_apply_can_call_another_method():
    graphdef, params, buffers = nn.split(nn.MultiHeadAttention(4, 2))
    (k, v), _ = nn.apply(
        graphdef, params, buffers, None, jnp.ones((1, 3, 4)), jnp.ones((1, 3, 4)), method="compute_kv"
    )
    assert k.shape == v.shape == (1, 3, 2, 2)


def test_update_writes_back_and_names_what_it_does_not_know():
    layer = model()
    _, _params, _buffers = nn.split(layer)
    nn.update(layer, {"0.bias": jnp.full(4, 3.0)}, {"1._mean": jnp.full(4, 5.0)})
    assert layer[0].bias.tolist() == [3.0] * 4 and layer[1]._mean.tolist() == [5.0] * 4
    with pytest.raises(
        WeightError, match=r"Sequential: update got names that the layer has not(.|\n)*head.bias"
    ):
        nn.update(layer, {"head.bias": jnp.zeros(1)})
    with pytest.raises(WeightError, match=r"1\._scale"):
        nn.update(layer, None, {"1._scale": jnp.zeros(1)})


def test_a_missing_array_is_named():
    graphdef, params, buffers = nn.split(model())
    del params["4.bias"]
    with pytest.raises(
        WeightError, match=r"Linear: an array that the layer needs was not given(.|\n)*'4.bias'"
    ):
        nn.apply(graphdef, params, buffers, None, X)


def test_abstract_initialises_nothing():
    layer = nn.Linear(100_000, 100_000)  # 40 GB if it were made
    graphdef, params, _ = nn.abstract(layer)
    assert params["weight"].shape == (100_000, 100_000) and params["weight"].dtype == jnp.float32
    x = jax.ShapeDtypeStruct((2, 100_000), jnp.float32)
    out = jax.eval_shape(lambda p, x: nn.apply(graphdef, p, {}, None, x)[0], params, x)
    assert out.shape == (2, 100_000)


# -- GraphDef -----------------------------------------------------------------------------------------------------


def test_graphdefs_compare_and_hash_by_value():
    one, two = nn.split(model())[0], nn.split(model())[0]
    assert one == two and hash(one) == hash(two) and one is not two
    assert one != nn.split(nn.Sequential(nn.Linear(3, 4)))[0] and one != "graphdef"
    clone = copy.deepcopy(model())
    assert nn.split(clone)[0] == one


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.eval(),
        lambda m: setattr(m[3], "p", 0.1),
        lambda m: m.freeze("0.weight"),
        lambda m: setattr(m[1], "momentum", 0.5),
        lambda m: m.append(nn.ReLU()),
        lambda m: m[0].register_forward_post_hook(lambda *a: None),
        lambda m: m[0].register_buffer("extra", np.zeros(1)),
    ],
)
def test_any_change_of_structure_is_another_graphdef(change):
    one, two = model(), model()
    change(two)
    assert nn.split(one)[0] != nn.split(two)[0]


def test_train_and_eval_are_two_programs_and_equal_models_share_one():
    traces = []

    class Spy(nn.Layer):
        def forward(self, x):
            traces.append(self.training)
            return x

    run = jax.jit(lambda g, x: nn.apply(g, {}, {}, None, x)[0], static_argnums=0)
    layer = Spy()
    run(nn.split(layer)[0], X)
    run(nn.split(layer.eval())[0], X)
    run(nn.split(layer.train())[0], X)
    run(nn.split(Spy())[0], X)
    assert traces == [True, False]


def test_a_shared_layer_or_parameter_is_an_error_that_names_both():
    shared = nn.Linear(2, 2)
    with pytest.raises(
        WeightError, match=r"reachable by two attributes(.|\n)*0 and 2(.|\n)*self.embed.weight"
    ):
        nn.split(nn.Sequential(shared, nn.ReLU(), shared))
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0]._parameters["weight"]
    with pytest.raises(WeightError, match=r"0.weight and 1.weight"):
        nn.split(tied)
    loop = nn.Sequential(nn.ReLU())
    loop[0].parent = loop
    with pytest.raises(WeightError, match=r"\(the model\) and 0.parent"):
        nn.split(loop)


def test_tied_weights_read_the_other_layers_array():
    class Tied(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 3)

        def forward(self, ids):
            return nn.functional.linear(self.embed(ids), self.embed.weight.T)

    layer = Tied()
    _, grads = nn.value_and_grad(layer, lambda m, ids: m(ids).sum())(jnp.array([1, 1]))
    assert list(grads) == ["embed.weight"] and layer(jnp.array([2])).shape == (1, 5)


# -- value_and_grad -----------------------------------------------------------------------------------------------


def test_value_and_grad_returns_gradients_by_name_and_updates_buffers():
    layer = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1D(2))
    step = nn.value_and_grad(layer, lambda m, x: jnp.square(m(x)).mean())
    loss, grads = step(X)
    assert set(grads) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    assert loss == pytest.approx(1.0, abs=1e-3)  # a normalised output has variance one
    batch = np.asarray(nn.functional.linear(X, layer[0].weight, layer[0].bias))
    np.testing.assert_allclose(layer[1]._mean, 0.1 * batch.mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(layer[1]._variance, 0.9 + 0.1 * batch.var(0), rtol=1e-4)
    step(X)
    np.testing.assert_allclose(layer[1]._mean, 0.19 * batch.mean(0), rtol=1e-4, atol=1e-6)


def test_value_and_grad_agrees_with_a_hand_computed_gradient():
    layer = nn.Linear(2, 1)
    layer.weight, layer.bias = np.array([[1.0], [2.0]]), np.array([0.5])
    loss, grads = nn.value_and_grad(layer, lambda m, x: jnp.square(m(x)).sum())(jnp.array([[1.0, 1.0]]))
    assert loss == 3.5**2
    assert grads["weight"].tolist() == [[7.0], [7.0]] and grads["bias"].tolist() == [7.0]


def test_frozen_parameters_have_no_gradient():
    layer = model()
    layer.freeze("^0")
    _, grads = nn.value_and_grad(layer, lambda m, x: m(x).sum())(X)
    assert set(grads) == {"1.weight", "1.bias", "4.weight", "4.bias"}


def test_aux_comes_back_with_the_loss():
    layer = nn.Linear(3, 2)
    (loss, aux), _ = nn.value_and_grad(layer, lambda m, x: (m(x).sum(), x.sum()), has_aux=True)(X)
    assert aux == pytest.approx(float(X.sum()), rel=1e-6) and loss.shape == ()


def test_each_step_draws_another_mask_and_the_seed_repeats_them():
    layer = nn.Dropout(0.5)
    step = nn.value_and_grad(nn.Sequential(nn.Linear(3, 64), layer), lambda m, x: m(x).sum())
    runs = []
    for _ in range(2):
        rng.seed(9)
        runs.append([float(step(X)[0]) for _ in range(2)])
    assert runs[0] == runs[1] and runs[0][0] != runs[0][1]
