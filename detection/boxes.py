"""Boxes and points in the program: arrays [..., 4] of xyxy float32; their IoU is `framework.nn.functional.boxes`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.nn.functional.boxes import EPSILON


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
