"""Answers in the form of OpenAI's API: whole ones, chunks of a stream, errors."""

from __future__ import annotations

import codecs
import functools
import json
import math
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from framework.core.types import JSON
from framework.serving.errors import UnknownResponseError, error_body, status_of
from framework.text.chat_answer import AnswerDelta, AnswerParser, ToolCall, make_call_id
from framework.workflow.domain.text_generation import TextDelta, TokenScore

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_CODES = {401: "invalid_api_key", 404: "model_not_found"}
_TOO_LONG = ("the prompt is too long", "the prompt is as long", "the text does not fit")
# LangChain and litellm tell this error, after which programs shorten a chat, by words of its message.
_LONG_MESSAGE = (
    "context_length_exceeded: the requested token count exceeds the model's maximum context length"
)
_CONTINUATIONS = frozenset(bytes([byte]) for byte in range(0x80, 0xC0)) | {b""}
DONE = b"data: [DONE]\n\n"


def write_error(error: Exception, request_id: str) -> Mapping[str, JSON]:
    """`{"error": {"message", "type", "param", "code"}}`."""
    status, facts = status_of(error), error_body(error, request_id)["error"]
    assert isinstance(facts, dict)
    problem = str(facts["problem"])
    texts = [
        problem,
        *(f"{name}: {facts[name]}" for name in ("where", "received", "allowed", "fix") if name in facts),
    ]
    code = None if isinstance(error, UnknownResponseError) else _CODES.get(status)
    if problem.startswith(_TOO_LONG):
        code = "context_length_exceeded"
        texts.append(_LONG_MESSAGE)
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    param = facts.get("where") if status == 400 else None
    return {
        "error": {
            "message": "; ".join(texts),
            "type": kind,
            "param": param,
            "code": code,
            "request_id": request_id,
        }
    }


def event(content: Mapping[str, JSON]) -> bytes:
    """A server-sent event."""
    return _event(_dump(content))


def _event(text: str) -> bytes:
    return b"data: " + text.encode("utf-8", "backslashreplace") + b"\n\n"


_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass
class Usage:
    """Tokens of a request.

    Attributes:
        cached: Of the prompt, that did not have to be read again.
        reasoning: Of the completion, up to the end of its thoughts.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0

    def to_dict(self) -> dict[str, JSON]:
        """As chats and completions have it."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning},
        }


def _finish(delta: TextDelta) -> str | None:
    return "stop" if delta.finish_reason == "cancelled" else delta.finish_reason


@dataclass
class AnswerReader:
    """Takes a message of the assistant apart as it comes.

    Args:
        forced: The function that is called: the text is its arguments; "required": the text is a call as JSON.

    Attributes:
        reasoning_tokens: Up to the last delta with a thought.
    """

    parser: AnswerParser
    forced: str | None
    calls: int = 0
    text: str = ""
    tokens: int = 0
    reasoning_tokens: int = 0

    def read(self, delta: TextDelta) -> AnswerDelta:
        """What some more text adds."""
        answer = self._take(delta)
        self.calls += len(answer.tool_calls)
        self.tokens += delta.tokens
        if answer.reasoning:
            self.reasoning_tokens = self.tokens
        return answer

    def finish_reason(self, delta: TextDelta) -> str | None:
        """As OpenAI has it: a text that was cut off says so, and a named function is no choice of the model."""
        ends = self.calls and delta.finish_reason == "stop" and self.forced in (None, "required")
        return "tool_calls" if ends else _finish(delta)

    def _take(self, delta: TextDelta) -> AnswerDelta:
        ends = delta.finish_reason is not None
        if self.forced is None:
            answer = self.parser.feed(delta.text)
            return answer + self.parser.finish() if ends else answer
        self.text += delta.text
        if not ends:
            return AnswerDelta()
        if delta.finish_reason == "length":
            return AnswerDelta(content=self.text)  # arguments that end too soon are no call
        return read_forced(self.text, self.forced)


