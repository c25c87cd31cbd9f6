from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from detection.assigners.assignment import Assignment
from detection.assigners.tal import task_aligned

POINTS = jnp.asarray([[2.0, 2], [5, 5], [8, 8], [20, 20]])
PREDICTIONS = jnp.asarray([[0.0, 0, 10, 10], [0, 0, 10, 5], [0, 0, 10, 9], [0, 0, 10, 10]])
SCORES = jnp.asarray([[0.9, 0.5], [0.9, 0.9], [0.1, 0.8], [1.0, 1.0]])
BOX = jnp.asarray([[0.0, 0, 10, 10]])


def run(
    boxes: jnp.ndarray, labels: list[int], valid: list[bool], topk: int = 2, **powers: float
) -> Assignment:
    return task_aligned(
        SCORES, PREDICTIONS, POINTS, boxes, jnp.asarray(labels), jnp.asarray(valid), topk, **powers
    )


def test_score_times_overlap_ranks_cells_inside() -> None:
    # 0.5 * 1, 0.9 * 0.5, 0.8 * 0.9 for class 1; the last cell lies outside.
    assigned = run(BOX, [1], [True], alpha=1.0, beta=1.0)
    assert assigned.positive.tolist() == [True, False, True, False]
    # Scaled so that the best cell has the best overlap, 1.
    np.testing.assert_allclose(assigned.quality, [0.5 / 0.72, 0, 1, 0], rtol=1e-5)


def test_exponents() -> None:
    # 0.5 * 1, 0.9 / 64, 0.8 * 0.9^6 = 0.4252
    assigned = run(BOX, [1], [True], topk=1)
    assert assigned.positive.tolist() == [True, False, False, False]
    half = run(BOX, [1], [True], topk=1, alpha=0.5, beta=1.5)  # 0.7071, 0.3354, 0.7637
    assert half.positive.tolist() == [False, False, True, False]


def test_a_shared_cell_goes_to_the_greater_overlap() -> None:
    boxes = jnp.asarray([[0.0, 0, 10, 10], [0, 0, 10, 9]])
    assigned = run(boxes, [1, 0], [True, True], topk=3)
    assert assigned.positive.tolist() == [True, True, True, False]
    # The half box has IoU 5/9 with the smaller object, 5/10 with the larger.
    assert assigned.index[:3].tolist() == [0, 1, 1]


def test_padding_takes_no_cell() -> None:
    assigned = run(jnp.stack([BOX[0], BOX[0]]), [1, 1], [False, True])
    assert set(assigned.index[assigned.positive].tolist()) == {1}
    nothing = run(jnp.zeros((1, 4)), [0], [False])
    assert not nothing.positive.any() and not nothing.quality.any()
