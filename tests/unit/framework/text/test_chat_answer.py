"""Answers taken apart: the same whole, character by character, and in pieces of three."""

from __future__ import annotations

import json

import pytest

from framework.core.types import JSON
from framework.text.chat_answer import AnswerDelta, AnswerParser, ToolForm, find_tool_form, parse_answer

CASES: list[tuple[ToolForm | None, bool, str, str, str, list[tuple[str, JSON]]]] = [
    (None, False, "plain <tool_call>x", "plain <tool_call>x", "", []),
    (None, False, "<think>\nI see.\n</think>\n\nYes.", "Yes.", "I see.", []),
    (None, False, " \n<think>\n\n</think>\n\nYes.", "Yes.", "", []),
    (None, True, "I see.\n\nWell.\n</think>\n\nYes.\n", "Yes.\n", "I see.\n\nWell.", []),
    (None, True, "cut off in th", "", "cut off in th", []),
    (None, False, "<thin ice", "<thin ice", "", []),
    (None, False, "a </think> b", "a </think> b", "", []),
    (
        "hermes", False, 'Look.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', "Look.", "", [("f", {"a": 1})]),
    (
        "hermes",
        False,
        '<tool_call>{"name": "f", "arguments": {}}</tool_call>\n<tool_call>{"name": "g"}</tool_call>\n',
        "",
        "",
        [("f", {}), ("g", {})],
    ),
    ("hermes", False, "<think>t</think><tool_call>{\"name\": \"f\"}</tool_call>", "", "t", [("f", {})]),
    ("hermes", False, "<tool_call>no JSON</tool_call> more", "<tool_call>no JSON</tool_call> more", "", []),
    ("hermes", False, '<tool_call>{"name": "f", "argu', '<tool_call>{"name": "f", "argu', "", []),
    ("hermes", False, "a < b and <tool", "a < b and <tool", "", []),
    (
        "hermes",
        False,
        "<tool_call>\n<function=f>\n<parameter=city>\n東京\n</parameter>\n"
        "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
        "",
        "",
        [("f", {"city": "東京", "days": 2})],
    ),
    ("llama3", False, '{"name": "f", "parameters": {"a": "b"}}', "", "", [("f", {"a": "b"})]),
    ("llama3", False, '<|python_tag|>{"name": "f", "parameters": {}}; {"name": "g"}', "", "", [("f", {}), ("g", {})]),
    ("llama3", False, '{"a": 1} is JSON', '{"a": 1} is JSON', "", []),
    ("llama3", False, "No {call}.", "No {call}.", "", []),
    ("mistral", False, '[TOOL_CALLS] [{"name": "f", "arguments": {}, "id": "abcdefgh1"}]', "", "", [("f", {})]),
    ("mistral", False, 'Well.[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS]g[CALL_ID]x[ARGS]{}', "Well.", "", [("f", {}), ("g", {})]),
    ("mistral", False, "[TOOL_CALLS] broken", "[TOOL_CALLS] broken", "", []),
    ("mistral", False, "a list [TOO", "a list [TOO", "", []),
]  # fmt: skip
TOOLS: list[dict[str, JSON]] = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"properties": {"city": {"type": "string"}}}},
    }
]


@pytest.mark.parametrize("step", [1, 3, 10_000])
@pytest.mark.parametrize("case", CASES, ids=[case[2][:30] for case in CASES])
def test_taken_apart(
    case: tuple[ToolForm | None, bool, str, str, str, list[tuple[str, JSON]]], step: int
) -> None:
    form, thinking, text, content, reasoning, calls = case
    parser, answer = AnswerParser(form, TOOLS, thinking), AnswerDelta()
    for start in range(0, len(text), step):
        answer += parser.feed(text[start : start + step])
    answer += parser.finish()
    assert (answer.content, answer.reasoning) == (content, reasoning)
    assert [(call.name, json.loads(call.arguments)) for call in answer.tool_calls] == calls
    assert len({call.id for call in answer.tool_calls}) == len(calls)


def test_text_comes_at_once() -> None:
    parser = AnswerParser("hermes")
    assert parser.feed("Hello").content == "Hello"
    assert not parser.feed(" <tool")
    assert parser.feed("box").content == " <toolbox"


def test_ids() -> None:
    (call,) = parse_answer('[TOOL_CALLS][{"name": "f", "arguments": {}}]', "mistral").tool_calls
    assert len(call.id) == 9 and call.id.isalnum()
    (call,) = parse_answer(
        '[TOOL_CALLS][{"name": "f", "arguments": {}, "id": "123456789"}]', "mistral"
    ).tool_calls
    assert call.id == "123456789"
    (call,) = parse_answer('{"name": "f", "parameters": {}}', "llama3").tool_calls
    assert call.id.startswith("call_") and len(call.id) == 29


def test_what_a_number_in_the_place_of_a_text_is() -> None:
    text = "<tool_call><function=f><parameter=city>12</parameter><parameter=x>null</parameter></function></tool_call>"
    (call,) = parse_answer(text, "hermes", TOOLS).tool_calls
    assert json.loads(call.arguments) == {"city": "12", "x": None}


def test_forms_of_templates() -> None:
    assert find_tool_form("… <tool_call> …") == "hermes"
    assert find_tool_form("[TOOL_CALLS]") == "mistral"
    assert find_tool_form('ipython … "parameters": ') == "llama3"
    assert find_tool_form("{{ messages }}") == "hermes"
