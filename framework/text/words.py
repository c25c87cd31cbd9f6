"""Texts into words and characters with their places."""

from __future__ import annotations

import re
import unicodedata

import numpy as np

# A contraction is two words, as in the Penn Treebank: "don't" is "do" and "n't", "Ann's" is "Ann" and "'s".
_WORD = re.compile(r"\w+?(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|\w+(?:-\w+)*|[^\w\s]", re.IGNORECASE)

# Up to the marks that end a sentence, with closing quotes and white space behind them. A point ends one before a space.
_SENTENCE = re.compile(r"(?s).+?(?:[。！？!?…\n]+|\.(?=\s)|\Z)[”’」』）)\"']*\s*")

# A point behind these ends no sentence.
_ABBREVIATIONS = frozenset(
    """st mt ft dr mr mrs ms prof sr jr no nr vs vol pp fig sgt capt gen col lt rev hon gov sen rep ave blvd dept approx
    inc ltd co corp bros jan feb mar apr jun jul aug sep sept oct nov dec etc cf al ca bzw usw vgl str mme mlle
    e.g i.e u.s u.k""".split()  # noqa: SIM905
)
_BEFORE_POINT = re.compile(r"([\w.]+)\.[”’」』）)\"']*\s+\Z")


def split_words(text: str) -> tuple[tuple[str, ...], np.ndarray]:
    """Words and punctuation of a text in a script with spaces, and `[T, 2]` int32, where each begins and ends."""
    matches = list(_WORD.finditer(text))
    return tuple(match.group() for match in matches), _spans([match.span() for match in matches])


def split_characters(text: str) -> tuple[tuple[str, ...], np.ndarray]:
    """The characters of a text but for white space, and `[T, 2]` int32, where each begins and ends."""
    positions = [place for place, character in enumerate(text) if not character.isspace()]
    return tuple(text[place] for place in positions), _spans([(place, place + 1) for place in positions])


def find_words(text: str, words: tuple[str, ...]) -> np.ndarray:
    """`[T, 2]` int32: where words, in their order, stand in a text; one that is not there is of length 0."""
    spans, offset = [], 0
    for word in words:
        start = text.find(word, offset)
        spans.append((offset, offset) if start < 0 else (start, start + len(word)))
        offset = spans[-1][1]
    return _spans(spans)


def find_continuations(text: str, offsets: np.ndarray) -> np.ndarray:
    """[T] bool: whether a token goes on with the word of the token before it, by where they stand, `offsets` [T, 2].

    It does where both are of one run of letters and digits. A Chinese character is a word of its own, as BERT has it.
    """
    continues = np.zeros(len(offsets), bool)
    for index in range(1, len(offsets)):
        before, start = int(offsets[index - 1, 1]), int(offsets[index, 0])
        joined = 0 < start == before < len(text) and _in_word(text[start - 1]) and _in_word(text[start])
        continues[index] = joined or start < before  # bytes of one character stand at one place
    return continues


def _in_word(character: str) -> bool:
    code = ord(character)
    if 0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF or 0xF900 <= code <= 0xFAFF or code >= 0x20000:
        return False
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def pieces(text: str, limit: int) -> list[tuple[int, str]]:
    """(first character, piece) of a text in pieces of at most `limit` characters, which together are the text.

    A piece ends behind a sentence or a line where one ends within the limit, else behind a space, else anywhere. Each
    sentence is a piece of its own.
    """
    found: list[tuple[int, str]] = []
    start = 0
    for end in sentence_ends(text):
        while end - start > limit:
            space = text.rfind(" ", start, start + limit) + 1
            cut = space if space > start else start + limit
            found.append((start, text[start:cut]))
            start = cut
        found.append((start, text[start:end]))
        start = end
    return found


def sentence_ends(text: str) -> list[int]:
    """Behind which character each sentence or line ends, with the white space behind it; the point of an abbreviation
    ends none."""
    ends: list[int] = []
    start = 0
    for match in _SENTENCE.finditer(text):
        end = match.end()
        if end == len(text) or not _is_abbreviation(text, start, end):
            ends.append(end)
            start = end
    return ends


def _is_abbreviation(text: str, start: int, end: int) -> bool:
    """Whether the point that ends text[start:end] may be one's: a short name within a sentence is taken for it too."""
    before = _BEFORE_POINT.search(text, max(start, end - 40), end)
    if before is None or "\n" in before[0]:
        return False
    word = before[1]
    name = len(word) < 4 and word[0].isupper() and before.start() > start
    return name or len(word) == 1 or word.lower() in _ABBREVIATIONS


def _spans(spans: list[tuple[int, int]]) -> np.ndarray:
    return np.asarray(spans, np.int32).reshape(-1, 2)
