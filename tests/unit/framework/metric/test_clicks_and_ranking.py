"""AUC, log loss, NE, calibration, and the scores of ranked lists, against values by hand and by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.metric.clicks import (
    BinnedAuc,
    calibration,
    grouped_auc,
    log_loss,
    normalized_entropy,
    roc_auc,
)
from framework.metric.ranking import hit_rate, ndcg, ranks_of, recall, reciprocal_rank


def brute_auc(scores: np.ndarray, labels: np.ndarray) -> float:
    pairs = scores[labels == 1][:, None] - scores[labels == 0][None]
    return float(((pairs > 0) + 0.5 * (pairs == 0)).mean())


def test_auc_with_ties() -> None:
    assert roc_auc([0.5, 0.5, 0.2, 0.1], [1, 0, 1, 0]) == 0.625
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 200), np.round(rng.random(200), 1)
    assert roc_auc(scores, labels) == pytest.approx(brute_auc(scores, labels), abs=1e-12)
    assert math.isnan(roc_auc([0.1, 0.2], [1, 1]))
    assert roc_auc(np.zeros(10), np.arange(10) % 2) == 0.5


def test_bins_of_the_logit_hold_where_probabilities_are_small() -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(-9, 1, 200_000)
    probabilities = 1 / (1 + np.exp(-logits))
    labels = rng.random(len(logits)) < probabilities * 20
    exact = roc_auc(probabilities, labels)
    scores = {}
    for on_logit in (False, True):
        halves = [BinnedAuc(on_logit=on_logit) for _ in range(2)]
        for half, rows in zip(halves, (slice(0, 90_000), slice(90_000, None))):
            half.update(probabilities[rows], labels[rows])
        halves[0].counts += halves[1].counts  # as workers add them up
        scores[on_logit] = halves[0].result()
    assert abs(scores[True] - exact) < 2e-4 < abs(scores[False] - exact)


def test_probabilities() -> None:
    labels, probabilities = np.array([1, 0, 0, 1]), np.array([0.8, 0.4, 0.1, 0.5], np.float32)
    expected = -np.mean([math.log(0.8), math.log(0.6), math.log(0.9), math.log(0.5)])
    assert log_loss(probabilities, labels) == pytest.approx(expected, rel=1e-6)
    assert normalized_entropy(probabilities, labels) == pytest.approx(expected / math.log(2), rel=1e-6)
    assert calibration(probabilities, labels) == pytest.approx(0.9, rel=1e-6)
    assert normalized_entropy([0.25] * 4, [1, 0, 0, 0]) == pytest.approx(1.0)
    assert log_loss([0.0, 1.0], [0, 1]) == 0.0 and log_loss([0.0], [1]) == pytest.approx(-math.log(1e-15))
    with pytest.raises(ShapeError, match="column of the positive class"):
        log_loss(np.ones((4, 2)), labels)


def test_grouped_auc_weights_groups_that_have_both_labels() -> None:
    scores, labels = [0.9, 0.1, 0.2, 0.8, 0.3, 0.7], [1, 0, 1, 0, 0, 1]
    groups = ["a", "a", "b", "b", "b", "c"]
    assert grouped_auc(scores, labels, groups) == pytest.approx((2 * 1.0 + 3 * 0.0) / 5)
    assert math.isnan(grouped_auc([0.5], [1], ["a"]))


def test_two_relevant_items_at_ranks_2_and_3() -> None:
    ranks = ranks_of([0.1, 0.9, 0.8, 0.7], [2, 3])
    assert ranks.tolist() == [2, 3]
    assert ndcg(ranks, 3) == pytest.approx(0.6934, abs=1e-4)
    assert reciprocal_rank(ranks, 3) == 0.5 and recall(ranks, 3) == 1.0 and hit_rate(ranks, 1) == 0.0
    assert recall(ranks, 2) == 0.5 and reciprocal_rank(ranks, 1) == 0.0


def test_a_constant_scorer_wins_nothing_and_masked_items_are_out() -> None:
    assert ranks_of(np.zeros(101), [0]).tolist() == [51.0]
    scores = np.array([5.0, 4.0, 3.0, -np.inf])
    assert ranks_of(np.where([True, False, False, False], -np.inf, scores), [2]).tolist() == [2.0]
    assert ranks_of(scores, [3]).tolist() == [np.inf]
    with pytest.raises(ShapeError, match="do not fit"):
        ranks_of(scores, [4])
