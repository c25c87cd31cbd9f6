"""WordPiece, BPE and what else the library `tokenizers` has, behind this toolkit's interface."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from framework.core.errors import FormatError, MissingExtraError
from framework.core.types import JSON
from framework.text.segmenter import SubwordEncoding, encode_pieces

if TYPE_CHECKING:
    import tokenizers


_BYTE_PIECE = re.compile("<0x([0-9A-Fa-f]{2})>")
_MOST_IDS = 1 << 24
"""Above all numbers of tokens: the library goes through every number up to the last, also through those of gaps."""


def library() -> Any:
    """The module `tokenizers`. Raises: MissingExtraError, where it is not installed."""
    try:
        import tokenizers
    except ImportError as error:
        raise MissingExtraError("tokenizers", "nlp", "tokenizers of WordPiece and BPE") from error
    return tokenizers


def check_vocab_size(size: int, where: object) -> None:
    """Raises: FormatError, where the last number of a token is far above those of all vocabularies."""
    if size > _MOST_IDS:
        raise FormatError(
            "the tokenizer cannot be read",
            where=where,
            received=f"a token of the number {size - 1:,}",
            allowed=f"numbers below {_MOST_IDS:,}",
            fix="copy the file again",
        )


@functools.cache
def _byte_letters() -> dict[str, int]:
    """The letter that stands for each byte in vocabularies of bytes (GPT-2's): printable ones for themselves."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def piece_bytes(token: str) -> bytes | None:
    """The bytes of a token of a vocabulary of bytes, "<0xE4>" of SentencePiece or "ä½" of GPT-2; None: it is none."""
    if match := _BYTE_PIECE.fullmatch(token):
        return bytes([int(match[1], 16)])
    letters = _byte_letters()
    return bytes(letters[one] for one in token) if token and all(one in letters for one in token) else None


class Subwords:
    """A `tokenizers.Tokenizer` without what it would put around a text, cut off or pad.

    Its vocabulary may have gaps: a file that names a token twice keeps the number of the second.
    """

    def __init__(self, core: tokenizers.Tokenizer) -> None:
        core.no_truncation()
        core.no_padding()
        self.core = core
        ids = core.get_vocab(with_added_tokens=True).values()
        self._size = max(ids, default=-1) + 1
        added = core.get_added_tokens_decoder()
        self.special_ids = frozenset(number for number, token in added.items() if token.special)
        """Tokens such as <|im_end|>, which no text without them becomes"""
        # Byte-level vocabularies have "Ġword" for a word behind a space: each word that is given gets one.
        self._space = '"ByteLevel"' in (_stage(core, "pre_tokenizer") + _stage(core, "normalizer"))
        self._literal: tokenizers.Tokenizer | None = None

    @classmethod
    def from_json(cls, text: str, where: object) -> Subwords:
        """Raises: FormatError, where the library cannot read it."""
        module = library()
        try:
            segmenter = cls(module.Tokenizer.from_str(text))
        except Exception as error:  # the library raises nothing narrower
            raise FormatError(
                "the tokenizer cannot be read",
                where=where,
                received=str(error)[:200],
                allowed=f"a tokenizer.json that tokenizers {module.__version__} reads",
                fix="copy the file again, or install a newer version of the package",
            ) from error
        check_vocab_size(segmenter.size, where)
        return segmenter

    @property
    def size(self) -> int:
        return self._size

    def split(self, text: str, parse_special: bool = True) -> SubwordEncoding:
        core = self.core if parse_special else self._literal_core()
        encoding = core.encode(text, add_special_tokens=False)
        return encode_pieces(encoding.ids, encoding.offsets, None)

    def _literal_core(self) -> tokenizers.Tokenizer:
        """One that takes special tokens in a text for text: a tokenizer has one setting of that for all threads."""
        core = self._literal
        if core is None:
            core = library().Tokenizer.from_str(self.core.to_str())
            core.encode_special_tokens = True
            self._literal = core
        return core

    def split_words(self, words: Sequence[str]) -> SubwordEncoding:
        texts = [f" {word}" for word in words] if self._space else list(words)
        encoding = self.core.encode(texts, is_pretokenized=True, add_special_tokens=False)
        encoding_of_words = encode_pieces(
            encoding.ids, encoding.offsets, [-1 if word is None else word for word in encoding.word_ids]
        )
        if self._space:
            encoding_of_words = encoding_of_words._replace(
                offsets=(encoding_of_words.offsets - 1).clip(min=0)
            )
        return encoding_of_words

    def id_of(self, token: str) -> int | None:
        return self.core.token_to_id(token)

    def token_of(self, token_id: int) -> str | None:
        return self.core.id_to_token(token_id) if 0 <= token_id < self._size else None

    def join(self, ids: list[int]) -> str:
        return self.core.decode(ids, skip_special_tokens=False)

    def to_plain(self) -> dict[str, JSON]:
        return {"kind": "tokenizers", "model": json.loads(self.core.to_str())}


def _stage(core: tokenizers.Tokenizer, name: str) -> str:
    stage = getattr(core, name)
    return "" if stage is None else stage.__getstate__().decode("utf-8")
