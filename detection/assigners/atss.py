"""Adaptive training sample selection: anchors near an object whose overlap stands out become its positives.

Source: Zhang et al. 2020, https://arxiv.org/abs/1912.02424; PaddleDetection ppdet/modeling/assigners/atss_assigner.py
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from detection.assigners.assignment import Assignment, resolve, top_cells
from detection.boxes import centers, inside
from framework.nn.functional.boxes import iou, pairwise_iou


def atss(
    boxes: jax.Array,
    valid: jax.Array,
    anchors: jax.Array,
    counts: Sequence[int],
    predictions: jax.Array | None = None,
    topk: int = 9,
) -> Assignment:
    """Of one image: on each map the `topk` anchors nearest to an object's centre are candidates, and those are
    positive whose IoU exceeds mean + standard deviation of the candidates and whose centre is inside the object.

    Args:
        boxes: [M, 4] xyxy.
        valid: [M] bool.
        anchors: [L, 4], map after map.
        counts: Anchors of each map, L together.
        predictions: [L, 4]: `quality` is then their IoU with the object, otherwise 1.
    """
    ious = jnp.where(valid[:, None], pairwise_iou(boxes, anchors), 0)  # [M, L]
    points = centers(anchors)
    offsets = centers(boxes)[:, None, :] - points
    distances = jnp.sqrt((offsets * offsets).sum(axis=-1))
    near, start = [], 0
    for count in counts:
        near.append(top_cells(-distances[:, start : start + count], topk))
        start += count
    candidate = jnp.concatenate(near, axis=1) & valid[:, None]
    total = sum(min(topk, count) for count in counts)
    mean = jnp.where(candidate, ious, 0).sum(axis=1, keepdims=True) / total
    variance = jnp.where(candidate, (ious - mean) ** 2, 0).sum(axis=1, keepdims=True) / max(total - 1, 1)
    matched = candidate & (ious > mean + jnp.sqrt(variance)) & inside(points, boxes)
    matched = resolve(matched, ious)
    positive, index = matched.any(axis=0), matched.argmax(axis=0).astype(jnp.int32)
    rating = jnp.ones(index.shape) if predictions is None else iou(boxes[index], predictions)
    return Assignment(positive, index, jnp.where(positive, rating, 0))
