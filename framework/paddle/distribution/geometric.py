"""The geometric distribution."""

from __future__ import annotations

import numbers

import jax
import jax.numpy as jnp
from jax.core import Tracer

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import (
    Distribution,
    Sizes,
    check_same,
    check_value,
    drawn_shape,
    scalar_parameters,
)


@operation(name="geometric_sample")
def _draw(key: Key, probs: Array, shape: tuple[int, ...]) -> Array:
    shape = drawn_shape(shape, probs)
    draw = jax.random.uniform(key, shape, probs.dtype, minval=jnp.finfo(probs.dtype).tiny)
    return jnp.floor(jnp.log(draw) / jnp.log1p(-probs))


@operation(name="geometric_log_pmf")
def _log_pmf(probs: Array, k: Array) -> Array:
    return jax.scipy.special.xlog1py(k, -probs) + jnp.log(probs)


@operation(name="geometric_cdf")
def _cdf(probs: Array, k: Array) -> Array:
    return 1 - jnp.power(1 - probs, k + 1)


@operation(name="geometric_entropy")
def _entropy(probs: Array) -> Array:
    fail = 1 - probs
    return -(jax.scipy.special.xlogy(fail, fail) + jax.scipy.special.xlogy(probs, probs)) / probs


@operation(name="geometric_kl")
def kl_geometric(probs: Array, other_probs: Array) -> Array:
    """KL of two geometric distributions. Paddle 2.6 returns `probs` times this, which is that of one trial."""
    p, q = probs, other_probs
    return jnp.log(p / q) + (1 / p - 1) * jnp.log((1 - p) / (1 - q))


class Geometric(Distribution):
    """The number of failures before the first success, whose chance is `probs`.

    Raises:
        ShapeError: a chance is 0 or less, or above 1.
    """

    def __init__(self, probs: TensorLike) -> None:
        (given,) = scalar_parameters("Geometric", probs)
        if (
            not isinstance(given._value, Tracer | Symbol)
            and not ((given._value > 0) & (given._value <= 1)).all()
        ):
            raise ShapeError(
                "a chance is above 0 and at most 1",
                where="paddle.distribution.Geometric",
                received=f"probs={given.tolist()}",
            )
        self.probs = given  # type: ignore[method-assign, assignment]
        super().__init__(given.shape)

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0  # type: ignore[operator]

    @property
    def variance(self) -> Tensor:
        return self.mean / self.probs

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def rsample(self, shape: Sizes = ()) -> Tensor:
        return _draw(self.probs, self._extend_shape(shape))

    def log_prob(self, value: TensorLike) -> Tensor:
        return self.log_pmf(value)

    def log_pmf(self, k: TensorLike) -> Tensor:
        """The logarithm of the probability of `k` failures."""
        check_value("Geometric.pmf", k, numbers.Integral)
        return _log_pmf(self.probs, k)

    def pmf(self, k: TensorLike) -> Tensor:
        """The probability of `k` failures."""
        return self.log_pmf(k).exp()

    def cdf(self, k: TensorLike) -> Tensor:
        """The probability of at most `k` failures."""
        check_value("Geometric.cdf", k, numbers.Integral)
        return _cdf(self.probs, k)

    def entropy(self) -> Tensor:
        return _entropy(self.probs)

    def kl_divergence(self, other: Distribution) -> Tensor:
        check_same(self, other)
        return super().kl_divergence(other)
