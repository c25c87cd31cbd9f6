"""The text of tokens that come one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

_HALF = "\ufffd"  # what bytes that are no whole character yet are shown as
_TAIL = 8  # tokens of a prompt that are decoded again with the first ones


class Decodes(Protocol):
    """What is used of a Tokenizer."""

    @property
    def special_ids(self) -> frozenset[int]: ...

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str: ...


class TokenStream:
    """Gives the text that each token adds; the texts together are that of all tokens decoded at once.

    Nothing is given out while the text ends in half a character. The tokens that were given out last are decoded again
    with the new ones, so that spaces between words come out as in the whole, and the cost does not grow with the text.

    Where bytes are no UTF-8, a tokenizer with byte fallback shows all of their run as U+FFFD; a stream has given out
    the characters before them by then.

    Args:
        skip_special: As in `Tokenizer.decode`.
        prefix: Tokens that the text goes on from, such as those of a prompt: they decide about a space at the beginning
            and are not given out.
    """

    def __init__(self, tokenizer: Decodes, skip_special: bool = True, prefix: Sequence[int] = ()) -> None:
        self.tokenizer, self.skip_special = tokenizer, skip_special
        self._left_out = tokenizer.special_ids if skip_special else frozenset()
        self._before = self._text_tokens(prefix)[-_TAIL:]
        self._new: list[int] = []

    def push(self, *ids: int) -> str:
        """The text that is certain with these tokens; "" where more are needed."""
        self._new += self._text_tokens(ids)
        text = self._decode_new()
        if text.endswith(_HALF) or not text:
            return ""
        self._before, self._new = self._new, []
        return text

    def finish(self) -> str:
        """What is left, half characters as U+FFFD."""
        text = self._decode_new()
        self._before, self._new = self._new or self._before, []
        return text

    def _text_tokens(self, ids: Sequence[int]) -> list[int]:
        return [one for one in ids if one not in self._left_out]

    def _decode_new(self) -> str:
        if not self._new:
            return ""
        before = self.tokenizer.decode(self._before, self.skip_special) if self._before else ""
        text = self.tokenizer.decode(self._before + self._new, self.skip_special)
        if text.startswith(before):
            return text[len(before) :]
        return self.tokenizer.decode(
            self._new, self.skip_special
        )  # bytes that turned those before into U+FFFD
