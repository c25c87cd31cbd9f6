"""Chats with a language model of this process: one answer, or a conversation."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from framework.core.disk import write_file
from framework.core.types import JSON
from framework.text.chat_answer import AnswerDelta, AnswerParser, ToolCall, read_arguments
from framework.workflow.domain.text_generation import FinishReason
from nlp.text_generator import EngineGenerator

_LENGTHS = {"max_new_tokens", "max_tokens", "max_completion_tokens", "max_length"}
_LOOK = 0.1  # seconds in which Ctrl+C is seen: waiting without end, Windows sees none


@dataclass(frozen=True)
class ChatAnswer:
    """A message of the assistant. As a text it is its content.

    Attributes:
        reasoning: Thoughts before the content. tool_calls: Functions that are to be called.
        finish_reason: "stop", "length" or "cancelled". tokens: That were written.
        first_seconds: Until the first token. seconds: Until the last one.
    """

    content: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason | None = None
    prompt_tokens: int = 0
    tokens: int = 0
    first_seconds: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        return self.content

    @property
    def tokens_per_second(self) -> float:
        """Of those behind the first one."""
        return (self.tokens - 1) / max(self.seconds - self.first_seconds, 1e-9) if self.tokens > 1 else 0.0

    def to_message(self) -> dict[str, JSON]:
        """For the next call of `chat`."""
        message: dict[str, JSON] = {"role": "assistant", "content": self.content}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [
                {
                    "id": one.id,
                    "type": "function",
                    "function": {"name": one.name, "arguments": read_arguments(one.arguments, one.name)},
                }
                for one in self.tool_calls
            ]
        return message


class AnswerStream:
    """An answer while it is written: iterate for its deltas; `answer` is what is there by then.

    Args:
        prompt: Tokens of the chat. parser: Takes the text apart.
    """

    def __init__(
        self,
        generator: EngineGenerator,
        prompt: Sequence[int],
        parser: AnswerParser,
        options: Mapping[str, object],
    ) -> None:
        if not _LENGTHS & options.keys():
            options = {"max_new_tokens": generator.room(len(prompt)), **options}
        self._began = time.monotonic()
        (self._request,) = generator.start(prompt, options)
        self._parser, self._total = parser, AnswerDelta()
        self._prompt, self._tokens = len(prompt), 0
        self._first = self._last = 0.0
        self._reason: FinishReason | None = None

    def __iter__(self) -> Iterator[AnswerDelta]:
        while self._reason is None:
            try:
                delta = self._request.next_delta(_LOOK)
            except TimeoutError:
                continue
            if delta is None:
                return
            self._last = time.monotonic() - self._began
            self._first = self._first or self._last
            self._tokens += delta.tokens
            answer = self._parser.feed(delta.text)
            self._reason = delta.finish_reason
            if self._reason is not None:
                answer += self._parser.finish()
            self._total += answer
            yield answer

    def cancel(self) -> None:
        """Ends the answer where it is; the iteration ends with what was held back."""
        self._request.cancel()

    @property
    def answer(self) -> ChatAnswer:
        """What was written by now."""
        total = self._total
        return ChatAnswer(
            total.content,
            total.reasoning,
            total.tool_calls,
            self._reason,
            self._prompt,
            self._tokens,
            self._first,
            self._last,
        )


def stream_chat(
    generator: EngineGenerator,
    messages: Sequence[Mapping[str, JSON]],
    tools: Sequence[Mapping[str, JSON]] | None = None,
    template: Mapping[str, JSON] | None = None,
    **options: object,
) -> AnswerStream:
    """The assistant's next message as it is written. Arguments and errors: as of LanguageModel.chat."""
    prompt = generator.encode_chat(messages, tools, template or {})
    parser = generator.make_parser(prompt, tools or ())
    return AnswerStream(generator, prompt.ids, parser, prompt.with_stop(options))


def answer_chat(
    generator: EngineGenerator,
    messages: Sequence[Mapping[str, JSON]],
    tools: Sequence[Mapping[str, JSON]] | None = None,
    template: Mapping[str, JSON] | None = None,
    **options: object,
) -> ChatAnswer:
    """The assistant's next message. Arguments and errors: as of LanguageModel.chat."""
    stream = stream_chat(generator, messages, tools, template, **options)
    for _ in stream:
        pass
    return stream.answer


class Conversation:
    """Messages that grow. Without a chat template the model goes on with the text itself.

    Args:
        options: Of each answer. template: What the chat template takes besides.
    """

    def __init__(
        self,
        generator: EngineGenerator,
        system: str | None = None,
        options: Mapping[str, object] | None = None,
        template: Mapping[str, JSON] | None = None,
    ) -> None:
        self.generator, self.system = generator, system
        self.options, self.template = dict(options or {}), dict(template or {})
        self.messages: list[Mapping[str, JSON]] = []

    def ask(self, text: str) -> AnswerStream:
        """The answer to a text as it is written; `keep` makes it one of the messages."""
        user: Mapping[str, JSON] = {"role": "user", "content": text}
        if not self.generator.has_template:
            return AnswerStream(
                self.generator, self.generator.encode(text), AnswerParser(reasoning=False), self.options
            )
        first: list[Mapping[str, JSON]] = (
            [] if self.system is None else [{"role": "system", "content": self.system}]
        )
        messages = [*first, *self.messages, user]
        return stream_chat(self.generator, messages, None, self.template, **self.options)

    def keep(self, text: str, answer: ChatAnswer) -> None:
        """Go on behind a text and its answer."""
        self.messages += [{"role": "user", "content": text}, answer.to_message()]

    def reset(self) -> None:
        """Forget all messages but the system's."""
        self.messages.clear()

    def save(self, path: str | Path) -> Path:
        """Write the messages as JSON, as `chat` and data sets of chats take them. Raises: OSError."""
        path = Path(path).expanduser()
        first = [] if self.system is None else [{"role": "system", "content": self.system}]
        content = {"messages": [*first, *self.messages]}
        write_file(path, (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))
        return path
