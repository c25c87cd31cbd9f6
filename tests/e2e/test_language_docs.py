"""The commands and programs of docs/llm_training.md and docs/llm_evaluation.md, on tiny models of the names there."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from nlp.data.__main__ import main as data_main
from nlp.data.token_files import read_token_file
from nlp.evaluation.__main__ import main as evaluation_main
from tests.unit.nlp.test_embedder_folders import add_modules, make_bert, make_reranker
from tests.unit.nlp.tiny_decoder import write_folder

pytest.importorskip("jinja2")
REPO = Path(__file__).resolve().parents[2]


def blocks(document: str) -> list[tuple[str, str]]:
    text = (REPO / "docs" / document).read_text(encoding="utf-8")
    return re.findall(r"^```(console|py)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(document: str) -> list[list[str]]:
    texts = [text for language, text in blocks(document) if language == "console"]
    return [shlex.split(line) for text in texts for line in text.splitlines()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_questions(folder: Path) -> None:
    (folder / "book.txt").write_text("The quick brown fox jumps over the lazy dog.\n" * 20, encoding="utf-8")
    rows = {
        "questions.jsonl": {"context": "The fox is", "choices": [" quick", " lazy"], "answer": 0},
        "tasks.jsonl": {"prompt": "the quick", "answer": " brown", "until": ["\n"], "max_new_tokens": 4},
    }
    for name, row in rows.items():
        (folder / name).write_text(f"{json.dumps(row)}\n" * 3, encoding="utf-8")


def test_tokens_are_written(folder: Path) -> None:
    write_folder(folder / "models/llama-3-8b")
    (folder / "corpus").mkdir()
    (folder / "corpus/one.txt").write_text("hello world " * 9, encoding="utf-8")
    ((python, _, module, *arguments),) = commands("llm_training.md")
    assert (python, module) == ("python", "nlp.data")
    Path("data").mkdir()
    assert data_main(arguments) == 0
    assert len(read_token_file("data/corpus")) == 1


def test_models_are_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_folder(folder / "models/qwen3-0.6b")
    write_questions(folder)
    measuring, installing, harness = commands("llm_evaluation.md")
    assert measuring[:3] == ["python", "-m", "nlp.evaluation"]
    assert evaluation_main(measuring[3:]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["perplexity"]["book.txt"]["bits_per_byte"] > 0
    assert 0 <= scores["choices"]["acc"] <= 1 and 0 <= scores["writing"]["exact_match"] <= 1
    # The harness fetches its tasks, and so runs elsewhere (tests/unit/nlp/evaluation); here its arguments are read.
    assert installing[:2] == ["pip", "install"] and harness[:3] == ["python", "-m", "nlp.evaluation.lm_eval"]
    if importlib.util.find_spec("lm_eval") is None:
        with pytest.raises(ImportError, match="lm-eval"):
            runpy.run_module(harness[2], run_name="__main__")


def test_programs(folder: Path) -> None:
    write_folder(folder / "models/qwen3-0.6b")
    make_bert(folder / "models/multilingual-e5-small")
    prompts = {"prompts": {"query": "query: ", "passage": ""}}
    add_modules(folder / "models/multilingual-e5-small", {"pooling_mode": "mean"}, "Normalize", **prompts)
    make_reranker(folder / "models/bge-reranker-base")
    programs = [text for language, text in blocks("llm_evaluation.md") if language == "py"]
    assert len(programs) == 2
    names: dict[str, Any] = {}
    for number, text in enumerate(programs):
        file = folder / f"program_{number}.py"
        file.write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(sys.stderr):
            names = runpy.run_path(str(file))
    assert names["vectors"].shape == (1, 8) and len(names["index"].texts) == 3
