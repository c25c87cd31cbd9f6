from __future__ import annotations

import numpy as np
import pytest

from nlp.metrics import SpanF1, TagAccuracy, TextAccuracy

LABELS = ("O", "B-A", "I-A", "B-B")
TRUTH = np.array([[1, 2, 0, 3], [0, 1, -1, 0]])
FOUND = np.array([[1, 2, 0, 1], [0, 1, 1, 2]])
BATCH = {"tags": TRUTH, "mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], bool)}


def test_accuracy_counts_real_tokens_with_tags() -> None:
    metric = TagAccuracy().start(LABELS)
    metric.update({"tags": FOUND}, BATCH)
    assert metric.result() == {"accuracy": 5 / 6}
    assert TagAccuracy().start(LABELS).result() == {"accuracy": 0.0}


def test_spans_count_whole() -> None:
    metric = SpanF1().start(LABELS)
    metric.update({"tags": FOUND}, BATCH)
    assert metric.result() == {"f1": pytest.approx(2 / 3), "precision": 2 / 3, "recall": 2 / 3}
    metric = SpanF1(labelled=False).start(LABELS)
    metric.update({"tags": FOUND}, BATCH)
    assert metric.result() == {"span_f1": pytest.approx(1), "span_precision": 1, "span_recall": 1}
    assert SpanF1().start(LABELS).result()["f1"] == 0


def test_classes_of_texts() -> None:
    metric = TextAccuracy().start(("a", "b", "c"))
    metric.update(
        {"scores": np.array([[0.9, 0.1, 0], [0.2, 0.8, 0], [0.6, 0.4, 0]])}, {"label": np.array([0, 1, 1])}
    )
    # a: 1 right of 2 found and 1 wanted; b: 1 right of 1 found and 2 wanted; c does not occur.
    assert metric.result() == {"accuracy": 2 / 3, "macro_f1": pytest.approx(2 / 3)}
    assert TextAccuracy().start(()).result() == {"accuracy": 0.0, "macro_f1": 0.0}
