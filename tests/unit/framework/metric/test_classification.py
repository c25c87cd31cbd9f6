"""Metrics against numbers worked out by hand, and against scikit-learn's rule for the area under the curve."""

from __future__ import annotations

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.metric import Accuracy, Auc, Metric, Precision, Recall, accuracy, top_k_correct

PRED = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])


def test_accuracy_over_batches() -> None:
    metric = Accuracy(topk=(1, 2))
    assert metric.name() == ["acc_top1", "acc_top2"]
    assert metric.update(metric.compute(PRED, np.array([1, 1, 0]))) == pytest.approx([1 / 3, 1.0])
    metric.update(metric.compute(PRED[:1], np.array([[0]])))
    assert metric.accumulate() == pytest.approx([0.25, 0.75])
    metric.reset()
    assert metric.accumulate() == [0.0, 0.0]
    assert Accuracy().name() == "acc" and accuracy(PRED, np.array([1, 0, 2])) == 1.0


def test_labels_may_be_columns_or_one_hot_and_ties_go_to_the_lower_class() -> None:
    assert top_k_correct(PRED, np.eye(3)[[1, 0, 0]], 1)[:, 0].tolist() == [True, True, False]
    assert top_k_correct(np.array([[0.5, 0.5]]), np.array([1]), 1).tolist() == [[False]]
    with pytest.raises(ShapeError, match="do not fit"):
        top_k_correct(PRED, np.array([1]), 1)
    with pytest.raises(ShapeError, match="topk must be numbers from 1"):
        Accuracy(topk=())


def test_precision_and_recall() -> None:
    preds, labels = np.array([0.9, 0.5, 0.4, 0.8]), np.array([1, 0, 1, 1])
    precision, recall = Precision(), Recall()
    precision.update(preds, labels)
    recall.update(preds[:, None], labels[:, None])
    assert precision.accumulate() == pytest.approx(2 / 3) and recall.accumulate() == pytest.approx(2 / 3)
    precision.reset(), recall.reset()
    assert precision.accumulate() == recall.accumulate() == 0.0
    with pytest.raises(ShapeError):
        precision.update(preds, labels[:2])


def test_area_under_the_curve() -> None:
    # pairs (positive, negative): .8>.1, .8>.4, .35>.1, .35<.4: 3 of 4
    metric = Auc()
    metric.update(np.array([0.1, 0.4]), np.array([0, 0]))
    metric.update(np.stack([1 - np.array([0.35, 0.8]), [0.35, 0.8]], axis=1), np.array([[1], [1]]))
    assert metric.accumulate() == pytest.approx(0.75)
    metric.reset()
    assert metric.accumulate() == 0.0
    metric.update(np.array([0.3, 0.3]), np.array([0, 1]))
    assert metric.accumulate() == 0.5
    with pytest.raises(ShapeError, match="unknown curve"):
        Auc("PR")


def test_a_metric_of_ones_own_must_define_its_parts() -> None:
    class Own(Metric):
        pass

    assert Own().name() == "own" and Own().compute(1, 2) == (1, 2)
    for call in (lambda: Own().update(1), Own().accumulate, Own().reset):
        with pytest.raises(NotImplementedError, match="Own defines no"):
            call()
