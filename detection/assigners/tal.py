"""Task-aligned assignment: cells that both classify and place an object well become its positives.

Source: Feng et al. 2021 (TOOD), https://arxiv.org/abs/2108.07755; PaddleDetection
    ppdet/modeling/assigners/task_aligned_assigner.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from detection.assigners.assignment import Assignment, resolve, top_cells
from detection.boxes import inside, pairwise_iou


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
