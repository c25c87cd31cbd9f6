"""The multinomial distribution."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, xlogy

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import Distribution, Sizes, parameters


@operation(name="multinomial_sample", differentiable=False)
def _draw(key: Key, probs: Array, total: int, shape: tuple[int, ...]) -> Array:
    draws = jax.random.categorical(key, jnp.log(probs), shape=(total, *shape[:-1]))
    return jax.nn.one_hot(draws, shape[-1], dtype=probs.dtype).sum(0)


@operation(name="multinomial_log_prob")
def _log_prob(probs: Array, value: Array) -> Array:
    value = value.astype(probs.dtype)
    ways = gammaln(value.sum(-1) + 1) - gammaln(value + 1).sum(-1)
    return ways + xlogy(value, probs).sum(-1)


@operation(name="multinomial_entropy")
def _entropy(probs: Array, total: int) -> Array:
    """By the binomial distribution of each count, whose log-factorial has the mean that is needed."""
    n = jnp.asarray(total, probs.dtype)
    counts = jnp.arange(1, total + 1, dtype=probs.dtype).reshape(-1, *[1] * probs.ndim)
    log_ways = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    chances = jnp.exp(log_ways + xlogy(counts, probs) + xlogy(n - counts, 1 - probs))
    mean_log_factorials = (chances * gammaln(counts + 1)).sum((0, -1))
    return -n * xlogy(probs, probs).sum(-1) - gammaln(n + 1) + mean_log_factorials


@operation(name="divide")
def _normalized(probs: Array) -> Array:
    return probs / probs.sum(-1, keepdims=True)


class Multinomial(Distribution):
    """Counts [..., N] of `total_count` draws from N categories with the chances `probs` [..., N].

    Raises:
        ShapeError: `total_count` is below 1, or `probs` has no axis of categories.
    """

    def __init__(self, total_count: int, probs: TensorLike) -> None:
        (probs,) = parameters(probs)
        if total_count < 1 or probs.ndim < 1:
            raise ShapeError(
                "a multinomial distribution draws at least once, from an axis of categories",
                where="paddle.distribution.Multinomial",
                received=f"total_count {total_count}, probs {probs.shape}",
            )
        self.probs = _normalized(probs)  # type: ignore[method-assign]
        self.total_count = int(total_count)
        super().__init__(probs.shape[:-1], probs.shape[-1:])

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count  # type: ignore[operator]

    @property
    def variance(self) -> Tensor:
        return self.mean * (1.0 - self.probs)  # type: ignore[operator]

    def sample(self, shape: Sizes = ()) -> Tensor:
        return _draw(self.probs, self.total_count, self._extend_shape(shape))

    def log_prob(self, value: TensorLike) -> Tensor:
        return _log_prob(self.probs, value)

    def entropy(self) -> Tensor:
        return _entropy(self.probs, self.total_count)
