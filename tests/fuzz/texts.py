"""Chat templates, chats, tables of HTML and Markdown: how a valid file is made, and what reads it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

_TEMPLATES = Path(__file__).resolve().parents[1] / "golden" / "data" / "chat_templates"
_TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "of a town",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}
_MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the weather?"},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {"town": "Ulm"}}}],
    },
    {"role": "tool", "name": "weather", "content": "sunny"},
    {"role": "assistant", "content": "Sunny."},
]
_CHAT = {"messages": _MESSAGES, "tools": [_TOOL]}
_SHARED = {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}
_PAIR = {
    "prompt": [{"role": "user", "content": "Hi"}],
    "chosen": [{"role": "assistant", "content": "Hello"}],
    "rejected": [{"role": "assistant", "content": "No"}],
}
_JUDGED = {"prompt": _PAIR["prompt"], "completion": _PAIR["chosen"], "label": True}
_HTML = '<table><tr><td colspan="2">a &amp; b</td></tr><tr><td>1</td><td rowspan="2">2</td></tr></table>'
_TABLE = {
    "filename": "a.png",
    "split": "train",
    "html": {
        "structure": {"tokens": ["<tr>", "<td", ' colspan="2"', ">", "</td>", "</tr>"]},
        "cells": [{"tokens": ["<b>", "a", "</b>"], "bbox": [1, 2, 9, 8]}],
    },
}
_TRUTH = [
    {
        "page_info": {"image_path": "images/page.png"},
        "layout_dets": [
            {"category_type": "text_block", "text": "A line of text", "order": 1},
            {"category_type": "table", "html": _HTML, "order": 2},
            {"category_type": "equation_isolated", "latex": "$$a+b$$", "order": 3},
        ],
    }
]
_MARKDOWN = f"# Title\n\nA line of text\n\n{_HTML}\n\n$$\na+b\n$$\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


def _copy_template(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        return Path(shutil.copy(_TEMPLATES / f"{name}.jinja", folder / "chat_template.jinja"))

    return make


def _written(name: str, content: object, rows: int = 0) -> Callable[[Path], Path]:
    """A text, JSON, or with `rows` as many lines of JSON."""

    def make(folder: Path) -> Path:
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(f"{text}\n" * rows if rows else text, encoding="utf-8", newline="")
        return folder / name

    return make


def _write_settings(folder: Path) -> Path:
    settings = {
        "bos_token": {"content": "<s>", "lstrip": False},
        "eos_token": "</s>",
        "added_tokens_decoder": {"1": {"content": "<s>", "special": True}},
        "chat_template": [
            {"name": "default", "template": (_TEMPLATES / "zephyr.jinja").read_text(encoding="utf-8")},
            {"name": "tool_use", "template": (_TEMPLATES / "chatml.jinja").read_text(encoding="utf-8")},
        ],
    }
    return _written("tokenizer_config.json", settings)(folder)


def _render(path: Path) -> object:
    from framework.text.chat_template import ChatTemplate

    template = ChatTemplate.from_folder(path.parent)
    if template is None:
        return None
    shown = [template.render(_MESSAGES[:2], add_generation_prompt=True), template.render(_MESSAGES, [_TOOL])]
    return shown, template.render_with_masks([*_MESSAGES[:2], _MESSAGES[-1]])


def _read_chats(path: Path) -> object:
    from framework.core.errors import InputError
    from framework.text.chat_template import ChatTemplate
    from nlp.data.conversations import read_conversation
    from nlp.data.json_files import read_objects

    template = ChatTemplate((_TEMPLATES / "qwen2_5.jinja").read_text(encoding="utf-8"), where=path)
    found = []
    for where, fields in read_objects(path):
        chat = read_conversation(fields, where)
        try:
            found.append(template.render(chat.messages, chat.tools))
        except InputError as error:
            raise InputError(str(error), where=where) from None
    return found


def _read_pairs(path: Path) -> object:
    from nlp.data.json_files import read_objects
    from nlp.data.preferences import read_pair

    return [read_pair(fields, where) for where, fields in read_objects(path)]


def _read_judged(path: Path) -> object:
    from nlp.data.json_files import read_objects
    from nlp.data.preferences import read_judged

    return [read_judged(fields, where) for where, fields in read_objects(path)]


def _read_tables(path: Path) -> object:
    from PIL import Image

    from ocr.data.tables import PubTabNet

    Image.fromarray(np.full((20, 20, 3), 9, np.uint8)).save(path.parent / "a.png")
    tables = PubTabNet(path.parent, Path(path.name))
    return [tables[index] for index in range(len(tables))]


def _score(path: Path) -> object:
    """The truth or the Markdown is damaged; the other of them is whole."""
    from ocr.documents.evaluation.scores import score_documents

    truth, pages = path.parent / "truth.json", path.parent / "pages"
    pages.mkdir(exist_ok=True)
    if path != truth:
        shutil.copy(path, pages / "page.md")
        _written("truth.json", _TRUTH)(path.parent)
    else:
        _written("page.md", _MARKDOWN)(pages)
    return score_documents(truth, pages)


FILES: Mapping[str, tuple[Callable[[Path], Path], Callable[[Path], object], bool]] = {
    "chat template": (_copy_template("qwen2_5"), _render, False),
    "chat template of macros": (_copy_template("deepseek_v3"), _render, False),
    "settings of a chat template": (_write_settings, _render, True),
    "chats": (_written("chats.json", [_CHAT, _SHARED]), _read_chats, True),
    "chats by lines": (_written("chats.jsonl", _CHAT, rows=2), _read_chats, False),
    "preferences": (_written("pairs.json", [_PAIR]), _read_pairs, True),
    "judged answers": (_written("judged.json", [_JUDGED]), _read_judged, True),
    "tables of pubtabnet": (_written("tables.jsonl", _TABLE, rows=2), _read_tables, False),
    "table of pubtabnet": (_written("tables.jsonl", _TABLE), _read_tables, True),
    "truth of documents": (_written("truth.json", _TRUTH), _score, True),
    "markdown of documents": (_written("page_of.md", _MARKDOWN), _score, False),
}
