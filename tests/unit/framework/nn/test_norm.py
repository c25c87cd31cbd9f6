from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn.functional import lowering

RNG = np.random.default_rng(0)


def test_parameter_names_are_paddles():
    assert list(nn.BatchNorm2D(2).state_dict()) == ["weight", "bias", "_mean", "_variance"]
    assert list(nn.InstanceNorm2D(2).state_dict()) == ["scale", "bias"]
    assert list(nn.LayerNorm([2, 3]).state_shapes().items()) == [("weight", (6,)), ("bias", (6,))]
    assert list(nn.GroupNorm(1, 2).state_dict()) == ["weight", "bias"]
    assert list(nn.SpectralNorm([2, 3]).state_shapes().items()) == [("weight_u", (2,)), ("weight_v", (3,))]
    bare = nn.BatchNorm2D(2, weight_attr=False, bias_attr=False)
    assert list(bare.state_dict()) == ["_mean", "_variance"]


def test_statistics_are_buffers_and_not_parameters():
    layer = nn.BatchNorm2D(2)
    assert {name for name, _ in layer.named_parameters()} == {"weight", "bias"}
    assert {name for name, _ in layer.named_buffers()} == {"_mean", "_variance"}


def test_momentum_weighs_the_old_value_and_the_variance_is_biased():
    layer = nn.BatchNorm1D(1, momentum=0.75)
    out = layer(jnp.array([[1.0], [3.0]]))
    np.testing.assert_allclose(out[:, 0], [-1.0, 1.0], rtol=1e-5)
    assert layer._mean.tolist() == [0.5] and layer._variance.tolist() == [1.0]  # 0.75 * 1 + 0.25 * 1
    layer(jnp.array([[0.0], [8.0]]))
    assert layer._variance.tolist() == [0.75 + 0.25 * 16]


def test_eval_uses_and_keeps_the_running_statistics():
    layer = nn.BatchNorm1D(1, epsilon=0.0).eval()
    layer._mean, layer._variance = jnp.array([2.0]), jnp.array([4.0])
    assert layer(jnp.array([[6.0]])).tolist() == [[2.0]]
    frozen = nn.BatchNorm1D(1, epsilon=0.0, use_global_stats=True)
    frozen._variance = jnp.array([4.0])
    assert frozen(jnp.array([[6.0]])).tolist() == [[3.0]] and frozen._mean.tolist() == [0.0]


@pytest.mark.parametrize("platform", ["cpu", "other"])
def test_a_large_mean_does_not_cost_the_variance_its_digits(platform):
    x = RNG.standard_normal((8, 5, 5, 3)) + 3000.0
    with lowering.platform_scope(platform):
        _, _, variance = F.batch_norm(
            jnp.asarray(x, jnp.float32), jnp.zeros(3), jnp.zeros(3), training=True, momentum=0.0
        )
    np.testing.assert_allclose(variance, np.float32(x).astype(np.float64).var((0, 1, 2)), rtol=1e-4)


def test_the_statistics_carry_no_gradient():
    def total(x):
        _, mean, variance = F.batch_norm(x, jnp.zeros(2), jnp.ones(2), training=True)
        return mean.sum() + variance.sum()

    for platform in ("cpu", "other"):
        with lowering.platform_scope(platform):
            assert np.abs(jax.grad(total)(jnp.ones((3, 2)) * jnp.arange(2.0))).max() == 0


def test_one_pixel_normalises_to_the_bias():
    for platform in ("cpu", "other"):
        with lowering.platform_scope(platform):
            y, _, variance = F.batch_norm(
                jnp.full((1, 1, 1, 2), 7.0), jnp.zeros(2), jnp.ones(2), training=True
            )
        assert y.tolist() == [[[[0.0, 0.0]]]] and variance.tolist() == [pytest.approx(0.9)] * 2
    assert nn.LayerNorm(1)(jnp.full((2, 1), 3.0)).tolist() == [[0.0], [0.0]]
    assert nn.InstanceNorm2D(2)(jnp.ones((1, 1, 1, 2))).tolist() == [[[[0.0, 0.0]]]]


