"""The Laplace distribution."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from framework.nn.functional.slopes import absolute
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


@operation(name="laplace_sample")
def _draw(key: Key, loc: Array, scale: Array, shape: tuple[int, ...]) -> Array:
    shape = drawn_shape(shape, loc, scale)
    return loc + scale * jax.random.laplace(key, shape, scale.dtype)


@operation(name="laplace_log_prob")
def _log_prob(loc: Array, scale: Array, value: Array) -> Array:
    return -jnp.log(2 * scale) - absolute(value - loc) / scale


@operation(name="laplace_entropy")
def _entropy(scale: Array) -> Array:
    return 1 + jnp.log(2 * scale)


@operation(name="laplace_cdf")
def _cdf(loc: Array, scale: Array, value: Array) -> Array:
    offset = value - loc
    return 0.5 - 0.5 * jnp.sign(offset) * jnp.expm1(-jnp.abs(offset) / scale)


@operation(name="laplace_icdf")
def _icdf(loc: Array, scale: Array, value: Array) -> Array:
    term = value - 0.5
    return loc - scale * jnp.sign(term) * jnp.log1p(-2 * jnp.abs(term))


@operation(name="laplace_kl")
def kl_laplace(loc: Array, scale: Array, other_loc: Array, other_scale: Array) -> Array:
    """KL of two Laplace distributions."""
    distance, ratio = jnp.abs(loc - other_loc), scale / other_scale
    return -jnp.log(ratio) + ratio * jnp.exp(-distance / scale) + distance / other_scale - 1


class Laplace(Distribution):
    """With density exp(-|x - loc| / scale) / (2 scale)."""

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: TensorLike, scale: TensorLike) -> None:
        self.loc, self.scale = aligned(*scalar_parameters("Laplace", loc, scale))
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale * math.sqrt(2)

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale * 2

    def rsample(self, shape: Sizes = ()) -> Tensor:
        return _draw(self.loc, self.scale, self._extend_shape(shape))

    def log_prob(self, value: TensorLike) -> Tensor:
        return _log_prob(self.loc, self.scale, value)

    def entropy(self) -> Tensor:
        return _entropy(self.scale)

    def cdf(self, value: TensorLike) -> Tensor:
        """The probability of less than `value`."""
        return _cdf(self.loc, self.scale, value)

    def icdf(self, value: TensorLike) -> Tensor:
        """The point below which lies the probability `value`."""
        return _icdf(self.loc, self.scale, value)
