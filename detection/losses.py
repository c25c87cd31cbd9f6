"""Losses of dense detectors, one value an element: the caller weighs, masks padding, sums and divides.

Shapes are fixed: what does not count is in the arrays with a weight of 0, and every loss is finite and has finite
gradients there. The focal loss of labels is `framework.nn.functional.sigmoid_focal_loss`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.nn.functional import boxes as box_ops
from framework.nn.functional.losses import entropy_of_logits

_SMALLEST = float(jnp.finfo(jnp.float32).tiny)  # the logarithm of a probability ends here, at -87


def iou_loss(boxes: jax.Array, targets: jax.Array, square: bool = False) -> jax.Array:
    """1 - IoU [...] of boxes [..., 4] xyxy one by one; `square` takes 1 - IoU²."""
    iou = box_ops.iou(boxes, targets)
    return 1 - (iou * iou if square else iou)


def giou_loss(boxes: jax.Array, targets: jax.Array) -> jax.Array:
    """1 - GIoU [...] in 0 to 2, of boxes [..., 4] xyxy one by one."""
    return 1 - box_ops.iou(boxes, targets, "giou")


def binary_cross_entropy(scores: jax.Array, targets: jax.Array) -> jax.Array:
    """-(t log p + (1 - t) log(1 - p)) of probabilities p; shapes broadcast."""
    log, log_other = (jnp.log(jnp.maximum(p, _SMALLEST)) for p in (scores, 1 - scores))
    return -(targets * log + (1 - targets) * log_other)


def binary_cross_entropy_with_logits(logits: jax.Array, targets: jax.Array) -> jax.Array:
    """Of p = sigmoid(logits), stable for any logit; shapes broadcast."""
    return entropy_of_logits(logits, targets)


def varifocal_loss(
    predictions: jax.Array,
    targets: jax.Array,
    alpha: float = 0.75,
    gamma: float = 2.0,
    from_logits: bool = False,
) -> jax.Array:
    """Binary cross entropy [...] with a box's quality as target: positives weigh their quality, negatives (target 0)
    alpha p^gamma.

    Args:
        predictions: Probabilities, or logits with `from_logits`.
        targets: As `predictions`, in 0 to 1.

    Source: Zhang et al. 2021, https://arxiv.org/abs/2008.13367; the weight is differentiated, as in PaddleDetection.
    """
    scores = jax.nn.sigmoid(predictions) if from_logits else predictions
    entropy = binary_cross_entropy_with_logits if from_logits else binary_cross_entropy
    weights = jnp.where(targets > 0, targets, alpha * jnp.abs(scores - targets) ** gamma)
    return weights * entropy(predictions, targets)


def quality_focal_loss(logits: jax.Array, targets: jax.Array, beta: float = 2.0) -> jax.Array:
    """|p - t|^beta times binary cross entropy [...]; targets are the box's quality at its class, 0 elsewhere.

    Source: Li et al. 2020, https://arxiv.org/abs/2006.04388
    """
    return jnp.abs(jax.nn.sigmoid(logits) - targets) ** beta * binary_cross_entropy_with_logits(
        logits, targets
    )


def distribution_focal_loss(logits: jax.Array, targets: jax.Array) -> jax.Array:
    """Cross entropy [...] with the two integers around a distance.

    Args:
        logits: [..., reg_max + 1], over the distances 0 to reg_max.
        targets: [...] in 0 to below reg_max.

    Source: Li et al. 2020, https://arxiv.org/abs/2006.04388
    """
    # The two weights are a hat function of the target: a masked sum instead of gathers, whose gradients are scatters.
    bins = jnp.arange(logits.shape[-1], dtype=jnp.float32)
    weights = jnp.maximum(1 - jnp.abs(targets[..., None] - bins), 0)
    return -(weights * jax.nn.log_softmax(logits, axis=-1)).sum(axis=-1)
