"""The log-normal distribution."""

from __future__ import annotations

import jax.numpy as jnp

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.normal import Normal
from framework.paddle.distribution.transform import ExpTransform
from framework.paddle.distribution.transformed_distribution import TransformedDistribution


@operation(name="lognormal_mean")
def _mean(loc: Array, scale: Array) -> Array:
    return jnp.exp(loc + scale * scale / 2)


@operation(name="lognormal_variance")
def _variance(loc: Array, scale: Array) -> Array:
    return jnp.expm1(scale * scale) * jnp.exp(2 * loc + scale * scale)


class LogNormal(TransformedDistribution):
    """Of exp(x) where x is normal with mean `loc` and standard deviation `scale`."""

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: TensorLike, scale: TensorLike) -> None:
        self._base = Normal(loc, scale)
        self.loc, self.scale = self._base.loc, self._base.scale
        super().__init__(self._base, [ExpTransform()])

    @property
    def mean(self) -> Tensor:
        return _mean(self.loc, self.scale)

    @property
    def variance(self) -> Tensor:
        return _variance(self.loc, self.scale)

    def entropy(self) -> Tensor:
        return self._base.entropy() + self.loc
