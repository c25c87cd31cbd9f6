"""The uniform distribution."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import (
    Distribution,
    Sizes,
    aligned,
    cast_value,
    drawn_shape,
    parameters,
)


@operation(name="uniform_sample")
def _draw(key: Key, low: Array, high: Array, shape: tuple[int, ...], seed: int = 0) -> Array:
    shape = drawn_shape(shape, low, high)
    kind = jnp.result_type(low, high)
    return low + (high - low) * jax.random.uniform(jax.random.key(seed) if seed else key, shape, kind)


@operation(name="uniform_log_prob")
def _log_prob(low: Array, high: Array, value: Array) -> Array:
    inside = ((low < value) & (value < high)).astype(jnp.result_type(low, high))
    return jnp.log(inside) - jnp.log(high - low)  # nan where low is above high, as in Paddle


@operation(name="uniform_prob")
def _prob(low: Array, high: Array, value: Array) -> Array:
    inside = ((low < value) & (value < high)).astype(jnp.result_type(low, high))
    return inside / (high - low)


@operation(name="uniform_entropy")
def _entropy(low: Array, high: Array) -> Array:
    return jnp.log(high - low)


@operation(name="uniform_kl")
def kl_uniform(low: Array, high: Array, other_low: Array, other_high: Array) -> Array:
    """KL of two uniform distributions; infinite where the first reaches out of the second."""
    inside = (other_low <= low) & (high <= other_high)
    return jnp.where(inside, jnp.log((other_high - other_low) / (high - low)), jnp.inf)


class Uniform(Distribution):
    """Even over (low, high)."""

    low: Tensor
    high: Tensor

    def __init__(self, low: TensorLike, high: TensorLike, name: str | None = None) -> None:
        self.low, self.high = aligned(*parameters(low, high))
        self.name = name or "Uniform"
        super().__init__(self.low.shape)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    def sample(self, shape: Sizes = (), seed: int = 0) -> Tensor:
        return _draw(self.low, self.high, self._extend_shape(shape), seed).detach()

    def rsample(self, shape: Sizes = ()) -> Tensor:
        return _draw(self.low, self.high, self._extend_shape(shape))

    def log_prob(self, value: TensorLike) -> Tensor:
        return _log_prob(self.low, self.high, cast_value(value, self.low))

    def prob(self, value: TensorLike) -> Tensor:
        return _prob(self.low, self.high, cast_value(value, self.low))

    def entropy(self) -> Tensor:
        return _entropy(self.low, self.high)
