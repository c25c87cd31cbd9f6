"""Answers of OpenAI's Responses API: items, in one or as events of a stream; and the responses that are stored.

Source: OpenAI's API reference, "The response object" and "Streaming events".
"""

from __future__ import annotations

import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from framework.core.types import JSON
from framework.serving.errors import UnknownResponseError
from framework.serving.openai_answers import AnswerReader, Usage, chat_score, write_error
from framework.text.chat_answer import ToolCall
from framework.workflow.domain.text_generation import TextDelta, TokenScore

_MESSAGE, _REASONING = "message", "reasoning"
_PREFIXES = {_MESSAGE: "msg", _REASONING: "rs", "function_call": "fc"}
_STORED_CHARACTERS = 32_000_000
Event = dict[str, JSON]


@dataclass
class _TextItem:
    """A message, or thoughts, that is being written."""

    kind: str
    id: str
    text: str = ""
    scores: list[JSON] = field(default_factory=list)

    @property
    def _events(self) -> str:
        return "response.output_text" if self.kind == _MESSAGE else "response.reasoning_text"

    def begin(self, at: int) -> list[Event]:
        added: Event = {
            "type": "response.output_item.added",
            "output_index": at,
            "item": self.write("in_progress", []),
        }
        return [added, self._content_event("response.content_part.added", at, self._content("", []))]

    def add(self, at: int, text: str, scores: list[JSON]) -> list[Event]:
        self.text += text
        self.scores += scores
        event: Event = {"type": f"{self._events}.delta", **self._position(at), "delta": text}
        return [{**event, "logprobs": scores} if self.kind == _MESSAGE else event]

    def end(self, at: int) -> list[Event]:
        content = self._content(self.text, self.scores)
        done: Event = {"type": f"{self._events}.done", **self._position(at), "text": self.text}
        if self.kind == _MESSAGE:
            done["logprobs"] = [*self.scores]
        item = self.write("completed", [content])
        last: Event = {"type": "response.output_item.done", "output_index": at, "item": item}
        return [done, self._content_event("response.content_part.done", at, content), last]

    def write(self, status: str, content: list[JSON]) -> Event:
        """The item."""
        item: Event = {"id": self.id, "type": self.kind, "status": status}
        item |= {"role": "assistant"} if self.kind == _MESSAGE else {"summary": []}
        return {**item, "content": content}

    def _content(self, text: str, scores: list[JSON]) -> Event:
        if self.kind == _REASONING:
            return {"type": "reasoning_text", "text": text}
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": [*scores]}

    def _position(self, at: int) -> Event:
        return {"item_id": self.id, "output_index": at, "content_index": 0}

    def _content_event(self, kind: str, at: int, content: Event) -> Event:
        return {"type": kind, **self._position(at), "part": content}


