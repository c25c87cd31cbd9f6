"""Chats by templates of twelve families: every text is that of transformers' apply_chat_template.

The templates are written after the published formats; `tools.golden chat_templates` wrote the texts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from framework.core.errors import OarError
from framework.text.chat_template import ChatTemplate

pytest.importorskip("jinja2")
DATA = Path(__file__).parent / "data" / "chat_templates"
GOLDEN: dict[str, Any] = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
FAMILIES = sorted(GOLDEN["expected"])


def open_template(family: str) -> ChatTemplate:
    source = (DATA / f"{family}.jinja").read_text(encoding="utf-8")
    return ChatTemplate(source, GOLDEN["tokens"], family)


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_are_equal(family: str) -> None:
    template, expected = open_template(family), GOLDEN["expected"][family]
    for chat, values in GOLDEN["chats"].items():
        if isinstance(expected[chat], dict):  # transformers refuses it, too
            with pytest.raises(OarError):
                template.render(**values)
        else:
            assert template.render(**values) == expected[chat], chat


def test_there_are_twelve_families() -> None:
    texts = [text for rows in GOLDEN["expected"].values() for text in rows.values() if isinstance(text, str)]
    assert len(FAMILIES) == 12 and len(texts) > 120


@pytest.mark.parametrize("chat", ["whole", "system"])
def test_marked_answers_are_equal(chat: str) -> None:
    template, expected = open_template("phi3"), GOLDEN["expected"]["phi3"]
    segments = template.render_with_masks(GOLDEN["chats"][chat]["messages"])
    text = "".join(segment.text for segment in segments)
    assert text == template.render(GOLDEN["chats"][chat]["messages"])
    assert [segment.text for segment in segments if segment.is_assistant] == [
        text[start:stop] for start, stop in expected[f"{chat}_spans"]
    ]
