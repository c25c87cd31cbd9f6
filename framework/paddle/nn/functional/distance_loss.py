"""Losses of distances, divergences, rankings and margins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from framework.nn import functional as core
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.functional.common import pairwise_distance


def _alike(*arrays: jax.Array) -> list[jax.Array]:
    """Arrays of one shape and of the first one's type."""
    return [a.astype(arrays[0].dtype) for a in jnp.broadcast_arrays(*arrays)]


@operation
def mse_loss(input: Array, label: Array, reduction: str = "mean", name: str | None = None) -> Array:
    """(input - label)^2."""
    return core.mse_loss(*_alike(input, label), reduction=reduction)


@operation
def square_error_cost(input: Array, label: Array) -> Array:
    """(input - label)^2, unreduced."""
    return core.square_error_cost(*_alike(input, label))


@operation
def l1_loss(input: Array, label: Array, reduction: str = "mean", name: str | None = None) -> Array:
    """|input - label|."""
    return core.l1_loss(*_alike(input, label), reduction=reduction)


@operation
def smooth_l1_loss(
    input: Array, label: Array, reduction: str = "mean", delta: float = 1.0, name: str | None = None
) -> Array:
    """d^2 / 2 up to `delta`, delta (d - delta / 2) beyond."""
    return core.smooth_l1_loss(*_alike(input, label), reduction=reduction, delta=delta)


@operation
def kl_div(input: Array, label: Array, reduction: str = "mean", name: str | None = None) -> Array:
    """label (log label - input) of log-probabilities; batchmean divides the sum by the batch. As in Paddle the
    labels get no gradient."""
    kind = jnp.promote_types(input.dtype, label.dtype)
    return core.kl_div(input.astype(kind), lax.stop_gradient(label.astype(kind)), reduction)


@operation
def margin_ranking_loss(
    input: Array,
    other: Array,
    label: Array,
    margin: float = 0.0,
    reduction: str = "mean",
    name: str | None = None,
) -> Array:
    """max(0, -label (input - other) + margin)."""
    return core.margin_ranking_loss(*_alike(input, other, label), margin=margin, reduction=reduction)


@operation
def hinge_embedding_loss(
    input: Array, label: Array, margin: float = 1.0, reduction: str = "mean", name: str | None = None
) -> Array:
    """input for label 1, max(0, margin - input) for label -1."""
    return core.hinge_embedding_loss(*_alike(input, label), margin=margin, reduction=reduction)


@operation
def cosine_embedding_loss(
    input1: Array,
    input2: Array,
    label: Array,
    margin: float = 0,
    reduction: str = "mean",
    name: str | None = None,
) -> Array:
    """1 - cos for label 1, max(0, cos - margin) for label -1; input [N, D] or [D], label [N]."""
    if input1.ndim == 1:  # one pair, and a label for each result
        input1, input2 = (jnp.broadcast_to(a, (label.size, a.size)) for a in (input1, input2))
    return core.cosine_embedding_loss(input1, input2, label, margin, reduction)


@operation
def triplet_margin_loss(
    input: Array,
    positive: Array,
    negative: Array,
    margin: float = 1.0,
    p: float = 2,
    epsilon: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
    name: str | None = None,
) -> Array:
    """max(0, d(input, positive) - d(input, negative) + margin) with the p-norm as distance."""
    return core.triplet_margin_loss(input, positive, negative, margin, p, epsilon, swap, reduction)


@operation(name="triplet_margin_with_distance_loss")
def _triplet_margin(near: Array, far: Array, margin: float, reduction: str) -> Array:
    loss = jax.nn.relu(near - far + margin)
    return {"mean": jnp.mean, "sum": jnp.sum, "none": lambda x: x}[reduction](loss)


def triplet_margin_with_distance_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """`triplet_margin_loss` with a distance of one's own."""
    if margin < 0:
        raise ValueError(f"triplet_margin_with_distance_loss: the margin is 0 or more, received {margin}")
    distance: Callable[[Tensor, Tensor], Any] = distance_function or pairwise_distance
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = _smaller(far, distance(positive, negative))
    return _triplet_margin(near, far, float(margin), reduction)


@operation(name="minimum")
def _smaller(x: Array, y: Array) -> Array:
    return jnp.minimum(x, y)


@operation
def soft_margin_loss(input: Array, label: Array, reduction: str = "mean", name: str | None = None) -> Array:
    """log(1 + exp(-label * input)) with labels 1 and -1."""
    return core.soft_margin_loss(input, label, reduction)


@operation
def multi_label_soft_margin_loss(
    input: Array, label: Array, weight: Array | None = None, reduction: str = "mean", name: str | None = None
) -> Array:
    """Binary cross entropy of logits [..., C] with labels 0 and 1, the mean over the classes."""
    return core.multi_label_soft_margin_loss(input, label, weight, reduction)


@operation
def multi_margin_loss(
    input: Array,
    label: Array,
    p: int = 1,
    margin: float = 1.0,
    weight: Array | None = None,
    reduction: str = "mean",
    name: str | None = None,
) -> Array:
    """The mean over the other classes of w[label] max(0, margin - input[label] + input[i])^p. input [N, C]."""
    return core.multi_margin_loss(input, label.reshape(-1), p, margin, weight, reduction)


@operation
def poisson_nll_loss(
    input: Array,
    label: Array,
    log_input: bool = True,
    full: bool = False,
    epsilon: float = 1e-8,
    reduction: str = "mean",
    name: str | None = None,
) -> Array:
    """exp(input) - label * input, or input - label * log(input + epsilon) when `input` is no logarithm."""
    return core.poisson_nll_loss(input, label, log_input, full, epsilon, reduction)


@operation
def gaussian_nll_loss(
    input: Array,
    label: Array,
    variance: Array,
    full: bool = False,
    epsilon: float = 1e-6,
    reduction: str = "mean",
    name: str | None = None,
) -> Array:
    """(log v + (input - label)^2 / v) / 2; the variance gets no gradient, as in Paddle."""
    return core.gaussian_nll_loss(input, label, lax.stop_gradient(variance), full, epsilon, reduction)
