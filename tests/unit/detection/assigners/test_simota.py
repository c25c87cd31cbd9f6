from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from detection.assigners.assignment import Assignment
from detection.assigners.simota import simota

POINTS = jnp.asarray([[4.0, 4], [12, 4], [4, 12], [12, 12], [100, 100]])
STRIDES = jnp.full((5, 1), 8.0)
SCORES = jnp.full((5, 2), 0.5)
BOX = jnp.asarray([[0.0, 0, 16, 16]])
# IoU 1, 1, 1/2, 1/4 and, far away, 1
PREDICTIONS = jnp.asarray([[0.0, 0, 16, 16], [0, 0, 16, 16], [0, 0, 16, 8], [0, 0, 8, 8], [0, 0, 16, 16]])


def run(
    predictions: jnp.ndarray = PREDICTIONS,
    boxes: jnp.ndarray = BOX,
    valid: tuple[bool, ...] = (True,),
    scores: jnp.ndarray = SCORES,
    varifocal: bool = True,
) -> Assignment:
    labels = jnp.arange(len(valid)) % 2
    return simota(scores, predictions, POINTS, STRIDES, boxes, labels, jnp.asarray(valid), varifocal)


@pytest.mark.parametrize("varifocal", [True, False])
def test_overlaps_add_up_to_the_number_of_cells(varifocal: bool) -> None:
    assigned = run(varifocal=varifocal)  # 1 + 1 + 1/2 + 1/4 gives 2
    assert assigned.positive.tolist() == [True, True, False, False, False]
    np.testing.assert_allclose(assigned.quality, [1, 1, 0, 0, 0], rtol=1e-6)


def test_at_least_one_cell() -> None:
    small = jnp.asarray([[0.0, 0, 4, 4], [0, 0, 4, 4], [0, 0, 4, 8], [0, 0, 4, 4], [0, 0, 4, 4]])
    assert run(small).positive.tolist() == [False, False, True, False, False]


def test_scores_count_in_the_cost() -> None:
    equal = jnp.broadcast_to(jnp.asarray([0.0, 0, 16, 10]), (5, 4))  # 4 * 0.625 gives 2
    scores = jnp.asarray([[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.8, 0.1], [0.9, 0.1]])
    assert run(equal, scores=scores).positive.tolist() == [False, True, False, True, False]
    assert run(equal, scores=scores, varifocal=False).positive.tolist() == [False, True, False, True, False]


def test_a_shared_cell_goes_to_the_cheaper_object() -> None:
    boxes = jnp.asarray([[0.0, 0, 16, 16], [0, 0, 16, 15]])
    assigned = run(boxes=boxes, valid=(True, True))
    assert assigned.positive.tolist()[:2] == [True, True] and assigned.index[:2].tolist() == [0, 0]
    padded = run(boxes=boxes, valid=(False, True))
    assert set(padded.index[padded.positive].tolist()) == {1}


def test_nothing_to_learn() -> None:
    assigned = run(boxes=jnp.zeros((1, 4)), valid=(False,))
    assert not assigned.positive.any() and not assigned.quality.any()
