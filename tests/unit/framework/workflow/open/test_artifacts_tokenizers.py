from __future__ import annotations

from pathlib import Path

from framework.workflow.open.artifacts import _named_files


def test_the_files_behind_tokenizers_are_found(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "vocab.txt").write_text("a", encoding="utf-8")
    (tmp_path / "de.json").write_text("{}", encoding="utf-8")
    transform = {
        "type": "Tokenize",
        "tokenizer": str(tmp_path / "en"),
        "target_tokenizer": str(tmp_path / "de.json"),
    }
    settings = {"data": {"eval": {"transforms": [transform, {"tokenizer": "{}"}, {"tokenizer": "no/such"}]}}}
    assert _named_files(settings) == [tmp_path / "en" / "vocab.txt", tmp_path / "de.json"]


def test_the_files_of_a_program_that_paddle_exported_are_found(tmp_path: Path) -> None:
    names = ("inference.json", "inference.pdiparams", "inference.yml")
    for name in (*names, "README.md"):
        (tmp_path / name).write_text("a", encoding="utf-8")
    assert _named_files({"weights": str(tmp_path)}) == [tmp_path / name for name in names]
