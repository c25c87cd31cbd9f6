"""A question and the windows of a text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from framework.text.question_windows import QuestionWindows
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer

TEXT = "a b c d e f g h i j"


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("windows") / "tokenizer.json"
    return str(Tokenizer.train("words", [TEXT + " who is ?"], 30).save(path))


def words(sample: TextSample) -> list[str]:
    assert sample.offsets is not None and sample.word_ids is not None
    return [sample.text[start:end] for start, end in sample.offsets[sample.word_ids >= 0]]


@pytest.mark.parametrize(
    ("length", "stride", "found"),
    [
        (10, 2, ["abcd", "cdef", "efgh", "ghij"]),
        (10, 3, ["abcd", "defg", "ghij"]),
        (10, 9, ["abcd", "efgh", "ij"]),  # a window begins where the last one ended at the latest
        (16, 2, ["abcdefghij"]),
        (99, 1, ["abcdefghij"]),
    ],
)
def test_windows_overlap(vocabulary: str, length: int, stride: int, found: list[str]) -> None:
    sample = TextSample(TEXT, pair="who is?", answers=((0, 1),), id=3)
    windows = QuestionWindows(vocabulary, length, stride).split_windows(sample)
    tokenizer = Tokenizer.from_file(vocabulary)
    assert ["".join(words(window)) for window in windows] == found
    for window, text in zip(windows, found):
        whole = tokenizer.encode("who is?", " ".join(text))
        assert window.ids is not None and window.type_ids is not None and window.word_ids is not None
        assert window.ids.tolist() == whole.ids.tolist()
        assert window.type_ids.tolist() == whole.type_ids.tolist()
        assert window.answers == ((0, 1),) and window.id == 3 and len(window.ids) <= length
        own = window.word_ids[window.word_ids >= 0]
        assert own.tolist() == [TEXT.replace(" ", "").index(letter) for letter in text]


def test_long_questions_and_empty_texts(vocabulary: str) -> None:
    windows = QuestionWindows(vocabulary, 12, 4, question_length=2)
    (row,) = windows.split_windows(TextSample("", pair="who is who is who?"))
    assert row.ids is not None and len(row.ids) == 5 and words(row) == []
    first = windows(TextSample(TEXT, pair="who?"), np.random.default_rng(0))
    assert "".join(words(first)) == "abcdefg"


def test_an_artifact_carries_the_vocabulary(vocabulary: str, tmp_path: Path) -> None:
    windows = QuestionWindows(vocabulary, 10, 2)
    kept, files = windows.pack_assets()
    assert kept.tokenizer in files and vocabulary not in repr(kept)
    sample = TextSample(TEXT, pair="who?")
    for ours, theirs in zip(
        windows.split_windows(sample), kept.load_assets(files).split_windows(sample), strict=True
    ):
        assert np.array_equal(ours.ids, theirs.ids)  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="lacks its tokenizer"):
        kept.load_assets({})


def test_errors(vocabulary: str) -> None:
    with pytest.raises(ConfigError, match="the lengths of the windows do not fit"):
        QuestionWindows(vocabulary, doc_stride=0)
    with pytest.raises(InputError, match="the text has no question"):
        QuestionWindows(vocabulary).split_windows(TextSample("a"))
    with pytest.raises(ConfigError, match=r"(?s)no room for a window.*6 or more"):
        QuestionWindows(vocabulary, 5, 2).split_windows(TextSample("a", pair="who is"))
