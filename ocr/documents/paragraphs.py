"""Blocks of text from lines: paragraphs, headings, list items, captions and footnotes, by their places and their type.

What a line is set in is known of a text layer (`LineStyle`) and not of OCR, where the height of a line stands for the
size of its type, which is worth less: a heading must be larger then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ocr.results.blocks import Block, Box
from ocr.results.lines import Line
from ocr.results.page_text import LineStyle, line_box
from ocr.text.columns import find_columns
from ocr.text.reading_order import DETECTOR_MARGIN, is_unspaced, reading_regions

# Multiples of the size of the type.
PARAGRAPH_GAP = 0.45  # beyond the usual distance of lines
WIDEST_LEADING = 1.9
INDENT = (0.8, 4.0)  # of a first line: the least, the greatest
SIZE_CHANGE = {
    True: 1.12,
    False: 1.4,
}  # between paragraphs, where the size of the type is known, and where not
HEADING = {True: 1.12, False: 1.5}  # to the page's usual size
TITLE = 1.5
HEADINGS = ("doc_title", "paragraph_title")
HEADING_CHARS, HEADING_ROWS = 160, 3
SECTION_ROOM = 0.25  # of the column's width, which a numbered heading leaves free
SECTION_TEXT = 12.0  # multiples of its size: the least width of the text below it
COLUMN_GAP, PROSE_WORDS = 0.6, 2.0  # the least white between columns; the least mean words of their lines
FOOTNOTE = 0.92  # to the page's usual size, with a mark, in the lower half

_BULLET = re.compile(r"([•▪◦‣·➢✓□❖–—*-]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|\[\d+\])\s+\S")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2})*)\.?\s+\S")
_SECTION = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?\s+(?![a-z])[^\W\d_].*[^.,;:]$")
_TABLE_CAPTION = re.compile(
    r"(table|tab\.|tabelle|tableau|tabla|tabella|表)\s*\.?\s*[\dIVXA-Z]", re.IGNORECASE
)
_FIGURE_CAPTION = re.compile(r"(figure|fig\.|abbildung|abb\.|figura|图|図)\s*\.?\s*[\dIVXA-Z]", re.IGNORECASE)
_FOOTNOTE_MARK = re.compile(r"(\d{1,2}|[*†‡§¶]|[a-z])\)?\s*\S")


@dataclass(frozen=True)
class _Row:
    """The lines of one height in a region, from left to right."""

    lines: tuple[Line, ...]
    box: Box
    size: float
    bold: bool
    hyphen: bool

    @property
    def text(self) -> str:
        return " ".join(line.text.strip() for line in self.lines)

    @property
    def middle(self) -> float:
        return (self.box[1] + self.box[3]) / 2


def make_text_blocks(
    lines: Sequence[Line],
    styles: Sequence[LineStyle] | None = None,
    hyphens: Sequence[bool] | None = None,
    *,
    height: float,
    others: Sequence[Block] = (),
) -> list[Block]:
    """Lines as blocks, without an order; headings have level 1; `finish_document` sets the others for a whole document.

    Args:
        lines: Upright or not; every line stands in exactly one block.
        styles: How each is set; None where nobody knows.
        hyphens: Which lines end in a hyphen that only breaks a word; None where nobody knows.
        height: Of the page, in pixels.
        others: Tables, figures and headings that stand on the page, too: they bound columns.
    """
    lines = list(lines)
    if not lines:
        return []
    known = styles is not None
    boxes = [line_box(line) for line in lines]
    sizes = (
        [style.size for style in styles]
        if styles is not None
        else [min(b[2] - b[0], b[3] - b[1]) for b in boxes]
    )
    bold = [style.bold for style in styles] if styles is not None else [False] * len(lines)
    broken = list(hyphens) if hyphens is not None else [False] * len(lines)
    usual, usual_bold = _usual(lines, sizes, bold)
    groups: list[tuple[list[_Row], float]] = []  # with the right end of their column
    for region in _regions(lines, boxes, others, 0.0 if known else DETECTOR_MARGIN):
        rows = [
            _Row(
                tuple(lines[i] for i in row),
                _around([boxes[i] for i in row]),
                max(sizes[i] for i in row),
                all(bold[i] for i in row),
                broken[row[-1]],
            )
            for row in region
        ]
        left, right = min(row.box[0] for row in rows), max(row.box[2] for row in rows)
        groups += [(group, right) for group in _split_paragraphs(rows, left, right, known)]
    blocks: list[Block] = []
    for number, (group, right) in enumerate(groups):
        text = join_rows(
            [row.text for row in group], [row.box for row in group], right, [r.hyphen for r in group]
        )
        label = _label(group, text, usual, usual_bold, known, height)
        if not known and label in ("text", "list_item"):
            around = [groups[n][0] if 0 <= n < len(groups) else None for n in (number - 1, number + 1)]
            label = "paragraph_title" if _is_section(group, *around) else label
        heading = label in ("doc_title", "paragraph_title")
        if heading:
            text = text.replace("\n", " ")
        blocks.append(
            Block(
                label,
                _around([row.box for row in group]),
                text,
                tuple(line for row in group for line in row.lines),
                score=float(np.mean([line.score for row in group for line in row.lines])),
                level=int(heading or label == "list_item"),
            )
        )
    return blocks


def _is_section(group: Sequence[_Row], before: Sequence[_Row] | None, after: Sequence[_Row] | None) -> bool:
    """Whether a row is a numbered heading, where the size and weight of its type are not known: it stands over a
    paragraph, and is no item of a list.
    """
    if len(group) > 1 or not _SECTION.match(group[0].text) or after is None:
        return False
    numbered = any(part is not None and _BULLET.match(part[0].text) for part in (before, after))
    wide = max(row.box[2] - row.box[0] for row in after) >= SECTION_TEXT * group[0].size
    below = after[0].box[1] >= group[0].middle and after[0].box[0] <= group[0].box[2]
    return not numbered and len(after) > 1 and wide and below


def _regions(
    lines: Sequence[Line], boxes: Sequence[Box], others: Sequence[Block], margin: float
) -> list[list[list[int]]]:
    """The rows of lines of each column, and of what spans columns, in reading order."""
    level = [i for i, line in enumerate(lines) if line.orientation == 0 and not line.vertical]
    found: list[list[list[int]]] = []
    if 2 * len(level) < len(lines):
        parts = [(list(range(len(lines))), False)]
    else:
        texts = [lines[i].text for i in level]
        headings = [block.bbox for block in others if block.label in HEADINGS]
        obstacles = [block.bbox for block in others if block.label not in HEADINGS]
        columns = find_columns([boxes[i] for i in level], texts, obstacles, headings=headings, margin=margin)
        parts = [([level[i] for i in column.lines], column.cut) for column in columns]
        turned = sorted(set(range(len(lines))) - set(level))
        parts += [(turned, False)] if turned else []
    for members, cut in parts:
        for region in reading_regions([lines[i].polygon for i in members]):
            rows = [[members[i] for i in row] for row in region]
            found += [rows] if cut else _split_columns(rows, lines, boxes)
    return found


def _split_columns(
    region: Sequence[Sequence[int]], lines: Sequence[Line], boxes: Sequence[Box]
) -> list[list[list[int]]]:
    """The rows of a region, or those of each of its columns where prose stands beside prose: short columns whose lines
    are level look like rows with gaps. Labels beside values stay together.
    """
    rows = [list(row) for row in region]
    items = sorted((i for row in rows for i in row), key=lambda i: boxes[i][0])
    if all(len(row) == 1 for row in rows) or any(lines[i].orientation or lines[i].vertical for i in items):
        return [rows]
    height = float(np.median([boxes[i][3] - boxes[i][1] for i in items]))
    columns: list[list[int]] = [[items[0]]]
    end = boxes[items[0]][2]
    for i in items[1:]:
        if boxes[i][0] - end >= COLUMN_GAP * height:
            columns.append([])
        columns[-1].append(i)
        end = max(end, boxes[i][2])
    prose = [sum(len(lines[i].text.split()) for i in column) / len(column) for column in columns]
    if len(columns) < 2 or min(map(len, columns)) < 2 or min(prose) < PROSE_WORDS:
        return [rows]
    places = {i: number for number, column in enumerate(columns) for i in column}
    split = [[[i for i in row if places[i] == number] for row in rows] for number in range(len(columns))]
    return [[row for row in column if row] for column in split]


def _around(boxes: Sequence[Box]) -> Box:
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


def _usual(lines: Sequence[Line], sizes: Sequence[float], bold: Sequence[bool]) -> tuple[float, bool]:
    """The size in which the middle one of all characters is set, and whether most are bold."""
    weights = np.array([max(len(line.text), 1) for line in lines])
    order = np.argsort(sizes)
    passed = np.cumsum(weights[order])
    size = float(np.asarray(sizes)[order][np.searchsorted(passed, passed[-1] / 2)])
    return size, bool(weights[np.asarray(bold)].sum() > passed[-1] / 2)


def _split_paragraphs(rows: Sequence[_Row], left: float, right: float, known: bool) -> list[list[_Row]]:
    size = float(np.median([row.size for row in rows]))
    distances = [after.middle - before.middle for before, after in pairwise(rows)]
    leading = min(float(np.median(distances)) if distances else 0.0, WIDEST_LEADING * size)
    groups = [[rows[0]]]
    for before, row in pairwise(rows):
        gap = row.middle - before.middle - leading > PARAGRAPH_GAP * size
        sizes = sorted((before.size, row.size))
        indent = row.box[0] - left
        indented = (
            INDENT[0] * size <= indent <= INDENT[1] * size
            and before.box[0] - left < INDENT[0] / 2 * size
            and right - row.box[2] < indent  # else it is centred
            and not _BULLET.match(before.text)  # else it hangs below its bullet
        )
        starts = bool(_BULLET.match(row.text)) and (
            bool(_BULLET.match(groups[-1][0].text)) or before.text.rstrip().endswith((":", ".", ";"))
        )
        section = (
            len(groups[-1]) == 1
            and bool(_SECTION.match(before.text))
            and right - before.box[2] > SECTION_ROOM * (right - left) > right - row.box[2]
            and not row.text[:1].islower()
        )
        caption = (
            bool(_TABLE_CAPTION.match(row.text) or _FIGURE_CAPTION.match(row.text)) and len(row.text) > 6
        )
        if (
            gap
            or indented
            or starts
            or section
            or (caption and known and before.box[2] < right - size)
            or sizes[1] > SIZE_CHANGE[known] * sizes[0]
            or (known and row.bold != before.bold)
        ):
            groups.append([])
        groups[-1].append(row)
    return groups


def _label(
    group: Sequence[_Row], text: str, usual: float, usual_bold: bool, known: bool, height: float
) -> str:
    letters = sum(char.isalpha() for char in text)
    size = min(row.size for row in group)
    if _TABLE_CAPTION.match(text) and len(group) <= 4:
        return "table_title"
    if _FIGURE_CAPTION.match(text) and len(group) <= 6:
        return "figure_title"
    short = len(group) <= HEADING_ROWS and len(text) <= HEADING_CHARS and letters >= 2
    if short and size >= TITLE * usual and group[0].box[1] < height / 3:
        return "doc_title"
    if short and size >= HEADING[known] * usual:
        return "paragraph_title"
    bold = known and not usual_bold and all(row.bold for row in group)
    if short and bold and not text.rstrip().endswith((".", ",", ";", ":")) and size >= 0.95 * usual:
        return "paragraph_title"
    if _BULLET.match(text):
        return "list_item"
    if known and size <= FOOTNOTE * usual and group[0].box[1] > height / 2 and _FOOTNOTE_MARK.match(text):
        return "footnote"
    return "text"


def join_rows(
    texts: Sequence[str], boxes: Sequence[Box], right: float, hyphens: Sequence[bool] | None = None
) -> str:
    """Lines of one paragraph as a person would type it.

    A line runs on into the next one where that one's first word had no room on it any more, up to `right`; other line
    ends are kept as newlines, as in addresses and verse. Nothing stands between Chinese or Japanese characters. A
    hyphen at a line's end goes where the document says that it breaks a word, or where a small letter follows.
    """
    said = texts[0]
    for number in range(1, len(texts)):
        text, box, before = texts[number], boxes[number], boxes[number - 1]
        first = 1 if is_unspaced(text[0]) else len(text.split(maxsplit=1)[0])
        needed = (box[2] - box[0]) * first / max(len(text), 1)
        hyphen = re.search(r"\w[-\u00ad\u2010]$", said) is not None and (
            text[0].islower() or bool(hyphens and hyphens[number - 1])
        )
        if hyphen:
            said = said[:-1] + text
        elif right - before[2] > needed + 0.5 * (box[3] - box[1]):
            said += "\n" + text
        else:
            said += ("" if is_unspaced(said[-1]) and is_unspaced(text[0]) else " ") + text
    return said


def heading_depth(text: str) -> int | None:
    """How deep a numbered heading is: "2 Method" 1, "2.1 Data" 2; None of one without a number."""
    match = _NUMBERED.match(text)
    return None if match is None else match[1].count(".") + 1
