from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from sacrebleu import corpus_bleu, corpus_chrf

from framework.core.errors import InputError, MissingExtraError
from framework.engine.details import DetailedMetric
from framework.text.tokenizer import Tokenizer
from nlp.metrics import BLEU, ChrF, Perplexity, SpanF1, TagAccuracy, TextAccuracy

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


def test_the_table_of_spans_has_a_row_for_each_label() -> None:
    metric = SpanF1().start(LABELS)
    assert isinstance(metric, DetailedMetric)
    metric.update({"tags": FOUND}, BATCH)
    table = metric.details().classes
    assert table.columns == ("class", "precision", "recall", "f1", "support")
    # A: both are found, and a third that is a B; the B is found as an A.
    assert table.rows == (("A", 2 / 3, 1.0, 4 / 5, 2), ("B", None, 0.0, 0.0, 1))
    assert not isinstance(SpanF1(labelled=False).start(LABELS), DetailedMetric)  # it knows no labels
    plain = SpanF1().start(("O", "B", "I"))
    plain.update(
        {"tags": np.array([[1, 2, 0]])}, {"tags": np.array([[1, 2, 0]]), "mask": np.ones((1, 3), bool)}
    )
    assert isinstance(plain, DetailedMetric)
    assert plain.details().classes.rows == (("span", 1.0, 1.0, 1.0, 1),)


def test_the_table_of_tags_counts_real_tokens() -> None:
    metric = TagAccuracy().start(LABELS)
    assert isinstance(metric, DetailedMetric)
    metric.update({"tags": FOUND}, BATCH)
    details = metric.details()
    assert details.classes.rows == (
        ("O", 1.0, 1.0, 1.0, 2),
        ("B-A", 2 / 3, 1.0, 4 / 5, 2),
        ("I-A", 1.0, 1.0, 1.0, 1),
        ("B-B", None, 0.0, 0.0, 1),
    )
    assert details.confusion is not None and details.confusion[3].tolist() == [0, 1, 0, 0]


def test_classes_of_texts() -> None:
    metric = TextAccuracy().start(("a", "b", "c"))
    metric.update(
        {"scores": np.array([[0.9, 0.1, 0], [0.2, 0.8, 0], [0.6, 0.4, 0]])}, {"label": np.array([0, 1, 1])}
    )
    # a: 1 right of 2 found and 1 wanted; b: 1 right of 1 found and 2 wanted; c does not occur.
    assert metric.result() == {"accuracy": 2 / 3, "macro_f1": pytest.approx(2 / 3)}
    assert TextAccuracy().start(()).result() == {"accuracy": 0.0, "macro_f1": 0.0}


def test_translations_are_compared_as_texts(tmp_path: Path) -> None:
    wanted = ["Ein Hund läuft über die Wiese.", "Zwei Männer  sitzen auf einer Bank, »hier«."]
    found = ["Ein Hund rennt über die Wiese.", "Zwei Männer sitzen auf der Bank."]
    tokenizer = Tokenizer.train("bpe", wanted, 300)
    metric = BLEU(str(tokenizer.save(tmp_path))).start(())
    for text, truth in zip(found, wanted):
        ids, target = tokenizer.encode(text).ids[1:], tokenizer.encode(truth).ids[1:]
        padded = np.concatenate([ids, np.zeros(5, np.int32)])
        metric.update({"ids": padded[None]}, {"next_ids": np.append(target, [-1, -1])[None]})
    score = corpus_bleu(found, [wanted]).score
    assert 10 < score < 90 and metric.result() == {"bleu": pytest.approx(score)}
    assert BLEU(str(tmp_path)).start(()).result() == {"bleu": 0.0}
    assert metric.higher_is_better


@pytest.mark.parametrize("word_order", [0, 2])
def test_chrf_counts_texts_that_share_nothing(tmp_path: Path, word_order: Literal[0, 2]) -> None:
    """Of a text without a run of its reference the reference counts too, as of one that is empty."""
    wanted = ["a cat sat on the mat", "the cat was seen", "two dogs run"]
    found = ["a cat sat on a mat", "", "qqqq"]
    tokenizer = Tokenizer.train("bpe", [*wanted, *found], 300)
    metric = ChrF(str(tokenizer.save(tmp_path)), word_order).start(())
    for text, truth in zip(found, wanted):
        ids, target = tokenizer.encode(text).ids[1:], tokenizer.encode(truth).ids[1:]
        metric.update({"ids": np.asarray(ids)[None]}, {"next_ids": np.asarray(target)[None]})
    score = corpus_chrf(found, [wanted], word_order=word_order).score
    assert 10 < score < 60 and metric.result() == {"chrf": pytest.approx(score)}
    assert ChrF(str(tmp_path)).start(()).result() == {"chrf": 0.0}


def test_bleu_needs_a_vocabulary_and_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError):
        BLEU(str(tmp_path / "tokenizer.json")).start(())
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(MissingExtraError, match=r"(?s)sacrebleu.*oar-toolkit\[nlp\]"):
        BLEU("tokenizer.json").start(())


def test_perplexity_is_of_tokens() -> None:
    metric = Perplexity().start(())
    metric.update({"losses": np.array([3.0, 1.0])}, {"next_ids": np.array([[5, 3, -1], [3, -1, -1]])})
    metric.update({"losses": np.array([0.5])}, {"next_ids": np.array([[3, -1, -1]])})
    assert metric.result() == {"perplexity": pytest.approx(np.exp(4.5 / 4))} and not metric.higher_is_better
    assert Perplexity().start(()).result() == {"perplexity": 1.0}
