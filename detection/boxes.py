"""Boxes in the program: arrays [..., 4] of xyxy float32, pure functions that differentiate and vectorise."""

from __future__ import annotations

import jax
import jax.numpy as jnp

# A float32 below what one pixel's overlap could be, so that empty boxes divide to 0.
_EPSILON = 1e-9


def area(boxes: jax.Array) -> jax.Array:
    """[...]: 0 for boxes that are turned inside out."""
    size = jnp.maximum(boxes[..., 2:] - boxes[..., :2], 0)
    return size[..., 0] * size[..., 1]


def aligned_iou(a: jax.Array, b: jax.Array) -> jax.Array:
    """Intersection over union [...] of boxes [..., 4] one by one; shapes broadcast. Empty with empty is 0."""
    return _overlap(a, b)[0]


def pairwise_iou(a: jax.Array, b: jax.Array) -> jax.Array:
    """[..., N, M] of all pairs of a [..., N, 4] and b [..., M, 4]."""
    return aligned_iou(a[..., :, None, :], b[..., None, :, :])


def aligned_giou(a: jax.Array, b: jax.Array) -> jax.Array:
    """Generalised IoU [...] in -1 to 1, one by one: IoU less the share of the hull that neither box covers.

    Source: Rezatofighi et al. 2019, https://arxiv.org/abs/1902.09630
    """
    iou, union = _overlap(a, b)
    hull = area(
        jnp.concatenate(
            [jnp.minimum(a[..., :2], b[..., :2]), jnp.maximum(a[..., 2:], b[..., 2:])],
            axis=-1,
        )
    )
    return iou - (hull - union) / (hull + _EPSILON)


def pairwise_giou(a: jax.Array, b: jax.Array) -> jax.Array:
    """[..., N, M] of all pairs of a [..., N, 4] and b [..., M, 4]."""
    return aligned_giou(a[..., :, None, :], b[..., None, :, :])


def _overlap(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(IoU, union), [...]."""
    top_left, bottom_right = jnp.maximum(a[..., :2], b[..., :2]), jnp.minimum(a[..., 2:], b[..., 2:])
    size = jnp.maximum(bottom_right - top_left, 0)
    shared = size[..., 0] * size[..., 1]
    union = area(a) + area(b) - shared
    return shared / (union + _EPSILON), union


def centers(boxes: jax.Array) -> jax.Array:
    """[..., 2] xy."""
    return (boxes[..., :2] + boxes[..., 2:]) / 2


def inside(points: jax.Array, boxes: jax.Array) -> jax.Array:
    """[..., M, L] bool: which of the points [L, 2] lie within each box [..., M, 4], off its border."""
    x, y = points[:, 0], points[:, 1]
    left, top, right, bottom = (boxes[..., side, None] for side in range(4))
    gap = jnp.minimum(jnp.minimum(x - left, y - top), jnp.minimum(right - x, bottom - y))
    return gap > _EPSILON


def distances_to_boxes(points: jax.Array, distances: jax.Array) -> jax.Array:
    """Boxes [..., 4] from points [..., 2] and their distances [..., 4] to the left, top, right and bottom side."""
    return jnp.concatenate([points - distances[..., :2], points + distances[..., 2:]], axis=-1)


def boxes_to_distances(points: jax.Array, boxes: jax.Array) -> jax.Array:
    """The inverse of `distances_to_boxes`; negative where the point is outside."""
    return jnp.concatenate([points - boxes[..., :2], boxes[..., 2:] - points], axis=-1)
