from __future__ import annotations

import jax.numpy as jnp

from detection.assigners.assignment import Assignment, resolve, top_cells


def test_targets_of_cells() -> None:
    assigned = Assignment(
        jnp.asarray([[True, False]]), jnp.asarray([[1, 0]], jnp.int32), jnp.asarray([[0.5, 0.0]])
    )
    assert assigned.scores(jnp.asarray([[0, 2]]), 3).tolist() == [[[0, 0, 0.5], [0, 0, 0]]]
    boxes = jnp.asarray([[[0.0, 0, 1, 1], [2, 2, 3, 3]]])
    assert assigned.boxes(boxes)[0].tolist() == [[2, 2, 3, 3], [0, 0, 1, 1]]


def test_a_cell_of_several_objects_takes_the_best_of_all() -> None:
    matched = jnp.asarray([[True, True, False], [True, False, False], [False, False, False]])
    preference = jnp.asarray([[0.2, 0.1, 0.9], [0.3, 0.8, 0.1], [0.1, 0.1, 0.1]])
    assert resolve(matched, preference).tolist() == [
        [False, True, False],
        [True, False, False],
        [False, False, False],
    ]


def test_top_cells() -> None:
    values = jnp.asarray([[0.1, 0.5, 0.3], [0.0, 0.0, 0.0]])
    assert top_cells(values, 2).tolist() == [[False, True, True], [True, True, False]]
    assert top_cells(values, 9).all()
