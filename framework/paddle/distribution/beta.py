"""The beta distribution."""

from __future__ import annotations

import jax
from jax.scipy.special import betaln, digamma, xlog1py, xlogy

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import Sizes, aligned, drawn_shape, parameters
from framework.paddle.distribution.exponential_family import ExponentialFamily


@operation(name="beta_sample")
def _draw(key: Key, alpha: Array, beta: Array, shape: tuple[int, ...]) -> Array:
    shape = drawn_shape(shape, alpha, beta)
    first, second = jax.random.split(key)
    logs = jax.random.loggamma(first, alpha, shape, alpha.dtype) - jax.random.loggamma(
        second, beta, shape, alpha.dtype
    )
    return jax.nn.sigmoid(logs)


@operation(name="beta_log_prob")
def _log_prob(alpha: Array, beta: Array, value: Array) -> Array:
    return xlogy(alpha - 1, value) + xlog1py(beta - 1, -value) - betaln(alpha, beta)


@operation(name="beta_entropy")
def _entropy(alpha: Array, beta: Array) -> Array:
    total = alpha + beta
    spread = (alpha - 1) * digamma(alpha) + (beta - 1) * digamma(beta)
    return betaln(alpha, beta) - spread + (total - 2) * digamma(total)


@operation(name="beta_variance")
def _variance(alpha: Array, beta: Array) -> Array:
    total = alpha + beta
    return alpha * beta / (total * total * (total + 1))


@operation(name="beta_kl")
def kl_beta(alpha: Array, beta: Array, other_alpha: Array, other_beta: Array) -> Array:
    """KL of two beta distributions."""
    total = alpha + beta
    constant = betaln(other_alpha, other_beta) - betaln(alpha, beta)
    spread = (alpha - other_alpha) * digamma(alpha) + (beta - other_beta) * digamma(beta)
    return constant + spread + (other_alpha - alpha + other_beta - beta) * digamma(total)


class Beta(ExponentialFamily):
    """Over (0, 1), with density in proportion to x^(alpha - 1) (1 - x)^(beta - 1)."""

    alpha: Tensor
    beta: Tensor

    def __init__(self, alpha: TensorLike, beta: TensorLike) -> None:
        self.alpha, self.beta = aligned(*parameters(alpha, beta))
        super().__init__(self.alpha.shape)

    @property
    def mean(self) -> Tensor:
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> Tensor:
        return _variance(self.alpha, self.beta)

    def rsample(self, shape: Sizes = ()) -> Tensor:
        return _draw(self.alpha, self.beta, self._extend_shape(shape))

    def log_prob(self, value: TensorLike) -> Tensor:
        return _log_prob(self.alpha, self.beta, value)

    def entropy(self) -> Tensor:
        return _entropy(self.alpha, self.beta)

    @property
    def _natural_parameters(self) -> tuple[Tensor, ...]:
        return (self.alpha, self.beta)

    def _log_normalizer(self, *natural: Tensor) -> Tensor:
        alpha, beta = natural
        return alpha.lgamma() + beta.lgamma() - (alpha + beta).lgamma()
