"""A request to an engine, the chunks that it hands out while it is written, and its result."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from framework.core.errors import InputError
from nlp.generation.options import GenerationOptions

FinishReason = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True)
class TokenLogprob:
    """A token and how probable the model holds it, before options change that."""

    token: int
    logprob: float
    """Natural logarithm"""
    top: tuple[tuple[int, float], ...] = ()
    """The most probable tokens with theirs, as many as `logprobs` of the options asks for"""


@dataclass(frozen=True)
class Chunk:
    """What a step adds to a text. The texts of all chunks together are the result's."""

    text: str = ""
    """Whole characters that cannot begin a stop string; often of an earlier token, or empty"""
    ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    finish_reason: FinishReason | None = None
    """In the last chunk: "stop" at a token or a stop string that ends a text, "length", or "cancelled" """
    stop: str | int | None = None
    """The stop string or the token that ended the text"""


@dataclass(frozen=True)
class GenerationResult:
    """A text."""

    text: str
    ids: tuple[int, ...]
    """Tokens behind the prompt, with the one that ends the text; with a stop string they may go beyond `text`"""
    prompt_ids: tuple[int, ...]
    finish_reason: FinishReason
    stop: str | int | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    """One a token, where they were asked for"""
    score: float | None = None
    """Of a text of beam search: the sum of logarithms, divided by the length penalty"""
    seed: int | None = None
    """With which the text is made again"""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


class Request:
    """A text that is being written. Iterate for chunks, or call `result`; from any thread, but from one at a time.

    Attributes:
        prompt: Its tokens. options: Those of the request. seed: Of its draws. sample: Which of several texts it is.
        cached_tokens: Of the prompt, whose keys and values an earlier prompt left.
        score: Of beam search, once it is done. beams: The `num_return_sequences` texts of beam search.
    """

    def __init__(
        self,
        prompt: tuple[int, ...],
        options: GenerationOptions,
        seed: int,
        warnings: tuple[str, ...] = (),
        sample: int = 0,
        score: float | None = None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.prompt, self.options, self.seed, self.warnings = prompt, options, seed, warnings
        self.sample, self.score = sample, score
        self.cached_tokens = 0
        self.beams: list[GenerationResult] = []
        self._wake = wake
        self._chunks: queue.SimpleQueue[Chunk | BaseException] = queue.SimpleQueue()
        self._listener: Callable[[Chunk | BaseException], object] | None = None
        self._listening = threading.Lock()
        self._cancelled = threading.Event()
        self._history: list[Chunk] = []
        self._error: BaseException | None = None

    def cancel(self) -> None:
        """Ends the text where it is; its row is free within a token."""
        self._cancelled.set()
        self._wake()

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    @property
    def finished(self) -> bool:
        """Whether the last chunk was read."""
        return self._error is not None or bool(self._history and self._history[-1].finish_reason)

    def next_chunk(self, timeout: float | None = None) -> Chunk | None:
        """The next chunk, or None behind the last one.

        Args:
            timeout: Seconds; None waits.

        Raises:
            TimeoutError: there is none in time. OarError: what ended the request.
        """
        if self._error is not None:
            raise self._error
        if self.finished:
            return None
        try:
            chunk = self._chunks.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError("no token within the timeout") from None
        if isinstance(chunk, BaseException):
            self._error = chunk
            raise chunk
        self._history.append(chunk)
        return chunk

    def __iter__(self) -> Iterator[Chunk]:
        while (chunk := self.next_chunk()) is not None:
            yield chunk

    def result(self, timeout: float | None = None) -> GenerationResult:
        """Waits for the end. Raises: as `next_chunk`; `timeout` is for each token."""
        while self.next_chunk(timeout) is not None:
            pass
        last = self._history[-1]
        assert last.finish_reason is not None
        return GenerationResult(
            text="".join(chunk.text for chunk in self._history),
            ids=tuple(token for chunk in self._history for token in chunk.ids),
            prompt_ids=self.prompt,
            finish_reason=last.finish_reason,
            stop=last.stop,
            logprobs=tuple(one for chunk in self._history for one in chunk.logprobs),
            score=self.score,
            seed=self.seed,
            warnings=self.warnings,
        )

    def put(self, chunk: Chunk | BaseException) -> None:
        """Of the engine: hands out a chunk, or the error that ends the request."""
        with self._listening:
            if self._listener is None:
                self._chunks.put(chunk)
            else:
                self._listener(chunk)

    def listen(self, function: Callable[[Chunk | BaseException], object]) -> None:
        """Gives all chunks that were not read, and the error that ends the request, to a function in their order, in
        the place of `next_chunk`. It is called in the engine's thread: it must not wait, nor raise."""
        with self._listening:
            while not self._chunks.empty():
                function(self._chunks.get())
            self._listener = function


def check_prompt(prompt: int, options: GenerationOptions, max_length: int) -> int:
    """How many tokens at the left of a prompt of so many are cut off.

    Raises:
        InputError: the prompt is empty, or leaves no room for a token and `truncate_prompt` is not set.
    """
    if prompt < 1:
        raise InputError(
            "the prompt has no token",
            where="prompt",
            received="an empty text",
            allowed="one token or more",
            fix="begin with the token that begins texts, or with some text",
        )
    if options.max_new_tokens is None and options.max_length is not None and options.max_length <= prompt:
        raise InputError(
            "the prompt is as long as max_length",
            where="prompt",
            received=f"{prompt:,} tokens, max_length {options.max_length:,}",
            allowed="a max_length above the prompt's tokens",
            fix="set max_new_tokens, which does not count the prompt",
        )
    if prompt < max_length:
        return 0
    if not options.truncate_prompt:
        raise InputError(
            "the prompt is too long for the model",
            where="prompt",
            received=f"{prompt:,} tokens",
            allowed=f"at most {max_length - 1:,}, which leaves one for the text",
            fix="shorten it, or set truncate_prompt=True, which cuts it on the left",
        )
    new = options.new_tokens(0)
    return prompt - (max_length - new if new < max_length else max(max_length // 2, 1))
