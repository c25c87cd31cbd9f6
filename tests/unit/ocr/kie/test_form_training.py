"""SER and RE from upstream's configs, in small settings, on forms that are made up: training, scores, the artifact."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import InputError
from framework.text.xlm_roberta import FILE
from framework.vision import image
from framework.workflow import train

CONFIGS = Path(__file__).resolve().parents[4] / "configs" / "ocr" / "kie" / "vi_layoutxlm"
SMALL = (
    "model.vocab_size=40",
    "model.hidden_size=48",
    "model.num_layers=2",
    "model.num_heads=4",
    "model.intermediate_size=96",
    "model.dropout=0.0",
    "pretrained=null",
    "train.log_every=1000",
    "train.eval_every=1000",
    "optim.learning_rate=0.003",
)
KEYS = ("Name", "Age", "Town")
VALUES = ("Ann", "Bob", "Cid", "Dan", "Eve", "Fay")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forms of a title and three pairs each, and a tokenizer of their letters."""
    library = pytest.importorskip("sentencepiece")
    root = tmp_path_factory.mktemp("xfund")
    (root / "layoutxlm").mkdir()
    lines = [" ".join((*KEYS, *VALUES, "Form"))] * 30
    with (root / "layoutxlm" / FILE).open("wb") as file:
        library.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=file, vocab_size=26, minloglevel=2
        )
    rng = np.random.default_rng(0)
    for split in ("train", "val"):
        pages = []
        for number in range(8):
            image.write(root / split / f"{number}.png", np.full((100, 200, 3), 255, np.uint8))
            pages.append(f"{number}.png\t{json.dumps(form(rng))}\n")
        (root / f"{split}.json").write_text("".join(pages), encoding="utf-8")
    return root


def form(rng: np.random.Generator) -> list[dict[str, object]]:
    found = [line("Form", (80, 0), "header", 0, [])]
    for row, key in enumerate(KEYS):
        link = [[2 * row + 1, 2 * row + 2]]
        value = VALUES[int(rng.integers(len(VALUES)))]
        found.append(line(key, (10, 30 * row + 25), "question", 2 * row + 1, link))
        found.append(line(value, (110, 30 * row + 25), "answer", 2 * row + 2, link))
    return found


def line(
    text: str, at: tuple[int, int], label: str, number: int, links: list[list[int]]
) -> dict[str, object]:
    (x, y), width = at, 10 * len(text)
    points = [[x, y], [x + width, y], [x + width, y + 12], [x, y + 12]]
    return {"transcription": text, "points": points, "label": label, "id": number, "linking": links}


def settings(folder: Path, *own: str) -> tuple[str, ...]:
    tokens = f"[{{type: TokenizeForm, tokenizer: {(folder / 'layoutxlm').as_posix()}}}]"
    data = [
        f"data.{part}.{key}"
        for part, split in (("train", "train"), ("eval", "val"))
        for key in (
            f"dataset.root={(folder / split).as_posix()}",
            f"dataset.labels=[../{split}.json]",
            f"transforms={tokens}",
            "num_workers=0",
            "batch_size=4",
        )
    ]
    return (*SMALL, *data, "task.max_seq_len=64", *own)


def test_ser_learns_the_kinds_of_lines(folder: Path, tmp_path: Path) -> None:
    config = CONFIGS / "ser_vi_layoutxlm_xfund_zh.yml"
    scores = train.train(config, settings(folder, "train.epochs=16"), output_dir=tmp_path)
    assert scores["hmean"] > 0.95, scores


@pytest.mark.slow
def test_re_learns_which_key_a_value_has(folder: Path, tmp_path: Path) -> None:
    config = CONFIGS / "re_vi_layoutxlm_xfund_zh.yml"
    own = ("train.epochs=60", "task.max_entities=8", "optim.learning_rate=0.002", "model.hidden_size=192")
    scores = train.train(config, settings(folder, *own), output_dir=tmp_path)
    assert scores["hmean"] > 0.9, scores


def test_a_missing_tokenizer_is_named(folder: Path, tmp_path: Path) -> None:
    config = CONFIGS / "ser_vi_layoutxlm_xfund_zh.yml"
    where = tmp_path.as_posix()
    wrong = [
        f"data.{part}.transforms=[{{type: TokenizeForm, tokenizer: {where}}}]" for part in ("train", "eval")
    ]
    with pytest.raises(InputError, match="the tokenizer is missing"):
        train.train(config, (*settings(folder, "train.epochs=1"), *wrong), output_dir=tmp_path / "run")
