"""Markdown (CommonMark) from the layout: paragraphs, headings, and rows of a table or receipt.

What is done, and what is not:

* Paragraphs and headings are those of `ocr.text.paragraphs`, as in documents; a page of fewer than four lines has no
  headings.
* A line runs on into the next one when that one's first word had no room on it any more. Other line breaks are kept,
  as in addresses and verse.
* Cells of one row that stand apart, such as a label and its price, are joined by " | " and keep their line break. They
  are not made a Markdown table: that needs a header and even columns, which a page seldom has.
* Characters that Markdown would read as markup are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ocr.exporters._block_markdown import markdown_pieces, pages_to_markdown
from ocr.results.geometry import box_polygon
from ocr.results.lines import Line
from ocr.text.paragraphs import HEADINGS, find_paragraphs, usual_type
from ocr.text.reading_order import upright_boxes
from ocr.text.rows import Row, join_rows

if TYPE_CHECKING:
    from ocr.results.pages import Document, Page

FIRST_LEVEL = 2.2  # to the page's usual line height: a heading of the first level; others are of the second
HEADING_PAGE_LINES = 4


def to_markdown(document: Document) -> str:
    """The document as Markdown. Pages with blocks follow one another, others stand apart by thematic breaks."""
    if any(page.blocks for page in document.pages):
        text = pages_to_markdown(document.pages, _escape_lines)
        return text + "\n" if text else ""
    pages = [text for page in document.pages if (text := page_to_markdown(page))]
    return "\n\n---\n\n".join(pages) + "\n" if pages else ""


def iterate_markdown(pages: Iterable[Page]) -> Iterator[str]:
    """The Markdown of pages that have blocks and come one by one, in pieces, with a newline at its end."""
    empty = True
    for piece in markdown_pieces(pages, _escape_lines):
        yield piece
        empty = False
    if not empty:
        yield "\n"


def page_to_markdown(page: Page) -> str:
    """One page, without a newline at its end. The lines are ordered anew, by their places."""
    lines = [line for line in page.lines if line.text.strip()]
    boxes = upright_boxes([line.polygon for line in lines])
    lines = [
        Line(line.text, line.score, box_polygon(box), orientation=0, vertical=False)
        for line, box in zip(lines, boxes, strict=True)
    ]
    usual, _ = usual_type(lines) if lines else (0.0, False)
    blocks: list[str] = []
    for one in find_paragraphs(lines, height=page.height):
        rows = join_rows(one.rows, one.left, one.right, _row_text, keep_cells=True).split("\n")
        cells = any(len(row.cells) > 1 for row in one.rows)
        if one.label in HEADINGS and len(lines) >= HEADING_PAGE_LINES and not cells:
            level = 1 if min(row.size for row in one.rows) >= FIRST_LEVEL * usual else 2
            title = re.sub(r"(#+)$", r"\\\1", " ".join(rows))
            blocks.append(f"{'#' * level} {title}")
        else:
            blocks.append("  \n".join(map(_escape_start, rows)))
    return "\n\n".join(blocks)


def _row_text(row: Row) -> str:
    return " | ".join(" ".join(_escape(line.text) for line in cell) for cell in row.cells)


def _escape(text: str) -> str:
    text = re.sub(r"\s", " ", text).strip()
    text = re.sub(r"[\\`*\[\]<|~]", r"\\\g<0>", text)
    text = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)  # within a word it is no markup
    return re.sub(r"&(?=#?\w+;)", r"\\&", text)


def _escape_lines(text: str) -> str:
    return "\n".join(_escape_start(_escape(line)) for line in text.split("\n"))


def _escape_start(line: str) -> str:
    """Takes what would begin a heading, quote, list or rule at the start of a line as text."""
    line = re.sub(r"^(#{1,6}(?=\s|$)|[-+](?=\s|$)|>|[-=:]+(?=[-=:| ]*$))", r"\\\1", line)
    return re.sub(r"^(\d{1,9})([.)])(?=\s|$)", r"\1\\\2", line)
