"""Elementwise functions, comparisons and operators of framework.paddle: values, types, gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from framework import paddle
from framework.core.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor

POINTS = np.array([[-0.7, 0.2, 0.9], [0.45, -0.3, 0.6]])
UNARY = {
    "abs": np.abs,
    "acos": np.arccos,
    "deg2rad": np.deg2rad,
    "digamma": special.digamma,
    "erfinv": special.erfinv,
    "i1e": special.i1e,
    "lgamma": special.gammaln,
    "reciprocal": np.reciprocal,
    "stanh": lambda x: 1.7159 * np.tanh(0.67 * x),
    "tan": np.tan,
}


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_have_their_values_and_slopes(name: str) -> None:
    x = Tensor(POINTS, stop_gradient=False)
    y = getattr(paddle, name)(x)
    np.testing.assert_allclose(y.numpy(), UNARY[name](POINTS), rtol=1e-9, atol=1e-12)
    y.sum().backward()
    assert x.grad is not None
    step = 1e-6
    slope = (UNARY[name](POINTS + step) - UNARY[name](POINTS - step)) / (2 * step)
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-5, atol=1e-6)


def test_special_functions_with_a_parameter() -> None:
    x = np.array([0.6, 1.7, 3.2])
    for n in (0, 1, 2):
        np.testing.assert_allclose(paddle.polygamma(Tensor(x), n).numpy(), special.polygamma(n, x), rtol=1e-9)
    several = paddle.multigammaln(Tensor(x + 2), 3).numpy()
    np.testing.assert_allclose(several, [special.multigammaln(v + 2, 3) for v in x], rtol=1e-9)
    np.testing.assert_allclose(
        paddle.logit(Tensor([0.25, 0.001]), eps=0.1).numpy(), special.logit([0.25, 0.1]), 1e-6
    )
    for eps, wanted in ((None, [0.0, 4.0, 0.0]), (0.1, [0.0, 4.0, 0.0])):
        given = Tensor([-1.5, 0.5, 2.0], stop_gradient=False)
        paddle.logit(given, eps=eps).sum().backward()
        assert given.grad is not None and given.grad.tolist() == wanted


def test_special_functions_of_float32_are_right_to_the_last_digit() -> None:
    x = np.array([0.5, 1.0000001, 2.0000002, 7.3, 40.0], np.float32)
    wide = x.astype(np.float64)
    expected = {
        "lgamma": special.gammaln,
        "digamma": special.digamma,
        "sinh": np.sinh,
        "cosh": np.cosh,
        "i0": special.i0,
    }
    for name, function in expected.items():
        found = getattr(paddle, name)(Tensor(x)).numpy()
        np.testing.assert_allclose(found, function(wide), rtol=1.2e-7, err_msg=name)
    np.testing.assert_allclose(
        paddle.polygamma(Tensor(x), 3).numpy(), special.polygamma(3, wide), rtol=1.2e-7
    )
    assert paddle.polygamma(Tensor(np.float32([np.inf])), 1).tolist() == [0.0]
    assert paddle.polygamma(Tensor([-1.0, -501.0]), 1).tolist() == [np.inf, np.inf]
    below = Tensor(np.array([-9.924812, -0.5, -100.25]), stop_gradient=False)
    for n in (1, 2, 3):
        expected = special.polygamma(n, below.numpy())
        np.testing.assert_allclose(paddle.polygamma(below, n).numpy(), expected, rtol=1e-9)
    (paddle.digamma(below) + paddle.polygamma(below, 2)).sum().backward()
    expected = special.polygamma(1, below.numpy()) + special.polygamma(3, below.numpy())
    np.testing.assert_allclose(below.grad.numpy(), expected, rtol=1e-9)
    flat = Tensor(np.float32([0.0, 2.0]), stop_gradient=False)
    paddle.i0(flat).sum().backward()
    np.testing.assert_allclose(flat.grad.numpy(), special.i1([0, 2]), rtol=1e-6)
    powers = Tensor(np.array([10, 3, -20, 100, 127], np.int32))
    np.testing.assert_array_equal(
        paddle.ldexp(Tensor(np.ones(5, np.float32)), powers).numpy(), 2.0 ** powers.numpy()
    )


def test_logaddexp_of_nothing_has_a_gradient() -> None:
    x = Tensor(np.float32([-np.inf, 1.0]), stop_gradient=False)
    out = paddle.logaddexp(paddle.logaddexp(x, Tensor(np.float32([-np.inf]))), Tensor(np.float32([2.0])))
    out.sum().backward()
    np.testing.assert_allclose(out.numpy(), [2, np.logaddexp(1, 2)], rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), [0, 1 / (1 + np.e)], rtol=1e-6)


def test_logaddexp_with_infinity_gives_it_the_gradient() -> None:
    x = Tensor(np.float32([1.0, np.inf, 1.0]), stop_gradient=False)
    paddle.logaddexp(x, Tensor(np.float32([np.inf, 1.0, -np.inf]))).sum().backward()
    assert x.grad.tolist() == [0, 1, 1]


def test_angles_of_real_numbers_are_flat_and_lcm_is_positive() -> None:
    x = Tensor(np.float32([-0.0, 0.0, -2.0, 3.0]), stop_gradient=False)
    angles = paddle.angle(x)
    angles.sum().backward()
    assert angles.tolist() == pytest.approx([0, 0, np.pi, 0]) and x.grad.tolist() == [0, 0, 0, 0]
    assert paddle.lcm(Tensor([-2, 4]), Tensor([1, -6])).tolist() == [2, 12]
    weight = Tensor(np.float32([1.02e25]), stop_gradient=False)
    paddle.ldexp(weight, Tensor(np.float32([62.0]))).sum().backward()
    assert weight.grad.tolist() == [2.0**62]


def test_norms_of_nan_are_nan() -> None:
    x = Tensor(np.float32([[np.nan, 1.0]]))
    for p in (1, 2, 3, np.inf):
        assert np.isnan(paddle.norm(x, p).numpy()) and np.isnan(paddle.dist(x, x + 1, p).numpy())
    for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        assert np.isnan(paddle.cdist(x, Tensor(np.float32([[0.0, 1.0]])), compute_mode=mode).numpy()).all()


def test_the_absolute_value_is_flat_at_zero() -> None:
    for function in (paddle.abs, lambda x: paddle.norm(x, 1)):
        x = Tensor(np.float32([0, -2, 3]), stop_gradient=False)
        function(x).sum().backward()
        assert x.grad.tolist() == [0, -1, 1]


def test_rounding_goes_away_from_zero_and_leaves_integers() -> None:
    assert paddle.round(Tensor([0.5, 1.5, -0.5, -2.5, 0.4])).tolist() == [1.0, 2.0, -1.0, -3.0, 0.0]
    assert paddle.trunc(Tensor([-1.7, 1.7])).tolist() == [-1.0, 1.0]
    assert paddle.round(Tensor([0.49999997, 8388609.0])).tolist() == [
        0.0,
        8388609.0,
    ]  # half more is another number
    for name in ("floor", "ceil", "round", "trunc"):
        whole = getattr(paddle, name)(Tensor([3, -4]))
        assert (whole.dtype, whole.tolist()) == (paddle.int64, [3, -4])
    mantissa, exponent = paddle.frexp(Tensor([3.0, -0.1]))
    assert (mantissa * 2**exponent).tolist() == pytest.approx([3.0, -0.1])


@pytest.mark.parametrize(
    ("name", "x_share", "y_share"),
    [("maximum", [0, 0, 1], [1, 1, 0]), ("minimum", [1, 0, 0], [0, 1, 1]), ("fmax", [0, 1, 1], [1, 0, 0])],
)
def test_of_equal_elements_one_side_gets_the_gradient(
    name: str, x_share: list[float], y_share: list[float]
) -> None:
    x, y = Tensor([1.0, 2.0, 3.0], stop_gradient=False), Tensor([4.0, 2.0, 0.0], stop_gradient=False)
    getattr(paddle, name)(x, y).backward()
    assert x.grad is not None and y.grad is not None
    assert (x.grad.tolist(), y.grad.tolist()) == (x_share, y_share)


def test_nan_wins_in_maximum_and_loses_in_fmax() -> None:
    x, y = Tensor([float("nan"), 1.0]), Tensor([2.0, float("nan")])
    assert np.isnan(paddle.maximum(x, y).numpy()).all()
    assert paddle.fmax(x, y).tolist() == [2.0, 1.0]
    assert paddle.fmin(x, y).tolist() == [2.0, 1.0]


def test_integer_division() -> None:
    x, y = Tensor([7, -7, 7, -7]), Tensor([2, 2, -2, -2])
    assert (x // y).tolist() == [3, -4, -4, 3]
    assert (x % y).tolist() == [1, 1, -1, -1]
    assert paddle.divide(x, y).tolist() == [3, -3, -3, 3]  # the function cuts off, unlike the operator
    assert ((x / y).dtype, (x / y).tolist()) == (paddle.float32, [3.5, -3.5, -3.5, 3.5])
    assert (x // 0).shape == [4]  # no crash; Paddle raises
    assert (Tensor([7, -1, 1]) ** -3).tolist() == [0, -1, 1]
    assert (Tensor([1.0, -1.0]) // 0.0).tolist() == [np.inf, -np.inf]


def test_comparisons_and_bits() -> None:
    x = Tensor([1, 2, 3])
    assert (x == 2).tolist() == [False, True, False]
    assert (x != Tensor([1.0, 0.0, 3.0])).tolist() == [False, True, False]
    assert (x > 2).tolist() == [False, False, True]
    assert ((x & 1) | 4).tolist() == [5, 4, 5]
    assert (~(x > 1) ^ True).tolist() == [False, True, True]
    assert x in [x] and (x == None) is False  # noqa: E711
    assert bool(paddle.allclose(Tensor([1.0, np.nan]), Tensor([1.0, np.nan]), equal_nan=True))
    assert not bool(paddle.equal_all(x, Tensor([1, 2])))
    with pytest.raises(ShapeError, match="have bits"):
        paddle.bitwise_and(Tensor([1.0]), Tensor([1.0]))
    out = Tensor([False])
    paddle.logical_or(Tensor([True]), Tensor([False]), out=out)
    assert out.tolist() == [True]


def test_numpy_leaves_operators_to_the_tensor() -> None:
    result = np.array([1.0, 2.0], np.float32) * Tensor([3.0, 4.0])
    assert isinstance(result, Tensor) and result.tolist() == [3.0, 8.0]


def test_clip_and_scale() -> None:
    x = Tensor([-2.0, 0.5, 1.0], stop_gradient=False)
    y = paddle.clip(x, min=-1.0, max=Tensor(1.0))
    y.backward()
    assert x.grad is not None
    assert (y.tolist(), x.grad.tolist()) == ([-1.0, 0.5, 1.0], [0.0, 1.0, 0.0])
    assert paddle.clip(Tensor([1, 5]), max=3).tolist() == [1, 3]
    assert paddle.scale(Tensor([1, 2]), 3, 1, bias_after_scale=False).tolist() == [6, 9]
    assert paddle.scale(Tensor([-1.0]), 2.0, act="relu").tolist() == [0.0]


def test_functions_of_two_tensors_follow_numpy() -> None:
    x, y = Tensor([[0.5, -1.5]]), Tensor([[2.0], [0.25]])
    pairs = {
        "atan2": np.arctan2,
        "hypot": np.hypot,
        "logaddexp": np.logaddexp,
        "outer": np.outer,
        "kron": np.kron,
    }
    for name, expected in pairs.items():
        np.testing.assert_allclose(
            getattr(paddle, name)(x, y).numpy(), expected(x.numpy(), y.numpy()), rtol=1e-6
        )
    assert paddle.atan2(Tensor([1]), Tensor([1])).dtype == paddle.float64
    assert paddle.gcd(Tensor([12, -9]), Tensor([8, 6])).tolist() == [4, 3]
    assert paddle.lerp(Tensor([1.0]), Tensor([3.0]), 0.25).tolist() == [1.5]
    assert paddle.ldexp(Tensor([1, 3]), Tensor([2, -1])).tolist() == [4.0, 1.5]
    assert paddle.heaviside(Tensor([-1.0, 0.0, 2.0]), Tensor([0.5])).tolist() == [0.0, 0.5, 1.0]
    z = paddle.addmm(Tensor([[1.0]]), Tensor([[2.0, 3.0]]), Tensor([[4.0], [5.0]]), beta=2.0, alpha=0.5)
    assert z.tolist() == [[13.5]]


def test_complex_gradients_are_the_conjugates_of_jaxs() -> None:
    z = Tensor(np.complex64(1 + 2j), stop_gradient=False)
    (z.abs() * z.abs()).backward()
    assert z.grad is not None
    expected = np.conj(jax.grad(lambda v: jnp.abs(v) ** 2)(np.complex64(1 + 2j)))
    np.testing.assert_allclose(z.grad.numpy(), expected, rtol=1e-5)
    assert paddle.real(paddle.complex(Tensor([1.0]), Tensor([2.0]))).tolist() == [1.0]


def test_quotients_are_rounded_down_as_paddle_does() -> None:
    """Values of Paddle 2.6.2."""
    x = paddle.to_tensor([2.0, 1.0, -1.0, float("inf"), 6.0, -6.0, 7.0, 5.0, -5.0])
    y = paddle.to_tensor([0.2, 0.1, 0.1, 2.0, float("inf"), float("inf"), -float("inf"), 0.0, 0.0])
    wanted = [9.0, 9.0, -10.0, np.nan, 0.0, -1.0, -1.0, np.inf, -np.inf]
    np.testing.assert_array_equal((x // y).numpy(), np.float32(wanted))
