"""Losses of distances, divergences, rankings and margins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from framework.nn import functional as core
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import require
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.functional.common import pairwise_distance
from framework.paddle.nn.functional.face import face


@operation(name="triplet_margin_with_distance_loss")
def _triplet_margin(near: Array, far: Array, margin: float, reduction: str) -> Array:
    loss = jax.nn.relu(near - far + margin)
    return {"mean": jnp.mean, "sum": jnp.sum, "none": lambda x: x}[reduction](loss)


@checked
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
    where, holds = (
        "paddle.nn.functional.triplet_margin_with_distance_loss",
        reduction in ("mean", "sum", "none"),
    )
    require(holds, "the reduction is mean, sum or none", where, reduction)
    distance: Callable[[Tensor, Tensor], Any] = distance_function or pairwise_distance
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = _smaller(far, distance(positive, negative))
    return _triplet_margin(near, far, float(margin), reduction)


@operation(name="minimum")
def _smaller(x: Array, y: Array) -> Array:
    return jnp.minimum(x, y)


def _alike(function: Callable[..., jax.Array], **arguments: object) -> jax.Array:
    """Arrays are broadcast, and take the first one's type."""
    data = {name: value for name, value in arguments.items() if isinstance(value, jax.Array)}
    arrays = jnp.broadcast_arrays(*data.values())
    shaped = {name: array.astype(arrays[0].dtype) for name, array in zip(data, arrays, strict=True)}
    return function(**arguments | shaped)


def _without_gradient(
    function: Callable[..., jax.Array], input: jax.Array, label: jax.Array, reduction: str
) -> jax.Array:
    """As in Paddle the labels of kl_div get no gradient."""
    kind = jnp.promote_types(input.dtype, label.dtype)
    return function(input.astype(kind), lax.stop_gradient(label.astype(kind)), reduction)


def _pairs(
    function: Callable[..., jax.Array],
    input1: jax.Array,
    input2: jax.Array,
    label: jax.Array,
    **settings: object,
) -> jax.Array:
    if input1.ndim == 1:  # one pair, and a label for each result
        input1, input2 = (jnp.broadcast_to(a, (label.size, a.size)) for a in (input1, input2))
    return function(input1, input2, label, **settings)


def _flat_label(function: Callable[..., jax.Array], label: jax.Array, **arguments: object) -> jax.Array:
    return function(label=label.reshape(-1), **arguments)


def _fixed_variance(
    function: Callable[..., jax.Array], variance: jax.Array, **arguments: object
) -> jax.Array:
    """As in Paddle the variance gets no gradient."""
    return function(variance=lax.stop_gradient(variance), **arguments)


cosine_embedding_loss = face(core.cosine_embedding_loss, _pairs, margin=0)
gaussian_nll_loss = face(core.gaussian_nll_loss, _fixed_variance)
hinge_embedding_loss = face(core.hinge_embedding_loss, _alike)
kl_div = face(core.kl_div, _without_gradient)
l1_loss = face(core.l1_loss, _alike)
margin_ranking_loss = face(core.margin_ranking_loss, _alike)
mse_loss = face(core.mse_loss, _alike)
multi_label_soft_margin_loss = face(core.multi_label_soft_margin_loss)
multi_margin_loss = face(core.multi_margin_loss, _flat_label)
poisson_nll_loss = face(core.poisson_nll_loss)
smooth_l1_loss = face(core.smooth_l1_loss, _alike)
soft_margin_loss = face(core.soft_margin_loss)
square_error_cost = face(core.square_error_cost, _alike, name=False)
triplet_margin_loss = face(core.triplet_margin_loss)
