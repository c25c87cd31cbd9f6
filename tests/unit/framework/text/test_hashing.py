from __future__ import annotations

import zlib

import numpy as np
import pytest

from framework.core.errors import ConfigError
from framework.text.hashing import HashFeatures, character_features, shape, word_features
from framework.text.sample import TextSample

RNG = np.random.default_rng(0)


def test_features_of_words() -> None:
    first, last = word_features(("The", "end"))
    assert first == [
        "w the", "p t", "p th", "p the", "s e", "s he", "s the", "s the", "k Xxx", "n the end",
    ]  # fmt: skip
    assert last[-1] == "n end "


def test_features_of_characters() -> None:
    first, last = character_features(("天", "1"))
    pairs = ["0 ", "1 ", "2 1", "3 ", "4 ", "5 天", "6 天1", "7 1", "8 1"]
    assert first == ["c 天", "k  Lo Nd", *pairs, "t 天1"]
    assert last[:3] == ["c 1", "k Lo Nd ", "0 "] and last[3] == "1 天" and last[-1] == "t 天1"


@pytest.mark.parametrize(
    ("word", "kind"), [("McKay-23", "XxXxx-99"), ("USA", "XX"), ("a", "x"), ("", ""), ("10,000", "99,99")]
)
def test_shapes(word: str, kind: str) -> None:
    assert shape(word) == kind


def test_numbers_are_the_same_everywhere() -> None:
    sample = HashFeatures(buckets=100)(TextSample("Go on"), RNG)
    assert sample.ids is not None and sample.ids.shape == (2, 10) and sample.ids.min() >= 1
    assert sample.ids[0, 0] == zlib.crc32(b"w go") % 99 + 1
    assert sample.words == ("Go", "on") and sample.offsets is not None
    assert sample.offsets.tolist() == [[0, 2], [3, 5]]
    again = HashFeatures(buckets=100)(TextSample("Go  on", words=("Go", "on")), RNG)
    assert np.array_equal(again.ids, sample.ids) and again.offsets.tolist() == [[0, 2], [4, 6]]  # type: ignore[union-attr]


def test_what_is_too_long_is_cut_and_nothing_is_nothing() -> None:
    cut = HashFeatures(unit="characters", max_length=3)(TextSample("一二三四五"), RNG)
    assert cut.ids.shape == (3, 12) and len(cut.offsets) == 3 and len(cut.words) == 5  # type: ignore[union-attr,arg-type]
    assert HashFeatures()(TextSample(""), RNG).ids.shape == (0, 10)  # type: ignore[union-attr]
    lone = HashFeatures(unit="characters")(
        TextSample("\ud800"), RNG
    )  # half of a pair, as broken files give it
    assert lone.ids.shape == (1, 12)  # type: ignore[union-attr]


def test_errors() -> None:
    with pytest.raises(ConfigError, match=r"(?s)nothing can be hashed.*buckets 1"):
        HashFeatures(buckets=1)
