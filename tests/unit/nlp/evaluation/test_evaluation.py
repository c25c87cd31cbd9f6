"""Likelihoods, perplexity, choices, written answers and the command, on a model of a few thousand parameters."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from nlp import llm
from nlp.evaluation.__main__ import main
from nlp.evaluation.choices import Question, choose, measure_choices
from nlp.evaluation.likelihood import Continuation, Scorer, encode_pair, encode_text
from nlp.evaluation.perplexity import measure_perplexity, rolling_windows, strided_windows
from nlp.evaluation.writing import WritingTask, measure_writing, write_until
from nlp.generation.engine import Engine
from tests.unit.nlp.tiny_decoder import write_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(folder: Path) -> llm.LanguageModel:
    return llm.load(folder)


def logs_of(model: llm.LanguageModel, ids: tuple[int, ...]) -> np.ndarray:
    """[T - 1]: log p of each token behind those before it, in float64."""
    logits = np.asarray(model.model(np.array([ids], np.int32)), np.float64)[0]
    logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return logs[np.arange(len(ids) - 1), list(ids[1:])]


def test_scores_are_those_of_the_logits_in_any_batch(model: llm.LanguageModel) -> None:
    rows = [Continuation((5, 6, 7), (8, 9)), Continuation((1,), tuple(range(10, 50))), Continuation((3,), ())]
    for batch in (1, 2, 8):
        found = Scorer(model.model, batch_size=batch).score(rows)
        for row, score in zip(rows, found):
            expected = logs_of(model, row.context + row.ids)[len(row.context) - 1 :]
            assert score.log_likelihoods == pytest.approx(expected, abs=2e-5)
            assert len(score.log_likelihoods) == len(row.ids) == len(score.ids)
    best = int(np.asarray(model.model(np.array([[5, 6]], np.int32)))[0, -1].argmax())
    greedy = Scorer(model.model).score(
        [Continuation((5, 6), (best,)), Continuation((5, 6), ((best + 1) % 300,))]
    )
    assert [one.greedy for one in greedy] == [True, False]


def test_a_long_context_is_cut_at_its_beginning(model: llm.LanguageModel) -> None:
    scorer = Scorer(model.model, max_length=8)
    long, short = scorer.score(
        [Continuation(tuple(range(20)), (30, 31)), Continuation(tuple(range(13, 20)), (30, 31))]
    )
    assert long.log_likelihoods == pytest.approx(short.log_likelihoods, abs=1e-6)
    with pytest.raises(InputError, match="cannot be scored"):
        scorer.score([Continuation((1,), tuple(range(9)))])
    with pytest.raises(InputError, match="cannot be scored"):
        scorer.score([Continuation((), (1,))])
    with pytest.raises(InputError, match="not in the vocabulary"):
        scorer.score([Continuation((1,), (10**6,))])
    with pytest.raises(ConfigError, match="no room"):
        Scorer(model.model, batch_size=0)


def test_rolling_windows_are_those_of_lm_eval() -> None:
    """Of 10 tokens in windows of 4: the third one sees as much as the others."""
    assert rolling_windows(tuple(range(10)), 99, 4) == [
        Continuation((99,), (0, 1, 2, 3)),
        Continuation((3,), (4, 5, 6, 7)),
        Continuation((5, 6, 7), (8, 9)),
    ]
    assert rolling_windows((7,), 99, 4) == [Continuation((99,), (7,))] and rolling_windows((), 99, 4) == []


def test_strided_windows_score_each_token_once() -> None:
    for stride in (1, 2, 3, 4):
        windows = strided_windows(tuple(range(11)), 99, 4, stride)
        assert [one for window in windows for one in window.ids] == list(range(11))
        assert all(len(window.context) + len(window.ids) <= 5 and window.context for window in windows)
        later = windows[1:]
        assert all(len(window.context) >= max(1, 4 - stride - 1) for window in later)
    assert strided_windows((99, 1, 2), 99, 4, 2)[0] == Continuation((99,), (1, 2))
    with pytest.raises(ConfigError, match="leaves tokens out"):
        strided_windows((1, 2), 99, 4, 5)


def test_perplexity(model: llm.LanguageModel) -> None:
    assert model.tokenizer is not None
    text = "the quick brown fox 你好 jumps over\nthe lazy dog"
    ids = encode_text(model.tokenizer, text)
    scorer = Scorer(model.model)
    eos = model.tokenizer.eos_id
    assert eos is not None
    expected = logs_of(model, (eos, *ids)).sum()
    found = measure_perplexity(scorer, model.tokenizer, [text]).to_dict()
    assert found["log_likelihood"] == pytest.approx(expected, rel=1e-5)
    assert found["nats"] == pytest.approx(-expected / len(ids), rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(-expected / len(ids)), rel=1e-4)
    size = len(text.encode())
    assert found["bits_per_byte"] == pytest.approx(-expected / size / math.log(2), rel=1e-5)
    assert (found["tokens"], found["bytes"], found["words"]) == (len(ids), size, 10)
    short = Scorer(model.model, max_length=6)
    tight = measure_perplexity(short, model.tokenizer, [text], "strided", 1)
    assert tight.tokens == len(ids) and tight.log_likelihood != pytest.approx(expected, rel=1e-6)


def test_a_space_at_the_end_of_a_context_belongs_to_the_choice(model: llm.LanguageModel) -> None:
    assert model.tokenizer is not None
    assert encode_pair(model.tokenizer, "the ", "fox") == encode_pair(model.tokenizer, "the", " fox")
    empty = encode_pair(model.tokenizer, "", "fox")
    assert empty.context == (model.tokenizer.eos_id,)
    assert encode_pair(model.tokenizer, "  ", "fox").ids == encode_text(model.tokenizer, "  fox")


def test_choices(model: llm.LanguageModel) -> None:
    assert model.tokenizer is not None
    scorer = Scorer(model.model)
    question = Question("the quick", (" brown fox", " dog", " 你好你好"), (0,))
    (logs,) = choose(scorer, model.tokenizer, [question])
    for log, choice in zip(logs, question.choices):
        assert log == pytest.approx(model.score(choice, question.context).log_likelihood, abs=1e-4)
    counts = np.array([[1, 1, 1], [10, 4, 5], [10, 4, 13]])  # whole, by characters, by bytes
    best = [int(np.argmax(logs / row)) for row in counts]
    rows = [Question(question.context, question.choices, (one,)) for one in range(3)]
    found = measure_choices(scorer, model.tokenizer, rows)
    assert (found.acc, found.acc_norm, found.acc_bytes) == pytest.approx((1 / 3,) * 3) and len(best) == 3
    for place, name in enumerate(("acc", "acc_norm", "acc_bytes")):
        right = measure_choices(scorer, model.tokenizer, [rows[best[place]]])
        assert getattr(right, name) == 1.0
    for wrong in (
        {},
        {"context": "a", "choices": [], "answer": 0},
        {"context": "a", "choices": ["b"], "answer": 1},
    ):
        with pytest.raises(InputError, match="index of the right one"):
            Question.from_dict(wrong, "a.jsonl")
    with pytest.raises(InputError, match="no question"):
        measure_choices(scorer, model.tokenizer, [])


def test_written_answers(model: llm.LanguageModel) -> None:
    assert model.tokenizer is not None
    engine = Engine(model.model, model.tokenizer, 2, 64)
    try:
        (text,) = write_until(engine, model.tokenizer, ["the quick"], [()], [6])
        tasks = [WritingTask("the quick", answers, (), 6) for answers in ((text,), ("no", "such"))]
        assert len(text.strip()) > 2
        assert measure_writing(engine, model.tokenizer, tasks) == {
            "exact_match": 0.5,
            "contains": 0.5,
            "tasks": 2.0,
        }
        stop = text[1:3]
        assert write_until(engine, model.tokenizer, ["the quick"], [(stop,)], [6]) == [text.split(stop)[0]]
        with pytest.raises(InputError, match="no room"):
            write_until(engine, model.tokenizer, ["a"], [()], [64])
    finally:
        engine.close()
    with pytest.raises(InputError, match="a prompt and an answer"):
        WritingTask.from_dict({"prompt": "a"}, "b.jsonl")


def test_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("the quick brown fox\r\njumps", encoding="utf-8", newline="")
    (tmp_path / "q.jsonl").write_text('{"context": "the", "choices": [" fox", " dog"], "answer": [0, 1]}\n\n')
    (tmp_path / "w.jsonl").write_text(
        '{"prompt": "the", "answer": "fox", "until": "\\n", "max_new_tokens": 3}\n'
    )
    arguments = [str(folder), "--perplexity", str(tmp_path / "a.txt"), "--choices", str(tmp_path / "q.jsonl")]
    output = tmp_path / "out.json"
    assert main([*arguments, "--writing", str(tmp_path / "w.jsonl"), "--output", str(output)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(output.read_text())
    assert found["choices"] == {"acc": 1.0, "acc_norm": 1.0, "acc_bytes": 1.0, "questions": 1}
    assert found["perplexity"][str(tmp_path / "a.txt")]["bytes"] == 26 and found["writing"]["tasks"] == 1
    assert main([str(folder)]) == 2 and "nothing to measure" in capsys.readouterr().err
    (tmp_path / "q.jsonl").write_text("[1]")
    assert main([*arguments]) == 2 and "q.jsonl" in capsys.readouterr().err


def test_lm_eval(folder: Path, model: llm.LanguageModel) -> None:
    pytest.importorskip("lm_eval")
    from lm_eval.api.instance import Instance

    from nlp.evaluation.lm_eval import OarModel

    theirs = OarModel(str(folder), batch_size=2)

    def ask(kind: str, *rows: tuple) -> list:
        requests = [Instance(kind, {}, row, number) for number, row in enumerate(rows)]  # type: ignore[arg-type]
        return getattr(theirs, kind)(requests)

    ((log, greedy),) = ask("loglikelihood", ("the quick", " fox"))
    assert log == pytest.approx(model.score(" fox", "the quick").log_likelihood) and not greedy
    (total,) = ask("loglikelihood_rolling", ("the quick brown fox",))
    assert total == pytest.approx(model.score("the quick brown fox").log_likelihood, rel=1e-5)
    texts = ask("generate_until", ("the", {"until": [" "], "max_gen_toks": 4}), ("a", {"max_gen_toks": 2}))
    assert len(texts) == 2 and " " not in texts[0]
