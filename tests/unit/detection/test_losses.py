from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    distribution_focal_loss,
    giou_loss,
    iou_loss,
    quality_focal_loss,
    varifocal_loss,
)

LOG2 = math.log(2)
BOX, OTHER = jnp.asarray([0.0, 0, 4, 4]), jnp.asarray([2.0, 2, 6, 6])  # IoU 1/7, hull 36


def test_box_losses() -> None:
    assert float(iou_loss(BOX, OTHER)) == pytest.approx(6 / 7)
    assert float(iou_loss(BOX, OTHER, square=True)) == pytest.approx(48 / 49)
    assert float(giou_loss(BOX, OTHER)) == pytest.approx(1 - 1 / 7 + 8 / 36)


def test_cross_entropy_of_probabilities_and_logits_agree() -> None:
    logits, targets = jnp.asarray([-2.0, 0, 3]), jnp.asarray([0.3, 1, 0])
    from_logits = binary_cross_entropy_with_logits(logits, targets)
    np.testing.assert_allclose(from_logits, binary_cross_entropy(jax.nn.sigmoid(logits), targets), rtol=1e-5)
    assert float(from_logits[1]) == pytest.approx(LOG2)


@pytest.mark.parametrize("score, target", [(0.0, 1.0), (1.0, 0.0), (1.0, 0.5), (0.0, 0.0), (1.0, 1.0)])
def test_certain_probabilities_stay_finite(score: float, target: float) -> None:
    loss = lambda p: varifocal_loss(p, jnp.asarray(target)) + binary_cross_entropy(p, jnp.asarray(target))  # noqa: E731
    value, slope = jax.value_and_grad(loss)(jnp.asarray(score))
    assert np.isfinite(value) and np.isfinite(slope)


def test_extreme_logits_stay_finite() -> None:
    logits = jnp.asarray([-1e4, 1e4])
    slopes = jax.grad(lambda x: varifocal_loss(x, jnp.asarray([0.7, 0.0]), from_logits=True).sum())(logits)
    assert np.isfinite(slopes).all()
    assert binary_cross_entropy_with_logits(logits, jnp.asarray([1.0, 0.0])).tolist() == [1e4, 1e4]


def test_varifocal_weighs_positives_by_quality_and_negatives_by_score() -> None:
    scores, targets = jnp.asarray([0.5, 0.5]), jnp.asarray([0.8, 0.0])
    expected = [0.8 * LOG2, 0.75 * 0.25 * LOG2]
    np.testing.assert_allclose(varifocal_loss(scores, targets), expected, rtol=1e-6)
    np.testing.assert_allclose(varifocal_loss(jnp.zeros(2), targets, from_logits=True), expected, rtol=1e-6)


def test_quality_focal() -> None:
    loss = quality_focal_loss(jnp.zeros(2), jnp.asarray([0.8, 0.0]))
    np.testing.assert_allclose(loss, [0.09 * LOG2, 0.25 * LOG2], rtol=1e-5)


def test_distribution_focal_takes_both_neighbours() -> None:
    logits = jnp.log(jnp.asarray([1 / 6, 1 / 2, 1 / 6, 1 / 6]))
    expected = 0.75 * LOG2 + 0.25 * math.log(6)
    assert float(distribution_focal_loss(logits, jnp.asarray(1.25))) == pytest.approx(expected)
    assert float(distribution_focal_loss(logits, jnp.asarray(1.0))) == pytest.approx(LOG2)
    assert distribution_focal_loss(jnp.zeros((2, 3, 4)), jnp.ones((2, 3))).shape == (2, 3)
