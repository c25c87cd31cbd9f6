"""Question answering: what is packed, which spans are told, and a tiny model that learns to answer."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.config import load
from framework.core.errors import ConfigError, InputError
from framework.engine.experiment import bind_experiment
from framework.interop import write_safetensors
from framework.text.question_windows import QuestionWindows
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.workflow.files.predict_files import check_sources, predict_files
from framework.workflow.train.run import make_trainer
from nlp import predictor
from nlp.answers import NEVER, AnswerF1
from nlp.models.question_answering import Answers
from nlp.tasks.span_extraction import SpanExtraction

TEXT = "Ann lives in Rome. Bob lives in Oslo."


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("question_answering") / "tokenizer.json"
    return str(Tokenizer.train("words", [TEXT + " Where does live ?"], 40).save(path))


def asked(vocabulary: str, *answers: tuple[int, int], length: int = 32, stride: int = 8) -> list[TextSample]:
    sample = TextSample(TEXT, pair="Where does Bob live?", answers=answers, id="q")
    return QuestionWindows(vocabulary, length, stride).split_windows(sample)


def test_where_the_answer_stands(vocabulary: str) -> None:
    task, start = SpanExtraction(), TEXT.index("Oslo")
    (sample,) = asked(vocabulary, (start, start + 4), (0, 3))
    packed = task.pack(sample)
    # [CLS] Where does Bob live ? [SEP] Ann lives in Rome . Bob lives in Oslo . [SEP]
    assert (packed["start"], packed["end"]) == (15, 15)
    assert packed["type_ids"].tolist() == [0] * 7 + [1] * 11
    assert np.flatnonzero(packed["context"]).tolist() == list(range(7, 17))
    assert json.loads(str(packed["answers"])) == ["Oslo", "Ann"] and str(packed["text"]) == TEXT
    (longer,) = asked(vocabulary, (TEXT.index("in Oslo") + 1, start + 5))  # within a token
    packed = task.pack(longer)
    assert (packed["start"], packed["end"]) == (14, 16)
    (none,) = asked(vocabulary)
    packed = task.pack(none)
    assert (packed["start"], packed["end"]) == (0, 0) and str(packed["answers"]) == "[]"


def test_windows_without_the_answer_have_the_first_token(vocabulary: str) -> None:
    start = TEXT.index("Oslo")
    windows = asked(vocabulary, (start, start + 4), length=12, stride=1)
    packs = [SpanExtraction().pack(window) for window in windows]
    places = [(int(pack["start"]), int(pack["end"])) for pack in packs]
    assert len(windows) == 7 and places[:5] == [(0, 0)] * 5
    for window, (first, last) in zip(windows[5:], places[5:]):
        assert first == last > 0 and window.offsets is not None
        assert window.offsets[first].tolist() == [start, start + 4]


class Fixed:
    """A model whose logits are given."""

    def __init__(self, start: Any, end: Any) -> None:
        self.answers = Answers(np.asarray(start, np.float32), np.asarray(end, np.float32))  # type: ignore[arg-type]

    def __call__(self, tokens: object) -> Answers:
        return self.answers


def inferred(task: SpanExtraction, start: Any, end: Any, context: Any) -> dict[str, np.ndarray]:
    inputs: Any = {"input_ids": np.zeros((1, 6), np.int32), "mask": np.ones((1, 6), bool)}
    model: Any = Fixed([start], [end])
    found = task.infer(model, {**inputs, "context": np.asarray([context], bool)})
    return {name: np.asarray(value)[0] for name, value in found.items()}


def test_the_best_spans_are_those_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    task = SpanExtraction(max_answer_length=3, candidates=2, unanswerable=True, null_threshold=0.5)
    context = [0, 0, 1, 1, 1, 1]
    for _ in range(20):
        start, end = rng.normal(size=(2, 6)).astype(np.float32)
        found = inferred(task, start, end, context)
        pairs = {(a, b): start[a] + end[b] for a in range(2, 6) for b in range(a, min(6, a + 3))}
        best = max(pairs, key=lambda pair: pairs[pair])
        assert (found["first"][0], found["last"][0]) == best
        assert found["scores"][0] == pytest.approx(pairs[best], abs=1e-6)
        assert found["none"] == pytest.approx(start[0] + end[0] - 0.5, abs=1e-6)
        assert found["scores"][1] <= found["scores"][0] and found["first"][1] != found["first"][0]
    few = inferred(SpanExtraction(candidates=9), start, end, context)
    assert few["none"] < -1e8 and (few["scores"] > -1e8).tolist() == [True] * 4 + [False] * 5


def test_answers_of_several_windows(vocabulary: str) -> None:
    from nlp.answers import AnswerProcessor
    from nlp.processors import ProcessorContext

    process = AnswerProcessor(ProcessorContext((QuestionWindows(vocabulary, 12, 2),), (), 32, 2))
    sample = TextSample(TEXT, pair="Where does Bob live?")
    parts = process.parts(sample)
    assert len(parts) == 4 and process.pack(parts[0])["context"].sum() == 4

    def outputs(*rows: tuple[int, float], none: float) -> dict[str, np.ndarray]:
        first = np.array([row[0] for row in rows])
        return {
            "first": first,
            "last": first,
            "scores": np.array([r[1] for r in rows]),
            "none": np.array(none),
        }

    never = -2e9
    given = [
        outputs((7, 1.0), (8, never), none=never),
        outputs((9, 2.0), (8, 0.0), none=never),
        outputs((10, never), (7, 1.5), none=never),
        outputs((9, 3.0), (7, 2.0), none=never),
    ]
    result = process.result(sample, parts, given)
    assert result.question == "Where does Bob live?" and len(result.answers) == 2
    place = parts[3].offsets[9]  # type: ignore[index]
    assert (result.answer.start, result.answer.end) == tuple(place) and result.answer.text == TEXT[
        slice(*place)
    ]
    # "." is found in two windows and counts once, with the better score.
    scores = {"Ann": 1.0, ".": 2.0, "Rome": 0.0, "Oslo": 3.0, "lives": 2.0}
    assert result.answer.score == pytest.approx(np.exp(3.0) / sum(map(np.exp, scores.values())))
    none = [{**rows, "none": np.array(9.0 - n)} for n, rows in enumerate(given)]
    assert process.result(sample, parts, none).answer.to_dict()["text"] == ""
    assert (
        process.result(TextSample("", pair="?"), parts[:1], [outputs((7, never), none=never)]).answer.text
        == ""
    )


def test_the_metric_gathers_windows() -> None:
    metric = AnswerF1().start(())
    offsets = np.array([[[0, 0], [0, 3], [4, 9]]] * 2)
    batch = {"offsets": offsets, "question": np.array(["a", "b"]), "text": np.array(["The great cat"] * 2)}
    batch["answers"] = np.array(['["great cat", "The Great!"]', "[]"])
    outputs = {
        "first": np.array([[1], [1]]),
        "last": np.array([[2], [1]]),
        "scores": np.array([[2.0], [1.0]]),
        "none": np.array([1.0, 3.0]),
    }
    metric.update(outputs, batch)
    assert metric.result() == {"f1": 1.0, "exact_match": 1.0}  # of "b" rightly nothing is found
    again = {key: value[:1] for key, value in batch.items()}
    first = np.array([[1]])
    metric.update(
        {"first": first, "last": first, "scores": np.array([[5.0]]), "none": np.array([0.0])}, again
    )
    # Another window finds "The", of which nothing is left: no word of it is right.
    assert metric.result() == {"f1": 0.5, "exact_match": 0.5}
    assert AnswerF1().start(()).result() == {"f1": 0.0, "exact_match": 0.0}


@pytest.mark.parametrize(
    ("text", "right", "exact", "f1"),
    [
        ("3月5日", "2010年3月5日", 0, 0.8),  # the run 3 月 5 日 of six and of four
        ("《北京大学》。", "北京 大学", 1, 1.0),
        ("大北京", "北京大", 0, 2 / 3),  # the order counts
        ("Apple公司的iPhone 4", "apple的 IPHONE 4", 0, 2 * 3 / 10),
        ("上海", "北京", 0, 0.0),
        ("。", "，", 1, 1.0),
        ("。", "北京", 0, 0.0),
    ],
)
def test_answers_are_compared_as_cmrc_does(text: str, right: str, exact: int, f1: float) -> None:
    metric = AnswerF1("characters").start(())
    outputs = {"first": [[0]], "last": [[0]], "scores": [[1.0]], "none": [NEVER]}
    batch = {
        "offsets": [[[0, len(text)]]],
        "question": ["a"],
        "text": [text],
        "answers": [json.dumps([right])],
    }
    metric.update(*({name: np.array(value) for name, value in one.items()} for one in (outputs, batch)))
    assert metric.result() == pytest.approx({"f1": f1, "exact_match": exact})


def test_errors(vocabulary: str) -> None:
    (sample,) = asked(vocabulary)
    with pytest.raises(InputError, match="no answers to learn from"):
        SpanExtraction().pack(sample.replace(answers=None))
    with pytest.raises(ConfigError, match="no answer can be found"):
        SpanExtraction(candidates=0)


ANSWERS = {
    "Who lives there?": ("Ann", "Bob", "Eve", "Kim", "Max"),
    "Where is that?": ("Rome", "Oslo", "Bern", "Lima", "Cairo"),
    "Since when?": ("1990", "1995", "2001", "2013", "2020"),
}
CONFIG = """
domain: nlp
model:
  type: QuestionAnswering
  encoder:
    type: Bert
    vocab_size: 40
    hidden_size: 64
    num_layers: 1
    num_heads: 2
    intermediate_size: 64
    max_positions: 40
    dropout: 0.0
    attention_dropout: 0.0
    pooler: false
