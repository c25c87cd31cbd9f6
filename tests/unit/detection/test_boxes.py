from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.boxes import (
    aligned_giou,
    aligned_iou,
    area,
    boxes_to_distances,
    centers,
    distances_to_boxes,
    inside,
    pairwise_giou,
    pairwise_iou,
)

A = jnp.asarray([0.0, 0, 4, 4])
B = jnp.asarray([2.0, 2, 6, 6])  # shares 4 of 28, in a hull of 36
FAR = jnp.asarray([8.0, 0, 12, 4])


def test_area_of_inverted_boxes_is_zero() -> None:
    boxes = jnp.asarray([[0.0, 0, 3, 2], [3, 0, 0, 2], [1, 1, 1, 1]])
    assert area(boxes).tolist() == [6, 0, 0]


def test_iou_and_giou_by_hand() -> None:
    assert float(aligned_iou(A, B)) == pytest.approx(4 / 28)
    assert float(aligned_giou(A, B)) == pytest.approx(4 / 28 - 8 / 36)
    assert float(aligned_giou(A, FAR)) == pytest.approx(-16 / 48)  # hull 12 x 4
    assert float(aligned_giou(A, A)) == pytest.approx(1)


def test_pairs_are_rows_by_columns() -> None:
    ious = pairwise_iou(jnp.stack([A, B]), jnp.stack([A, B, FAR]))
    np.testing.assert_allclose(ious, [[1, 1 / 7, 0], [1 / 7, 1, 0]], atol=1e-6)
    gious = pairwise_giou(jnp.stack([A]), jnp.stack([FAR, A]))
    np.testing.assert_allclose(gious, [[-1 / 3, 1]], atol=1e-6)


def test_empty_boxes_have_finite_gradients() -> None:
    empty = jnp.zeros(4)
    assert float(aligned_iou(empty, empty)) == 0
    assert float(aligned_giou(empty, empty)) == 0
    assert np.isfinite(jax.grad(aligned_giou)(empty, empty)).all()


def test_inside_leaves_the_border_out() -> None:
    points = jnp.asarray([[2.0, 2], [0, 2], [4.5, 2], [1, 3.9]])
    assert inside(points, jnp.stack([A, FAR])).tolist() == [[True, False, False, True], [False] * 4]


def test_distances_and_boxes_are_inverse() -> None:
    point, distances = jnp.asarray([10.0, 20]), jnp.asarray([1.0, 2, 3, 4])
    box = distances_to_boxes(point, distances)
    assert box.tolist() == [9, 18, 13, 24]
    assert boxes_to_distances(point, box).tolist() == distances.tolist()
    assert centers(box).tolist() == [11, 21]
