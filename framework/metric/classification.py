"""Accuracy, precision, recall and the area under the ROC curve, as `paddle.metric` has them, on numpy arrays.

Source: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/metric/Overview_en.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.typing import ArrayLike

from framework.core.errors import ShapeError


class Metric:
    """Base of metrics. `compute` may be overridden to reduce the outputs of a batch before `update` sees them."""

    higher_is_better = True

    def name(self) -> str | list[str]:
        return type(self).__name__.lower()

    def compute(self, pred: ArrayLike, label: ArrayLike) -> Any:
        return pred, label

    def update(self, *args: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no update")

    def accumulate(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no accumulate")

    def reset(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} defines no reset")


def top_k_correct(pred: ArrayLike, label: ArrayLike, k: int) -> np.ndarray:
    """[N, k] bool: whether the i-th best class of `pred` [N, C] is the label; ties go to the lower class.

    `label` is [N] or [N, 1] class indices, or [N, C] one-hot or soft, of which the largest counts.
    """
    pred, label = np.asarray(pred), np.asarray(label)
    if pred.ndim != 2 or label.ndim not in (1, 2) or len(pred) != len(label):
        raise ShapeError(
            "predictions and labels do not fit",
            received=f"predictions {pred.shape}, labels {label.shape}",
            allowed="[N, C] and [N], [N, 1] or [N, C]",
        )
    if label.ndim == 2:
        label = label[:, 0] if label.shape[1] == 1 else label.argmax(axis=1)
    best = np.argsort(-pred, axis=1, kind="stable")[:, :k]
    return best == np.reshape(label, (-1, 1))


def count_hits(correct: ArrayLike, topk: Sequence[int]) -> tuple[list[int], int]:
    """The rows of `correct` [..., K] with a true entry among the first k, for each k of `topk`; and all rows."""
    correct = np.asarray(correct)
    return [int(correct[..., :k].any(axis=-1).sum()) for k in topk], math.prod(correct.shape[:-1])


def accuracy(input: ArrayLike, label: ArrayLike, k: int = 1) -> float:
    """Share of rows whose label is among the k best classes."""
    return float(top_k_correct(input, label, k).any(axis=1).mean())


class Accuracy(Metric):
    """Top-k accuracy, for one or several k."""

    def __init__(self, topk: Sequence[int] = (1,), name: str | None = None) -> None:
        self.topk, self._name = tuple(topk), name or "acc"
        if not self.topk or min(self.topk) < 1:
            raise ShapeError(
                "topk must be numbers from 1", received=list(self.topk), allowed="one or more numbers from 1"
            )
        self.reset()

    def reset(self) -> None:
        self.total, self.count = [0.0] * len(self.topk), [0] * len(self.topk)

    def compute(self, pred: ArrayLike, label: ArrayLike) -> np.ndarray:
        return top_k_correct(pred, label, max(self.topk))

    def update(self, correct: ArrayLike) -> float | list[float]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take in what `compute` gave; returns the accuracies of this batch."""
        hits, rows = count_hits(correct, self.topk)
        self.total = [total + hit for total, hit in zip(self.total, hits)]
        self.count = [count + rows for count in self.count]
        shares = [hit / max(1, rows) for hit in hits]
        return shares[0] if len(shares) == 1 else shares

    def accumulate(self) -> float | list[float]:
        shares = [total / count if count else 0.0 for total, count in zip(self.total, self.count)]
        return shares[0] if len(shares) == 1 else shares

    def name(self) -> str | list[str]:
        if self.topk == (1,):
            return self._name
        return [f"{self._name}_top{k}" for k in self.topk]


class _Binary(Metric):
    """Counts of a two-class problem; a prediction is positive from 0.5 up."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name or type(self).__name__.lower()
        self.reset()

    def reset(self) -> None:
        self.tp = self.fp = self.fn = 0

    def update(self, preds: ArrayLike, labels: ArrayLike) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take in probabilities of the positive class and labels 0 or 1, of the same size."""
        found, truth = np.asarray(preds).reshape(-1) >= 0.5, np.asarray(labels).reshape(-1) == 1
        if found.shape != truth.shape:
            raise ShapeError(
                "predictions and labels do not fit",
                received=f"{found.size} and {truth.size}",
                allowed="the same number",
            )
        self.tp += int((found & truth).sum())
        self.fp += int((found & ~truth).sum())
        self.fn += int((~found & truth).sum())

    def name(self) -> str:
        return self._name


class Precision(_Binary):
    """Share of the positive predictions that are right; 0 where there is none."""

    def accumulate(self) -> float:
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0


class Recall(_Binary):
    """Share of the positives that were found; 0 where there is none."""

    def accumulate(self) -> float:
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0


class Auc(Metric):
    """Area under the ROC curve by trapezoids over `num_thresholds` equal bins of the probability."""

    def __init__(self, curve: str = "ROC", num_thresholds: int = 4095, name: str | None = None) -> None:
        if curve != "ROC":
            raise ShapeError("unknown curve", received=repr(curve), allowed="'ROC'")
        self.bins, self._name = num_thresholds, name or "auc"
        self.reset()

    def reset(self) -> None:
        self.positive = np.zeros(self.bins + 1, np.int64)
        self.negative = np.zeros(self.bins + 1, np.int64)

    def update(self, preds: ArrayLike, labels: ArrayLike) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take in probabilities [N, 2] (of the second class) or [N], and labels 0 or 1."""
        preds, labels = np.asarray(preds), np.asarray(labels).reshape(-1)
        scores = preds[:, 1] if preds.ndim == 2 and preds.shape[1] == 2 else preds.reshape(-1)
        places = np.clip((scores * self.bins).astype(np.int64), 0, self.bins)
        self.positive += np.bincount(places[labels == 1], minlength=self.bins + 1)
        self.negative += np.bincount(places[labels != 1], minlength=self.bins + 1)

    def accumulate(self) -> float:
        """0 where one of the classes never occurred, as Paddle."""
        positives, negatives = self.positive.sum(), self.negative.sum()
        if not positives or not negatives:
            return 0.0
        true = np.concatenate([[0], np.cumsum(self.positive[::-1])]) / positives
        false = np.concatenate([[0], np.cumsum(self.negative[::-1])]) / negatives
        return float(np.sum(self.trapezoid_area(false[1:], false[:-1], true[1:], true[:-1])))

    @staticmethod
    def trapezoid_area(x1: ArrayLike, x2: ArrayLike, y1: ArrayLike, y2: ArrayLike) -> Any:
        """The area of a trapezoid between x1 and x2 with the heights y1 and y2."""
        return np.abs(np.subtract(x1, x2)) * np.add(y1, y2) / 2.0

    def name(self) -> str:
        return self._name