@dataclass
class ChatChoice:
    """One answer of a chat, as it comes."""

    index: int
    reader: AnswerReader
    logprobs: bool
    answers: list[AnswerDelta] = field(default_factory=list)
    scores: list[JSON] = field(default_factory=list)
    finish_reason: str | None = None

    @property
    def reasoning_tokens(self) -> int:
        return self.reader.reasoning_tokens

    def add(self, delta: TextDelta) -> list[dict[str, JSON]]:
        """The choices of the chunks that a delta makes."""
        scores = [chat_score(score) for score in delta.scores] if self.logprobs else []
        calls = self.reader.calls
        answer = self.reader.read(delta)
        self.answers.append(answer)
        self.scores += scores
        content: dict[str, JSON] = {}
        if answer.content:
            content["content"] = answer.content
        if answer.reasoning:
            content["reasoning_content"] = answer.reasoning
        if answer.tool_calls:
            content["tool_calls"] = [
                {"index": calls + number, **write_call(call)} for number, call in enumerate(answer.tool_calls)
            ]
        choices = []
        if content or scores:
            choices.append(self._choice(content, None, scores))
        if delta.finish_reason is not None:
            self.finish_reason = self.reader.finish_reason(delta)
            choices.append(self._choice({}, self.finish_reason, []))
        return choices

    def _choice(self, content: Mapping[str, JSON], reason: str | None, scores: list[JSON]) -> dict[str, JSON]:
        logprobs: JSON = {"content": scores, "refusal": None} if scores else None
        return {"index": self.index, "delta": dict(content), "logprobs": logprobs, "finish_reason": reason}

    def first(self) -> dict[str, JSON]:
        """The choice of the first chunk."""
        return self._choice({"role": "assistant", "content": ""}, None, [])

    def whole(self) -> dict[str, JSON]:
        """The choice of an answer that does not stream."""
        calls: list[JSON] = [write_call(call) for one in self.answers for call in one.tool_calls]
        content = "".join(one.content for one in self.answers)
        reasoning = "".join(one.reasoning for one in self.answers)
        message: dict[str, JSON] = {
            "role": "assistant",
            "content": None if calls and not content else content,
        }
        message["refusal"] = None
        if reasoning:
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = calls
        logprobs: JSON = {"content": self.scores, "refusal": None} if self.logprobs else None
        return {
            "index": self.index,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": self.finish_reason,
        }


