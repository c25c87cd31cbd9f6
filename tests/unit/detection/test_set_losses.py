"""Losses of matched queries, by hand."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from detection.assigners.hungarian import Matches
from detection.set_losses import QueryTargets, build_targets, loss_parts, set_losses

OBJECT = jnp.asarray([[[0.5, 0.5, 0.2, 0.2]]])
LABEL = jnp.zeros((1, 1), jnp.int32)


def targets(positive: bool, live: bool = True) -> QueryTargets:
    return QueryTargets(
        jnp.zeros((1, 1, 1), jnp.int32), jnp.full((1, 1, 1), positive), jnp.asarray([live]), jnp.asarray(2.0)
    )


def losses(box: list[float], chosen: QueryTargets, varifocal: bool) -> dict[str, float]:
    boxes, logits = jnp.asarray(box).reshape(1, 1, 1, 4), jnp.zeros((1, 1, 1, 2))
    found = set_losses(boxes, logits, OBJECT, LABEL, chosen, varifocal)
    return {name: float(value[0]) for name, value in found.items()}


def test_perfect_box() -> None:
    """p is 0.5 for both classes. Varifocal: log 2 and 0.75 / 4 log 2; focal: 0.25 / 4 log 2 and 0.75 / 4 log 2."""
    found = losses([0.5, 0.5, 0.2, 0.2], targets(True), varifocal=True)
    np.testing.assert_allclose(found["class"], (1 + 0.1875) * np.log(2) / 2, rtol=1e-5)
    np.testing.assert_allclose([found["bbox"], found["giou"]], [0, 0], atol=1e-5)
    found = losses([0.5, 0.5, 0.2, 0.2], targets(True), varifocal=False)
    np.testing.assert_allclose(found["class"], 0.25 * np.log(2) / 2, rtol=1e-5)


def test_box_beside_its_object() -> None:
    """No overlap: the varifocal weight of the object's class is 0, the other class costs; GIoU is -1/3."""
    found = losses([0.9, 0.5, 0.2, 0.2], targets(True), varifocal=True)
    np.testing.assert_allclose(found["class"], 0.1875 * np.log(2) / 2, rtol=1e-5)
    np.testing.assert_allclose(found["bbox"], 5 * 0.4 / 2, rtol=1e-5)
    np.testing.assert_allclose(found["giou"], 2 * (1 + 1 / 3) / 2, rtol=1e-4)


def test_negative_and_dead_queries() -> None:
    found = losses([0.9, 0.5, 0.2, 0.2], targets(False), varifocal=False)
    np.testing.assert_allclose(found["class"], 2 * 0.1875 * np.log(2) / 2, rtol=1e-5)
    assert found["bbox"] == found["giou"] == 0
    assert set(losses([0.9, 0.5, 0.2, 0.2], targets(True, live=False), True).values()) == {0.0}


def test_targets_of_queries_from_matches() -> None:
    matches = Matches(jnp.asarray([[[2, 0, 0]]]), jnp.asarray([[[True, False, True]]]))
    found = build_targets(matches, 4, jnp.asarray(2.0))
    np.testing.assert_array_equal(found.positive[0, 0], [True, False, True, False])
    np.testing.assert_array_equal(found.index[0, 0, [0, 2]], [2, 0])


def test_parts_are_the_last_layer_and_the_sum_of_the_others() -> None:
    parts = loss_parts({"class": jnp.asarray([1.0, 2.0, 4.0])}, "_dn")
    assert {name: float(value) for name, value in parts.items()} == {
        "loss_class_dn": 4.0,
        "loss_class_aux_dn": 3.0,
    }
