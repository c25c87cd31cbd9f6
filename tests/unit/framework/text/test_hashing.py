from __future__ import annotations

import zlib

import numpy as np
import pytest

from framework.core.errors import ConfigError
from framework.text.hashing import HashFeatures, character_features, ngram_features, shape, word_features
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


def test_a_pair_and_a_negative_have_numbers_of_their_own() -> None:
    hashed = HashFeatures(unit="characters", max_length=2)
    worse = TextSample("ab", pair="d")
    found = hashed(TextSample("ab", pair="cde", negative=worse), RNG)
    assert found.ids is not None and found.pair_ids is not None and found.pair_ids.shape == (2, 12)
    alone = hashed(TextSample("cde"), RNG)
    assert np.array_equal(found.pair_ids, alone.ids)  # type: ignore[arg-type]
    assert found.negative is not None and np.array_equal(found.negative.ids, found.ids)  # type: ignore[arg-type]
    assert found.negative.pair_ids is not None and found.negative.pair_ids.shape == (1, 12)
    assert hashed(TextSample("ab"), RNG).pair_ids is None


def test_n_grams() -> None:
    assert ngram_features(("A", "b", "c"), (1, 2), "") == [["1 a", "2 ab"], ["1 b", "2 bc"], ["1 c", "2 c"]]
    assert (
        ngram_features(("Go", "on"), (3,), " ") == [["3 go on"], ["3 on"]]
        and ngram_features((), (1,), "") == []
    )
    short = HashFeatures(unit="characters", ngrams=(1, 4), max_length=2)(TextSample("abcdef"), RNG)
    whole = HashFeatures(unit="characters", ngrams=(1, 4))(TextSample("abcdef"), RNG)
    assert short.ids is not None and short.ids.shape == (2, 2)
    assert np.array_equal(short.ids, whole.ids[:2])  # type: ignore[index]
    assert HashFeatures(ngrams=(2,))(TextSample(""), RNG).ids.shape == (0, 1)  # type: ignore[union-attr]


def test_errors() -> None:
    with pytest.raises(ConfigError, match=r"(?s)nothing can be hashed.*buckets 1"):
        HashFeatures(buckets=1)
    with pytest.raises(ConfigError, match=r"(?s)nothing can be hashed.*ngrams \(1, 0\)"):
        HashFeatures(ngrams=(1, 0))
