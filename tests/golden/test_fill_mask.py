"""Gaps filled as transformers' FillMaskPipeline fills them. The reference is written by tools/golden/fill_mask.py."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framework.interop import write_safetensors
from nlp import predictor
from tools.golden.text_encoders_cases import CASES, drawn

pytest.importorskip("tokenizers")
DATA = Path(__file__).parent / "data"
CONFIG = """
domain: nlp
model:
  type: MaskedLM
  encoder:
    {{type: Bert, vocab_size: {vocab_size}, hidden_size: 48, num_layers: 3, num_heads: 4, intermediate_size: 96,
     max_positions: 40, pooler: false}}
task: {{type: MaskedLanguageModelling, max_positions: 4}}
weights: {weights}
predict: {{transforms: [{{type: Tokenize, tokenizer: {tokenizer}, max_length: 40}}], buckets: [8, 40]}}
export:
  inputs:
    input_ids: {{shape: [n, t], dtype: int32}}
    mask: {{shape: [n, t], dtype: bool}}
    positions: {{shape: [n, k], dtype: int32}}
  precisions: [float32]
"""


def config(folder: Path, expected: dict[str, Any]) -> Path:
    """A config of the folder's weights."""
    text = CONFIG.format(
        vocab_size=expected["vocab_size"],
        weights=(folder / "model.safetensors").as_posix(),
        tokenizer=(DATA / "tokenizers" / "bert").as_posix(),
    )
    (folder / "fill.yml").write_text(text, encoding="utf-8")
    return folder / "fill.yml"


def folder(folder: Path, expected: dict[str, Any]) -> Path:
    """The folder as transformers saves it."""
    settings = {"model_type": "bert", "architectures": ["BertForMaskedLM"], **CASES["bert_small"].settings}
    settings["vocab_size"] = expected["vocab_size"]
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    shutil.copy(DATA / "tokenizers" / "bert" / "vocab.txt", folder)
    return folder


@pytest.mark.parametrize("source", [config, folder])
def test_gaps(source: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    expected: dict[str, Any] = json.loads((DATA / "fill_mask.json").read_text(encoding="utf-8"))
    shapes = {name: tuple(shape) for name, shape in expected["shapes"].items()}
    (tmp_path / "model").mkdir()
    write_safetensors(tmp_path / "model" / "model.safetensors", drawn(CASES["bert_small"], shapes))
    fill = predictor(source(tmp_path / "model", expected), device="cpu", precision="float32")
    for text, result in zip(expected["texts"], fill(list(expected["texts"]))):
        gaps = expected["texts"][text]
        assert result.text == text and len(result.masks) == len(gaps)
        for mask, gap in zip(result.masks, gaps):
            assert text[mask.start : mask.end] == "[MASK]"
            assert [one.token_id for one in mask.candidates] == [row[0] for row in gap]
            assert [one.token for one in mask.candidates] == [row[1] for row in gap]
            assert [one.score for one in mask.candidates] == pytest.approx([row[2] for row in gap], abs=1e-5)
            if len(gaps) == 1:  # of several gaps transformers shows the tokens, with [CLS] and [SEP]
                sequences = [
                    one.sequence for one in mask.candidates if len(text) > 6 or one.token[:2] != "##"
                ]
                assert sequences == [row[3] for row in gap if len(text) > 6 or row[1][:2] != "##"]
