"""Scores of taggers and of classifiers of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from framework.config import register
from nlp.spans import spans


@register("metric")
@dataclass(frozen=True)
class TagAccuracy:
    """The share of tokens whose tag is right: {"accuracy"}."""

    def start(self, labels: tuple[str, ...]) -> _TagAccuracy:
        return _TagAccuracy()


class _TagAccuracy:
    higher_is_better = True

    def __init__(self) -> None:
        self.right = self.count = 0

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        known = batch["mask"] & (batch["tags"] >= 0)
        self.right += int((outputs["tags"] == batch["tags"])[known].sum())
        self.count += int(known.sum())

    def result(self) -> dict[str, float]:
        return {"accuracy": self.right / max(1, self.count)}


@register("metric")
@dataclass(frozen=True)
class SpanF1:
    """Precision, recall and F1 of whole spans, by `nlp.spans`: {"f1", "precision", "recall"}, over all classes.

    With `labelled` False only where spans begin and end counts, such as the words that a segmenter finds: {"span_f1",
    "span_precision", "span_recall"}.

    Source: seqeval's default mode, which is conlleval's; micro average.
    """

    labelled: bool = True

    def start(self, labels: tuple[str, ...]) -> _SpanF1:
        return _SpanF1(labels, self.labelled)


class _SpanF1:
    higher_is_better = True

    def __init__(self, labels: tuple[str, ...], labelled: bool) -> None:
        self.labels, self.labelled = labels, labelled
        self.right = self.found = self.wanted = 0

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        known = batch["mask"] & (batch["tags"] >= 0)
        for tags, truth, real in zip(outputs["tags"], batch["tags"], known):
            found, wanted = self._spans(tags[real]), self._spans(truth[real])
            self.right += len(found & wanted)
            self.found += len(found)
            self.wanted += len(wanted)

    def _spans(self, tags: np.ndarray) -> set[tuple[int, int, str]]:
        marked = spans([self.labels[tag] for tag in tags])
        return {(start, end, label if self.labelled else "") for start, end, label in marked}

    def result(self) -> dict[str, float]:
        precision, recall = self.right / max(1, self.found), self.right / max(1, self.wanted)
        f1 = 2 * precision * recall / max(1e-12, precision + recall)
        kind = "" if self.labelled else "span_"
        return {f"{kind}f1": f1, f"{kind}precision": precision, f"{kind}recall": recall}


@register("metric")
@dataclass(frozen=True)
class TextAccuracy:
    """The share of texts whose class is right, and the mean F1 of the classes: {"accuracy", "macro_f1"}.

    A class that is neither found nor wanted is left out of the mean.
    """

    def start(self, labels: tuple[str, ...]) -> _TextAccuracy:
        return _TextAccuracy()


class _TextAccuracy:
    higher_is_better = True

    def __init__(self) -> None:
        self.found: list[np.ndarray] = []
        self.wanted: list[np.ndarray] = []

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        self.found.append(outputs["scores"].argmax(axis=-1))
        self.wanted.append(np.asarray(batch["label"]))

    def result(self) -> dict[str, float]:
        if not self.found:
            return {"accuracy": 0.0, "macro_f1": 0.0}
        found, wanted = np.concatenate(self.found), np.concatenate(self.wanted)
        scores = [
            2 * np.sum((found == kind) & (wanted == kind)) / (np.sum(found == kind) + np.sum(wanted == kind))
            for kind in np.union1d(found, wanted)
        ]
        return {"accuracy": float((found == wanted).mean()), "macro_f1": float(np.mean(scores))}
