"""Scores of samples with any number of classes each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class MultiLabelScores:
    """mAP, the mean over the classes that occur of their average precision, and of classes from a threshold on F1,
    precision and recall of all together, the mean F1 of the classes that occur, and the share of samples whose
    classes are all right.

    Average precision is the sum of precision times the step of recall down the ranking, as scikit-learn's
    average_precision_score has it; samples of one score count together.
    """

    higher_is_better = True

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._scores: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        self._scores.append(np.asarray(outputs["scores"], np.float64))
        self._labels.append(np.asarray(batch["label"]))

    def result(self) -> dict[str, float]:
        if not self._scores:
            return {"mAP": 0.0}
        scores, labels = np.concatenate(self._scores), np.concatenate(self._labels)
        classes = max(scores.shape[1], int(labels.max(initial=-1)) + 1)  # some unknown to the model
        scores = np.pad(scores, ((0, 0), (0, classes - scores.shape[1])))
        truth = np.zeros((len(scores), classes + 1), bool)
        np.put_along_axis(truth, np.where(labels < 0, classes, labels), True, axis=1)
        truth = truth[:, :classes]
        predicted = scores >= self.threshold
        hits, misses = (truth & predicted).sum(axis=0), (truth & ~predicted).sum(axis=0)
        alarms = (~truth & predicted).sum(axis=0)
        occurs = truth.any(axis=0)
        precisions = [average_precision(scores[:, c], truth[:, c]) for c in np.flatnonzero(occurs)]
        f1 = _share(2 * hits, 2 * hits + misses + alarms)
        return {
            "mAP": float(np.mean(precisions)) if precisions else 0.0,
            "f1": float(_share(2 * hits.sum(), 2 * hits.sum() + misses.sum() + alarms.sum())),
            "f1_macro": float(f1[occurs].mean()) if occurs.any() else 0.0,
            "precision": float(_share(hits.sum(), hits.sum() + alarms.sum())),
            "recall": float(_share(hits.sum(), hits.sum() + misses.sum())),
            "exact_match": float((predicted == truth).all(axis=1).mean()),
        }


def average_precision(scores: np.ndarray, truth: np.ndarray) -> float:
    """Of scores [N] and truth [N] bool with a true one or more."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(truth[order])
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # of each run of equal scores
    precision, recall = hits[last] / (last + 1), hits[last] / hits[-1]
    return float((np.diff(recall, prepend=0) * precision).sum())


def _share(count: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(count, whole, out=np.zeros(np.shape(count)), where=np.asarray(whole) > 0)
