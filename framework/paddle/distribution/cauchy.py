"""The Cauchy distribution."""

from __future__ import annotations

import math

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
    check_same,
    check_value,
    drawn_shape,
    scalar_parameters,
)


@operation(name="cauchy_sample")
def _draw(key: Key, loc: Array, scale: Array, shape: tuple[int, ...]) -> Array:
    shape = drawn_shape(shape, loc, scale)
    return loc + scale * jax.random.cauchy(key, shape, scale.dtype)


@operation(name="cauchy_log_prob")
def _log_prob(loc: Array, scale: Array, value: Array) -> Array:
    z = (value - loc) / scale
    return -jnp.log1p(z * z) - jnp.log(scale) - math.log(math.pi)


@operation(name="cauchy_entropy")
def _entropy(scale: Array) -> Array:
    return jnp.log(scale) + math.log(4 * math.pi)


@operation(name="cauchy_cdf")
def _cdf(loc: Array, scale: Array, value: Array) -> Array:
    return jnp.arctan((value - loc) / scale) / math.pi + 0.5


@operation(name="cauchy_kl")
def kl_cauchy(loc: Array, scale: Array, other_loc: Array, other_scale: Array) -> Array:
    """KL of two Cauchy distributions."""
    return jnp.log(((scale + other_scale) ** 2 + (loc - other_loc) ** 2) / (4 * scale * other_scale))


class Cauchy(Distribution):
    """Around `loc`, with half of the probability within `scale`; without a mean."""

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: TensorLike, scale: TensorLike, name: str | None = None) -> None:
        self.loc, self.scale = aligned(*scalar_parameters("Cauchy", loc, scale))
        self.name = name or "Cauchy"
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """There is none: ValueError."""
        raise ValueError("a Cauchy distribution has no mean; its median is `loc`")

    @property
    def variance(self) -> Tensor:
        """There is none: ValueError."""
        raise ValueError("a Cauchy distribution has no variance")

    @property
    def stddev(self) -> Tensor:
        """There is none: ValueError."""
        raise ValueError("a Cauchy distribution has no standard deviation")

    def sample(self, shape: Sizes = (), name: str | None = None) -> Tensor:
        return self.rsample(shape).detach()

    def rsample(self, shape: Sizes = (), name: str | None = None) -> Tensor:
        return _draw(self.loc, self.scale, self._extend_shape(shape))

    def log_prob(self, value: TensorLike) -> Tensor:
        check_value("Cauchy.log_prob", value)
        return _log_prob(self.loc, self.scale, cast_value(value, self.loc))

    def cdf(self, value: TensorLike) -> Tensor:
        """The probability of less than `value`."""
        check_value("Cauchy.cdf", value)
        return _cdf(self.loc, self.scale, cast_value(value, self.loc))

    def entropy(self) -> Tensor:
        return _entropy(self.scale)

    def kl_divergence(self, other: Distribution) -> Tensor:
        check_same(self, other)
        return super().kl_divergence(other)
