"""paddle.distribution against scipy, and its draws, transforms and divergences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from framework import paddle
from framework.paddle import distribution as D
from framework.paddle._kernel.tensor import Tensor

CONTINUOUS = [
    (lambda: D.Normal(1.0, 2.0), stats.norm(1, 2), 0.3),
    (lambda: D.Uniform(-1.0, 3.0), stats.uniform(-1, 4), 0.3),
    (lambda: D.Laplace(1.0, 2.0), stats.laplace(1, 2), 0.3),
    (lambda: D.Gumbel(1.0, 2.0), stats.gumbel_r(1, 2), 0.3),
    (lambda: D.Beta(0.5, 2.0), stats.beta(0.5, 2), 0.3),
    (lambda: D.LogNormal(0.2, 0.5), stats.lognorm(0.5, scale=np.exp(0.2)), 1.3),
]


@pytest.mark.parametrize(("make", "expected", "at"), CONTINUOUS)
def test_densities_and_moments(make: Any, expected: Any, at: float) -> None:
    d = make()
    assert d.log_prob(Tensor(at)).item() == pytest.approx(expected.logpdf(at), rel=1e-5)
    assert d.prob(Tensor(at)).item() == pytest.approx(expected.pdf(at), rel=1e-5)
    assert d.entropy().item() == pytest.approx(expected.entropy(), rel=1e-5)
    assert d.mean.item() == pytest.approx(expected.mean(), rel=1e-5)
    assert d.variance.item() == pytest.approx(expected.var(), rel=1e-5)
    draws = d.sample([3000])
    assert draws.shape == [3000] and draws.stop_gradient
    assert draws.numpy().mean() == pytest.approx(expected.mean(), abs=5 * expected.std() / 3000**0.5)


def test_cauchy_and_laplace_have_distribution_functions() -> None:
    cauchy, laplace = D.Cauchy(1.0, 2.0), D.Laplace(1.0, 2.0)
    assert cauchy.cdf(Tensor(0.3)).item() == pytest.approx(stats.cauchy(1, 2).cdf(0.3), rel=1e-5)
    assert cauchy.entropy().item() == pytest.approx(stats.cauchy(1, 2).entropy(), rel=1e-5)
    with pytest.raises(ValueError, match="no mean"):
        _ = cauchy.mean
    assert laplace.icdf(laplace.cdf(Tensor(0.3))).item() == pytest.approx(0.3, rel=1e-5)


def test_discrete_distributions() -> None:
    coin = D.Bernoulli(0.3)
    assert coin.log_prob(Tensor(1.0)).item() == pytest.approx(np.log(0.3), rel=1e-5)
    assert coin.entropy().item() == pytest.approx(stats.bernoulli(0.3).entropy(), rel=1e-5)
    assert coin.cdf(Tensor([-1.0, 0.5, 1.0])).tolist() == pytest.approx([0.0, 0.7, 1.0])
    wait = D.Geometric(0.3)  # counts failures, scipy counts trials
    assert wait.pmf(Tensor(2.0)).item() == pytest.approx(stats.geom(0.3).pmf(3), rel=1e-5)
    assert wait.cdf(Tensor(2.0)).item() == pytest.approx(stats.geom(0.3).cdf(3), rel=1e-5)
    assert wait.entropy().item() == pytest.approx(stats.geom(0.3).entropy(), rel=1e-5)
    chances = [0.5, 0.2, 0.3]
    counts = D.Multinomial(4, Tensor(chances))
    expected = stats.multinomial(4, chances)
    assert counts.log_prob(Tensor([2.0, 1.0, 1.0])).item() == pytest.approx(
        expected.logpmf([2, 1, 1]), rel=1e-5
    )
    assert counts.entropy().item() == pytest.approx(expected.entropy(), rel=1e-4)
    assert (counts.sample([5]).sum(-1) == 4.0).all()
    weights = D.Categorical(Tensor([1.0, 3.0]))
    assert weights.probs(Tensor([1, 0])).tolist() == [0.75, 0.25]
    assert set(weights.sample([20]).tolist()) <= {0, 1}


def test_dirichlet() -> None:
    a = [0.5, 2.0, 3.0]
    d, expected = D.Dirichlet(Tensor(a)), stats.dirichlet(a)
    assert d.log_prob(Tensor([0.2, 0.3, 0.5])).item() == pytest.approx(
        expected.logpdf([0.2, 0.3, 0.5]), rel=1e-5
    )
    assert d.entropy().item() == pytest.approx(expected.entropy(), rel=1e-5)
    assert d.mean.tolist() == pytest.approx(expected.mean())
    np.testing.assert_allclose(d.sample([4]).sum(-1).numpy(), np.ones(4), rtol=1e-5)


def test_draws_pass_gradients() -> None:
    loc, scale = Tensor([0.0, 1.0], stop_gradient=False), Tensor(2.0, stop_gradient=False)
    D.Normal(loc, scale).rsample([3]).sum().backward()
    assert loc.grad is not None and loc.grad.tolist() == [3.0, 3.0] and scale.grad is not None


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (lambda: D.Normal(0.0, 2.0), lambda: D.Normal(1.0, 3.0)),
        (lambda: D.Laplace(0.0, 2.0), lambda: D.Laplace(1.0, 3.0)),
        (lambda: D.Beta(2.0, 3.0), lambda: D.Beta(3.0, 2.5)),
        (lambda: D.Uniform(0.0, 1.0), lambda: D.Uniform(-1.0, 3.0)),
    ],
)
def test_divergences_are_the_means_of_log_ratios(p: Any, q: Any) -> None:
    left, right = p(), q()
    draws = left.sample([4000])
    ratio = (left.log_prob(draws) - right.log_prob(draws)).numpy()
    assert D.kl_divergence(left, right).item() == pytest.approx(
        float(ratio.mean()), abs=float(5 * ratio.std() / 4000**0.5 + 1e-5)
    )


def test_the_family_gives_what_the_formula_gives() -> None:
    p, q = D.Dirichlet(Tensor([0.5, 2.0])), D.Dirichlet(Tensor([1.0, 1.0]))
    from framework.paddle.distribution.kl import _kl_expfamily_expfamily

    assert _kl_expfamily_expfamily(p, q).item() == pytest.approx(D.kl_divergence(p, q).item(), rel=1e-5)


def test_a_family_without_a_carrier_measure_has_no_entropy_of_the_family() -> None:
    for family in (D.Beta(1.0, 2.0), D.Dirichlet(paddle.to_tensor([1.0, 2.0]))):
        with pytest.raises(NotImplementedError, match="carrier measure"):
            D.ExponentialFamily.entropy(family)


def test_rules_can_be_registered_and_missing_ones_are_named() -> None:
    class Own(D.Distribution):
        pass

    with pytest.raises(NotImplementedError, match="from Own to Own"):
        D.kl_divergence(Own(), Own())
    D.register_kl(Own, Own)(lambda p, q: Tensor(7.0))
    assert Own().kl_divergence(Own()).item() == 7.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: D.Cauchy([1.0], 1.0),
        lambda: D.Gumbel(np.ones(2), 1.0),
        lambda: D.Laplace("1", 1.0),
        lambda: D.Geometric([0.5]),
        lambda: D.Normal(0.0, 1.0).sample(5),
        lambda: D.Cauchy(0.0, 1.0).log_prob(0.5),
        lambda: D.Geometric(0.5).pmf(0.5),
        lambda: D.Cauchy(0.0, 1.0).kl_divergence(D.Laplace(0.0, 1.0)),
    ],
)
def test_what_paddle_does_not_take_is_a_type_error(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="class"):
        call()


TRANSFORMS = [
    lambda: D.AffineTransform(Tensor(1.0), Tensor(-2.0)),
    lambda: D.ExpTransform(),
    lambda: D.PowerTransform(Tensor(2.0)),
    lambda: D.SigmoidTransform(),
    lambda: D.TanhTransform(),
    lambda: D.ChainTransform([D.ExpTransform(), D.AffineTransform(Tensor(0.0), Tensor(3.0))]),
]


@pytest.mark.parametrize("make", TRANSFORMS)
def test_transforms_of_numbers_go_back_and_know_their_slope(make: Any) -> None:
    t, x = make(), Tensor([0.3, 0.9], stop_gradient=False)
    y = t.forward(x)
    np.testing.assert_allclose(t.inverse(y).numpy(), x.numpy(), rtol=1e-5)
    (slope,) = paddle.grad(y.sum(), x)
    expected = np.log(np.abs(slope.numpy()))
    found = t.forward_log_det_jacobian(x).numpy()
    np.testing.assert_allclose(np.broadcast_to(found, [2]), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        np.broadcast_to(t.inverse_log_det_jacobian(y).numpy(), [2]), -expected, rtol=1e-4, atol=1e-5
    )


def test_stick_breaking_and_reshaping() -> None:
    t, x = D.StickBreakingTransform(), Tensor([0.1, -0.4])
    y = t.forward(x)
    assert y.sum().item() == pytest.approx(1.0)
    np.testing.assert_allclose(t.inverse(y).numpy(), x.numpy(), atol=1e-5)
    jacobian = []
    for index in range(2):
        v = Tensor([0.1, -0.4], stop_gradient=False)
        (row,) = paddle.grad(t.forward(v)[index], v)
        jacobian.append(row.numpy())
    expected = np.log(abs(np.linalg.det(np.array(jacobian))))
    assert t.forward_log_det_jacobian(x).item() == pytest.approx(expected, rel=1e-4)
    reshape = D.ReshapeTransform([2], [1, 2])
    assert reshape.forward(paddle.ones([3, 2])).shape == [3, 1, 2] and reshape.inverse_shape([3, 1, 2]) == (
        3,
        2,
    )


def test_transformed_and_independent_distributions() -> None:
    base = D.Normal(Tensor([0.0, 1.0]), Tensor([1.0, 2.0]))
    joint = D.Independent(base, 1)
    assert (joint.batch_shape, joint.event_shape) == ((), (2,))
    assert joint.log_prob(Tensor([0.3, 0.4])).item() == pytest.approx(
        base.log_prob(Tensor([0.3, 0.4])).sum().item()
    )
    d = D.TransformedDistribution(base, [D.StickBreakingTransform()])
    assert (d.batch_shape, d.event_shape, d.sample([4]).shape) == ((), (3,), [4, 3])
    twice = D.ExpTransform()(D.Normal(0.2, 0.5))
    assert twice.log_prob(Tensor(1.3)).item() == pytest.approx(
        stats.lognorm(0.5, scale=np.exp(0.2)).logpdf(1.3), rel=1e-5
    )


@pytest.mark.parametrize("probs", [0.0, 2.0])
def test_a_chance_is_above_zero_and_at_most_one(probs: float) -> None:
    with pytest.raises(ValueError, match="at most 1"):
        D.Geometric(probs)


def test_probabilities_where_the_bounds_are_exchanged() -> None:
    uniform = D.Uniform(paddle.to_tensor([1.0, 0.0]), paddle.to_tensor([0.0, 4.0]))
    assert uniform.prob(paddle.to_tensor([0.5, 1.0])).tolist() == [0.0, 0.25]  # as Paddle, which has no check
    with pytest.raises(TypeError, match="Transform"):
        D.IndependentTransform("", 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("distribution", "functions"),
    [
        (lambda: paddle.distribution.Bernoulli(paddle.to_tensor([0.3])), ("log_prob", "cdf", "prob")),
        (lambda: paddle.distribution.Cauchy(paddle.to_tensor([0.3]), paddle.to_tensor([1.0])), ("log_prob", "cdf")),
        (lambda: paddle.distribution.Normal(paddle.to_tensor([0.3]), paddle.to_tensor([1.0])), ("log_prob",)),
        (lambda: paddle.distribution.Uniform(paddle.to_tensor([0.3]), paddle.to_tensor([2.0])), ("log_prob", "prob")),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_cast_with_a_warning(
    distribution: Callable[[], Any], functions: tuple[str, ...]
) -> None:
    one = distribution()
    for name in functions:
        with pytest.warns(UserWarning, match="needs to be the same as parameters"):
            assert getattr(one, name)(paddle.to_tensor([1.0], "float64")).dtype == paddle.float32


def test_chances_of_bernoulli_are_a_step_away_from_certain() -> None:
    # Values of Paddle 2.6.2.
    certain = paddle.distribution.Bernoulli(paddle.to_tensor([0.0, 1.0]))
    assert certain.mean.tolist() == [1.1920928955078125e-07, 0.9999998807907104]
    np.testing.assert_allclose(certain.variance, [1.1920928e-07] * 2, rtol=1e-6)
    np.testing.assert_allclose(certain.cdf(paddle.to_tensor([0.0, 0.0])), [0.9999998807907104, 1.1920929e-07])
