"""What Markdown of any tool says: its texts, tables and display formulas, in the order in which they stand.

Source: the elements that OmniDocBench compares, https://github.com/opendatalab/OmniDocBench; CommonMark 0.31 for
headings, lists, fences and images; GitHub's tables.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "table", "formula"]

_TABLE = re.compile(r"<table\b.*?</table\s*>", re.IGNORECASE | re.DOTALL)
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]", re.DOTALL)
_FENCE = re.compile(r"^(```+|~~~+)[^\n]*\n(.*?)(?:^\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_IMAGE = re.compile(r"!\[([^\]]*)\]\((?:<[^>]*>|[^)]*)\)")
_LINK = re.compile(r"\[([^\]]+)\]\((?:<[^>]*>|[^)]*)\)")
_MARKER = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+)", re.MULTILINE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_EMPHASIS = re.compile(r"(\*{1,3}|_{2,3}|~~)(?=\S)(.+?)(?<=\S)\1")
_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")


@dataclass(frozen=True)
class MarkdownPart:
    """`text` is plain of a text, HTML of a table, LaTeX without its marks of a formula."""

    kind: Kind
    text: str


def read_markdown(text: str) -> list[MarkdownPart]:
    """The parts of a Markdown text, blocks apart by empty lines; images and empty blocks are none."""
    taken: list[MarkdownPart] = []

    def take(kind: Kind, said: str) -> str:
        taken.append(MarkdownPart(kind, said))
        return f"\n\n\x00{len(taken) - 1}\x00\n\n"

    text = text.replace("\x00", "").replace("\r\n", "\n")
    text = _FENCE.sub(lambda found: take("text", found[2].strip()), text)
    text = _TABLE.sub(lambda found: take("table", found[0]), text)
    text = _FORMULA.sub(lambda found: take("formula", (found[1] or found[2]).strip()), text)
    parts: list[MarkdownPart] = []
    for block in re.split(r"\n\s*\n", text):
        if found := re.fullmatch(r"\s*\x00(\d+)\x00\s*", block):
            parts.append(taken[int(found[1])])
        else:
            parts += _read_block(block)
    return [part for part in parts if part.text]


def _read_block(block: str) -> list[MarkdownPart]:
    """A paragraph, heading or list; or a table of GitHub's form, with what stands right above and below it."""
    lines = block.split("\n")
    rule = next((i for i, line in enumerate(lines) if i and "|" in line and _RULE.match(line)), None)
    if rule is None or "|" not in lines[rule - 1]:
        return [MarkdownPart("text", plain_text(block))]
    end = next((i for i in range(rule, len(lines)) if "|" not in lines[i]), len(lines))
    rows = [_cells(line) for i, line in enumerate(lines[rule - 1 : end]) if i != 1]
    table = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return [
        MarkdownPart("text", plain_text("\n".join(lines[: rule - 1]))),
        MarkdownPart("table", f"<table>{table}</table>"),
        MarkdownPart("text", plain_text("\n".join(lines[end:]))),
    ]


def _cells(line: str) -> list[str]:
    line = line.strip().removeprefix("|")
    line = line[:-1] if line.endswith("|") and not line.endswith("\\|") else line
    return [html.escape(plain_text(cell), quote=False) for cell in re.split(r"(?<!\\)\|", line)]


def plain_text(text: str) -> str:
    """A block's text without the marks of headings, lists, emphasis, links and tags; of images the captions stay."""
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", text))
    text = _EMPHASIS.sub(r"\2", _MARKER.sub("", text))
    return html.unescape(_ESCAPE.sub(r"\1", _TAG.sub("", text))).strip()