class TokenOffsets:
    """The character of a text with which each token begins, or which it continues: tokens are bytes, of which a
    character may take several."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._length = 0

    def add(self, scores: Sequence[TokenScore]) -> None:
        """The tokens that follow."""
        for score in scores:
            pending = self._decoder.getstate()[0]
            continues = not pending or score.data[:1] in _CONTINUATIONS
            self.values.append(self._length + (not continues))  # else the pending bytes are U+FFFD
            self._length += len(self._decoder.decode(score.data))


@dataclass
class CompletionChoice:
    """One text of a completion, as it comes.

    Args:
        start: What `echo` puts before it, and the scores of its tokens.
        logprobs: Alternatives of each token; None: no logarithms.
    """

    index: int
    start: tuple[str, Sequence[TokenScore]]
    logprobs: int | None
    text: str = ""
    scores: list[TokenScore] = field(default_factory=list)
    finish_reason: str | None = None
    reasoning_tokens: int = 0
    has_begun: bool = False
    offsets: TokenOffsets = field(default_factory=TokenOffsets)

    def begin(self) -> None:
        """Puts down what `echo` asks for."""
        if not self.has_begun:
            self.has_begun = True
            self.text, self.scores = self.start[0], [*self.start[1]]
            self.offsets.add(self.start[1])

    def add(self, delta: TextDelta) -> list[dict[str, JSON]]:
        """The choices of the chunks that a delta makes."""
        at, before = (len(self.text), len(self.scores)) if self.has_begun else (0, 0)
        self.begin()
        self.text += delta.text
        self.scores += delta.scores
        self.offsets.add(delta.scores)
        if delta.finish_reason is not None:
            self.finish_reason = _finish(delta)
        elif len(self.text) == at and len(self.scores) == before:
            return []
        return [self._choice(self.text[at:], before)]

    def _choice(self, text: str, first: int = 0) -> dict[str, JSON]:
        """With the scores from `first` on."""
        logprobs = (
            None
            if self.logprobs is None
            else _completion_scores(self.scores[first:], self.offsets.values[first:])
        )
        return {"index": self.index, "text": text, "logprobs": logprobs, "finish_reason": self.finish_reason}

    def whole(self) -> dict[str, JSON]:
        """The choice of an answer that does not stream."""
        return self._choice(self.text)


@dataclass(frozen=True)
class Envelope:
    """What all objects of one answer have in common."""

    kind: str
    model: str
    id: str
    created: int

    @classmethod
    def make(cls, kind: str, prefix: str, model: str) -> Envelope:
        """For an answer that begins now."""
        return cls(kind, model, f"{prefix}-{secrets.token_hex(12)}", int(time.time()))

    @functools.cached_property
    def _start(self) -> str:
        """An object up to its choices."""
        return _dump(self.write([])).removesuffix("]}")

    def event(self, choice: Mapping[str, JSON], with_usage: bool, usage: Usage | None = None) -> bytes:
        """A server-sent event with one choice; what all of a stream have in common is written once.

        Args:
            with_usage: The last event has the usage, so that the others say that they have none.
            usage: The tokens so far, where this event has them, too.
        """
        end = f'],"usage":{_dump(usage.to_dict() if usage else None)}}}' if with_usage else "]}"
        return _event(self._start + _dump(choice) + end)

    def write(
        self, choices: Sequence[Mapping[str, JSON]], usage: Mapping[str, JSON] | None = None
    ) -> dict[str, JSON]:
        """An object with choices."""
        content: dict[str, JSON] = {
            "id": self.id,
            "object": self.kind,
            "created": self.created,
            "model": self.model,
        }
        content["choices"] = [dict(choice) for choice in choices]
        return content if usage is None else {**content, "usage": dict(usage)}


class TextAnswer(Protocol):
    """What a request is answered with: in one, or by events of a stream."""

    @property
    def reasoning_tokens(self) -> int: ...

    def begin(self) -> Iterable[Mapping[str, JSON]]:
        """What a stream begins with."""
        ...

    def add(self, number: int, delta: TextDelta) -> Iterable[Mapping[str, JSON]]:
        """What a delta of a text adds to a stream."""
        ...

    def write(self, content: Mapping[str, JSON]) -> bytes:
        """What `begin` or `add` gave, as an event."""
        ...

    def end(self, usage: Usage) -> Iterable[bytes]:
        """The events behind the last text."""
        ...

    def fail(self, error: Exception, request_id: str) -> bytes:
        """The event of what ended the stream too soon."""
        ...

    def whole(self, usage: Usage) -> dict[str, JSON]:
        """The answer in one, behind the last text."""
        ...


@dataclass
class ChoicesAnswer:
    """An answer with choices: of chats and completions.

    Args:
        with_usage: Whether a stream ends with the number of tokens.
        usage: What is counted while the texts are written, where each event has it (vLLM's continuous_usage_stats).
    """

    envelope: Envelope
    choices: Sequence[ChatChoice] | Sequence[CompletionChoice]
    with_usage: bool
    usage: Usage | None = None

    @property
    def reasoning_tokens(self) -> int:
        return sum(choice.reasoning_tokens for choice in self.choices)

    def begin(self) -> Iterable[Mapping[str, JSON]]:
        for choice in self.choices:
            if isinstance(choice, ChatChoice):
                yield choice.first()
            elif choice.finish_reason is not None:  # no token is asked for
                yield choice.whole()

    def add(self, number: int, delta: TextDelta) -> Iterable[Mapping[str, JSON]]:
        return self.choices[number].add(delta)

    def write(self, content: Mapping[str, JSON]) -> bytes:
        return self.envelope.event(content, self.with_usage, self.usage)

    def end(self, usage: Usage) -> Iterable[bytes]:
        if self.with_usage:
            yield event(self.envelope.write([], usage.to_dict()))
        yield DONE

    def fail(self, error: Exception, request_id: str) -> bytes:
        return event(write_error(error, request_id)) + DONE  # as vLLM: many clients read up to it

    def whole(self, usage: Usage) -> dict[str, JSON]:
        return self.envelope.write([choice.whole() for choice in self.choices], usage.to_dict())


def write_call(call: ToolCall) -> dict[str, JSON]:
    """A call of a tool."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def forced_schema(tools: Sequence[Mapping[str, JSON]], choice: str) -> JSON:
    """The schema of what a model writes that has to call a function: its arguments, or the name with them."""
    functions = [tool["function"] for tool in tools]
    schemas: dict[str, JSON] = {}
    for function in functions:
        assert isinstance(function, dict)
        schemas[str(function["name"])] = function.get("parameters") or {"type": "object"}
    if choice != "required":
        return schemas[choice]
    calls: list[JSON] = [
        {
            "type": "object",
            "properties": {"name": {"const": name}, "arguments": schema},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for name, schema in schemas.items()
    ]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


def read_forced(text: str, choice: str) -> AnswerDelta:
    """The call that a text of `forced_schema` is."""
    if choice != "required":
        return AnswerDelta(tool_calls=(ToolCall(choice, text.strip(), make_call_id()),))
    try:
        value = json.loads(text)
        name, arguments = value["name"], json.dumps(value["arguments"], ensure_ascii=False)
    except (ValueError, LookupError, TypeError):
        return AnswerDelta(content=text)
    return AnswerDelta(tool_calls=(ToolCall(str(name), arguments, make_call_id()),))


def chat_score(score: TokenScore) -> JSON:
    """A token of a message with its logarithm."""
    return {**_score(score), "top_logprobs": [_score(one) for one in score.top]}


def _score(score: TokenScore) -> dict[str, JSON]:
    return {"token": score.text, "logprob": _finite(score.logprob), "bytes": list(score.data)}


def _completion_scores(scores: Sequence[TokenScore], offsets: Sequence[int]) -> JSON:
    return {
        "tokens": [_key(score) for score in scores],
        "token_logprobs": [None if math.isnan(score.logprob) else _finite(score.logprob) for score in scores],
        "top_logprobs": [
            None if math.isnan(score.logprob) else {_key(one): _finite(one.logprob) for one in score.top}
            for score in scores
        ],
        "text_offset": [*offsets],
    }


def _key(score: TokenScore) -> str:
    """A token's name in a completion: part of a character is told by its bytes, as all such would be one key else."""
    if score.data == score.text.encode("utf-8", "replace"):
        return score.text
    return "bytes:" + "".join(f"\\x{byte:02x}" for byte in score.data)


def _finite(value: float) -> float:
    """JSON has no infinity: what cannot be has the value that OpenAI's API gives it."""
    return max(value, -9999.0)
