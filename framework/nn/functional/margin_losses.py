"""Losses with a margin, of one label, of several or of triples, with Paddle's reductions. Classes are the last axis."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.errors import ShapeError
from framework.nn.functional.common import pairwise_distance
from framework.nn.functional.losses import _check as check_same_shapes
from framework.nn.functional.losses import _pick as pick
from framework.nn.functional.losses import check_reduction, reduce_loss
from framework.nn.functional.lowering import jitted


@jitted("margin", "reduction")
def hinge_embedding_loss(
    input: jax.Array, label: jax.Array, margin: float = 1.0, reduction: str = "mean"
) -> jax.Array:
    """`input` for label 1, max(0, margin - input) for label -1, and 0 for any other."""
    check_same_shapes("hinge_embedding_loss", reduction, input, label)
    far = jnp.where(label == -1, jax.nn.relu(float(margin) - input), 0)
    return reduce_loss(jnp.where(label == 1, input, far), reduction)


@jitted("reduction")
def soft_margin_loss(input: jax.Array, label: jax.Array, reduction: str = "mean") -> jax.Array:
    """log(1 + exp(-label * input)) with labels 1 and -1."""
    check_same_shapes("soft_margin_loss", reduction, input, label)
    return reduce_loss(jax.nn.softplus(-label.astype(input.dtype) * input), reduction)


@jitted("reduction")
def multi_label_soft_margin_loss(
    input: jax.Array, label: jax.Array, weight: jax.Array | None = None, reduction: str = "mean"
) -> jax.Array:
    """Binary cross entropy of logits [..., C] with labels 0 and 1, times `weight` [C], the mean over the classes."""
    check_same_shapes("multi_label_soft_margin_loss", reduction, input, label)
    label = label.astype(input.dtype)
    loss = label * jax.nn.softplus(-input) + (1 - label) * jax.nn.softplus(input)
    return reduce_loss((loss if weight is None else loss * weight).mean(-1), reduction)


def _check_labels(where: str, input: jax.Array, label: jax.Array, wanted: tuple[int, ...]) -> None:
    if input.ndim != 2 or label.shape != wanted or not jnp.issubdtype(label.dtype, jnp.integer):
        raise ShapeError(
            f"{where}: labels do not fit the scores",
            received=f"input {input.shape}, label {label.shape} of {label.dtype}",
            allowed=f"input [N, C], label {list(wanted)} of integers",
        )


@jitted("p", "margin", "reduction")
def multi_margin_loss(
    input: jax.Array,
    label: jax.Array,
    p: int = 1,
    margin: float = 1.0,
    weight: jax.Array | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """The mean over the C classes of w[label] max(0, margin - input[label] + input[i])^p for every i but the label.

    input [N, C], label [N]. As in Paddle 3; 2.6 has the weight within the power.
    """
    check_reduction(reduction, "multi_margin_loss")
    _check_labels("multi_margin_loss", input, label, input.shape[:1])
    gap = float(margin) - pick(input, label)[:, None] + input
    others = lax.broadcasted_iota(label.dtype, input.shape, 1) != label[:, None]
    loss = jnp.where(others, jax.nn.relu(gap) ** p, 0).mean(1)
    return reduce_loss(loss if weight is None else loss * jnp.take(weight, label, mode="clip"), reduction)


@jitted("reduction")
def multi_label_margin_loss(input: jax.Array, label: jax.Array, reduction: str = "mean") -> jax.Array:
    """The sum over labels j and other classes i of max(0, 1 - (input[j] - input[i])), divided by C. input [N, C].

    label [N, C] has the classes of a row first and -1 behind them; what is behind the first -1 does not count.
    """
    check_reduction(reduction, "multi_label_margin_loss")
    _check_labels("multi_label_margin_loss", input, label, input.shape)
    valid = jnp.cumprod((label >= 0).astype(jnp.int32), 1).astype(bool)
    classes = lax.broadcasted_iota(label.dtype, (*input.shape, input.shape[1]), 2)
    hits = (classes == label[:, :, None]) & valid[:, :, None]  # [N, place, class]
    gap = jax.nn.relu(1 - (pick(input[:, None], jnp.where(valid, label, 0))[:, :, None] - input[:, None]))
    counted = valid[:, :, None] & ~hits.any(1)[:, None]
    return reduce_loss(jnp.where(counted, gap, 0).sum((1, 2)) / input.shape[1], reduction)


def triplet_margin_with_distance_loss(
    input: jax.Array,
    positive: jax.Array,
    negative: jax.Array,
    distance_function: Callable[[jax.Array, jax.Array], jax.Array] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> jax.Array:
    """`triplet_margin_loss` with a distance of one's own; by default `pairwise_distance` with p = 2."""
    where = "triplet_margin_with_distance_loss"
    check_same_shapes(where, reduction, input, positive, negative)
    if margin < 0:
        raise ShapeError(f"{where}: the margin is negative", received=margin, allowed="0 or more")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = jnp.minimum(far, distance(positive, negative))
    return reduce_loss(jax.nn.relu(near - far + float(margin)), reduction)


