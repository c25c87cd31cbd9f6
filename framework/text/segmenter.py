"""What divides texts into the tokens of a vocabulary, and the parts that a tokenizer is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np

from framework.core.types import JSON

FORMAT = 1
ROLES = ("pad", "unk", "cls", "sep", "mask")
ALL_ROLES = (*ROLES, "bos", "eos")
Kind = Literal["characters", "spaced_characters", "words", "wordpiece", "bpe", "unigram"]
Frame = tuple[tuple[int | str, int], ...]
"""What surrounds texts: (the id of a special token, or "A" or "B" for a text; its type id), in order."""


class SubwordEncoding(NamedTuple):
    """T tokens of one text."""

    ids: np.ndarray
    """[T] int32"""
    offsets: np.ndarray
    """[T, 2] int32: first character and the one after the last"""
    words: np.ndarray
    """[T] int32: index of the word; -1 where the text was not divided"""


def encode_pieces(
    ids: Sequence[int], offsets: Sequence[tuple[int, int]], words: Sequence[int] | None
) -> SubwordEncoding:
    """Lists as arrays; without `words` each is -1."""
    word_ids = np.full(len(ids), -1, np.int32) if words is None else np.asarray(words, np.int32)
    return SubwordEncoding(np.asarray(ids, np.int32), np.asarray(offsets, np.int32).reshape(-1, 2), word_ids)


class Segmenter(Protocol):
    """What divides one text and knows the vocabulary. Safe to call from several threads."""

    @property
    def size(self) -> int:
        """Numbers of tokens are below this."""
        ...

    @property
    def special_ids(self) -> frozenset[int]:
        """Tokens that are no text, such as those around texts and the marks of a chat."""
        ...

    def split(self, text: str, parse_special: bool = True) -> SubwordEncoding:
        """`parse_special`: a special token that stands in the text is that token, and else the characters it shows."""
        ...

    def split_words(self, words: Sequence[str]) -> SubwordEncoding:
        """Each word by itself; offsets count within the word."""
        ...

    def id_of(self, token: str) -> int | None: ...

    def token_of(self, token_id: int) -> str | None: ...

    def join(self, ids: list[int]) -> str: ...

    def to_plain(self) -> dict[str, JSON]:
        """Data for JSON, with its `kind`."""
        ...


class TokenizerParts(NamedTuple):
    """The arguments of `Tokenizer`."""

    segmenter: Segmenter
    roles: Mapping[str, str]
    single: Frame
    pair: Frame
    truncation_side: Literal["right", "left"] = "right"
