"""SentencePiece models, unigram and BPE, read by the library `sentencepiece`, with what ALBERT does to a text first.

Source: https://github.com/google-research/albert (tokenization.py); the same as AlbertEnglishTokenizer of PaddleNLP and
AlbertTokenizer of transformers.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from framework.core.errors import FormatError, MissingExtraError
from framework.core.types import JSON
from framework.text.segmenter import SubwordEncoding, encode_pieces

_SPACE = "▁"
_Tokens = list[tuple[int, int, int]]  # id, first character, the one after the last


def library() -> Any:
    """The module `sentencepiece`. Raises: MissingExtraError, where it is not installed."""
    try:
        import sentencepiece
    except ImportError as error:
        raise MissingExtraError("sentencepiece", "nlp", "SentencePiece models") from error
    return sentencepiece


def load_model(model: bytes, where: object) -> tuple[Any, int]:
    """The processor of a model, and how many pieces it has.

    Args:
        model: The bytes of a .model file.
        where: The file in messages.

    Raises:
        FormatError: the bytes are no such model. MissingExtraError: the library is not installed.
    """
    processor = library().SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
        return processor, int(processor.GetPieceSize())
    except RuntimeError as error:
        raise FormatError(
            "the file is not a SentencePiece model",
            where=where,
            received=f"{len(model)} bytes: {str(error)[:120]}",
            allowed="a .model file as sentencepiece writes it",
            fix="copy the file again",
        ) from error


class SentencePieces:
    """A SentencePiece model.

    White space is joined to single spaces, `` and '' become quotes, accents go unless `keep_accents`, letters become
    lower case with `lower`, and a comma behind a digit is a token of its own.

    Args:
        model: The bytes of a .model file.
        special: Special tokens that count as such where they stand in a text.

    Raises:
        FormatError: the bytes are no such model.
    """

    def __init__(
        self,
        model: bytes,
        lower: bool,
        keep_accents: bool,
        special: Sequence[str],
        where: object = "tokenizer",
    ) -> None:
        self.lower, self.keep_accents, self.special = lower, keep_accents, tuple(special)
        self.model = model
        self.core, self._size = load_model(model, where)
        self.special_ids = frozenset(n for n in range(self._size) if self.core.IsControl(n))
        """Tokens such as <s> and </s>"""
        names = sorted(map(re.escape, self.special), key=len, reverse=True)
        self._special = re.compile("|".join(names)) if names else re.compile(r"(?!)")

    @property
    def size(self) -> int:
        return self._size

    def split(self, text: str, parse_special: bool = True) -> SubwordEncoding:
        tokens = self._split(text) if parse_special else self._plain(text, 0)
        return encode_pieces([row[0] for row in tokens], [row[1:] for row in tokens], None)

    def split_words(self, words: Sequence[str]) -> SubwordEncoding:
        rows = [(place, *row) for place, word in enumerate(words) for row in self._split(word)]
        return encode_pieces([row[1] for row in rows], [row[2:] for row in rows], [row[0] for row in rows])

    def _split(self, text: str) -> _Tokens:
        tokens: _Tokens = []
        start = 0
        for match in self._special.finditer(text):
            tokens += self._plain(text[start : match.start()], start)
            tokens.append((self.core.PieceToId(match.group()), *match.span()))
            start = match.end()
        return tokens + self._plain(text[start:], start)

    def _plain(self, text: str, base: int) -> _Tokens:
        cleaned, origin = _clean(text, self.lower, self.keep_accents)
        if not cleaned:
            return []
        symbols = self.core.Encode(cleaned, out_type=str)
        _, offsets = self.core.Normalize(cleaned, with_offsets=True)
        tokens: _Tokens = []
        at = 0
        for symbol in symbols:
            for token, first, length in self._split_number(symbol):
                begin, end = at + first, at + first + length
                # The space before a word is not part of it.
                while begin < end - 1 and symbol[begin - at] == _SPACE:
                    begin += 1
                tokens.append((self.core.PieceToId(token), *_span(origin, offsets, begin, end, base)))
            at += len(symbol)
        return tokens

    def _split_number(self, symbol: str) -> list[tuple[str, int, int]]:
        """(token, its place in the piece, its length): several where a comma stands behind a digit."""
        if len(symbol) < 2 or symbol[-1] != "," or not symbol[-2].isdigit():
            return [(symbol, 0, len(symbol))]
        number = symbol[:-1].replace(_SPACE, "")
        tokens: list[str] = self.core.Encode(number, out_type=str)
        spans, at = [], len(symbol) - 1 - len(number)
        for index, token in enumerate(tokens):
            bare = token.removeprefix(_SPACE)
            inside = index == 0 and not symbol.startswith(_SPACE)
            if bare or not inside:
                spans.append((bare if inside else token, at, max(len(bare), 1)))
            at += len(bare)
        return [*spans, (",", len(symbol) - 1, 1)]

    def id_of(self, token: str) -> int | None:
        number = int(self.core.PieceToId(token))
        return number if number < self._size and self.core.IdToPiece(number) == token else None

    def token_of(self, token_id: int) -> str | None:
        return self.core.IdToPiece(token_id) if 0 <= token_id < self._size else None

    def join(self, ids: list[int]) -> str:
        texts: list[str] = []
        symbols: list[int] = []
        for one in ids:  # the library leaves special tokens out
            token = self.core.IdToPiece(one)
            if token in self.special:
                texts += [self.core.Decode(symbols), token]
                symbols = []
            else:
                symbols.append(one)
        return " ".join(part for part in [*texts, self.core.Decode(symbols) if symbols else ""] if part)

    def to_plain(self) -> dict[str, JSON]:
        return {
            "kind": "sentencepiece",
            "lower": self.lower,
            "keep_accents": self.keep_accents,
            "special": self.special,
            "model": base64.b64encode(self.model).decode("ascii"),
        }


def _clean(text: str, lower: bool, keep_accents: bool) -> tuple[str, list[int]]:
    """The text as the model reads it, and for each of its characters the place that it comes from."""
    rows: list[tuple[str, int]] = []
    for match in re.finditer(r"\S+", text):
        if rows:
            rows.append((" ", match.start() - 1))
        start = match.start()
        while start < match.end():
            quote = text[start : start + 2] in ("``", "''")
            rows.append(('"' if quote else text[start], start))
            start += 2 if quote else 1
    if not keep_accents:
        rows = [
            (part, start)
            for character, start in rows
            for part in unicodedata.normalize("NFKD", character)
            if not unicodedata.combining(part)
        ]
    cleaned, origin = "".join(character for character, _ in rows), [start for _, start in rows]
    if lower:
        # Of one letter several may become, so each is asked; the whole text decides which: a sigma at a word's end.
        origin = [start for character, start in rows for _ in character.lower()]
        cleaned = cleaned.lower()
    return cleaned, origin


def _span(origin: list[int], offsets: list[int], begin: int, end: int, base: int) -> tuple[int, int]:
    """Characters of the text from those of the normalised text; `offsets` says where each of these comes from."""
    last = len(origin)
    first = min(offsets[begin] if begin < len(offsets) else last, last)
    behind = min(offsets[end] if end < len(offsets) else last, last)
    if first >= last:
        return base + origin[-1] + 1, base + origin[-1] + 1
    return base + origin[first], base + origin[max(behind, first + 1) - 1] + 1
