from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import framework
from framework.config import build
from framework.core.errors import ConfigError, InputError
from framework.engine.experiment import LoaderConfig
from framework.text.hashing import HashFeatures
from framework.text.sample import TextSample
from framework.workflow.train.loaders import make_loader
from nlp.data.classification import TextClassification
from nlp.metrics import TextAccuracy
from nlp.models.bigru_crf import BiGRUCRFConfig
from nlp.models.bow import BOWConfig
from nlp.processors import ProcessorContext
from nlp.tasks import SequenceClassification, TokenClassification

IDS = np.array([5, 6, 7, 8], np.int32)
SAMPLE = TextSample("a b", words=("a", "b"), tags=(2, 1), label=1, ids=IDS, word_ids=np.array([-1, 0, 0, 1]))


def test_the_first_token_of_a_word_carries_its_tag() -> None:
    packed = TokenClassification().pack(SAMPLE)
    assert packed["tags"].tolist() == [-1, 2, -1, 1] and packed["mask"].all()
    cut = SAMPLE.replace(ids=IDS[:2], word_ids=np.array([-1, 0]))
    assert TokenClassification().pack(cut)["tags"].tolist() == [-1, 2]
    assert TokenClassification().length(SAMPLE) == 4


def test_pairs_say_which_text_a_token_is_of() -> None:
    packed = SequenceClassification().pack(SAMPLE.replace(type_ids=np.array([0, 0, 1, 1])))
    assert packed["type_ids"].tolist() == [0, 0, 1, 1] and packed["label"] == 1


def test_losses_and_results() -> None:
    framework.seed(0)
    batch = {"input_ids": IDS[None], "mask": np.ones((1, 4), bool), "step": np.int32(0)}
    classify, tag = SequenceClassification(scores=(TextAccuracy(),)), TokenClassification()
    model = build(BOWConfig(10, 3)).eval()
    scores = classify.infer(model, batch)["scores"]
    losses = classify.loss(model, {**batch, "label": np.array([1])})
    assert losses.total == pytest.approx(-np.log(scores[0, 1]), abs=1e-5)
    assert list(losses.parts) == ["accuracy"] and list(classify.metrics(("a", "b", "c"))) == ["0", "classes"]
    tagger = build(BiGRUCRFConfig(10, 3)).eval()
    found = tag.infer(tagger, batch)
    assert found["tags"].shape == found["scores"].shape == (1, 4)
    assert tag.loss(tagger, {**batch, "tags": np.array([[0, 1, 2, 0]])}).total > 0
    with pytest.raises(ConfigError, match="different numbers of classes"):
        tag.check(tagger, ("a", "b"))


def test_errors() -> None:
    with pytest.raises(InputError, match="not divided into tokens"):
        SequenceClassification().pack(TextSample("a", label=0))
    with pytest.raises(InputError, match="a text has no class"):
        SequenceClassification().pack(SAMPLE.replace(label=None))
    with pytest.raises(InputError, match="a text has no tags"):
        TokenClassification().pack(SAMPLE.replace(tags=None))
    with pytest.raises(ConfigError, match="label_smoothing is out of range"):
        SequenceClassification(label_smoothing=1.0)


def test_classes_that_are_independent() -> None:
    framework.seed(0)
    batch = {"input_ids": IDS[None], "mask": np.ones((1, 4), bool), "label": np.array([1])}
    task, model = SequenceClassification(independent=True), build(BOWConfig(10, 3)).eval()
    scores = np.asarray(task.infer(model, batch)["scores"])[0]
    expected = -np.log([1 - scores[0], scores[1], 1 - scores[2]]).mean()
    assert task.loss(model, batch).total == pytest.approx(expected, abs=1e-5)
    assert abs(scores.sum() - 1) > 0.1


def test_any_number_of_classes(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one\tx,z\ntwo\t\nthree\t z\n", encoding="utf-8")
    data = TextClassification(tmp_path / "a.tsv", label_separator=",")
    assert data.class_names == ("x", "z") and [one.tolist() for one in data.read_labels()] == [
        [0, 1],
        [],
        [1],
    ]
    task = SequenceClassification(independent=True, threshold=0.4, max_labels=2)
    packed = [task.pack(HashFeatures(buckets=10)(data[i], np.random.default_rng(0))) for i in range(3)]
    assert [one["label"].tolist() for one in packed] == [[0, 1], [-1, -1], [1, -1]]
    framework.seed(0)
    model = build(BOWConfig(10, 2)).eval()
    batch = {"input_ids": np.stack([IDS] * 3), "mask": np.ones((3, 4), bool)}
    scores = np.asarray(task.infer(model, batch)["scores"])[0]
    losses = task.loss(model, {**batch, "label": np.stack([one["label"] for one in packed])})
    truth = np.array([[1, 1], [0, 0], [0, 1]])
    assert losses.total == pytest.approx(-np.log(np.where(truth, scores, 1 - scores)).mean(), abs=1e-5)
    (metric,) = task.metrics(("x", "z")).values()
    metric.update(
        {"scores": np.array([[0.9, 0.8], [0.1, 0.2], [0.1, 0.41]])},
        {"label": np.stack([p["label"] for p in packed])},
    )
    assert metric.result()["exact_match"] == metric.result()["mAP"] == 1.0
    process = task.processor(ProcessorContext((), ("x", "z"), 12, 5))
    output = {"scores": np.array([0.3, 0.4], np.float32)}
    assert [one.label for one in process.result(TextSample("a"), [], [output]).classes] == ["z"]
    with pytest.raises(InputError, match=r"(?s)a text has no class.*independent: true"):
        SequenceClassification().pack(data[0])
    with pytest.raises(InputError, match=r"task\.max_labels"):
        SequenceClassification(independent=True, max_labels=1).pack(data[0].replace(ids=IDS))
    with pytest.raises(ConfigError, match="a threshold is for"):
        SequenceClassification(threshold=0.5)
    with pytest.raises(ConfigError, match="scores of their own"):
        SequenceClassification(independent=True, scores=(TextAccuracy(),))
    with pytest.raises(ConfigError, match="separator is empty"):
        TextClassification(tmp_path / "a.tsv", label_separator="")


def test_weights_of_classes() -> None:
    framework.seed(0)
    model = build(BOWConfig(10, 3)).eval()
    batch = {
        "input_ids": np.stack([IDS, IDS[::-1]]),
        "mask": np.ones((2, 4), bool),
        "label": np.array([1, 2]),
    }
    single = [
        -np.log(row[label])
        for row, label in zip(SequenceClassification().infer(model, batch)["scores"], (1, 2))
    ]
    loss = SequenceClassification(weight=(5.0, 3.0, 1.0)).loss(model, batch).total
    assert loss == pytest.approx((3 * single[0] + single[1]) / 4, abs=1e-5)
    with pytest.raises(ConfigError, match="independent have no weights"):
        SequenceClassification(weight="balanced", independent=True)


def test_a_loader_says_which_texts_are_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.tsv").write_text("one two three four\tx\none\ty\nfive six seven\tx\n", encoding="utf-8")
    config = LoaderConfig(
        TextClassification(tmp_path / "a.tsv"), (HashFeatures(max_length=2),), batch_size=1, buckets=(2,)
    )
    make_loader(config, SequenceClassification(), 0, True)
    (line,) = caplog.messages
    assert "data.train: 2 of 3 texts" in line and "3 tokens" in line and line.endswith("line 1: 2")
