"""Scores of what is said of two texts: correlations, the order of pairs, and F1 of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from framework.config import register
from framework.core.errors import ConfigError
from nlp.metrics import LabelCollector, class_counts


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's, of [M] and [M]. 0 where one of them is constant, since it says nothing then; so with less than two."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    x, y = x - x.mean(dtype=np.float64), y - y.mean(dtype=np.float64)
    return float(np.clip((x / np.linalg.norm(x)) @ (y / np.linalg.norm(y)), -1, 1))


def ranks(values: np.ndarray) -> np.ndarray:
    """The ranks of [M] values from 1, [M] float64; equal ones share their mean rank."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[index]


@register("metric")
@dataclass(frozen=True)
class Pearson:
    """The correlation of similarities and classes, in [-1, 1]: {"pearson"}; 0 where either are all the same.

    A class counts as its number, so classes are named in the order of what they mean: "0" to "5", or no and yes.
    """

    def start(self, labels: tuple[str, ...]) -> LabelCollector:
        return LabelCollector("similarity", lambda found, wanted: {"pearson": correlation(found, wanted)})


@register("metric")
@dataclass(frozen=True)
class Spearman:
    """The correlation of the ranks of similarities and of classes: {"spearman"}; equal ones share their mean rank.

    0 where either are all the same. A class counts as its number, as in Pearson.
    """

    def start(self, labels: tuple[str, ...]) -> LabelCollector:
        return LabelCollector("similarity", self._compute)

    @staticmethod
    def _compute(predicted: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        return {"spearman": correlation(ranks(predicted), ranks(expected))}


@register("metric")
@dataclass(frozen=True)
class AUC:
    """How often a pair of class 1 or above has a larger similarity than one of class 0: {"auc"}. A tie counts half.

    0.5 where there are no pairs of one of the two kinds. Source: the Mann-Whitney statistic
    """

    def start(self, labels: tuple[str, ...]) -> LabelCollector:
        return LabelCollector("similarity", self._compute)

    @staticmethod
    def _compute(predicted: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        match = expected > 0
        right, wrong = int(match.sum()), int((~match).sum())
        if not right or not wrong:
            return {"auc": 0.5}
        above = ranks(predicted)[match].sum() - right * (right + 1) / 2
        return {"auc": float(above / (right * wrong))}


@register("metric")
@dataclass(frozen=True)
class TextF1:
    """F1, precision and recall of classes: {"f1", "precision", "recall"}; 0 where nothing was found, or nothing wanted.

    Attributes:
        average: "binary" is the class `positive` alone; "macro" the mean of the classes that are found or wanted;
            "micro" counts all texts together, which for one class a text is the accuracy.
        positive: The number of the class that "binary" counts.

    Raises:
        ConfigError: `positive` is no class; where the classes are known, when the evaluation starts.
    """

    average: Literal["binary", "macro", "micro"] = "binary"
    positive: int = 1

    def __post_init__(self) -> None:
        self._check(None)

    def _check(self, count: int | None) -> None:
        if self.positive < 0 or (count and self.positive >= count):
            raise ConfigError(
                "unknown class",
                where="TextF1.positive",
                received=self.positive,
                allowed="from 0" if count is None else f"from 0 to {count - 1}",
            )

    def start(self, labels: tuple[str, ...]) -> LabelCollector:
        if self.average == "binary":
            self._check(len(labels))
        return LabelCollector("scores", self._compute)

    def _compute(self, scores: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        predicted = scores.argmax(axis=-1) if scores.ndim == 2 else scores.astype(int)
        kinds = np.union1d(predicted, expected) if self.average != "binary" else np.array([self.positive])
        counts = class_counts(predicted, expected, kinds)
        if self.average == "micro":
            counts = [tuple(np.sum(counts, axis=0))] if counts else []
        rows = [(2 * hit / max(1, f + w), hit / max(1, f), hit / max(1, w)) for hit, f, w in counts]
        f1, precision, recall = np.mean(rows, axis=0) if rows else np.zeros(3)
        return {"f1": float(f1), "precision": float(precision), "recall": float(recall)}
