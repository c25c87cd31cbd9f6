"""The categorical distribution."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import Distribution, Sizes, parameters
from framework.paddle.ops.creation import integers_of


@operation(name="categorical_sample", differentiable=False)
def _draw(key: Key, weights: Array, shape: tuple[int, ...]) -> Array:
    return jax.random.categorical(key, jnp.log(weights), shape=shape).astype(jnp.int64)


@operation(name="categorical_prob")
def _prob(weights: Array, value: Array) -> Array:
    """One distribution: the chance of each value. Several [..., N]: of value [..., M], or of [M] in each."""
    probs = weights / weights.sum(-1, keepdims=True)
    if probs.ndim == 1:
        return probs[value]
    if value.ndim < probs.ndim:
        value = jnp.broadcast_to(value, (*probs.shape[:-1], value.shape[-1] if value.ndim else 1))
    return jnp.take_along_axis(probs, value, -1)


@operation(name="categorical_entropy")
def _entropy(logits: Array) -> Array:
    log_p = jax.nn.log_softmax(logits)
    return -(jnp.exp(log_p) * log_p).sum(-1)


@operation(name="categorical_kl")
def kl_categorical(logits: Array, other_logits: Array) -> Array:
    """KL of two categorical distributions, [..., 1]."""
    log_p, log_q = jax.nn.log_softmax(logits), jax.nn.log_softmax(other_logits)
    return (jnp.exp(log_p) * (log_p - log_q)).sum(-1, keepdims=True)


class Categorical(Distribution):
    """Over 0 to N - 1. As in Paddle, `probs`, `log_prob` and `sample` take `logits` [..., N] as weights that are
    divided by their sum, while `entropy` and `kl_divergence` take their softmax."""

    logits: Tensor

    def __init__(self, logits: TensorLike, name: str | None = None) -> None:
        (self.logits,) = parameters(logits)
        self.name = name or "Categorical"
        super().__init__(self.logits.shape[:-1])

    def sample(self, shape: Sizes = ()) -> Tensor:
        """int64 of shape + batch_shape."""
        return _draw(self.logits, (*integers_of(shape), *self.batch_shape))

    def probs(self, value: TensorLike) -> Tensor:
        return _prob(self.logits, value)

    def prob(self, value: TensorLike) -> Tensor:
        return self.probs(value)

    def log_prob(self, value: TensorLike) -> Tensor:
        return self.probs(value).log()

    def entropy(self) -> Tensor:
        return _entropy(self.logits)
