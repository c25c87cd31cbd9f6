"""Losses of detectors whose queries are matched with objects one to one.

Paper: DETR, https://arxiv.org/abs/2005.12872, section 3.1; RT-DETR, https://arxiv.org/abs/2304.08069, section 4.3
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/losses/detr_loss.py
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from detection.assigners.hungarian import Matches
from detection.layers.detr import to_corners
from detection.losses import binary_cross_entropy_with_logits
from framework.nn import functional as F
from framework.nn.functional import boxes as box_ops
from framework.nn.functional.slopes import absolute

_WEIGHTS = {"class": 1.0, "bbox": 5.0, "giou": 2.0}


class QueryTargets(NamedTuple):
    """What Q queries learn, for L layers or, with a first axis of 1, alike for all."""

    index: jax.Array  # pyright: ignore[reportIncompatibleMethodOverride]
    """[L, N, Q] int32 of the object"""
    positive: jax.Array
    """[L, N, Q] bool: the query learns an object, else that there is none"""
    live: jax.Array
    """[Q] bool: the query counts"""
    count: jax.Array  # pyright: ignore[reportIncompatibleMethodOverride]
    """[] float32: what the sums are divided by, the number of objects"""


def build_targets(matches: Matches, queries: int, count: jax.Array) -> QueryTargets:
    """The targets of `queries` queries from matches [L, N, M]."""
    layers, batch, objects = matches.query.shape
    query = jnp.where(matches.matched, matches.query, queries)  # out of range: dropped
    at = (jnp.arange(layers)[:, None, None], jnp.arange(batch)[:, None], query)
    empty = jnp.zeros((layers, batch, queries), jnp.int32)
    index = empty.at[at].set(jnp.arange(objects, dtype=jnp.int32), mode="drop")
    positive = empty.astype(bool).at[at].set(True, mode="drop")
    return QueryTargets(index, positive, jnp.ones(queries, bool), count)


def set_losses(
    boxes: jax.Array,
    logits: jax.Array,
    object_boxes: jax.Array,
    labels: jax.Array,
    targets: QueryTargets,
    varifocal: bool,
) -> dict[str, jax.Array]:
    """{"class", "bbox", "giou"}: the weighted losses [L] of each layer.

    Args:
        boxes: [L, N, Q, 4] cxcywh in 0 to 1 of the input.
        logits: [L, N, Q, num_classes].
        object_boxes, labels: [N, M, 4] as `boxes`, [N, M].
        targets: What each query learns.
        varifocal: Classes learn the IoU of the query's box, else 1 by focal loss.
    """
    index = jnp.broadcast_to(targets.index, boxes.shape[:3])
    positive = jnp.broadcast_to(targets.positive & targets.live, boxes.shape[:3])
    target_boxes = jnp.take_along_axis(object_boxes[None], index[..., None], axis=2)
    label = jnp.take_along_axis(labels[None], index, axis=2)
    target = jnp.where(positive[..., None], jax.nn.one_hot(label, logits.shape[-1], dtype=jnp.float32), 0)
    if varifocal:
        iou = box_ops.iou(to_corners(jax.lax.stop_gradient(boxes)), to_corners(target_boxes))
        classes = _varifocal(logits, target, iou[..., None] * target)
    else:
        classes = F.sigmoid_focal_loss(logits, target, reduction="none")
    distance = absolute(boxes - target_boxes).sum(axis=-1)
    overlap = 1 - box_ops.iou(to_corners(boxes), to_corners(target_boxes), "giou")
    sums = {
        "class": jnp.where(targets.live[:, None], classes, 0).sum(axis=(1, 2, 3)),
        "bbox": jnp.where(positive, distance, 0).sum(axis=(1, 2)),
        "giou": jnp.where(positive, overlap, 0).sum(axis=(1, 2)),
    }
    return {name: _WEIGHTS[name] * value / targets.count for name, value in sums.items()}


def _varifocal(logits: jax.Array, positive: jax.Array, quality: jax.Array) -> jax.Array:
    """Varifocal loss whose positives are told apart from negatives even where their quality is 0."""
    weights = 0.75 * jax.nn.sigmoid(logits) ** 2 * (1 - positive) + quality
    return weights * binary_cross_entropy_with_logits(logits, quality)


def loss_parts(losses: dict[str, jax.Array], suffix: str = "") -> dict[str, jax.Array]:
    """{"loss_class", "loss_class_aux", …}: the last layer's losses, and the sums of those before it."""
    terms = {f"loss_{name}{suffix}": value[-1] for name, value in losses.items()}
    return terms | {f"loss_{name}_aux{suffix}": value[:-1].sum() for name, value in losses.items()}
