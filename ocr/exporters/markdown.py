"""Markdown (CommonMark) from the layout: paragraphs, headings, and rows of a table or receipt.

What is done, and what is not:

* A new paragraph starts at each column, after a gap clearly wider than the region's leading, at an indented first line,
  and where the size of the text changes.
* A line runs on into the next one when that one's first word had no room on it any more: with a space between them,
  with none between Chinese or Japanese characters, and without a hyphen at its end when a small letter follows. Other
  line breaks are kept, as in addresses and verse.
* Cells of one row that stand apart, such as a label and its price, are joined by " | " and keep their line break. They
  are not made a Markdown table: that needs a header and even columns, which a page seldom has.
* A heading is a line at least half as high again as the page's usual line, at most 120 characters long and with two
  letters or more, on a page of at least four lines.
* Characters that Markdown would read as markup are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ocr.exporters._block_markdown import markdown_pieces, pages_to_markdown
from ocr.text.reading_order import is_unspaced, reading_regions, upright_boxes

if TYPE_CHECKING:
    from ocr.results.pages import Document, Page

HEADING_RATIOS = (2.2, 1.5)  # to the page's usual line height: first level, second level
HEADING_CHARS, HEADING_ROWS, HEADING_PAGE_LINES = 120, 3, 4
# All of these are multiples of the line height.
PARAGRAPH_GAP = 0.5  # beyond the region's usual distance between lines
WIDEST_LEADING = 1.8
INDENT = (0.8, 4.0)  # of a paragraph's first line: the least, the greatest
CELL_GAP = 1.0  # pieces nearer than this are one cell
SIZE_CHANGE = 1.4


@dataclass(frozen=True)
class _Row:
    """One row of a region: escaped text, the number of its cells, and its place in the upright frame."""

    text: str
    cells: int
    left: float
    right: float
    middle: float
    height: float


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
    if not lines:
        return ""
    polygons = [line.polygon for line in lines]
    texts = [line.text for line in lines]
    boxes = upright_boxes(polygons)
    usual = _usual_height(boxes, texts)
    blocks: list[str] = []
    for region in reading_regions(polygons):
        rows = [_row(row, boxes, texts) for row in region]
        left, right = min(row.left for row in rows), max(row.right for row in rows)
        for group in _paragraphs(rows, left, right):
            level = _heading_level(group, usual) if len(lines) >= HEADING_PAGE_LINES else 0
            if level:
                title = re.sub(r"(#+)$", r"\\\1", " ".join(row.text for row in group))
                blocks.append(f"{'#' * level} {title}")
            else:
                blocks.append("\n".join(map(_escape_start, _join_rows(group, left, right).split("\n"))))
    return "\n\n".join(blocks)


def _usual_height(boxes: NDArray[np.float64], texts: Sequence[str]) -> float:
    """The height in which the middle one of all characters is set."""
    heights = boxes[:, 3] - boxes[:, 1]
    order = heights.argsort()
    passed = np.cumsum([len(texts[index]) for index in order])
    return float(heights[order][np.searchsorted(passed, passed[-1] / 2)])


def _row(row: Sequence[int], boxes: NDArray[np.float64], texts: Sequence[str]) -> _Row:
    height = float((boxes[row, 3] - boxes[row, 1]).max())
    text, cells = _escape(texts[row[0]]), 1
    for before, index in pairwise(row):
        apart = boxes[index, 0] - boxes[before, 2] > CELL_GAP * height
        text += (" | " if apart else " ") + _escape(texts[index])
        cells += apart
    left, right = float(boxes[row, 0].min()), float(boxes[row, 2].max())
    return _Row(text, int(cells), left, right, float(boxes[row][:, 1::2].mean()), height)


def _paragraphs(rows: Sequence[_Row], left: float, right: float) -> list[list[_Row]]:
    """Rows of a region from `left` to `right`, cut into paragraphs."""
    height = float(np.median([row.height for row in rows]))
    distances = [after.middle - before.middle for before, after in pairwise(rows)]
    leading = min(float(np.median(distances)) if distances else 0.0, WIDEST_LEADING * height)
    groups = [[rows[0]]]
    for before, row in pairwise(rows):
        gap = row.middle - before.middle - leading > PARAGRAPH_GAP * height
        sizes = sorted((before.height, row.height))
        indent = row.left - left
        indented = (
            row.cells == 1
            and INDENT[0] * height <= indent <= INDENT[1] * height
            and before.left - left < INDENT[0] / 2 * height
            and right - row.right < indent  # else it is centred
        )
        if gap or indented or sizes[1] > SIZE_CHANGE * sizes[0]:
            groups.append([])
        groups[-1].append(row)
    return groups


def _heading_level(group: Sequence[_Row], usual: float) -> int:
    """1 or 2 for a heading, 0 for anything else."""
    text = "".join(row.text for row in group)
    letters = sum(char.isalpha() for char in text)
    if (
        len(group) > HEADING_ROWS
        or len(text) > HEADING_CHARS
        or letters < 2
        or any(row.cells > 1 for row in group)
    ):
        return 0
    ratio = min(row.height for row in group) / usual if usual else 0.0
    return next((level for level, least in enumerate(HEADING_RATIOS, 1) if ratio >= least), 0)


def _join_rows(group: Sequence[_Row], left: float, right: float) -> str:
    text = group[0].text
    for before, row in pairwise(group):
        first_word = 1 if is_unspaced(row.text[0]) else len(row.text.split(maxsplit=1)[0])
        needed = (row.right - row.left) * first_word / len(row.text)
        room = right - before.right
        if before.left - left > INDENT[1] * before.height:  # centred or set to the right
            room += before.left - left
        hyphen = re.search(r"\w[-\u00ad\u2010]$", text) and row.text[0].islower()
        if before.cells > 1 or row.cells > 1 or (room > needed and not hyphen):
            text += "  \n" + row.text
        elif hyphen:
            text = text[:-1] + row.text
        else:
            text += ("" if is_unspaced(text[-1]) and is_unspaced(row.text[0]) else " ") + row.text
    return text


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
