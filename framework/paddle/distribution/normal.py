"""The normal distribution."""

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
    drawn_shape,
    parameters,
)


@operation(name="normal_sample")
def _draw(key: Key, loc: Array, scale: Array, shape: tuple[int, ...], seed: int = 0) -> Array:
    shape = drawn_shape(shape, loc, scale)
    kind = jnp.result_type(loc, scale)
    return loc + scale * jax.random.normal(jax.random.key(seed) if seed else key, shape, kind)


@operation(name="normal_log_prob")
def _log_prob(loc: Array, scale: Array, value: Array) -> Array:
    z = (value - loc) / scale
    return -0.5 * z * z - jnp.log(scale) - 0.5 * math.log(2 * math.pi)


@operation(name="normal_entropy")
def _entropy(scale: Array) -> Array:
    return jnp.log(scale) + 0.5 + 0.5 * math.log(2 * math.pi)


@operation(name="normal_kl")
def kl_normal(loc: Array, scale: Array, other_loc: Array, other_scale: Array) -> Array:
    """KL(N(loc, scale) || N(other_loc, other_scale))."""
    ratio, shift = (scale / other_scale) ** 2, ((loc - other_loc) / other_scale) ** 2
    return 0.5 * (ratio + shift - 1 - jnp.log(ratio))


class Normal(Distribution):
    """Of mean `loc` and standard deviation `scale`."""

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: TensorLike, scale: TensorLike, name: str | None = None) -> None:
        self.loc, self.scale = aligned(*parameters(loc, scale))
        self.name = name or "Normal"
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale

    @property
    def stddev(self) -> Tensor:
        return self.scale

    def sample(self, shape: Sizes = (), seed: int = 0) -> Tensor:
        return _draw(self.loc, self.scale, self._extend_shape(shape), seed).detach()

    def rsample(self, shape: Sizes = ()) -> Tensor:
        return _draw(self.loc, self.scale, self._extend_shape(shape))

    def log_prob(self, value: TensorLike) -> Tensor:
        return _log_prob(self.loc, self.scale, cast_value(value, self.loc))

    def entropy(self) -> Tensor:
        return _entropy(self.scale)
