"""Gradients where jax's own are wrong or have no digits, against the formula."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.losses import binary_cross_entropy_with_logits
from framework.nn import functional as F
from framework.nn.functional.lowering import platform_scope
from framework.nn.functional.slopes import absolute, arctan


def slope(function: Callable[[jax.Array], jax.Array], values: list[float]) -> np.ndarray:
    return np.asarray(jax.jit(jax.grad(lambda x: function(x).sum()))(jnp.asarray(values, jnp.float32)))


def test_absolute_is_flat_at_zero_and_keeps_nan() -> None:
    np.testing.assert_array_equal(slope(absolute, [0.0, -0.0, 2.0, -2.0, np.nan]), [0, 0, 1, -1, np.nan])
    np.testing.assert_array_equal(absolute(jnp.asarray([3 + 4j])), [5])
    equal = slope(lambda x: F.l1_loss(x, jnp.ones_like(x), "none"), [1.0, 2.0, 0.0])
    np.testing.assert_array_equal(equal, [0, 1, -1])
    found = slope(lambda x: F.normalize(x[None], p=1) * 1e-12, [0.0, 0.0])
    np.testing.assert_allclose(found, [1, 1], rtol=1e-6)
    assert np.isfinite(slope(lambda x: F.normalize(x[None], p=3) * 1e-12, [0.0, 0.0])).all()


def test_arctan_does_not_take_the_kernel_that_is_wrong() -> None:
    x = np.concatenate([np.linspace(-3, 3, 1000), [-0.0, 1e7, -2e8, 1e30, np.inf, -np.inf, np.nan]]).astype(
        np.float32
    )
    options = {"xla_cpu_prefer_vector_width": 512}  # of the jaxlib that is wrong there
    out = jax.jit(arctan, compiler_options=options)(x)
    np.testing.assert_allclose(out, np.arctan(x.astype(np.float64)), rtol=4e-7)
    np.testing.assert_allclose(slope(arctan, [0.0, -2.0, 1e30, np.inf]), [1, 0.2, 0, 0], rtol=1e-6)
    assert jax.make_jaxpr(arctan)(x).jaxpr.pretty_print().count("atan2") == 1
    with platform_scope("graph"):
        assert "atan2" not in str(jax.make_jaxpr(lambda x: arctan(x))(x))  # one operator of an ONNX file


def test_sixteen_bits_are_rounded_once() -> None:
    for dtype in (jnp.bfloat16, jnp.float16):
        x = jnp.linspace(-8, 8, 300).astype(dtype)
        for function in (
            F.sigmoid,
            F.tanh,
            F.silu,
            F.mish,
            F.hardswish,
            F.elu,
            F.softplus,
            F.softsign,
            arctan,
        ):
            wide = jax.vjp(function, x.astype(jnp.float32))
            low, pull = jax.vjp(function, x)
            np.testing.assert_array_equal(low, wide[0].astype(dtype))
            (slopes,), (expected,) = pull(jnp.ones_like(x)), wide[1](jnp.ones(x.shape))
            assert slopes.dtype == dtype
            np.testing.assert_array_equal(slopes, expected.astype(dtype))


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (F.elu, [-22.0, -60.0], np.exp([-22.0, -60.0])),
        (lambda x: F.celu(x, 0.5), [-12.0], np.exp([-24.0])),
        (F.selu, [-30.0], 1.0507009873554805 * 1.6732632423543772 * np.exp([-30.0])),
        (F.softsign, [1e3, -1e9], [1 / 1001**2, 1e-18]),
        (F.tanhshrink, [1e-4, -3e-3], np.square(np.tanh([1e-4, 3e-3]))),
    ],
)
def test_flat_tails_keep_their_digits(
    function: Callable[[jax.Array], jax.Array], values: list[float], expected: list[float]
) -> None:
    np.testing.assert_allclose(slope(function, values), expected, rtol=3e-6)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_confident_logits_keep_value_and_gradient(label: float) -> None:
    logits = [0.0, 22.0, -22.0, 60.0, -60.0]
    wide = np.asarray(logits)
    target = jnp.full(5, label)
    for function in (
        lambda x: F.binary_cross_entropy_with_logits(x, target, reduction="none"),
        lambda x: binary_cross_entropy_with_logits(x, target),
    ):
        expected = np.logaddexp(0, wide if label == 0 else -wide)
        np.testing.assert_allclose(function(jnp.asarray(logits)), expected, rtol=3e-6)
        sigmoid = 1 / (1 + np.exp(-wide if label == 0 else wide))
        np.testing.assert_allclose(slope(function, logits), sigmoid if label == 0 else -sigmoid, rtol=3e-6)


def test_nan_stays_nan() -> None:
    x = jnp.asarray([np.nan, 0.25, 3.0])
    for function in (F.softshrink, F.hardshrink, F.thresholded_relu):
        out = function(x)
        assert np.isnan(out[0]) and out[1] == 0 and out[2] > 0
    assert np.isnan(F.kl_div(jnp.zeros(1), jnp.asarray([np.nan])))


def test_a_row_that_hides_every_key_is_finite() -> None:
    query = jax.random.normal(jax.random.key(0), (1, 4, 1, 8))
    mask = jnp.full((4, 4), -jnp.inf).at[1:, :2].set(0)
    for given in (mask, jnp.isfinite(mask)):
        out, pull = jax.vjp(lambda q, m=given: F.scaled_dot_product_attention(q, q, q, m), query)
        np.testing.assert_allclose(out[0, 0], query[0].mean(0), rtol=1e-5)
        assert np.isfinite(out).all() and np.isfinite(pull(jnp.ones_like(out))[0]).all()


def test_float16_has_room_for_squares() -> None:
    long = jnp.full((1, 768), 100, jnp.float16)
    assert F.cosine_similarity(long, long)[0] == 1
    np.testing.assert_allclose(F.normalize(long)[0, 0], 768**-0.5, rtol=1e-3)
    assert np.isfinite(F.local_response_norm(long.reshape(1, 1, 1, 768), 3)).all()


def test_smooth_l1_has_a_gradient_at_infinity() -> None:
    values = [np.inf, -np.inf, 5.0, 0.5, 1.0]
    found = slope(lambda x: F.smooth_l1_loss(x, jnp.zeros_like(x), "none"), values)
    np.testing.assert_array_equal(found, [1, -1, 1, 0.5, 1])
