"""The Dirichlet distribution."""

from __future__ import annotations

import jax
from jax.scipy.special import digamma, gammaln, xlogy

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import Sizes, parameters
from framework.paddle.distribution.exponential_family import ExponentialFamily


@operation(name="dirichlet_sample")
def draw_dirichlet(key: Key, concentration: Array, shape: tuple[int, ...]) -> Array:
    """Points [..., N] of non-negative numbers that sum to 1; they pass gradients to the concentration."""
    logs = jax.random.loggamma(key, concentration, shape, concentration.dtype)
    return jax.nn.softmax(logs, -1)  # not through the gammas themselves, which underflow below 0.1


@operation(name="dirichlet_log_prob")
def _log_prob(concentration: Array, value: Array) -> Array:
    a = concentration
    return xlogy(a - 1, value).sum(-1) + gammaln(a.sum(-1)) - gammaln(a).sum(-1)


@operation(name="dirichlet_entropy")
def _entropy(concentration: Array) -> Array:
    a = concentration
    total, count = a.sum(-1), a.shape[-1]
    log_beta = gammaln(a).sum(-1) - gammaln(total)
    return log_beta + (total - count) * digamma(total) - ((a - 1) * digamma(a)).sum(-1)


@operation(name="dirichlet_kl")
def kl_dirichlet(concentration: Array, other_concentration: Array) -> Array:
    """KL of two Dirichlet distributions."""
    a, b = concentration, other_concentration
    total = a.sum(-1)
    constant = gammaln(total) - gammaln(b.sum(-1)) + (gammaln(b) - gammaln(a)).sum(-1)
    return constant + ((a - b) * (digamma(a) - digamma(total)[..., None])).sum(-1)


@operation(name="dirichlet_mean")
def _mean(concentration: Array) -> Array:
    return concentration / concentration.sum(-1, keepdims=True)


@operation(name="dirichlet_variance")
def _variance(concentration: Array) -> Array:
    total = concentration.sum(-1, keepdims=True)
    return concentration * (total - concentration) / (total * total * (total + 1))


class Dirichlet(ExponentialFamily):
    """Over points [..., N] of non-negative numbers that sum to 1.

    Raises:
        ShapeError: `concentration` has no axis.
    """

    concentration: Tensor

    def __init__(self, concentration: TensorLike) -> None:
        (self.concentration,) = parameters(concentration)
        if self.concentration.ndim < 1:
            raise ShapeError(
                "the concentration has an axis of components",
                where="paddle.distribution.Dirichlet",
                received="shape []",
            )
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:])

    @property
    def mean(self) -> Tensor:
        return _mean(self.concentration)

    @property
    def variance(self) -> Tensor:
        return _variance(self.concentration)

    def rsample(self, shape: Sizes = ()) -> Tensor:
        return draw_dirichlet(self.concentration, self._extend_shape(shape))

    def log_prob(self, value: TensorLike) -> Tensor:
        return _log_prob(self.concentration, value)

    def entropy(self) -> Tensor:
        return _entropy(self.concentration)

    @property
    def _natural_parameters(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural: Tensor) -> Tensor:
        return natural[0].lgamma().sum(-1) - natural[0].sum(-1).lgamma()
