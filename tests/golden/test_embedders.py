"""Parity with sentence-transformers on folders as users have them: embeddings and scores of pairs.

The references are written by `tools.golden embedders`; the folders are made anew here.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nlp import predictor
from tools.golden.embedders import CASES, PATH, write_folder

STORED = json.loads(PATH.read_text(encoding="utf-8"))
EMBEDDERS = [name for name, case in CASES.items() if not case.pairs]
RERANKERS = [name for name, case in CASES.items() if case.pairs]
ARGUMENTS = {"prompt": "prompt", "prompt_name": "prompt_name", "truncate_dim": "dimensions"}


def make(name: str, folder: Path) -> Path:
    shapes = {key: tuple(size) for key, size in STORED[name]["shapes"].items()}
    return write_folder(folder / name, CASES[name], shapes)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_embeddings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    case = CASES[name]
    model = predictor(make(name, tmp_path), device="cpu", precision="float32")
    for call, answer in zip(case.calls, STORED[name]["answers"], strict=True):
        arguments = {ARGUMENTS[key]: value for key, value in call.items() if key in ARGUMENTS}
        vectors, expected = model.embed(list(case.texts), **arguments).vectors, np.asarray(answer)
        assert vectors.shape == expected.shape, call
        scale = np.linalg.norm(expected, axis=1, keepdims=True)
        assert vectors / scale == pytest.approx(expected / scale, abs=1e-5), call
        lengths = np.linalg.norm(vectors, axis=1)
        assert (vectors * expected).sum(axis=1) / lengths / scale[:, 0] == pytest.approx(1, abs=1e-5), call


@pytest.mark.parametrize("name", RERANKERS)
def test_scores(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    ranker = predictor(make(name, tmp_path), device="cpu", precision="float32")
    scores = [ranker.rerank(query, [text]).scores[0] for query, text in CASES[name].pairs]
    assert scores == pytest.approx(STORED[name]["answers"], abs=1e-5)
    query = CASES[name].pairs[0][0]
    documents = [text for _, text in CASES[name].pairs]
    together = ranker.rerank(query, documents).scores
    alone = [ranker.rerank(query, [text]).scores[0] for text in documents]
    assert together == pytest.approx(alone, abs=1e-5)


def test_the_goldens_say_something() -> None:
    assert STORED.keys() == CASES.keys()
    for name in EMBEDDERS:
        rows = np.asarray(STORED[name]["answers"][0])
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        others = (rows @ rows.T)[~np.eye(len(rows), dtype=bool)]
        assert others.max() < 0.9999 and others.min() < 0.9, name
    for name in RERANKERS:
        assert np.ptp(STORED[name]["answers"]) > 0.05, name
