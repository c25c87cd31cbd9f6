"""Answers of OpenAI's API from deltas: why they end, and what is content. Cases of public reports."""

from __future__ import annotations

import json

import pytest

from framework.serving.errors import BadRequestError
from framework.serving.openai_answers import (
    AnswerReader,
    ChatChoice,
    ChoicesAnswer,
    Envelope,
    event,
    forced_schema,
    read_forced,
)
from framework.serving.openai_fields import get_int
from framework.serving.openai_requests import read_chat
from framework.text.chat_answer import AnswerParser
from framework.workflow.domain.text_generation import FinishReason, TextDelta

CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in "fg"]


def finish(text: str, reason: FinishReason, forced: str | None = None) -> ChatChoice:
    choice = ChatChoice(0, AnswerReader(AnswerParser("hermes"), forced), False)
    for character in text:
        choice.add(TextDelta(character, 1))
    choice.add(TextDelta("", 1, (), reason))
    return choice


@pytest.mark.parametrize(
    ("text", "reason", "forced", "ends", "calls", "content"),
    [
        ("hi", "stop", None, "stop", 0, "hi"),
        (CALL, "stop", None, "tool_calls", 1, ""),
        (CALL + CALL[:30], "length", None, "length", 1, CALL[:30]),
        ('{"name": "f", "arguments": {"a": 1}}', "stop", "required", "tool_calls", 1, ""),
        ('{"name": "f", "argu', "length", "required", "length", 0, '{"name": "f", "argu'),
        ('{"a": 1}', "stop", "f", "stop", 1, ""),
        ('{"a": ', "length", "f", "length", 0, '{"a": '),
        ("cut", "cancelled", None, "stop", 0, "cut"),
    ],
)
def test_why_an_answer_ends(
    text: str, reason: FinishReason, forced: str | None, ends: str, calls: int, content: str
) -> None:
    choice = finish(text, reason, forced)
    whole = choice.whole()
    message = whole["message"]
    assert isinstance(message, dict)
    assert whole["finish_reason"] == ends and len(message.get("tool_calls", [])) == calls  # type: ignore[arg-type]
    assert (message["content"] or "") == content


def test_schemas_of_calls() -> None:
    assert forced_schema(TOOLS, "f") == {"type": "object"}
    both = forced_schema(TOOLS, "required")
    assert isinstance(both, dict) and len(both["anyOf"]) == 2  # type: ignore[arg-type]
    assert read_forced("no JSON", "required").content == "no JSON"


def test_contents_of_messages() -> None:
    blocks = [{"type": "text", "text": "a"}, "b"]
    work = read_chat({"model": "m", "messages": [{"role": "user", "content": blocks}]})
    assert work.messages[0]["content"] == "ab"
    call = {"id": None, "type": "function", "function": {"name": "f", "arguments": ""}}
    work = read_chat(
        {"model": "m", "messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
    )
    calls = work.messages[0]["tool_calls"]
    assert isinstance(calls, list) and calls[0]["function"]["arguments"] == {}  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ("null", {}),
        ('{"a": "an answer that was cut', {"INVALID_JSON": '{"a": "an answer that was cut'}),
        ("[1]", {"INVALID_JSON": "[1]"}),
        ("[" * 200 + "]" * 200, {"INVALID_JSON": "[" * 200 + "]" * 200}),
    ],
)
def test_a_malformed_call_of_the_history_does_not_end_the_chat(
    text: str, arguments: object, caplog: pytest.LogCaptureFixture
) -> None:
    """vllm#43995: clients send it again with every later message."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": text}}
    work = read_chat({"model": "m", "messages": [{"role": "assistant", "tool_calls": [call]}]})
    calls = work.messages[0]["tool_calls"]
    assert isinstance(calls, list) and calls[0]["function"]["arguments"] == arguments  # type: ignore[index,call-overload]
    assert ("no JSON object" in caplog.text) == ("INVALID_JSON" in str(arguments))
    assert "cut" not in caplog.text  # the log holds nothing that users write


def test_what_asks_for_nothing_is_taken() -> None:
    function = {"name": "f", "description": None, "parameters": None, "strict": None}
    tools = [{"type": "function", "function": function}]
    messages = [{"role": "user", "content": "a"}]
    work = read_chat({"model": "m", "messages": messages, "tools": tools, "top_logprobs": 0})  # type: ignore[dict-item]
    assert work.tools == [{"type": "function", "function": {"name": "f"}}] and work.logprobs is None


@pytest.mark.parametrize("usage", [False, True])
def test_an_event_is_the_object_as_json(usage: bool) -> None:
    envelope = Envelope.make("chat.completion.chunk", "chatcmpl", 'a "model" \u00e9]}')
    choice = {"index": 0, "delta": {"content": '\ud800\u00e9\n"]}'}, "finish_reason": None}
    whole = event({**envelope.write([choice]), **({"usage": None} if usage else {})})
    assert envelope.event(choice, usage) == whole


def test_a_stream_that_fails_ends_as_all_do() -> None:
    """colibri#260, mastra#22097: behind the error comes what clients read up to, as vLLM writes it."""
    answer = ChoicesAnswer(Envelope.make("chat.completion.chunk", "chatcmpl", "m"), (), with_usage=True)
    failure, end, rest = answer.fail(BadRequestError("too long", where="prompt"), "7").split(b"\n\n")
    assert "too long" in json.loads(failure.removeprefix(b"data: "))["error"]["message"]
    assert end == b"data: [DONE]" and not rest


def test_a_whole_number_may_have_a_fraction_of_zero() -> None:
    """litellm#1854: languages with one kind of numbers write 100.0."""
    value = get_int({"max_tokens": 100.0}, "max_tokens", 1)
    assert value == 100 and isinstance(value, int)
    for wrong in (6000.5, 0.0, float("inf"), float("nan"), True, "100"):  # gpustack#4057
        with pytest.raises(BadRequestError, match="a whole number from 1"):
            get_int({"max_tokens": wrong}, "max_tokens", 1)
