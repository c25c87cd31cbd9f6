"""Tokenizers against those of transformers (BERT, RoBERTa, ALBERT) and of PaddleNLP (ERNIE): every id is equal.

`tools.golden tokenizers` wrote the vocabularies and the expected ids.
"""

from __future__ import annotations

import hashlib
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from framework.text.tokenizer import Tokenizer

pytest.importorskip("tokenizers")
pytest.importorskip("sentencepiece")
DATA = Path(__file__).parent / "data" / "tokenizers"
SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
EXPECTED: dict[str, Any] = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
CASES = {
    "bert": ("bert", {}),
    "bert_cased": ("bert", {"do_lower_case": False}),
    "ernie": ("bert", {"tokenizer_class": "ErnieTokenizer"}),
    "roberta": ("roberta", {}),
    "albert": ("albert", {}),
    "albert_bpe": ("albert_bpe", {}),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Tokenizer, dict[str, Any]]:
    folder, settings = CASES[request.param]
    # Through JSON, as an artifact carries it.
    tokenizer = Tokenizer.from_json(Tokenizer.from_file(DATA / folder, settings).to_json())
    return tokenizer, EXPECTED[request.param]


def test_texts(case: tuple[Tokenizer, dict[str, Any]]) -> None:
    tokenizer, expected = case
    for text, ids in zip(EXPECTED["texts"], expected["ids"], strict=True):
        assert tokenizer.encode(text).ids.tolist() == ids, text


def test_pairs_that_are_cut(case: tuple[Tokenizer, dict[str, Any]]) -> None:
    tokenizer, expected = case
    texts = EXPECTED["texts"]
    for (first, second), (ids, types) in zip(list(pairwise(texts))[::5], expected["pairs"], strict=True):
        found = tokenizer.encode(first, second, max_length=24)
        assert found.ids.tolist() == ids
        assert found.type_ids.tolist() == types


def test_ten_thousand_real_lines(case: tuple[Tokenizer, dict[str, Any]]) -> None:
    if not (SHARED / "lm_text").is_dir():
        pytest.skip(f"needs the texts in {SHARED}")
    lines = read("lm_text/wikitext2.test_a.txt") + read("lm_text/wikitext2.valid.txt")
    lines = lines[:3500] + read("multi30k_en_de/train.de")[:2500] + read("chnsenticorp/train.tsv")[:4000]
    assert len(lines) == 10_000
    tokenizer, expected = case
    ids = [tokenizer.encode(line).ids.tolist() for line in lines]
    assert sum(map(len, ids)) == expected["real_tokens"]
    assert hashlib.sha256(json.dumps(ids).encode()).hexdigest() == expected["real"]


def read(name: str) -> list[str]:
    return [line for line in (SHARED / name).read_text(encoding="utf-8").split("\n") if line.strip()]


def test_offsets_lead_to_the_text_of_each_token() -> None:
    for folder, settings in CASES.values():
        tokenizer = Tokenizer.from_file(DATA / folder, settings)
        for text in EXPECTED["texts"][14:]:
            found = tokenizer.encode(text)
            for one, (start, end), special in zip(found.ids, found.offsets, found.special):
                token = (tokenizer.token_of(one) or "").removeprefix("##").lstrip("▁Ġ")
                piece = text[start:end]
                if special or not piece.isascii() or one == tokenizer.unk_id or not token:
                    continue
                assert piece.lower() == token.lower(), (folder, text, start, end)
