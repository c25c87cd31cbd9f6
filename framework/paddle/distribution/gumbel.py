"""The Gumbel distribution."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import (
    Distribution,
    Sizes,
    aligned,
    drawn_shape,
    scalar_parameters,
)


@operation(name="gumbel_sample")
def _draw(key: Key, loc: Array, scale: Array, shape: tuple[int, ...]) -> Array:
    shape = drawn_shape(shape, loc, scale)
    return loc + scale * jax.random.gumbel(key, shape, scale.dtype)


@operation(name="gumbel_log_prob")
def _log_prob(loc: Array, scale: Array, value: Array) -> Array:
    z = (value - loc) / scale
    return -(z + jnp.exp(-z)) - jnp.log(scale)


@operation(name="gumbel_entropy")
def _entropy(scale: Array) -> Array:
    return jnp.log(scale) + 1 + np.euler_gamma


@operation(name="gumbel_cdf")
def _cdf(loc: Array, scale: Array, value: Array) -> Array:
    return jnp.exp(-jnp.exp(-(value - loc) / scale))


class Gumbel(Distribution):
    """Of the largest of many draws: with distribution function exp(-exp(-(x - loc) / scale))."""

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: TensorLike, scale: TensorLike) -> None:
        self.loc, self.scale = aligned(*scalar_parameters("Gumbel", loc, scale))
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * np.euler_gamma

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale * (math.pi**2 / 6)

    @property
    def stddev(self) -> Tensor:
        return self.scale * (math.pi / math.sqrt(6))

    def rsample(self, shape: Sizes = ()) -> Tensor:
        return _draw(self.loc, self.scale, self._extend_shape(shape))

    def log_prob(self, value: TensorLike) -> Tensor:
        return _log_prob(self.loc, self.scale, value)

    def cdf(self, value: TensorLike) -> Tensor:
        """The probability of less than `value`."""
        return _cdf(self.loc, self.scale, value)

    def entropy(self) -> Tensor:
        return _entropy(self.scale)
