"""Conversations and instructions as files have them: one JSON object a line, or one JSON list.

Forms, told by their keys:
    OpenAI      {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}], "tools": […]}
    ShareGPT    {"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}], "system": "…"};
                "function_call" has {"name": "…", "arguments": {…}} as its value, "observation" what came of it
    Alpaca      {"instruction": "…", "input": "…", "output": "…", "system": "…", "history": [["…", "…"]]}
    PaddleNLP   {"src": "…" or ["…"], "tgt": "…" or ["…"]}
    trl         {"prompt": "…" or messages, "completion": "…" or messages}

A message of the assistant with "weight": 0 (OpenAI), "loss": false (ms-swift), "train" or "training": false (Axolotl)
is read and not learned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from framework.core.errors import FormatError
from framework.core.types import JSON
from framework.text.json_entries import parse_json
from nlp.data.json_files import present_fields

Message = Mapping[str, object]
"""{"role": "system" | "user" | "assistant" | "tool", "content": a text, or what a template takes besides}"""

_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "bot": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "observation": "tool",
    "function_call": "assistant",
}


@dataclass(frozen=True)
class Conversation:
    """What was said, in order."""

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, JSON], ...] | None = None
    where: str = ""


def read_conversation(fields: Mapping[str, object], where: str) -> Conversation:
    """Raises: FormatError, where the object has none of the forms above, or an entry is no text."""
    fields = present_fields(fields)
    tools = read_tools(fields, where)
    messages = _messages_of(fields, where)
    if not any(message["role"] == "assistant" for message in messages):
        raise FormatError(
            "nobody answers in the conversation",
            where=where,
            received=f"roles {[message['role'] for message in messages]}",
            allowed="a message of the assistant, which a model learns to write",
        )
    return Conversation(tuple(messages), tools, where)


def read_tools(fields: Mapping[str, object], where: str) -> tuple[Mapping[str, JSON], ...] | None:
    """The functions that the assistant may call; a text is their JSON. Raises: FormatError, where they are no list."""
    tools = fields.get("tools")
    if isinstance(tools, str):
        tools = parse_json(tools, f"{where}: tools") if tools.strip() else None
    if tools is not None and not isinstance(tools, list):
        raise FormatError(
            "tools are no list", where=where, received=repr(tools)[:80], allowed="a list of functions"
        )
    return tuple(tools) if tools else None


def _messages_of(fields: Mapping[str, object], where: str) -> list[Message]:
    system = fields.get("system")
    first = [_message("system", system, where)] if isinstance(system, str) and system.strip() else []
    for name in ("messages", "conversations", "conversation"):
        turns = fields.get(name)
        if isinstance(turns, list):
            return first + chat_messages(turns, where)
    if "instruction" in fields and "output" in fields:
        return first + _alpaca(fields, where)
    if "src" in fields and "tgt" in fields:
        return first + _turns(fields["src"], fields["tgt"], where)
    if "prompt" in fields and ("completion" in fields or "response" in fields):
        answer = fields["completion"] if "completion" in fields else fields["response"]
        return first + as_messages(fields["prompt"], "user", where) + as_messages(answer, "assistant", where)
    raise FormatError(
        "the entry is no conversation",
        where=where,
        received=f"keys {', '.join(fields) or 'none'}",
        allowed="messages; conversations; instruction and output; src and tgt; prompt and completion",
    )


def as_messages(value: object, role: str, where: str) -> list[Message]:
    """Messages as they are, or a text as one of this role. Raises: FormatError."""
    return chat_messages(value, where) if isinstance(value, list) else [_message(role, value, where)]


def chat_messages(entries: Sequence[object], where: str) -> list[Message]:
    """Messages of OpenAI's or ShareGPT's form as OpenAI's. Raises: FormatError."""
    messages: list[Message] = []
    for number, entry in enumerate(entries):
        message_where = f"{where}, message {number}"
        if not isinstance(entry, dict):
            raise FormatError(
                "a message is no object",
                where=message_where,
                received=repr(entry)[:80],
                allowed="role, content",
            )
        entry = _in_one_form(entry)
        role = _ROLES.get(str(entry.get("role", entry.get("from"))).lower())
        if role is None:
            roles = ", ".join(_ROLES)
            raise FormatError(
                "nobody said the message",
                where=message_where,
                received=repr(entry)[:80],
                allowed=f"role: {roles}",
            )
        if "role" in entry:
            if not isinstance(entry.get("content"), str | list) and not entry.get("tool_calls"):
                raise FormatError(
                    "a message has no content",
                    where=message_where,
                    received=repr(entry)[:80],
                    allowed="a text",
                )
            messages.append({**entry, "role": role, "content": entry.get("content") or ""} | _calls(entry))
        elif entry.get("from") == "function_call":
            calls = _shared_calls(entry.get("value"), message_where)
            messages.append({"role": role, "content": "", "tool_calls": calls})
        else:
            messages.append(_message(role, entry.get("value"), message_where))
        if role == "assistant" and not _is_learned(entry, message_where):
            messages[-1] = {**messages[-1], "weight": 0}
    return messages


