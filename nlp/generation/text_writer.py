"""What the host does with the tokens of one request: text, stop strings, logarithms, the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nlp.generation.constraint import TokenMatcher
from nlp.generation.request import Chunk, FinishReason, Request, TokenLogprob
from nlp.generation.stops import StopStrings, TextStream


class TextWriter:
    """Turns tokens into the chunks of a request.

    Args:
        decode: The text of tokens; None where there is no tokenizer, and all texts are empty.
        is_special: Whether a token is left out of texts.
        limit: Tokens of the text, at most.
    """

    def __init__(
        self,
        request: Request,
        decode: Callable[[Sequence[int]], str] | None,
        is_special: Callable[[int], bool],
        context: Sequence[int],
        limit: int,
        matcher: TokenMatcher | None = None,
    ) -> None:
        self._request, self._limit, self.matcher = request, limit, matcher
        self._is_special = is_special
        options = request.options
        self._stream = None if decode is None else TextStream(decode, context)
        self._stops = StopStrings(options.stop, options.include_stop)
        self._ends = set(options.end_tokens)
        self.count = 0
        """Tokens so far"""

    def add(self, token: int, logprob: TokenLogprob | None = None) -> bool:
        """Takes the next token and hands out its chunk; whether the text goes on."""
        options = self._request.options
        self.count += 1
        text, reason, stop = "", None, None
        if token in self._ends:
            reason, stop = "stop", token
        elif self._stream is not None and not (options.skip_special_tokens and self._is_special(token)):
            text = self._stream.add(token)
        if self.matcher is not None and not self.matcher.add(token) and reason is None:
            reason = "stop"
        if reason is None and self.count >= self._limit:
            reason = "length"
        if reason is not None and self._stream is not None:
            text += self._stream.finish()
        tail = self._stops.add(text, self.count >= options.min_new_tokens)
        text = tail.text
        if tail.stop is not None:
            reason, stop = "stop", tail.stop
        elif reason is not None:
            text += self._stops.finish()
        self._hand_out(Chunk(text, (token,), () if logprob is None else (logprob,), reason, stop))
        return reason is None

    def cancel(self) -> None:
        """Ends the text where it is, with what was held back."""
        text = "" if self._stream is None else self._stream.finish()
        tail = self._stops.add(text)
        self._hand_out(Chunk(tail.text + self._stops.finish(), finish_reason="cancelled"))

    def write_all(self, ids: Sequence[int], reason: FinishReason) -> None:
        """A text that is there as a whole, in one chunk."""
        text, written, stop = "", len(ids), None
        for number, token in enumerate(ids):
            if token in self._ends and number == len(ids) - 1:
                stop = token
            elif self._stream is not None and not (
                self._request.options.skip_special_tokens and self._is_special(token)
            ):
                tail = self._stops.add(
                    self._stream.add(token), number + 1 >= self._request.options.min_new_tokens
                )
                text += tail.text
                if tail.stop is not None:
                    stop, reason, written = tail.stop, "stop", number + 1
                    break
        else:
            tail = self._stops.add("" if self._stream is None else self._stream.finish())
            text += tail.text + self._stops.finish()
        self._hand_out(Chunk(text, tuple(ids[:written]), (), reason, stop))

    def _hand_out(self, chunk: Chunk) -> None:
        self._request.put(chunk)
