"""Paragraphs, headings, list items, captions and footnotes from lines, by their places and their type.

What a line is set in is known of a text layer (`Line.style`) and not of OCR, where the height of a line stands for the
size of its type, which is worth less: a heading must be larger then.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ocr.results.bidi import starts_right
from ocr.results.blocks import Block, Box
from ocr.results.geometry import bounding_box, line_box
from ocr.results.lines import Line, has_styles
from ocr.text.columns import LIST_MARK, find_columns
from ocr.text.hyphens import NO_WORDS, WordList, join_at_hyphen
from ocr.text.reading_order import DETECTOR_MARGIN, is_unspaced, join_texts, reading_regions

# Multiples of the size of the type.
PARAGRAPH_GAP = 0.45  # beyond the usual distance of lines
WIDEST_LEADING = 1.9
INDENT = (0.8, 4.0)  # of a first line: the least, the greatest
CELL_GAP = 1.0  # lines of a row nearer than this are one cell
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

TABLE_CAPTION = re.compile(
    r"(table|tab\.|tabelle|tableau|tabla|tabella|表)\s*\.?\s*[\dIVXA-Z]", re.IGNORECASE
)
CHECK_BOXES = "☐☑☒"
CONTENTS = re.compile(r".*\S … (\d+|[ivxlcIVXLC]+|[A-Z]?-?\d+)$")  # an entry with its page
_LEADERS = re.compile(r"\s*[.]{4,}\s*(\S+)$")
_PAGE = re.compile(r"\d+|[ivxlcIVXLC]+")
_BULLET = re.compile(rf"{LIST_MARK}\s+\S")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2})*)\.?\s+\S")
_SECTION = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?\s+(?![a-z])[^\W\d_].*[^.,;:]$")
_FIGURE_CAPTION = re.compile(r"(figure|fig\.|abbildung|abb\.|figura|图|図)\s*\.?\s*[\dIVXA-Z]", re.IGNORECASE)
_FOOTNOTE_MARK = re.compile(r"(\d{1,2}|[*†‡§¶]|[a-z])\)?\s*\S")


@dataclass(frozen=True)
class Row:
    """The lines of one height in a region, from left to right.

    `cells` are those that stand together, apart from others, such as a label and its price; `hyphen` says that the
    row's end breaks a word, `rightward` that it runs from right to left: its cells are in that order.
    """

    cells: tuple[tuple[Line, ...], ...]
    box: Box
    size: float
    bold: bool
    hyphen: bool
    rightward: bool = False

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Row:
        """A row of lines from left to right."""
        boxes = [line_box(line) for line in lines]
        size = max(map(_size, lines))
        cells = [[lines[0]]]
        for line, (before, after) in zip(lines[1:], pairwise(boxes), strict=True):
            if after[0] - before[2] > CELL_GAP * size:
                cells.append([])
            cells[-1].append(line)
        end = lines[-1].style
        rightward = starts_right("".join(line.text for line in lines))
        if rightward:
            cells = [cell[::-1] for cell in reversed(cells)]
        return cls(
            tuple(map(tuple, cells)),
            bounding_box(boxes),
            size,
            all(line.is_bold for line in lines),
            end is not None and end.hyphen,
            rightward,
        )

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for cell in self.cells for line in cell)

    @property
    def text(self) -> str:
        text = " ".join(line.text.strip() for line in self.lines)
        return _LEADERS.sub(r" … \1", text) if "...." in text else text

    @property
    def middle(self) -> float:
        return (self.box[1] + self.box[3]) / 2

    def room(self, below: Row, left: float, right: float) -> float:
        """How much of the column from `left` to `right` a row leaves free for the beginning of the one below it."""
        apart = abs(self.box[0] + self.box[2] - below.box[0] - below.box[2]) / 2
        centred = apart < 0.5 * self.size and abs(self.box[0] - below.box[0]) > self.size
        if self.rightward:  # such text may still be flush left
            return self.box[0] - left + right - self.box[2]
        return right - self.box[2] + (self.box[0] - left if centred else 0.0)


@dataclass(frozen=True)
class Paragraph:
    """Rows that are read as one, with the sides of their column and what they are: the label of their block."""

    rows: tuple[Row, ...]
    left: float
    right: float
    label: str
    words: WordList = NO_WORDS

    @property
    def text(self) -> str:
        """What it says; a heading on one line."""
        text = join_rows(self.rows, self.left, self.right, words=self.words)
        return text.replace("\n", " ") if self.label in HEADINGS else text


def make_text_blocks(lines: Sequence[Line], *, height: float, others: Sequence[Block] = ()) -> list[Block]:
    """The paragraphs of lines as blocks, without an order; headings have level 1; `finish_document` sets the others for
    a whole document. Args: as of `find_paragraphs`.
    """
    return [
        Block(
            one.label,
            bounding_box(row.box for row in one.rows),
            one.text,
            tuple(line for row in one.rows for line in row.lines),
            score=float(np.mean([line.score for row in one.rows for line in row.lines])),
            level=int(one.label in (*HEADINGS, "list_item")),
        )
        for one in find_paragraphs(lines, height=height, others=others)
    ]


def find_paragraphs(lines: Sequence[Line], *, height: float, others: Sequence[Block] = ()) -> list[Paragraph]:
    """The paragraphs of a page in the reading order of its columns.

    Args:
        lines: Upright or not; every line stands in exactly one paragraph.
        height: Of the page, in pixels.
        others: Tables, figures and headings that stand on the page, too: they bound columns.
    """
    if not lines:
        return []
    known = has_styles(lines)
    usual, usual_bold = usual_type(lines)
    groups: list[tuple[list[Row], float, float]] = []  # with the sides of their column
    for region in _regions(lines, others, 0.0 if known else DETECTOR_MARGIN):
        rows = list(map(Row.of, region))
        left, right = min(row.box[0] for row in rows), max(row.box[2] for row in rows)
        groups += [(group, left, right) for group in _split_paragraphs(rows, left, right, known)]
    found = []
    words = WordList(tuple(line.text for line in lines))
    for number, (group, left, right) in enumerate(groups):
        label = _label(group, join_rows(group, left, right, words=words), usual, usual_bold, known, height)
        if not known and label in ("text", "list_item"):
            around = [groups[n][0] if 0 <= n < len(groups) else None for n in (number - 1, number + 1)]
            label = "paragraph_title" if _is_section(group, *around) else label
        found.append(Paragraph(tuple(group), left, right, label, words))
    return _with_whole_contents(found)


def _with_whole_contents(paragraphs: list[Paragraph]) -> list[Paragraph]:
    """Paragraphs, with those of a table of contents whose entries have no leaders labelled as the others of it."""
    labels = [one.label for one in paragraphs]
    if "content" not in labels:
        return paragraphs
    numbers = range(len(paragraphs))
    for order in (numbers, reversed(numbers)):
        before = ""
        for n in order:
            cells = [row.cells for row in paragraphs[n].rows]
            entries = all(len(row) > 1 and _PAGE.fullmatch(row[-1][-1].text.strip()) for row in cells)
            if before == "content" and entries:
                labels[n] = "content"
            before = labels[n]
    return [replace(one, label=label) for one, label in zip(paragraphs, labels, strict=True)]


def _size(line: Line) -> float:
    """The size of its type, or how high it is, across the text."""
    if line.style is not None:
        return line.style.size
    left, top, right, bottom = line_box(line)
    return right - left if line.vertical or line.orientation in (90, 270) else bottom - top


def _is_section(group: Sequence[Row], before: Sequence[Row] | None, after: Sequence[Row] | None) -> bool:
    """Whether a row is a numbered heading, where the size and weight of its type are not known: it stands over a
    paragraph, and is no item of a list.
    """
    if len(group) > 1 or not _SECTION.match(group[0].text) or after is None:
        return False
    numbered = any(part is not None and _BULLET.match(part[0].text) for part in (before, after))
    wide = max(row.box[2] - row.box[0] for row in after) >= SECTION_TEXT * group[0].size
    below = after[0].box[1] >= group[0].middle and after[0].box[0] <= group[0].box[2]
    return not numbered and len(after) > 1 and wide and below


def _regions(lines: Sequence[Line], others: Sequence[Block], margin: float) -> list[list[list[Line]]]:
    """The rows of lines of each column, and of what spans columns, in reading order."""
    level = [line for line in lines if line.orientation == 0 and not line.vertical]
    if 2 * len(level) < len(lines):
        columns = [(list(lines), False)]
    else:
        boxes, texts = [line_box(line) for line in level], [line.text for line in level]
        headings = [block.bbox for block in others if block.label in HEADINGS]
        obstacles = [block.bbox for block in others if block.label not in HEADINGS]
        cut = find_columns(boxes, texts, obstacles, headings=headings, margin=margin)
        columns = [([level[i] for i in column.lines], column.cut) for column in cut]
        if len(level) < len(lines):
            columns.append(([line for line in lines if line.orientation or line.vertical], False))
    regions: list[list[list[Line]]] = []
    for members, is_cut in columns:
        for region in reading_regions([line.polygon for line in members]):
            rows = [[members[i] for i in row] for row in region]
            regions += [rows] if is_cut else _split_columns(rows)
    return regions


def _split_columns(rows: list[list[Line]]) -> list[list[list[Line]]]:
    """The rows of a region, or those of each of its columns where prose stands beside prose: short columns whose lines
    are level look like rows with gaps. Labels beside values stay together.
    """
    lines = sorted((line for row in rows for line in row), key=lambda line: line_box(line)[0])
    if all(len(row) == 1 for row in rows) or any(line.orientation or line.vertical for line in lines):
        return [rows]
    boxes = [line_box(line) for line in lines]
    height = float(np.median([box[3] - box[1] for box in boxes]))
    starts, end = [boxes[0][0]], boxes[0][2]
    for box in boxes:
        if box[0] - end >= COLUMN_GAP * height:
            starts.append(box[0])
        end = max(end, box[2])

    def within(row: list[Line], column: int) -> list[Line]:
        return [line for line in row if bisect_right(starts, line_box(line)[0]) == column]

    columns = [[within(row, column) for row in rows] for column in range(1, len(starts) + 1)]
    columns = [[row for row in column if row] for column in columns]
    texts = [[line.text for row in column for line in row] for column in columns]
    prose = [sum(len(text.split()) for text in column) / len(column) for column in texts]
    if len(columns) < 2 or min(map(len, texts)) < 2 or min(prose) < PROSE_WORDS:
        return [rows]
    return columns


def usual_type(lines: Sequence[Line]) -> tuple[float, bool]:
    """The size in which the middle one of all characters is set, and whether most are bold."""
    weights = np.array([max(len(line.text), 1) for line in lines])
    sizes = np.array(list(map(_size, lines)))
    order = np.argsort(sizes)
    passed = np.cumsum(weights[order])
    size = float(sizes[order][np.searchsorted(passed, passed[-1] / 2)])
    bold = np.array([line.is_bold for line in lines])
    return size, bool(weights[bold].sum() > passed[-1] / 2)


def _split_paragraphs(rows: Sequence[Row], left: float, right: float, known: bool) -> list[list[Row]]:
    size = float(np.median([row.size for row in rows]))
    distances = [after.middle - before.middle for before, after in pairwise(rows)]
    leading = min(float(np.median(distances)) if distances else 0.0, WIDEST_LEADING * size)
    groups = [[rows[0]]]
    for before, row in pairwise(rows):
        gap = row.middle - before.middle - leading > PARAGRAPH_GAP * size
        sizes = sorted((before.size, row.size))
        indent, other = row.box[0] - left, right - row.box[2]
        before_indent = before.box[0] - left
        if row.rightward:
            indent, other, before_indent = other, indent, right - before.box[2]
        indented = (
            INDENT[0] * size <= indent <= INDENT[1] * size
            and before_indent < INDENT[0] / 2 * size
            and other < indent  # else it is centred
            and not _BULLET.match(before.text)  # else it hangs below its bullet
        )
        starts = bool(_BULLET.match(row.text)) and (
            bool(_BULLET.match(groups[-1][0].text)) or before.text.rstrip().endswith((":", ".", ";"))
        )
        # What follows a check box's label begins anew, unless it hangs below the label.
        starts |= (
            groups[-1][0].text[:1] in CHECK_BOXES
            and row.box[0] <= groups[-1][0].box[0] + 0.5 * size
            and right - before.box[2] > SECTION_ROOM * (right - left)
        )
        section = (
            len(groups[-1]) == 1
            and bool(_SECTION.match(before.text))
            and right - before.box[2] > SECTION_ROOM * (right - left) > right - row.box[2]
            and not row.text[:1].islower()
        )
        caption = bool(TABLE_CAPTION.match(row.text) or _FIGURE_CAPTION.match(row.text)) and len(row.text) > 6
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
    group: Sequence[Row], text: str, usual: float, usual_bold: bool, known: bool, height: float
) -> str:
    if all(map(_is_entry, text.split("\n"))):
        return "content"
    letters = sum(char.isalpha() for char in text)
    size = min(row.size for row in group)
    if TABLE_CAPTION.match(text) and len(group) <= 4:
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
    rows: Sequence[Row],
    left: float,
    right: float,
    text_of: Callable[[Row], str] = lambda row: row.text,
    *,
    keep_cells: bool = False,
    words: WordList = NO_WORDS,
) -> str:
    """The rows of one paragraph as a person would type it.

    A row runs on into the next one where that one's first word had no room on it any more, up to `right`, and from
    `left` on where the two are centred; other line ends are kept as newlines, as in addresses and verse. Nothing stands
    between Chinese or Japanese characters. Hyphens at row ends: `join_at_hyphen`. Entries of a table of contents, which
    end with a page number behind leaders, keep their line ends.

    Args:
        text_of: What a row says.
        keep_cells: Rows with cells that stand apart keep their line ends.
        words: Of the page, for hyphens.
    """
    text = text_of(rows[0])
    for before, row in pairwise(rows):
        said, box = text_of(row), row.box
        first = 1 if is_unspaced(said[0]) else len(said.split(maxsplit=1)[0])
        needed = (box[2] - box[0]) * first / max(len(said), 1)
        cells = keep_cells and max(len(before.cells), len(row.cells)) > 1
        joined = None if cells else join_at_hyphen(text, said, words)
        if joined is not None:
            text = joined
        elif (
            cells
            or CONTENTS.match(before.text)
            or before.room(row, left, right) > needed + 0.5 * (box[3] - box[1])
        ):
            text += "\n" + said
        else:
            text = join_texts(text, said)
    return text


def _is_entry(text: str) -> bool:
    """Whether a row is an entry of a table of contents."""
    return "…" in text and CONTENTS.match(text) is not None


def heading_depth(text: str) -> int | None:
    """How deep a numbered heading is: "2 Method" 1, "2.1 Data" 2; None of one without a number."""
    match = _NUMBERED.match(text)
    return None if match is None else match[1].count(".") + 1
