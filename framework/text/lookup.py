"""Whole words, or characters, as tokens: a list of them is all there is to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

from framework.core.types import JSON
from framework.text.segmenter import SubwordEncoding
from framework.text.words import split_characters, split_words


class Lookup:
    """Looks words or characters up; what is not there is token `unknown`.

    A text is divided at white space and punctuation (`split_words`), or into its characters but for white space; a
    token such as [MASK] in it stays whole. Words that are given are looked up whole; with unit "characters"
    each of their characters is.
    """

    def __init__(
        self, unit: Literal["words", "characters"], tokens: Sequence[str], unknown: str, lower: bool
    ):
        self.unit, self.tokens, self.unknown, self.lower = unit, list(tokens), unknown, lower
        self._ids = {token: place for place, token in enumerate(self.tokens)}
        self._unknown = self._ids[unknown]
        special = [re.escape(token) for token in self.tokens if re.fullmatch(r"\[[A-Z]+\]", token)]
        self._special = re.compile(f"({'|'.join(special)})") if special else None

    @property
    def size(self) -> int:
        return len(self.tokens)

    @property
    def special_ids(self) -> frozenset[int]:
        return frozenset()

    def split(self, text: str, parse_special: bool = True) -> SubwordEncoding:
        tokens: list[str] = []
        offsets, start = [np.zeros((0, 2), np.int32)], 0
        special = self._special if parse_special else None
        for number, segment in enumerate(special.split(text) if special else [text]):
            if number % 2:  # a special token
                tokens.append(segment)
                offsets.append(np.array([[start, start + len(segment)]], np.int32))
            else:
                units, starts = (split_words if self.unit == "words" else split_characters)(segment)
                tokens += units
                offsets.append(starts + np.int32(start))
            start += len(segment)
        return SubwordEncoding(
            self._look_up(tokens), np.concatenate(offsets), np.full(len(tokens), -1, np.int32)
        )

    def split_words(self, words: Sequence[str]) -> SubwordEncoding:
        if self.unit == "words":
            spans = np.asarray([(0, len(word)) for word in words], np.int32).reshape(-1, 2)
            return SubwordEncoding(self._look_up(words), spans, np.arange(len(words), dtype=np.int32))
        splits = [split_characters(word) for word in words]
        return SubwordEncoding(
            self._look_up([character for found, _ in splits for character in found]),
            np.concatenate([np.zeros((0, 2), np.int32), *(offsets for _, offsets in splits)]),
            np.repeat(np.arange(len(words), dtype=np.int32), [len(found) for found, _ in splits]),
        )

    def _look_up(self, tokens: Sequence[str]) -> np.ndarray:
        # A special token keeps its capitals.
        ids = (
            self._ids.get(token, self._ids.get(token.lower(), self._unknown))
            if self.lower
            else self._ids.get(token, self._unknown)
            for token in tokens
        )
        return np.fromiter(ids, np.int32, len(tokens))

    def id_of(self, token: str) -> int | None:
        return self._ids.get(token)

    def token_of(self, token_id: int) -> str | None:
        return self.tokens[token_id] if 0 <= token_id < len(self.tokens) else None

    def join(self, ids: list[int]) -> str:
        return ("" if self.unit == "characters" else " ").join(self.tokens[one] for one in ids)

    def to_plain(self) -> dict[str, JSON]:
        return {"kind": self.unit, "lower": self.lower, "tokens": self.tokens}
