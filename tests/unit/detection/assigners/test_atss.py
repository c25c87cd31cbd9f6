from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from detection.assigners.atss import atss

ANCHORS = jnp.asarray([[0.0, 0, 10, 10], [0, 0, 10, 5], [0, 0, 5, 10], [20, 20, 30, 30]])
YES = jnp.asarray([True])


def test_only_what_stands_out_is_positive() -> None:
    # The three nearest have IoU 1, 1/2 and 1/2: mean 2/3, standard deviation 0.2887.
    predictions = jnp.asarray([[0.0, 0, 10, 8]] * 4)
    assigned = atss(jnp.asarray([[0.0, 0, 10, 10]]), YES, ANCHORS, (4,), predictions, topk=3)
    assert assigned.positive.tolist() == [True, False, False, False]
    np.testing.assert_allclose(assigned.quality, [0.8, 0, 0, 0], rtol=1e-6)
    assert atss(jnp.asarray([[0.0, 0, 10, 10]]), YES, ANCHORS, (4,), topk=3).quality.tolist() == [1, 0, 0, 0]


def test_each_map_gives_candidates() -> None:
    # With one candidate of each map the IoUs are 1 and 0: mean 1/2, deviation 0.7071, so nothing passes 1.2071.
    assigned = atss(jnp.asarray([[0.0, 0, 10, 10]]), YES, ANCHORS, (3, 1), topk=1)
    assert not assigned.positive.any()


def test_a_shared_anchor_goes_to_the_greater_overlap() -> None:
    boxes = jnp.asarray(
        [[0.0, 0, 10, 9], [0, 0, 10, 10]]
    )  # IoU 0.9 and 1 with the first anchor; both choose it
    assigned = atss(boxes, jnp.asarray([True, True]), ANCHORS, (4,), topk=3)
    assert assigned.positive.tolist() == [True, False, False, False] and int(assigned.index[0]) == 1
    alone = atss(boxes, jnp.asarray([True, False]), ANCHORS, (4,), topk=3)
    assert alone.positive.tolist() == [True, False, False, False] and int(alone.index[0]) == 0


def test_the_centre_must_be_inside() -> None:
    # IoU 0.6 of the first stands out, but its centre is on the border of the box.
    anchors = jnp.asarray([[0.0, 0, 10, 10], [50, 0, 60, 10], [70, 0, 80, 10]])
    box = jnp.asarray([[5.0, 0, 8, 10]])
    assert not atss(box, YES, anchors, (3,), topk=3).positive.any()
    assert atss(box - jnp.asarray([1.0, 0, 0, 0]), YES, anchors, (3,), topk=3).positive.tolist() == [
        True,
        False,
        False,
    ]


def test_padding_has_no_anchors() -> None:
    assigned = atss(jnp.zeros((2, 4)), jnp.zeros(2, bool), ANCHORS, (4,), topk=3)
    assert not assigned.positive.any() and not assigned.quality.any()
