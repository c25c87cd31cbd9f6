"""From tokens to the text of a stream: characters that are whole, and an end at stop strings.

Tokens are not characters: an emoji may take four, and a stop string may begin within one token and end within the next.
What could still change is held back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

_REPLACEMENT = "\ufffd"  # what decoders write for bytes that are no character yet
_CONTEXT = 6  # tokens of the prompt before the text: a decoder drops the space of a first word
_PENDING = 64  # tokens without a whole character: they are none, and are written as they are


class Tail(NamedTuple):
    """What `StopStrings.add` gives."""

    text: str
    """What can be handed out"""
    stop: str | None
    """The stop string that ended the text"""


class TextStream:
    """Tokens to text, as far as it cannot change any more. Its parts together are the text.

    Args:
        decode: The text of tokens.
        context: The tokens before the text; the last few are enough.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], context: Sequence[int] = ()) -> None:
        self._decode = decode
        self._window = list(context[-_CONTEXT:]) if len(context) else []
        self._written = decode(self._window).rstrip(_REPLACEMENT) if self._window else ""
        self._boundary = len(self._window)  # tokens of the window that are written in full

    def add(self, token: int) -> str:
        """The characters that are certain with this token."""
        self._window.append(token)
        text = self._decode(self._window)
        certain = text.rstrip(_REPLACEMENT)
        if len(self._window) - self._boundary > _PENDING:
            certain = text
        part = certain[len(self._written) :]
        if len(certain) > len(self._written):
            self._written = certain
        if certain == text and part:
            self._move()
        return part

    def finish(self) -> str:
        """What was held back: bytes that never became a character stand as U+FFFD."""
        text = self._decode(self._window)
        part = text[len(self._written) :]
        self._written = max(text, self._written, key=len)
        return part

    def _move(self) -> None:
        """The window begins at the last boundary, so that it stays short; the tokens before remain as context."""
        start, self._boundary = self._boundary, len(self._window)
        if not start or start == self._boundary:
            return
        window = self._window[start:]
        text = self._decode(window)
        # A decoder that drops the space of the first token gives another text: more tokens are needed.
        if self._written.endswith(text) or len(self._window) > 4 * _CONTEXT:
            self._window, self._written = window, text
            self._boundary = len(window)


class StopStrings:
    """Holds back what may be the beginning of a stop string, and ends the text at the first one.

    Args:
        include: Whether the stop string stays in the text.
    """

    def __init__(self, stops: Sequence[str], include: bool = False) -> None:
        self._stops = tuple(stops)
        self._include = include
        self._held = ""

    def add(self, text: str, may_stop: bool = True) -> Tail:
        """More text, of which only what cannot belong to a stop string comes back.

        Args:
            may_stop: False before the least number of tokens: what stands there does not end the text.
        """
        if not self._stops:
            return Tail(text, None)
        held = self._held + text
        if not may_stop:
            self._held = ""
            return Tail(held, None)
        matches = [(at, -len(stop), stop) for stop in self._stops if (at := held.find(stop)) >= 0]
        if matches:
            at, _, stop = min(matches)
            self._held = ""
            return Tail(held[: at + len(stop) * self._include], stop)
        count = max(self._overlap(held, stop) for stop in self._stops)
        self._held = held[len(held) - count :]
        return Tail(held[: len(held) - count], None)

    def finish(self) -> str:
        """What was held back and began no stop string."""
        held, self._held = self._held, ""
        return held

    @staticmethod
    def _overlap(text: str, stop: str) -> int:
        """Characters at the end of a text with which the stop string begins."""
        for count in range(min(len(text), len(stop) - 1), 0, -1):
            if text.endswith(stop[:count]):
                return count
        return 0
