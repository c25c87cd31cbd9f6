"""Transforms of labelled pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from framework.text.xlm_roberta import FILE, XLMRobertaTokenizer
from framework.vision.sample import Sample
from ocr.data.transforms.forms import PerturbTexts, TokenizeForm
from ocr.fields.forms import FormSample

TEXTS = ("Total 9.50", "Cash 10.00", "Corner Shop", "Name", "Ann")


def sample(**values: Any) -> FormSample:
    boxes = np.array([[0, 20 * n, 80, 20 * n + 10] for n in range(5)], np.float32)
    kept = {
        "boxes": boxes,
        "labels": np.array([1, 0, 3, 0, 0]),
        "text": TEXTS,
        "valid": np.ones(5, bool),
        "links": np.array([[3, 4]], np.int32),
        "id": "page",
    }
    return FormSample(np.full((120, 100, 3), 255, np.uint8), **{**kept, **values})


def test_labels_stay_with_their_texts() -> None:
    many = PerturbTexts(misread=0.0, join=0.0, drop=1.0, add=0, shift=0.2)
    out = many(sample(), np.random.default_rng(0))
    # Lines without a label go, but those that are linked.
    assert out.text == ("Total 9.50", "Corner Shop", "Name", "Ann")
    assert out.labels is not None and out.labels.tolist() == [1, 3, 0, 0]
    assert isinstance(out, FormSample) and out.links is not None and out.links.tolist() == [[2, 3]]
    before = sample().boxes
    assert out.boxes is not None and before is not None
    assert np.abs(out.boxes - before[[0, 2, 3, 4]]).max() <= 2.0 + 1e-3
    assert (out.boxes >= 0).all() and (out.boxes[:, 2:] > out.boxes[:, :2]).all()


def test_characters_become_what_looks_alike() -> None:
    out = PerturbTexts(misread=1.0, join=1.0, drop=0.0, add=0, shift=0.0)(sample(), np.random.default_rng(1))
    assert isinstance(out.text, tuple) and out.text != TEXTS and " " not in "".join(out.text)
    assert all(text for text in out.text) and len(out.text) == 5
    same = PerturbTexts(misread=0.0, join=0.0, drop=0.0, add=0, shift=0.0)(sample(), np.random.default_rng(1))
    assert same.text == TEXTS and np.array_equal(same.boxes, sample().boxes)  # type: ignore[arg-type]


def test_added_numbers_stand_in_empty_places() -> None:
    found = 0
    for seed in range(60):
        out = PerturbTexts(0.0, 0.0, 0.0, 4, 0.0)(sample(), np.random.default_rng(seed))
        assert isinstance(out.text, tuple) and out.boxes is not None and out.labels is not None
        for text, box, label in list(zip(out.text, out.boxes, out.labels))[5:]:
            found += 1
            assert text.isdecimal() and label == 0
            low, high = np.maximum(out.boxes[:5, :2], box[:2]), np.minimum(out.boxes[:5, 2:], box[2:])
            assert not (high > low).all(axis=1).any()
    assert found > 3


def test_equal_generators_give_equal_pages_and_nothing_is_changed_in_place() -> None:
    one, before = sample(), sample()
    results = [PerturbTexts()(one, np.random.default_rng(5)) for _ in range(2)]
    assert results[0].text == results[1].text and np.array_equal(results[0].boxes, results[1].boxes)  # type: ignore[arg-type]
    assert one.text == before.text and np.array_equal(one.boxes, before.boxes)  # type: ignore[arg-type]
    assert {PerturbTexts(0.2)(one, np.random.default_rng(seed)).text for seed in range(4)} != {one.text}


def test_pages_without_lines_stay() -> None:
    empty = sample(
        boxes=np.zeros((0, 4), np.float32), labels=np.zeros(0, int), text=(), valid=np.zeros(0, bool)
    )
    empty = empty.replace(links=None)
    assert PerturbTexts()(empty, np.random.default_rng(0)).text == ()
    plain = Sample(np.zeros((4, 4, 3), np.uint8))
    assert PerturbTexts()(plain, np.random.default_rng(0)) is plain


@pytest.mark.parametrize("wrong", [{"misread": 1.5}, {"drop": -0.1}, {"add": -1}])
def test_shares_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="these are no shares"):
        PerturbTexts(**wrong)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small SentencePiece model."""
    library = pytest.importorskip("sentencepiece")
    folder = tmp_path_factory.mktemp("layoutxlm")
    lines = [*TEXTS, "Total Cash Shop Name Ann 0 1 2 3 4 5 6 7 8 9 . ,"] * 20
    with (folder / FILE).open("wb") as file:
        library.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=file, vocab_size=36, minloglevel=2
        )
    return folder


def test_numbers_are_fairseqs(tokenizer: Path) -> None:
    found = XLMRobertaTokenizer.from_file(tokenizer)
    assert found.vocab_size == 38 and XLMRobertaTokenizer.from_file(tokenizer / FILE) is found
    pieces = found.core.EncodeAsPieces("Total 9")
    # One more than the model's numbers, whose first three are <unk>, <s>, </s>.
    assert found.encode("Total 9") == [found.core.PieceToId(piece) + 1 for piece in pieces]
    assert 3 in found.encode("世") and found.encode(" ") == []


def test_lines_are_divided_in_the_order_of_tb_yx(tokenizer: Path) -> None:
    transform = TokenizeForm(str(tokenizer))
    boxes = np.array(
        [[0, 50, 9, 60], [0, 0, 9, 9], [0, 30, 9, 40], [0, 10, 9, 20], [0, 90, 9, 99]], np.float32
    )
    out: Any = transform(sample(boxes=boxes), np.random.default_rng(0))
    assert out.token_segments is not None and out.token_ids is not None
    assert list(dict.fromkeys(out.token_segments.tolist())) == [1, 3, 2, 0, 4]
    plain: Any = TokenizeForm(str(tokenizer), order=None)(sample(boxes=boxes), np.random.default_rng(0))
    assert plain.token_segments is not None and (np.diff(plain.token_segments) >= 0).all()
    encode = XLMRobertaTokenizer.from_file(tokenizer).encode
    assert plain.token_ids is not None and plain.token_ids.tolist() == [
        i for text in TEXTS for i in encode(text)
    ]
    short: Any = TokenizeForm(str(tokenizer), max_seq_len=3)(sample(), np.random.default_rng(0))
    assert short.token_ids is not None and len(short.token_ids) == 3


def test_an_artifact_carries_the_tokenizer(tokenizer: Path) -> None:
    kept, files = TokenizeForm(str(tokenizer)).pack_assets()
    again = kept.load_assets(files)
    assert again.source().encode("Total") == XLMRobertaTokenizer.from_file(tokenizer).encode("Total")
    with pytest.raises(FormatError, match="lacks its tokenizer"):
        kept.load_assets({})


def test_what_is_said_of_a_tokenizer_that_is_not_there(tokenizer: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the tokenizer is missing"):
        TokenizeForm(str(tmp_path))(sample(), np.random.default_rng(0))
    (tmp_path / FILE).write_bytes(b"no model")
    with pytest.raises(FormatError, match="not a SentencePiece model"):
        TokenizeForm(str(tmp_path))(sample(), np.random.default_rng(0))
    with pytest.raises(ConfigError, match="this is no length"):
        TokenizeForm(str(tokenizer), max_seq_len=0)
    with pytest.raises(InputError, match="a page has no lines"):
        TokenizeForm(str(tokenizer))(Sample(np.zeros((4, 4, 3), np.uint8)), np.random.default_rng(0))
