"""Task-aligned assignment: cells that both classify and place an object well become its positives. It follows
predictions, so in the first steps of a training another assigner stands in for it.

Source: Feng et al. 2021 (TOOD), https://arxiv.org/abs/2108.07755; PaddleDetection
    ppdet/modeling/assigners/task_aligned_assigner.py
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from detection.assigners.assignment import Assignment, resolve, top_cells
from detection.assigners.atss import atss
from detection.boxes import inside
from detection.contracts import Targets
from detection.layers.grid import Grid
from framework.nn.functional.boxes import pairwise_iou

_ANCHOR_SIDE = 5.0  # in strides


def task_aligned(
    scores: jax.Array,
    predictions: jax.Array,
    points: jax.Array,
    boxes: jax.Array,
    labels: jax.Array,
    valid: jax.Array,
    topk: int = 13,
    alpha: float = 1.0,
    beta: float = 6.0,
) -> Assignment:
    """Of one image: an object takes the `topk` cells inside it with the best score^alpha * IoU^beta.

    `quality` is that product, scaled so that the object's best cell gets its best IoU.

    Args:
        scores: [L, C] probabilities.
        predictions: [L, 4] xyxy.
        points: [L, 2] xy of the cells.
        boxes: [M, 4] xyxy.
        labels: [M] int.
        valid: [M] bool.
    """
    ious = jnp.where(valid[:, None], pairwise_iou(boxes, predictions), 0)  # [M, L]
    # Whole exponents multiply, others take a logarithm and an exponential of each of the M * L values.
    powers = (int(power) if float(power).is_integer() else power for power in (alpha, beta))
    metric = scores.T[labels] ** next(powers) * ious ** next(powers)
    within = inside(points, boxes) & valid[:, None]
    matched = top_cells(jnp.where(within, metric, 0), topk) & within
    matched = resolve(matched, ious)
    metric = jnp.where(matched, metric, 0)
    best_metric = metric.max(axis=1, keepdims=True)
    best_iou = jnp.where(matched, ious, 0).max(axis=1, keepdims=True)
    quality = (metric / (best_metric + 1e-9) * best_iou).max(axis=0)
    return Assignment(matched.any(axis=0), matched.argmax(axis=0).astype(jnp.int32), quality)


def assign_scheduled(
    grid: Grid, scores: jax.Array, boxes: jax.Array, targets: Targets, static_steps: int
) -> Assignment:
    """ATSS in the first `static_steps` steps, then the task-aligned assigner. No gradient passes through it.

    Args:
        scores: [N, L, C] probabilities.
        boxes: [N, L, 4] xyxy in pixels, as predicted.
    """
    scores, boxes = jax.lax.stop_gradient((scores, boxes))

    def static() -> Assignment:
        anchors = grid.anchors(_ANCHOR_SIDE)
        assign = functools.partial(atss, anchors=anchors, counts=grid.counts)
        each = jax.vmap(lambda gt, valid, box: assign(gt, valid, predictions=box))
        return each(targets.boxes, targets.valid, boxes)

    def aligned() -> Assignment:
        each = jax.vmap(task_aligned, in_axes=(0, 0, None, 0, 0, 0))
        return each(scores, boxes, grid.points, targets.boxes, targets.labels, targets.valid)

    return jax.lax.cond(targets.step < static_steps, static, aligned)