@jitted("l2_reg")
def npair_loss(anchor: jax.Array, positive: jax.Array, labels: jax.Array, l2_reg: float = 0.002) -> jax.Array:
    """Cross entropy of the similarities of [N, D] embeddings, the target spread evenly over equal labels [N].

    Source: Sohn 2016, with `l2_reg` / 4 times the mean squared lengths.
    """
    if anchor.ndim != 2 or anchor.shape != positive.shape or labels.size != anchor.shape[0]:
        raise ShapeError(
            "npair_loss: one label for each pair of embeddings",
            received=f"anchor {anchor.shape}, positive {positive.shape}, labels {labels.shape}",
            allowed="[N, D] twice and [N]",
        )
    flat = labels.reshape(-1)
    same = (flat[:, None] == flat[None]).astype(anchor.dtype)
    target = same / same.sum(1, keepdims=True)
    logs = jax.nn.log_softmax(anchor @ positive.T, -1)
    # As in Paddle: the row's cross entropy is weighed by the targets of each column.
    entropy = (target * -(target * logs).sum(1, keepdims=True)).sum(0).mean()
    lengths = jnp.square(anchor).sum(1).mean() + jnp.square(positive).sum(1).mean()
    return entropy + lengths * (0.25 * float(l2_reg))


@jitted("margin1", "margin2", "margin3", "scale", "return_softmax", "reduction")
def margin_cross_entropy(
    logits: jax.Array,
    label: jax.Array,
    margin1: float = 1.0,
    margin2: float = 0.5,
    margin3: float = 0.0,
    scale: float = 64.0,
    return_softmax: bool = False,
    reduction: str | None = "mean",
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """Cross entropy of scale * cos, where the label's cos becomes cos(margin1 * angle + margin2) - margin3.

    logits [N, C] are cosines, label [N] or [N, 1]; without a reduction the loss is [N, 1]. ArcFace is (1, m, 0),
    CosFace (1, 0, m), SphereFace (m, 0, 0). Source: Deng et al. 2019 (arXiv 1801.07698), equation 4.
    """
    check_reduction(reduction or "none", "margin_cross_entropy")
    flat = label[:, 0] if label.ndim == 2 and label.shape[1] == 1 else label
    _check_labels("margin_cross_entropy", logits, flat, logits.shape[:1])
    # Half an ulp within [-1, 1], where the slope of arccos is finite.
    angle = jnp.arccos(jnp.clip(pick(logits, flat), -1 + 1e-7, 1 - 1e-7))
    moved = jnp.cos(float(margin1) * angle + float(margin2)) - float(margin3)
    is_label = lax.broadcasted_iota(flat.dtype, logits.shape, 1) == flat[:, None]
    logs = jax.nn.log_softmax(float(scale) * jnp.where(is_label, moved[:, None], logits), -1)
    loss = reduce_loss(-pick(logs, flat)[:, None], reduction or "none")
    return (loss, jnp.exp(logs)) if return_softmax else loss
