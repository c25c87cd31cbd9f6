"""Texts of chats by apply_chat_template, and the spans that are marked as answers: transformers 5, jinja2."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "chat_templates"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a <city> & its 'surroundings'.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Zürich, 東京"},
                "days": {"type": "integer"},
            },
            "required": ["city"],
        },
    },
}
CALL = {
    "id": "abcdefgh1",
    "type": "function",
    "function": {"name": "weather", "arguments": {"city": "東京", "days": 2}},
}
SYSTEM = {"role": "system", "content": "Answer briefly.\n"}
USER = {"role": "user", "content": "  What is <b>1 + 1</b> & 'why'?\n\n"}
ANSWER = {"role": "assistant", "content": " Two. \n"}
LAST = {"role": "user", "content": "日本語で 🙂 {{ messages }}"}
CHATS: dict[str, dict[str, Any]] = {
    "one": {"messages": [USER]},
    "prompt": {"messages": [USER], "add_generation_prompt": True},
    "system": {"messages": [SYSTEM, USER, ANSWER, LAST], "add_generation_prompt": True},
    "whole": {"messages": [SYSTEM, USER, ANSWER, LAST, {"role": "assistant", "content": "はい"}]},
    "tools": {"messages": [SYSTEM, USER], "tools": [TOOL, TOOL], "add_generation_prompt": True},
    "called": {
        "messages": [
            USER,
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "content": '{"sky": "clear"}', "tool_call_id": "abcdefgh1", "name": "weather"},
            {"role": "assistant", "content": "It is clear."},
            LAST,
        ],
        "tools": [TOOL],
        "add_generation_prompt": True,
    },
    "thought": {
        "messages": [
            USER,
            {"role": "assistant", "content": "Two.", "reasoning_content": "I count.\n"},
            LAST,
            {"role": "assistant", "content": "<think>\nWell.\n</think>\n\nHai."},
        ]
    },
    "not_thinking": {"messages": [USER], "add_generation_prompt": True, "enable_thinking": False},
    "blocks": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}
        ]
    },
    "twice": {"messages": [USER, LAST]},
    "strange": {"messages": [{"role": "critic", "content": "no"}], "add_generation_prompt": True},
    "documents": {
        "messages": [USER],
        "documents": [{"title": "b_c", "text": "x\ny" * 30}, {"title": "a", "text": "z"}],
    },
    "continued": {
        "messages": [USER, {"role": "assistant", "content": "Two, because"}],
        "continue_final_message": True,
    },
}


def files(name: str, cases: list[str]) -> Iterator[tuple[Path, str]]:
    from transformers.utils.chat_template_utils import render_jinja_template

    expected: dict[str, dict[str, Any]] = {}
    for path in sorted(OUT.glob("*.jinja")):
        template = path.read_text(encoding="utf-8")
        rows = expected[path.stem] = {}
        for chat, values in CHATS.items():
            values = {**TOKENS, **values}
            try:
                (text,), _ = render_jinja_template([values.pop("messages")], chat_template=template, **values)
                rows[chat] = text
            except Exception as error:
                rows[chat] = {"error": f"{type(error).__name__}: {error}"[:100]}
        if "generation" in template.replace("generation_prompt", ""):
            for chat in ("whole", "system"):
                _, spans = render_jinja_template(
                    [CHATS[chat]["messages"]],
                    chat_template=template,
                    return_assistant_tokens_mask=True,
                    **TOKENS,
                )
                rows[f"{chat}_spans"] = spans[0]
    content = {"tokens": TOKENS, "chats": CHATS, "expected": expected}
    yield OUT / "expected.json", json.dumps(content, ensure_ascii=False, indent=1) + "\n"
