"""Parity with the pipelines of transformers on folders as users have them: labels, entities, scores.

The references are written by `tools.golden text_folders`; the folders are made anew here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nlp import predictor
from nlp.pretrained_artifact import export_folder
from nlp.results import Tagged, TextLabels
from tools.golden.text_folders import CASES, write_folder

STORED = json.loads((Path(__file__).parent / "data" / "text_folders.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_answers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    case, stored = CASES[name], STORED[name]
    folder = write_folder(tmp_path / name, case, {key: tuple(size) for key, size in stored["shapes"].items()})
    ask = predictor(folder, device="cpu", precision="float32")
    assert predictor(folder, device="cpu").model.engine is not None  # the kept one is read
    results: list[Any] = ask(list(case.texts))
    for text, result, expected in zip(case.texts, results, stored["answers"], strict=True):
        if isinstance(result, TextLabels):
            if not "".join(text).strip():  # the reference names a class of nothing
                expected = []
            found = [[label.label, label.score] for label in result.classes]
        else:
            assert isinstance(result, Tagged)
            found = [
                [span.label, span.start, span.end, span.score] for span in result.spans if span.label != "O"
            ]
        assert [row[:-1] for row in found] == [row[:-1] for row in expected], text
        assert [row[-1] for row in found] == pytest.approx([row[-1] for row in expected], abs=1e-4), text


def test_the_goldens_say_something() -> None:
    scores = [row[-1] for case in STORED.values() for answer in case["answers"] for row in answer]
    assert sum(0.05 < score < 0.95 for score in scores) > len(scores) / 2
    assert {row[0] for answer in STORED["bert_entities"]["answers"] for row in answer} == {"PER", "LOC"}
    assert STORED.keys() == CASES.keys()


def test_an_artifact_of_a_folder(tmp_path: Path) -> None:
    case, stored = CASES["bert_classes"], STORED["bert_classes"]
    folder = write_folder(tmp_path / "in", case, {key: tuple(size) for key, size in stored["shapes"].items()})
    artifact = export_folder(folder)
    assert artifact.config["buckets"] == [16] and artifact.config["labels"] == list(case.labels)
    artifact.save(tmp_path / "out")
    result = predictor(tmp_path / "out", device="cpu", precision="float32")(case.texts[0])
    assert result.label == stored["answers"][0][0][0]
