from __future__ import annotations

import jax.numpy as jnp

from detection.boxes import boxes_to_distances, centers, distances_to_boxes, inside

A = jnp.asarray([0.0, 0, 4, 4])
FAR = jnp.asarray([8.0, 0, 12, 4])


def test_inside_leaves_the_border_out() -> None:
    points = jnp.asarray([[2.0, 2], [0, 2], [4.5, 2], [1, 3.9]])
    assert inside(points, jnp.stack([A, FAR])).tolist() == [[True, False, False, True], [False] * 4]


def test_distances_and_boxes_are_inverse() -> None:
    point, distances = jnp.asarray([10.0, 20]), jnp.asarray([1.0, 2, 3, 4])
    box = distances_to_boxes(point, distances)
    assert box.tolist() == [9, 18, 13, 24]
    assert boxes_to_distances(point, box).tolist() == distances.tolist()
    assert centers(box).tolist() == [11, 21]
