"""Boxes in the program: arrays [..., 4] of xyxy float32, pure functions that differentiate and vectorise."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.vision.ops.geometry import EPSILON, intersect
from framework.vision.ops.geometry import area as area
from framework.vision.ops.geometry import pairwise_iou as pairwise_iou


def aligned_iou(a: jax.Array, b: jax.Array) -> jax.Array:
    """Intersection over union [...] of boxes [..., 4] one by one; shapes broadcast. Empty with empty is 0."""
    return intersect(a, b)[0]


def aligned_giou(a: jax.Array, b: jax.Array) -> jax.Array:
    """Generalised IoU [...] in -1 to 1, one by one: IoU less the share of the hull that neither box covers.

    Source: Rezatofighi et al. 2019, https://arxiv.org/abs/1902.09630
    """
    iou, union = intersect(a, b)
    hull = area(
        jnp.concatenate(
            [jnp.minimum(a[..., :2], b[..., :2]), jnp.maximum(a[..., 2:], b[..., 2:])],
            axis=-1,
        )
    )
    return iou - (hull - union) / (hull + EPSILON)


def pairwise_giou(a: jax.Array, b: jax.Array) -> jax.Array:
    """[..., N, M] of all pairs of a [..., N, 4] and b [..., M, 4]."""
    return aligned_giou(a[..., :, None, :], b[..., None, :, :])


def centers(boxes: jax.Array) -> jax.Array:
    """[..., 2] xy."""
    return (boxes[..., :2] + boxes[..., 2:]) / 2


def inside(points: jax.Array, boxes: jax.Array) -> jax.Array:
    """[..., M, L] bool: which of the points [L, 2] lie within each box [..., M, 4], off its border."""
    x, y = points[:, 0], points[:, 1]
    left, top, right, bottom = (boxes[..., side, None] for side in range(4))
    gap = jnp.minimum(jnp.minimum(x - left, y - top), jnp.minimum(right - x, bottom - y))
    return gap > EPSILON


def distances_to_boxes(points: jax.Array, distances: jax.Array) -> jax.Array:
    """Boxes [..., 4] from points [..., 2] and their distances [..., 4] to the left, top, right and bottom side."""
    return jnp.concatenate([points - distances[..., :2], points + distances[..., 2:]], axis=-1)


def boxes_to_distances(points: jax.Array, boxes: jax.Array) -> jax.Array:
    """The inverse of `distances_to_boxes`; negative where the point is outside."""
    return jnp.concatenate([points - boxes[..., :2], boxes[..., 2:] - points], axis=-1)
