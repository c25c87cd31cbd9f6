"""Words and characters as hashed features: what small models read. There is no vocabulary, so no word is unknown.

Paper: https://arxiv.org/abs/0902.2206 (feature hashing). The features are those of a linear tagger: the word, its ends,
its shape, its neighbours.
"""

from __future__ import annotations

import unicodedata
import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError
from framework.core.transform import Transform
from framework.text.sample import TextSample
from framework.text.words import find_words, split_characters, split_words


@register("transform")
@dataclass(frozen=True)
class HashFeatures(Transform[TextSample]):
    """Gives each word, or each character, K numbers below `buckets`, one for each of its features.

    Words: the word, in lower case, its first 1 to 3 and last 1 to 4 letters, its shape, and the pair it makes with the
    next one. Characters: the character, its kind and those of its neighbours, the two before and
    behind it, the pairs that these five make, and the three in the middle. Number 0 is kept for padding. The second
    text of a pair gets its own numbers.

    Attributes:
        ngrams: Instead of these features those of a bag: the word or character itself (1), with the one behind it (2),
            and so on.
        max_length: What comes after so many words or characters is left out.

    Raises:
        ConfigError: there are fewer than 2 buckets, no length, or an n-gram of none.
    """

    unit: Literal["words", "characters"] = "words"
    buckets: int = 16384
    max_length: int = 512
    ngrams: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.buckets < 2 or self.max_length < 1 or min(self.ngrams, default=1) < 1:
            raise ConfigError(
                "nothing can be hashed",
                where="HashFeatures",
                received=f"buckets {self.buckets}, max_length {self.max_length}, ngrams {self.ngrams}",
                allowed="buckets from 2, max_length and ngrams from 1",
            )

    def __call__(self, sample: TextSample, rng: np.random.Generator) -> TextSample:
        words = sample.words
        if words is not None:
            offsets = find_words(sample.text, words)
        else:
            words, offsets = self._split(sample.text)
        ids = self._ids(words)
        pair = None if sample.pair is None else self._split(sample.pair)[0]
        return sample.replace(
            words=words,
            ids=ids,
            offsets=offsets[: len(ids)],
            word_ids=np.arange(len(ids), dtype=np.int32),
            pair_ids=None if pair is None else self._ids(pair),
            left_out=sum(max(0, len(one) - self.max_length) for one in (words, pair or ())),
            negative=None if sample.negative is None else self(sample.negative, rng),
        )

    def _split(self, text: str) -> tuple[tuple[str, ...], np.ndarray]:
        return (split_words if self.unit == "words" else split_characters)(text)

    def _ids(self, words: tuple[str, ...]) -> np.ndarray:
        near = words[: self.max_length + max(2, *self.ngrams, 0)]  # how far features look
        rows = [[self._number(name) for name in names] for names in self._features(near)[: self.max_length]]
        return np.asarray(rows, np.int32).reshape(len(rows), len(self._features(("",))[0]))

    def _features(self, words: tuple[str, ...]) -> list[list[str]]:
        if self.ngrams:
            return ngram_features(words, self.ngrams, " " if self.unit == "words" else "")
        return (word_features if self.unit == "words" else character_features)(words)

    def _number(self, name: str) -> int:
        return zlib.crc32(name.encode("utf-8", "surrogatepass")) % (self.buckets - 1) + 1


def word_features(words: tuple[str, ...]) -> list[list[str]]:
    """The names of the features of each word."""
    low = [word.lower() for word in words]
    after = [*low[1:], ""]
    return [
        [
            f"w {a}",
            *(f"p {a[:n]}" for n in (1, 2, 3)),
            *(f"s {a[-n:]}" for n in (1, 2, 3, 4)),
            f"k {shape(word)}",
            f"n {a} {b}",
        ]
        for word, a, b in zip(words, low, after)
    ]


def character_features(characters: tuple[str, ...]) -> list[list[str]]:
    """The names of the features of each character."""
    padded = ("", "", *characters, "", "")
    return [
        [
            f"c {c}",
            f"k {kind(b)} {kind(c)} {kind(d)}",
            *(f"{place} {near}" for place, near in enumerate((a, b, d, e))),
            *(f"{place} {near}" for place, near in enumerate((a + b, b + c, c + d, d + e, b + d), start=4)),
            f"t {b}{c}{d}",
        ]
        for a, b, c, d, e in zip(padded, padded[1:], padded[2:], padded[3:], padded[4:])
    ]


def ngram_features(words: tuple[str, ...], lengths: tuple[int, ...], joint: str) -> list[list[str]]:
    """The n-grams that begin at each word or character, in lower case; shorter at the end of the text."""
    low = [word.lower() for word in words]
    return [[f"{n} {joint.join(low[place : place + n])}" for n in lengths] for place in range(len(low))]


def kind(character: str) -> str:
    """Unicode's category of a character, such as "Lo" of Chinese ones; "" of none."""
    return unicodedata.category(character[0]) if character else ""


def shape(word: str) -> str:
    """Capitals as X, small letters as x, digits as 9, each run shortened to two: "McKay-23" is "XxXxx-99"."""
    kinds = ["X" if c.isupper() else "x" if c.islower() else "9" if c.isdigit() else c for c in word]
    return "".join(kind for place, kind in enumerate(kinds) if kinds[place - 2 : place] != [kind, kind])