@dataclass
class ResponseAnswer:
    """A response, as it comes.

    Args:
        repeated: Fields of the request that the response has, too.
        logprobs: Whether tokens come with their logarithms.
        store: Called with the response once it is whole, and the messages that it adds to its conversation.
    """

    model: str
    reader: AnswerReader
    repeated: Mapping[str, JSON]
    logprobs: bool
    store: Callable[[Mapping[str, JSON], Sequence[Mapping[str, JSON]]], None] | None
    id: str = field(default_factory=lambda: f"resp_{secrets.token_hex(24)}")
    created: int = field(default_factory=lambda: int(time.time()))
    _output: list[Event] = field(default_factory=list)
    _open: _TextItem | None = None
    _scores: list[TokenScore] = field(default_factory=list)
    _finish_reason: str | None = None
    _number: int = 0

    @property
    def reasoning_tokens(self) -> int:
        return self.reader.reasoning_tokens

    def begin(self) -> Iterable[Mapping[str, JSON]]:
        for kind in ("response.created", "response.in_progress"):
            yield {"type": kind, "response": self._response("in_progress", None)}

    def add(self, number: int, delta: TextDelta) -> Iterable[Mapping[str, JSON]]:
        del number  # there is one text
        answer, events = self.reader.read(delta), list[Event]()
        self._scores += delta.scores if self.logprobs else ()
        if answer.reasoning:
            events += self._add_text(_REASONING, answer.reasoning, [])
            self._scores.clear()
        if answer.content:
            events += self._add_text(_MESSAGE, answer.content, [chat_score(one) for one in self._scores])
            self._scores.clear()
        for call in answer.tool_calls:
            events += [*self._close(), *self._call(call)]
        if delta.finish_reason is not None:
            self._finish_reason = delta.finish_reason
            if not self._output and self._open is None:
                events += self._begin_item(_MESSAGE)  # an answer without a word is a message, too
            events += self._close()
        return events

    def write(self, content: Mapping[str, JSON]) -> bytes:
        text = json.dumps(
            {**content, "sequence_number": self._number}, ensure_ascii=False, separators=(",", ":")
        )
        self._number += 1
        return f"event: {content['type']}\ndata: {text}\n\n".encode("utf-8", "backslashreplace")

    def end(self, usage: Usage) -> Iterable[bytes]:
        response = self.whole(usage)
        yield self.write({"type": f"response.{response['status']}", "response": response})

    def fail(self, error: Exception, request_id: str) -> bytes:
        facts = write_error(error, request_id)["error"]
        assert isinstance(facts, dict)
        reason: JSON = {"code": facts["code"] or facts["type"], "message": facts["message"]}
        return self.write(
            {"type": "response.failed", "response": {**self._response("failed", None), "error": reason}}
        )

    def whole(self, usage: Usage) -> dict[str, JSON]:
        response = self._response("incomplete" if self._finish_reason == "length" else "completed", usage)
        if self.store is not None:
            self.store(response, self._messages())
        return response

    # -- items -----------------------------------------------------------------------------------------------------

    def _begin_item(self, kind: str) -> list[Event]:
        self._open = _TextItem(kind, _make_id(kind))
        return self._open.begin(len(self._output))

    def _add_text(self, kind: str, text: str, scores: list[JSON]) -> list[Event]:
        events: list[Event] = []
        if self._open is None or self._open.kind != kind:
            events = [*self._close(), *self._begin_item(kind)]
        assert self._open is not None
        return [*events, *self._open.add(len(self._output), text, scores)]

    def _close(self) -> list[Event]:
        if self._open is None:
            return []
        events = self._open.end(len(self._output))
        self._append(events[-1]["item"])
        self._open = None
        return events

    def _call(self, call: ToolCall) -> list[Event]:
        at, number = len(self._output), _make_id("function_call")
        item: Event = {"id": number, "type": "function_call", "status": "completed", "call_id": call.id}
        item |= {"name": call.name, "arguments": call.arguments}
        self._append(item)
        position: Event = {"item_id": number, "output_index": at}
        begun: JSON = {**item, "status": "in_progress", "arguments": ""}
        return [
            {"type": "response.output_item.added", "output_index": at, "item": begun},
            {"type": "response.function_call_arguments.delta", **position, "delta": call.arguments},
            {
                "type": "response.function_call_arguments.done",
                **position,
                "name": call.name,
                "arguments": call.arguments,
            },
            {"type": "response.output_item.done", "output_index": at, "item": item},
        ]

    def _append(self, item: JSON) -> None:
        assert isinstance(item, dict)
        self._output.append(item)

    def _messages(self) -> list[Mapping[str, JSON]]:
        """The output as the message that a template has for it."""
        message: Event = {"role": "assistant", "content": ""}
        calls: list[JSON] = []
        for item in self._output:
            if item["type"] == "function_call":
                function: JSON = {"name": item["name"], "arguments": item["arguments"]}
                calls.append({"id": item["call_id"], "type": "function", "function": function})
                continue
            key = "content" if item["type"] == _MESSAGE else "reasoning_content"
            blocks = item["content"]
            assert isinstance(blocks, list)
            texts = [str(block["text"]) for block in blocks if isinstance(block, dict)]
            message[key] = "".join([str(message.get(key, "")), *texts])
        return [{**message, "tool_calls": calls} if calls else message]

    def _response(self, status: str, usage: Usage | None) -> Event:
        details: JSON = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": details,
            "model": self.model,
            "output": [*self._output],
            **self.repeated,
            "store": self.store is not None,
            "usage": None if usage is None else _write_usage(usage),
        }


def _make_id(kind: str) -> str:
    return f"{_PREFIXES[kind]}_{secrets.token_hex(24)}"


def _write_usage(usage: Usage) -> JSON:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    }


class ResponseStore:
    """Responses that later requests go on from, in the memory of this process: those that were used longest ago go
    first.

    Args:
        characters: The most that are stored, as JSON.
    """

    def __init__(self, characters: int = _STORED_CHARACTERS) -> None:
        self._most, self._stored = characters, 0
        self._entries: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def add(self, response: Mapping[str, JSON], conversation: Sequence[Mapping[str, JSON]]) -> None:
        """Stores a response, with the messages up to its end."""
        text = json.dumps([response, list(conversation)])
        self._entries[str(response["id"])] = text, len(text)
        self._stored += len(text)
        while self._stored > self._most:
            _, (_, size) = self._entries.popitem(last=False)
            self._stored -= size

    def response(self, number: str) -> Mapping[str, JSON]:
        """Raises: UnknownResponseError."""
        return self._find(number)[0]

    def conversation(self, number: str) -> Sequence[Mapping[str, JSON]]:
        """Raises: UnknownResponseError."""
        return self._find(number)[1]

    def remove(self, number: str) -> None:
        """Raises: UnknownResponseError."""
        self._find(number)
        self._stored -= self._entries.pop(number)[1]

    def _find(self, number: str) -> tuple[Mapping[str, JSON], Sequence[Mapping[str, JSON]]]:
        if number not in self._entries:
            raise UnknownResponseError(
                "there is no such response",
                received=number[:100],
                allowed="one that was stored by this process of the server, and not long ago",
                fix="send the items of the conversation as `input`",
            )
        self._entries.move_to_end(number)
        response, conversation = json.loads(self._entries[number][0])
        return response, conversation