def test_batch_norm_works_under_vmap():
    x = jnp.asarray(RNG.standard_normal((2, 4, 3)), jnp.float32)
    with lowering.platform_scope("cpu"):
        y = jax.vmap(lambda x: F.batch_norm(x, jnp.zeros(3), jnp.ones(3), training=True)[0])(x)
    np.testing.assert_allclose(y.mean(1), 0, atol=1e-6)


def test_sync_batch_norm_is_batch_norm():
    layer = nn.Sequential(nn.BatchNorm2D(2))
    assert nn.SyncBatchNorm.convert_sync_batchnorm(layer) is layer
    assert issubclass(nn.SyncBatchNorm, nn.BatchNorm)


def test_layer_norm_by_hand():
    x = jnp.array([[1.0, 3.0]])
    np.testing.assert_allclose(nn.LayerNorm(2, epsilon=0.0)(x), [[-1.0, 1.0]], rtol=1e-6)
    np.testing.assert_allclose(nn.LayerNorm(2, epsilon=3.0)(x), [[-0.5, 0.5]], rtol=1e-6)


@pytest.mark.parametrize("function", ["batch", "layer", "group", "instance"])
def test_bfloat16_keeps_its_type_with_float32_parameters(function):
    layer = {
        "batch": nn.BatchNorm2D(4),
        "layer": nn.LayerNorm(4),
        "group": nn.GroupNorm(2, 4),
        "instance": nn.InstanceNorm2D(4),
    }[function]
    x = jnp.asarray(RNG.standard_normal((2, 3, 3, 4)), jnp.bfloat16)
    assert layer(x).dtype == layer.eval()(x).dtype == jnp.bfloat16
    assert all(buffer.dtype == jnp.float32 for buffer in layer.buffers())


def test_normalize_is_finite_at_zero():
    grad = jax.grad(lambda x: F.normalize(x, axis=-1).sum())(jnp.zeros((1, 3)))
    assert np.isfinite(grad).all()
    assert F.normalize(jnp.array([[3.0, 4.0]]), axis=-1).tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)]
    ]
    assert F.normalize(jnp.array([[3.0, -4.0]]), p=float("inf")).tolist() == [[0.75, -1.0]]


def test_spectral_norm_has_the_gradient_of_its_formula():
    weight = jnp.asarray(RNG.standard_normal((3, 4)), jnp.float32)
    u, v = (jnp.asarray(RNG.standard_normal(n), jnp.float32) for n in (3, 4))
    direction = jnp.asarray(RNG.standard_normal((3, 4)), jnp.float32)
    # With fixed vectors sigma is u' W v, so d(W / sigma) is D / sigma - W (u' D v) / sigma^2.
    _, tangent = jax.jvp(lambda w: F.spectral_norm(w, u, v, power_iters=0)[0], (weight,), (direction,))
    sigma = u @ weight @ v
    np.testing.assert_allclose(
        tangent, direction / sigma - weight * (u @ direction @ v) / sigma**2, rtol=1e-4
    )