def _is_learned(entry: Mapping[str, object], where: str) -> bool:
    """Whether a message of the assistant is learned. Raises: FormatError, where its weight is neither 0 nor 1."""
    weight = entry.get("weight")
    weight = 1 if weight is None else weight  # tables have a null where a message has no weight
    if weight not in (0, 1):
        raise FormatError(
            "a message is learned or not",
            where=f"{where}: weight",
            received=repr(weight)[:80],
            allowed="0 or 1",
        )
    return weight == 1 and not any(entry.get(name) is False for name in ("loss", "train", "training"))


def skipped_answers(messages: Sequence[Message]) -> frozenset[int]:
    """The messages of the assistant that are read and not learned."""
    return frozenset(number for number, message in enumerate(messages) if message.get("weight") == 0)


def _in_one_form(entry: Mapping[str, object]) -> dict[str, object]:
    """A message with OpenAI's keys alone, or ShareGPT's: tables give each message the keys of all, null where it has
    none, and some files name who speaks as one form and what is said as the other."""
    present = present_fields(entry)
    if "role" in present and "content" not in present and "value" in present:
        present["content"] = present.pop("value")
    if "from" in present and "role" not in present and "value" not in present and "content" in present:
        present["value"] = present.pop("content")
    return present


def _calls(entry: Mapping[str, object]) -> dict[str, object]:
    """The calls of a message with their arguments as data, which templates write as JSON: OpenAI's are JSON already,
    and would be a text within it."""
    calls = entry.get("tool_calls")
    if not isinstance(calls, list):
        return {}
    return {"tool_calls": [_with_arguments(call) for call in calls]}


def _with_arguments(call: object) -> object:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        return call
    return {**call, "function": {**function, "arguments": _data(function.get("arguments"))}}


def _data(arguments: object) -> object:
    """JSON as what it says; what is none as it is."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def _shared_calls(value: object, where: str) -> list[object]:
    """The calls of ShareGPT's text: an object with a name and arguments, or a list of them. Raises: FormatError."""
    parsed = parse_json(value, where) if isinstance(value, str) else value
    calls: list[object] = []
    for call in parsed if isinstance(parsed, list) else [parsed]:
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            raise FormatError(
                "a function_call names no function",
                where=where,
                received=repr(value)[:80],
                allowed='{"name": "…", "arguments": {…}}, or a list of them',
            )
        function = {"name": call["name"], "arguments": _data(call.get("arguments"))}
        calls.append({"type": "function", "function": function})
    return calls


def _message(role: str, content: object, where: str) -> Message:
    if not isinstance(content, str):
        raise FormatError(
            f"what the {role} says is no text", where=where, received=repr(content)[:80], allowed="a text"
        )
    return {"role": role, "content": content}


def _alpaca(fields: Mapping[str, object], where: str) -> list[Message]:
    messages: list[Message] = []
    history = fields.get("history")
    for turn in history if isinstance(history, list) else []:
        if not isinstance(turn, list) or len(turn) != 2:
            raise FormatError(
                "an entry of history is no pair",
                where=where,
                received=repr(turn)[:80],
                allowed="[question, answer]",
            )
        messages += [_message("user", turn[0], where), _message("assistant", turn[1], where)]
    more = fields.get("input")
    requested = fields["instruction"]
    if isinstance(more, str) and more and isinstance(requested, str):
        requested = f"{requested}\n{more}" if requested else more
    return [*messages, _message("user", requested, where), _message("assistant", fields["output"], where)]


def _turns(questions: object, answers: object, where: str) -> list[Message]:
    requested = questions if isinstance(questions, list) else [questions]
    replies = answers if isinstance(answers, list) else [answers]
    if len(requested) != len(replies) or not requested:
        raise FormatError(
            "there are not as many answers as questions",
            where=where,
            received=f"{len(requested)} of src, {len(replies)} of tgt",
            allowed="as many",
        )
    return [
        _message(role, text, where)
        for question, answer in zip(requested, replies)
        for role, text in (("user", question), ("assistant", answer))
    ]