task: {{type: SpanExtraction, candidates: 2, max_answer_length: 3, scores: [{{type: AnswerF1}}]}}
data:
  train: &feed
    dataset: {{type: QuestionAnswers, path: "{folder}/train.json"}}
    transforms: [{{type: QuestionWindows, tokenizer: "{folder}/tokenizer.json", max_length: 24}}]
    batch_size: 32
    num_workers: 0
    buckets: [24]
  eval:
    dataset: {{type: QuestionAnswers, path: "{folder}/dev.json"}}
    transforms: [{{type: QuestionWindows, tokenizer: "{folder}/tokenizer.json", max_length: 24}}]
    batch_size: 32
    num_workers: 0
    buckets: [24]
optim: {{type: AdamW, learning_rate: 0.003, weight_decay: 0.0, grad_clip: {{global_norm: 1.0}}}}
train: {{iters: {iters}, log_every: 100, eval_every: 10000, save_every: 10000}}
weights: "{folder}/model.safetensors"
export:
  inputs:
    input_ids: {{shape: [n, t], dtype: int32}}
    mask: {{shape: [n, t], dtype: bool}}
    type_ids: {{shape: [n, t], dtype: int32}}
    context: {{shape: [n, t], dtype: bool}}
  precisions: [float32]
"""


def question_file(path: Path, count: int, seed: int) -> None:
    """A text about a person, and a question about one of three things in it."""
    draw = random.Random(seed)
    paragraphs = []
    for number in range(count):
        who, town, year = (draw.choice(answers) for answers in ANSWERS.values())
        text = f"I know that {who} lives in the old town of {town} since {year}."
        asked = draw.randrange(3)
        answer = (who, town, year)[asked]
        answers = [{"text": answer, "answer_start": text.index(answer)}]
        question = {"id": f"{number}", "question": list(ANSWERS)[asked], "answers": answers}
        paragraphs.append({"context": text, "qas": [question]})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")


def experiment(folder: Path, iters: int) -> Path:
    question_file(folder / "train.json", 400, 0)
    question_file(folder / "dev.json", 60, 1)
    words = [
        *ANSWERS,
        *(" ".join(one) for one in ANSWERS.values()),
        "I know that lives in the old town of since .",
    ]
    Tokenizer.train("words", words, 40).save(folder / "tokenizer.json")
    config = folder / "question_answering.yml"
    config.write_text(
        CONFIG.format(folder=folder.as_posix(), iters=iters).replace(" &feed", ""), encoding="utf-8"
    )
    return config


def test_a_tiny_model_learns_to_read(tmp_path: Path) -> None:
    config = experiment(tmp_path, 120)
    trainer = make_trainer(bind_experiment(load(config)), None)
    scores = trainer.fit()
    assert scores["exact_match"] > 0.95 and scores["f1"] >= scores["exact_match"]
    state = {name: np.asarray(value) for name, value in trainer.model.state_dict().items()}
    write_safetensors(tmp_path / "model.safetensors", state)
    read = predictor(config, device="cpu", precision="float32", top=2)
    text = "I know that Kim lives in the old town of Lima since 2001."
    answers = read([(text, "Where is that?"), (text, "Who lives there?")])
    assert [one.answer.text for one in answers] == ["Lima", "Kim"] and len(answers[0].answers) == 2
    assert text[answers[0].answer.start : answers[0].answer.end] == "Lima"
    predict_files(read, tmp_path / "out", text=text, pair="Since when?")
    line = json.loads((tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8"))
    assert line["question"] == "Since when?" and line["answers"][0]["text"] == "2001"
    (tmp_path / "questions.txt").write_text(
        f"{text}\tSince when?\n\n{text}\tWhere is that?\n", encoding="utf-8"
    )
    predict_files(read, tmp_path / "lines", text_file=str(tmp_path / "questions.txt"))
    lines = (tmp_path / "lines" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["answers"][0]["text"] for line in lines] == ["2001", "Lima"]
    with pytest.raises(InputError, match=r"--text, line 1: the model takes two texts"):
        predict_files(read, tmp_path / "out", text=text)


def test_a_pair_goes_with_a_text() -> None:
    with pytest.raises(InputError, match="--pair is the second text of a pair"):
        check_sources(None, None, None, None, pair="a")