def test_spectral_norm_finds_the_largest_singular_value():
    weight = jnp.asarray(RNG.standard_normal((5, 4)), jnp.float32)
    out, u, _ = F.spectral_norm(weight, jnp.ones(5), jnp.ones(4), power_iters=50)
    assert np.linalg.norm(out, 2) == pytest.approx(1.0, abs=1e-4) and float(u @ u) == pytest.approx(
        1.0, abs=1e-5
    )


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: nn.BatchNorm2D(3)(jnp.ones((2, 3))), r"BatchNorm2D: the input has the wrong number of axes"),
        (lambda: nn.BatchNorm1D(3)(jnp.ones((2, 3, 3, 3))), r"BatchNorm1D: the input has the wrong number"),
        (lambda: nn.BatchNorm2D(3)(jnp.ones((2, 3, 4, 4))), "batch_norm: one value for each channel"),
        (lambda: nn.LayerNorm(3)(jnp.ones((2, 4))), "layer_norm: the trailing axes"),
        (lambda: F.layer_norm(jnp.ones((2, 4)), 4, jnp.ones(3)), "layer_norm: the trailing axes"),
        (lambda: F.group_norm(jnp.ones((2, 4, 4, 3)), 2), "group_norm: channels divide into groups"),
        (lambda: nn.GroupNorm(2, 4)(jnp.ones((2, 4, 4, 6))), "group_norm: one value for each channel"),
        (lambda: nn.InstanceNorm2D(4)(jnp.ones((2, 4, 4, 3))), "instance_norm: one value for each channel"),
        (
            lambda: F.spectral_norm(jnp.ones((2, 3)), jnp.ones(3), jnp.ones(2)),
            "the vectors do not fit the weight",
        ),
    ],
)
def test_errors(run, message):
    with pytest.raises(ShapeError, match=message):
        run()


def test_arguments_of_paddle_that_change_nothing():
    x = jnp.asarray(RNG.standard_normal((2, 4, 4, 3)), jnp.float32)
    plain = F.instance_norm(x, None, None, jnp.ones(3), None, True, 0.9, 1e-5)
    assert jnp.array_equal(plain, nn.InstanceNorm2D(3)(x))
    with pytest.raises(
        ShapeError, match=r"(?s)there are no running statistics.*batch_norm\(training=False\)"
    ):
        F.instance_norm(x, use_input_stats=False)
    table, ids = jnp.ones((4, 2)), jnp.asarray([1])
    assert jnp.array_equal(F.embedding(ids, table, None, True), F.embedding(ids, table))
    loss, soft = F.softmax_with_cross_entropy(table, jnp.zeros((4, 1), int), False, -100, True, True)
    assert loss.shape == (4, 1) and soft.shape == (4, 2)
    assert nn.Layer("scope").state_dict() == {}


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_of_channels_first_is_that_of_channels_last(training: bool) -> None:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((4, 3, 5, 2)), jnp.float32)
    vectors = [jnp.asarray(rng.uniform(0.5, 2, 3), jnp.float32) for _ in range(4)]

    def norm(x: jax.Array, first: bool) -> tuple[jax.Array, jax.Array, jax.Array]:
        return F.batch_norm(x, *vectors, training=training, channels_first=first)

    last = norm(jnp.moveaxis(x, 1, -1), False)
    for ours, wanted in zip(norm(x, True), (jnp.moveaxis(last[0], -1, 1), *last[1:])):
        np.testing.assert_allclose(ours, wanted, atol=1e-6)
    slope = jax.grad(lambda x: (norm(x, True)[0] ** 3).sum())(x)
    wanted = jax.grad(lambda x: (norm(jnp.moveaxis(x, 1, -1), False)[0] ** 3).sum())(x)
    np.testing.assert_allclose(slope, wanted, atol=1e-4)


@pytest.mark.parametrize("first", [False, True])
def test_gradients_of_gradients_go_through_the_statistics_of_the_batch(first):
    axes, ones = (0, 2, 3) if first else (0, 1, 2), jnp.ones(3)
    x, weights, direction = (
        jnp.asarray(RNG.standard_normal((2, 3, 4, 5) if first else (2, 4, 5, 3)), jnp.float32)
        for _ in range(3)
    )

    def written_out(x):
        centred = x - x.mean(axes, keepdims=True)
        return centred * jax.lax.rsqrt(jnp.square(centred).mean(axes, keepdims=True) + 1e-5)

    def normalised(x):
        return F.batch_norm(x, 0 * ones, ones, ones, 0 * ones, training=True, channels_first=first)[0]

    def second(normalise):
        first_gradient = jax.grad(lambda x: (normalise(x) * weights).sum())
        return jax.jit(jax.grad(lambda x: (first_gradient(x) * direction).sum()))(x)

    np.testing.assert_allclose(second(normalised), second(written_out), atol=2e-5)
