"""Shipped taggers on data with one class fewer and one more than they know: a score, and one line about the classes."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path

import pytest

from framework.workflow.train.run import evaluate

CONFIGS = Path(__file__).resolve().parents[3] / "configs" / "nlp" / "tagging"


def sentences(path: Path, without: str, count: int) -> list[str]:
    """The first sentences of a CoNLL-U file in which no word has this tag."""
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    return list(
        itertools.islice((block for block in blocks if block and f"\t{without}\t" not in block), count)
    )


def score(
    config: str, path: Path, caplog: pytest.LogCaptureFixture, *more: str
) -> tuple[dict[str, float], list[str]]:
    caplog.clear()
    with caplog.at_level(logging.INFO, "oar"):
        scores = evaluate(CONFIGS / config, (f"data.eval.dataset.path={path}", *more))
    return scores, [record.message for record in caplog.records if record.message.startswith("classes ")]


def test_parts_of_speech(shared: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fewer = sentences(shared / "data" / "ud_en_ewt" / "test.conllu", "X", 30)
    path = tmp_path / "fewer.conllu"
    path.write_text("\n\n".join(fewer) + "\n\n", encoding="utf-8")
    before, lines = score("bigru_crf_pos_en.yml", path, caplog)
    assert before["accuracy"] > 0.85 and len(lines) == 1
    assert (
        "known to the model, but not in the data" in lines[0]
        and "X" in lines[0]
        and "unknown" not in lines[0]
    )
    # The model cannot give the new class: what was right of the determiners is wrong, and the rest is as before.
    words = [
        line.split("\t")[3] for block in fewer for line in block.splitlines() if line.split("\t")[0].isdigit()
    ]
    path.write_text("\n\n".join(fewer).replace("\tDET\t", "\tARTICLE\t") + "\n\n", encoding="utf-8")
    after, lines = score("bigru_crf_pos_en.yml", path, caplog)
    share = words.count("DET") / len(words)
    assert before["accuracy"] - share <= after["accuracy"] <= before["accuracy"] - 0.9 * share
    assert len(lines) == 1 and "unknown to the model, each counted as an error: 1 (ARTICLE)" in lines[0]
    assert "DET" in lines[0]


def test_words(shared: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The model knows S-PART alone: a particle of two characters brings B-PART and E-PART."""
    blocks = sentences(shared / "data" / "ud_zh_gsdsimp" / "test.conllu", "X", 20)
    path = tmp_path / "more.conllu"
    path.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    before, lines = score("bigru_crf_words_zh.yml", path, caplog)
    assert before["span_f1"] > before["f1"] > 0.6 and len(lines) == 1 and "B-PART" not in lines[0]
    path.write_text("\n\n".join([*blocks, "1\t而已\t_\tPART\t_"]) + "\n\n", encoding="utf-8")
    after, lines = score("bigru_crf_words_zh.yml", path, caplog)
    assert len(lines) == 1 and "each counted as an error: 2 (B-PART, E-PART)" in lines[0]
    assert after["recall"] < before["recall"] and after["accuracy"] < before["accuracy"]
