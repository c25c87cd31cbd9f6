"""Losses of distances: regression, divergence, ranking and metric learning, with Paddle's reductions."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from framework.core.errors import ShapeError
from framework.nn.functional.losses import check_reduction, reduce_loss


def _check(where: str, reduction: str, *arrays: jax.Array) -> None:
    check_reduction(reduction, where)
    if len({a.shape for a in arrays}) > 1:
        raise ShapeError(
            f"{where}: the arrays have one shape",
            received=", ".join(str(a.shape) for a in arrays),
            allowed="equal shapes; nothing is broadcast",
        )


@functools.partial(jax.jit, static_argnames=("reduction",))
def _mse_loss(x: jax.Array, label: jax.Array, reduction: str) -> jax.Array:
    return reduce_loss(jnp.square(x - label), reduction)


def mse_loss(input: jax.Array, label: jax.Array, reduction: str = "mean") -> jax.Array:
    """(input - label)^2."""
    _check("mse_loss", reduction, input, label)
    return _mse_loss(input, label, reduction)


def square_error_cost(input: jax.Array, label: jax.Array) -> jax.Array:
    """(input - label)^2, unreduced."""
    return mse_loss(input, label, "none")


@functools.partial(jax.jit, static_argnames=("reduction",))
def _l1_loss(x: jax.Array, label: jax.Array, reduction: str) -> jax.Array:
    return reduce_loss(jnp.abs(x - label), reduction)


def l1_loss(input: jax.Array, label: jax.Array, reduction: str = "mean") -> jax.Array:
    """|input - label|."""
    _check("l1_loss", reduction, input, label)
    return _l1_loss(input, label, reduction)


@functools.partial(jax.jit, static_argnames=("reduction", "delta"))
def _smooth_l1_loss(x: jax.Array, label: jax.Array, reduction: str, delta: float) -> jax.Array:
    distance = jnp.abs(x - label)
    near = jnp.minimum(distance, delta)
    return reduce_loss(near * (distance - 0.5 * near), reduction)


def smooth_l1_loss(
    input: jax.Array, label: jax.Array, reduction: str = "mean", delta: float = 1.0
) -> jax.Array:
    """d^2 / 2 up to `delta`, delta (d - delta / 2) beyond: Huber's form, as in Paddle, not divided by delta."""
    _check("smooth_l1_loss", reduction, input, label)
    return _smooth_l1_loss(input, label, reduction, float(delta))


@functools.partial(jax.jit, static_argnames=("reduction",))
def _kl_div(logs: jax.Array, label: jax.Array, reduction: str) -> jax.Array:
    known = jnp.log(jnp.where(label > 0, label, 1))
    loss = jnp.where(label > 0, label * (known - logs), 0)
    return loss.sum() / loss.shape[0] if reduction == "batchmean" else reduce_loss(loss, reduction)


def kl_div(input: jax.Array, label: jax.Array, reduction: str = "mean") -> jax.Array:
    """label (log label - input) of log-probabilities `input`; batchmean divides the sum by the batch."""
    check_reduction(reduction, "kl_div", ("mean", "batchmean", "sum", "none"))
    _check("kl_div", "none", input, label)
    return _kl_div(input, label, reduction)


@functools.partial(jax.jit, static_argnames=("margin", "reduction"))
def _margin_ranking_loss(
    x: jax.Array, other: jax.Array, label: jax.Array, margin: float, reduction: str
) -> jax.Array:
    return reduce_loss(jax.nn.relu(label.astype(x.dtype) * (other - x) + margin), reduction)


def margin_ranking_loss(
    input: jax.Array, other: jax.Array, label: jax.Array, margin: float = 0.0, reduction: str = "mean"
) -> jax.Array:
    """max(0, -label (input - other) + margin) with labels 1 or -1."""
    _check("margin_ranking_loss", reduction, input, other, label)
    return _margin_ranking_loss(input, other, label, float(margin), reduction)


def _distance(x: jax.Array, y: jax.Array, p: float, epsilon: float) -> jax.Array:
    gap = jnp.abs(x - y + epsilon)
    if p == float("inf"):
        return gap.max(-1)
    return jnp.sqrt(jnp.square(gap).sum(-1)) if p == 2 else (gap**p).sum(-1) ** (1 / p)


@functools.partial(jax.jit, static_argnames=("margin", "p", "epsilon", "swap", "reduction"))
def _triplet_margin_loss(
    anchor: jax.Array,
    positive: jax.Array,
    negative: jax.Array,
    margin: float,
    p: float,
    epsilon: float,
    swap: bool,
    reduction: str,
) -> jax.Array:
    near, far = _distance(anchor, positive, p, epsilon), _distance(anchor, negative, p, epsilon)
    if swap:
        far = jnp.minimum(far, _distance(positive, negative, p, epsilon))
    return reduce_loss(jax.nn.relu(near - far + margin), reduction)


def triplet_margin_loss(
    input: jax.Array,
    positive: jax.Array,
    negative: jax.Array,
    margin: float = 1.0,
    p: float = 2,
    epsilon: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> jax.Array:
    """max(0, d(input, positive) - d(input, negative) + margin) over [N, D]. Source: Balntas et al. 2016 (swap)."""
    _check("triplet_margin_loss", reduction, input, positive, negative)
    return _triplet_margin_loss(
        input, positive, negative, float(margin), float(p), float(epsilon), swap, reduction
    )


@functools.partial(jax.jit, static_argnames=("margin", "reduction"))
def _cosine_embedding_loss(
    first: jax.Array, second: jax.Array, label: jax.Array, margin: float, reduction: str
) -> jax.Array:
    squares = [jnp.square(a).sum(-1) + 1e-11 for a in (first, second)]
    cosine = (first * second).sum(-1) / jnp.sqrt(squares[0] * squares[1])
    apart = jnp.where(label == -1, jax.nn.relu(cosine - margin), 0)
    return reduce_loss(jnp.where(label == 1, 1 - cosine, apart), reduction)


def cosine_embedding_loss(
    input1: jax.Array, input2: jax.Array, label: jax.Array, margin: float = 0.0, reduction: str = "mean"
) -> jax.Array:
    """1 - cos for label 1 and max(0, cos - margin) for label -1. input [N, D] or [D], label [N] or []."""
    _check("cosine_embedding_loss", reduction, input1, input2)
    if label.shape != input1.shape[:-1]:
        raise ShapeError(
            "cosine_embedding_loss: one label for each pair",
            received=label.shape,
            allowed=input1.shape[:-1],
        )
    return _cosine_embedding_loss(input1, input2, label, float(margin), reduction)
