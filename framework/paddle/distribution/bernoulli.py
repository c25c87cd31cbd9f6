"""The Bernoulli distribution."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import Sizes, cast_value, drawn_shape, parameters
from framework.paddle.distribution.exponential_family import ExponentialFamily


def _clipped(probs: Array) -> Array:
    """Chances that have a logarithm on both sides."""
    eps = jnp.finfo(probs.dtype).eps
    return jnp.clip(probs, eps, 1 - eps)


@operation(name="bernoulli_probs")
def _probs(probs: Array) -> Array:
    return _clipped(probs)


@operation(name="bernoulli_logits")
def _logits(probs: Array) -> Array:
    return jax.scipy.special.logit(_clipped(probs))


@operation(name="bernoulli_sample", differentiable=False)
def _draw(key: Key, probs: Array, shape: tuple[int, ...]) -> Array:
    shape = drawn_shape(shape, probs)
    return jax.random.bernoulli(key, probs, shape).astype(probs.dtype)


@operation(name="bernoulli_rsample")
def _relaxed(key: Key, probs: Array, temperature: Array, shape: tuple[int, ...]) -> Array:
    noise = jax.random.logistic(key, shape, probs.dtype)
    return (jax.scipy.special.logit(_clipped(probs)) + noise) / temperature


@operation(name="bernoulli_log_prob")
def _log_prob(probs: Array, value: Array) -> Array:
    logits = jax.scipy.special.logit(_clipped(probs))
    return value * logits - jax.nn.softplus(logits)


@operation(name="bernoulli_cdf")
def _cdf(probs: Array, value: Array) -> Array:
    probs, value = jnp.broadcast_arrays(probs, value)
    one = jnp.ones((), probs.dtype)
    return jnp.where(value < 0, 0 * one, jnp.where(value >= 1, one, 1 - probs))


@operation(name="bernoulli_entropy")
def _entropy(probs: Array) -> Array:
    p = _clipped(probs)
    return -(p * jnp.log(p) + (1 - p) * jnp.log1p(-p))


@operation(name="bernoulli_kl")
def kl_bernoulli(probs: Array, other_probs: Array) -> Array:
    """KL of two Bernoulli distributions."""
    p, q = _clipped(probs), _clipped(other_probs)
    return p * (jnp.log(p) - jnp.log(q)) + (1 - p) * (jnp.log1p(-p) - jnp.log1p(-q))


class Bernoulli(ExponentialFamily):
    """1 with the chance `probs`, else 0. As in Paddle chances are a rounding step away from 0 and 1."""

    def __init__(self, probs: TensorLike, name: str | None = None) -> None:
        (given,) = parameters(probs)
        self.probs = _probs(given)  # type: ignore[method-assign, assignment]
        self.logits = _logits(self.probs)
        self.name = name or "Bernoulli"
        super().__init__(given.shape)

    @property
    def mean(self) -> Tensor:
        return self.probs  # type: ignore[return-value]

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 - self.mean)

    def sample(self, shape: Sizes = ()) -> Tensor:
        return _draw(self.probs, self._extend_shape(shape))

    def rsample(self, shape: Sizes = (), temperature: float = 1.0) -> Tensor:
        """Logits of draws: the sigmoid of them goes to 0 and 1 as the temperature falls."""
        return _relaxed(self.probs, temperature, self._extend_shape(shape))

    def log_prob(self, value: TensorLike) -> Tensor:
        return _log_prob(self.probs, cast_value(value, self.logits))

    def cdf(self, value: TensorLike) -> Tensor:
        """The probability of at most `value`."""
        return _cdf(self.probs, cast_value(value, self.logits))

    def entropy(self) -> Tensor:
        return _entropy(self.probs)
