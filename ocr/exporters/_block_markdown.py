"""Markdown of pages that have blocks: headings, paragraphs, lists, tables, formulas and figures in reading order.

* Headers, footers and page numbers are left out, as PP-StructureV3 does; footnotes stand at the end of their page.
* A table whose cells span nothing and hold one line each is a Markdown table (GitHub's), any other one is HTML.
* Raised and lowered characters are `<sup>` and `<sub>`, struck-out ones stand between `~~`, program text in fences.
* What goes on over a break of the column or the page is joined; of a table, a head that is repeated is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ocr.exporters._joined_blocks import IGNORED, joined_blocks
from ocr.exporters._styled_text import styled_markdown
from ocr.results.blocks import Block, Figure, Formula, Table

if TYPE_CHECKING:
    from ocr.results.pages import Page

CHECK_BOXES = {"☐": " ", "☑": "x", "☒": "x"}


def pages_to_markdown(
    pages: Sequence[Page], escape: Callable[[str], str], ignore: Sequence[str] = IGNORED
) -> str:
    """The blocks of pages as Markdown, without a newline at its end. `escape` is for a paragraph's text."""
    return "".join(markdown_pieces(pages, escape, ignore))


def markdown_pieces(
    pages: Iterable[Page], escape: Callable[[str], str], ignore: Sequence[str] = IGNORED
) -> Iterator[str]:
    """As `pages_to_markdown`, piece by piece, from pages that come one by one."""
    before, started = "", False
    for block in joined_blocks(pages, ignore):
        for part in filter(None, _block_parts(block, escape)):
            listed = before == block.label == "list_item"
            yield (("\n" if listed else "\n\n") if started else "") + part
            before, started = block.label, True


def _block_parts(block: Block, escape: Callable[[str], str]) -> list[str]:
    captions = [styled_markdown(child.text, child.spans, escape) for child in block.children]
    if block.label == "algorithm" and block.text:
        return [_fenced(block.text), *captions]
    if isinstance(block.content, Table):
        return [*captions, table_to_markdown(block.content, escape)]
    if isinstance(block.content, Formula):
        mark = "$" if block.content.inline else "$$"
        return [f"{mark}{block.content.latex}{mark}", *captions]
    if block.label in ("image", "chart", "seal"):
        path = block.content.path if isinstance(block.content, Figure) else ""
        said = [_lines(block, escape)] if block.text else []
        return [f"![{' '.join(captions)}](<{path}>)", *said] if path else [*captions, *said]
    if block.label in ("doc_title", "paragraph_title"):
        text = " ".join(_styled(block, lambda said: escape(" ".join(said.split()))).split())
        return [f"{'#' * max(block.level, 1)} {text}", *captions] if text else captions
    if block.label == "list_item":
        return [_styled(block, lambda said: _list_item(said, block.level, escape)), *captions]
    return [_lines(block, escape), *captions]


def _styled(block: Block, escape: Callable[[str], str]) -> str:
    return styled_markdown(block.text, block.spans, escape)


def _lines(block: Block, escape: Callable[[str], str]) -> str:
    return _styled(block, escape).replace("\n", "  \n")


def _fenced(text: str) -> str:
    """Program text in a fence that is longer than any in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _list_item(text: str, level: int, escape: Callable[[str], str]) -> str:
    """A bullet as Markdown's "-", a check box as GitHub's "- [x]"; an item with a number keeps it, with a stop behind
    it, which Markdown asks for, a deeper one with a letter has it after a "-".

    Four spaces a level put an item below the one before it, whatever that one's mark.
    """
    first, _, rest = text.partition(" ")
    indent = "    " * (max(level, 1) - 1)
    body = " ".join(rest.split())
    if first in CHECK_BOXES:
        return f"{indent}- [{CHECK_BOXES[first]}] {escape(body)}"
    if len(first) == 1 and not first.isalnum():
        return f"{indent}- {escape(body)}"
    if first.isdecimal() and body:
        return f"{indent}{first}. {escape(body)}"
    if first[:-1].isdecimal() and first[-1] in ".)":
        return f"{indent}{first} {escape(body)}"
    return f"{indent}- {escape(' '.join(text.split()))}" if indent else escape(text)


def table_to_markdown(table: Table, escape: Callable[[str], str]) -> str:
    """A `|` table where no cell spans or breaks a line, else HTML."""
    if table.has_spans or any("\n" in cell.text for cell in table.cells) or not table.cells:
        return table.to_html()
    rows = [
        [
            styled_markdown(
                cell.text, cell.spans, lambda said: escape(said).replace("|", "\\|").replace("\\\\|", "\\|")
            )
            if cell
            else ""
            for cell in row
        ]
        for row in table.grid()
    ]
    if not all(cell is not None and cell.header for cell in table.grid()[0]):
        rows.insert(0, [""] * table.columns)  # a Markdown table needs a head
    rows.insert(1, ["---"] * table.columns)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
