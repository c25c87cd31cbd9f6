"""Paragraphs, headings, list items, captions and footnotes from lines, by their places and their type.

What a line is set in is known of a text layer (`Line.style`) and not of OCR, where the height of a line stands for the
size of its type, which is worth less: a heading must be larger then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ocr.results.bidi import starts_right
from ocr.results.blocks import Block, Box
from ocr.results.geometry import bounding_box, line_box, rows_of
from ocr.results.lines import Line, has_styles
from ocr.text.columns import BULLETS, LIST_MARK, find_columns
from ocr.text.counted_items import mark_counted_items
from ocr.text.hanging_indents import hanging_rows
from ocr.text.hyphens import NO_WORDS, WordList
from ocr.text.list_levels import Mark, list_levels
from ocr.text.reading_order import DETECTOR_MARGIN, reading_regions, slope_of
from ocr.text.rows import (
    ENDS_WITH_AMOUNT,
    ROW_GAP,
    SHORT_MOST,
    Row,
    has_room,
    is_beside_the_label,
    is_entry,
    join_rows,
    own_ends,
    type_size,
    white_inside,
)
from ocr.text.side_by_side import split_columns
from ocr.text.vertical_text import column_box, is_vertical_text, level_box, level_line

# Multiples of the size of the type.
PARAGRAPH_GAP = 0.45  # beyond the usual distance of lines
LEADING = 0.25  # of the distances are this or less: among short paragraphs most may be those between them
LEADINGS = (1.0, 1.9)
INDENT = (0.8, 4.0)  # of a first line: the least, the greatest
HANGING = 6.0  # of all lines but the first: the greatest
SIZE_CHANGE = {
    True: 1.12,
    False: 1.4,
}  # between paragraphs, where the size of the type is known, and where not
HEADING = {True: 1.12, False: 1.5}  # to the page's usual size
TITLE = 1.5
OCR_SIZE = 0.65  # of a line's height: the size of its type, as boxes of detectors stand out
HEADINGS = ("doc_title", "paragraph_title")
HEADING_CHARS, HEADING_ROWS, LARGE_ROWS = 160, 3, 5  # of a heading at most; of one in large type
TILTED = 0.07  # slope, 4 degrees: no heading is set so
SECTION_ROOM = 0.25  # of the column's width, which a numbered heading leaves free
SECTION_TEXT = 12.0  # multiples of its size: the least width of the text below it
CAPTIONED = ("table", "image", "chart")
CAPTION_GAP = (
    2.5  # heights of a caption's line: the most white to what it belongs to, where captions are level
)
EDGE, EDGE_GAP = 0.1, 1.0  # of the page's height; of the row's: the white to the next row, at least
FOOTNOTE = 0.92  # to the page's usual size, with a mark, in the lower half

TABLE_CAPTION = re.compile(
    r"(table|tab\.|tabelle|tableau|tabla|tabella|表)\s*\.?\s*(?-i:[\dIVXA-Z])(?![a-z])", re.IGNORECASE
)
CHECK_BOXES = "☐☑☒"
_PAGE = re.compile(r"\d+|[ivxlcIVXLC]+")
_BULLET = re.compile(rf"{LIST_MARK}\s+\S|\(?([a-z]|\d{{1,2}})\)\w")  # OCR may lose the space
_SIGN = re.compile(rf"[{BULLETS}]\s+\S")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2})*)\.?\s+\S")
_SECTION = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?\s+(?![a-z])[^\W\d_].*[^.,;:]$")
_FIGURE_CAPTION = re.compile(
    r"(figure|fig\.|abbildung|abb\.|figura|图|図)\s*\.?\s*(?-i:[\dIVXA-Z])(?![a-z])", re.IGNORECASE
)
_RELATION = re.compile(r"[=<>≤≥≈≡≠±×÷∑∏∫∂√∞→∈+]")
_WORD = re.compile(r"[^\W\d_]{4,}")
_FUNCTIONS = ("sinh", "cosh", "tanh", "diag", "rank", "span", "sign", "argmax", "argmin")
_PRICE = re.compile(
    r"\W*([A-Z]{3}|kr\.?|Rs\.?)?\W*\d[\d.,' ]*[.,]\d\d\W*([A-Z]{3}|kr\.?)?\W*"
)  # and nothing else
_FOOTNOTE_MARK = re.compile(r"(\d{1,2}|[*∗†‡§¶]|[a-z])\)?\s*\S")


@dataclass(frozen=True)
class Paragraph:
    """Rows that are read as one, with the sides of their column and what they are: the label of their block."""

    rows: tuple[Row, ...]
    left: float
    right: float
    label: str
    words: WordList = NO_WORDS
    keep_ends: bool = False  # of its rows: they are the author's

    @property
    def text(self) -> str:
        """What it says; a heading on one line."""
        text = join_rows(self.rows, self.left, self.right, words=self.words, keep_ends=self.keep_ends)
        return text.replace("\n", " ") if self.label in HEADINGS else text


def make_text_blocks(
    lines: Sequence[Line], *, height: float, others: Sequence[Block] = (), rules: Sequence[Box] = ()
) -> list[Block]:
    """The paragraphs of lines as blocks, without an order; items of lists have their depth, headings level 1:
    `finish_document` sets theirs for a whole document. Args: as of `find_paragraphs`.
    """
    if is_vertical_text(lines):
        return _make_vertical_blocks(lines, others, rules)
    paragraphs = find_paragraphs(lines, height=height, others=others, rules=rules)
    scale = 1.0 if has_styles(lines) else OCR_SIZE
    marks = [
        Mark(one.rows[0].box[0], scale * one.rows[0].size, one.label == "list_item") for one in paragraphs
    ]
    return [
        Block(
            one.label,
            bounding_box(row.box for row in one.rows),
            one.text,
            tuple(line for row in one.rows for line in row.lines),
            score=float(np.mean([line.score for row in one.rows for line in row.lines])),
            level=1 if one.label in HEADINGS else level,
        )
        for one, level in zip(paragraphs, list_levels(marks), strict=True)
    ]


def _make_vertical_blocks(
    lines: Sequence[Line], others: Sequence[Block], rules: Sequence[Box]
) -> list[Block]:
    edge = max(line_box(line)[2] for line in lines)
    level = [level_line(line, edge) for line in lines]
    columns = {id(row): line for row, line in zip(level, lines, strict=True)}
    blocks = make_text_blocks(
        level,
        height=edge,
        others=[replace(block, bbox=level_box(block.bbox, edge)) for block in others],
        rules=[level_box(rule, edge) for rule in rules],
    )
    return [
        replace(
            block, bbox=column_box(block.bbox, edge), lines=tuple(columns[id(row)] for row in block.lines)
        )
        for block in blocks
    ]


def find_paragraphs(
    lines: Sequence[Line], *, height: float, others: Sequence[Block] = (), rules: Sequence[Box] = ()
) -> list[Paragraph]:
    """The paragraphs of a page in the reading order of its columns.

    Args:
        lines: Upright or not; every line stands in exactly one paragraph.
        height: Of the page, in pixels.
        others: Tables, figures and headings that stand on the page, too: they bound columns.
        rules: Boxes of rules across the page, which end columns.
    """
    if not lines:
        return []
    known = has_styles(lines)
    usual, usual_bold = usual_type([*lines, *(line for block in others for line in block.lines)])
    # With the sides of their column and whether the ends of its rows are the author's.
    groups: list[tuple[list[Row], float, float, bool]] = []
    for region in _page_regions(lines, others, rules, 0.0 if known else DETECTOR_MARGIN, height):
        rows = list(map(Row.of, region))
        rows = mark_counted_items(rows) if known else rows
        left, right = min(row.box[0] for row in rows), max(row.box[2] for row in rows)
        split = _split_paragraphs(rows, left, right, known)
        own = own_ends(split, left, right) if known else [False] * len(split)
        groups += [(group, left, right, keep) for group, keep in zip(split, own, strict=True)]
    found = []
    words = WordList(tuple(line.text for line in lines))
    for number, (group, left, right, keep_ends) in enumerate(groups):
        said = join_rows(group, left, right, words=words, keep_ends=keep_ends)
        label = _label(group, said, usual, usual_bold, known, height)
        if not known and label in ("text", "list_item"):
            around = [groups[n][0] if 0 <= n < len(groups) else None for n in (number - 1, number + 1)]
            label = "paragraph_title" if _is_section(group, *around) else label
        found.append(Paragraph(tuple(group), left, right, label, words, keep_ends))
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


def _page_regions(
    lines: Sequence[Line], others: Sequence[Block], rules: Sequence[Box], margin: float, height: float
) -> list[list[list[Line]]]:
    """`_regions`; the row of the page's number at its head or foot is one of its own, before or after all columns:
    it belongs to none, and reaches over all.
    """
    level = [line for line in lines if line.orientation == 0 and not line.vertical]
    rows = rows_of(level) if 2 * len(level) >= len(lines) else []
    head: list[list[Line]] = []
    foot: list[list[Line]] = []
    if len(rows) > 2 and _is_edge_row(rows[0], rows[1], height):
        head = rows[:1]
    if len(rows) > 2 and _is_edge_row(rows[-1], rows[-2], height):
        foot = rows[-1:]
    edges = {id(line) for row in (*head, *foot) for line in row}
    rest = [line for line in lines if id(line) not in edges]
    return [
        *([head] if head else []),
        *_regions(rest, others, rules, margin),
        *([foot] if foot else []),
    ]


def _is_edge_row(row: Sequence[Line], nearest: Sequence[Line], height: float) -> bool:
    """Whether the outermost row of a page stands at its edge, apart from the row next to it, and has its number."""
    _, top, _, bottom = bounding_box(map(line_box, row))
    _, next_top, _, next_bottom = bounding_box(map(line_box, nearest))
    apart = max(next_top - bottom, top - next_bottom) >= EDGE_GAP * (bottom - top)
    at_edge = bottom <= EDGE * height or top >= (1 - EDGE) * height
    return at_edge and apart and len(row) > 1 and any(_PAGE.fullmatch(line.text.strip()) for line in row)


def _regions(
    lines: Sequence[Line], others: Sequence[Block], rules: Sequence[Box], margin: float
) -> list[list[list[Line]]]:
    """The rows of lines of each column, and of what spans columns, in reading order."""
    beside, lines = _captions_apart(lines, [block.bbox for block in others if block.label in CAPTIONED])
    level = [line for line in lines if line.orientation == 0 and not line.vertical]
    if 2 * len(level) < len(lines):
        columns = [(list(lines), False)]
    else:
        boxes, texts = [line_box(line) for line in level], [line.text for line in level]
        headings = [block.bbox for block in others if block.label in HEADINGS]
        obstacles = [*(block.bbox for block in others if block.label not in HEADINGS), *rules]
        cut = find_columns(
            boxes,
            texts,
            obstacles,
            headings=headings,
            margin=margin,
            slope=slope_of(level),
            rightward=starts_right("".join(texts)),
        )
        columns = [([level[i] for i in column.lines], column.cut) for column in cut]
        if len(level) < len(lines):
            columns.append(([line for line in lines if line.orientation or line.vertical], False))
    regions = [rows_of(group) for group in beside]
    for members, is_cut in columns:
        for region in reading_regions([line.polygon for line in members]):
            rows = [[members[i] for i in row] for row in region]
            regions += [rows] if is_cut else split_columns(rows)
    return regions


def _captions_apart(lines: Sequence[Line], boxes: Sequence[Box]) -> tuple[list[list[Line]], list[Line]]:
    """(the lines of captions, each in a list of its own; the other lines): of tables and figures that stand beside one
    another, rows of which each line is right above or below another one.
    """
    reach: dict[Box, float] = {}  # half of the white to the nearest neighbour
    for a, b in ((a, b) for a in boxes for b in boxes if a[2] <= b[0] and _share_heights(a, b)):
        for box in (a, b):
            reach[box] = min((b[0] - a[2]) / 2, reach.get(box, np.inf))
    if not reach:
        return [], list(lines)
    owners = [(left - x, top, right + x, bottom) for (left, top, right, bottom), x in reach.items()]
    groups: dict[tuple[int, bool], list[Line]] = {}
    taken: set[int] = set()
    for row in rows_of([line for line in lines if line.orientation == 0 and not line.vertical]):
        owned = [(_owner(line_box(line), owners), line) for line in row]
        if len({owner for owner, _ in owned}) > 1 and all(owner is not None for owner, _ in owned):
            for owner, line in owned:
                assert owner is not None
                groups.setdefault(owner, []).append(line)
                taken.add(id(line))
    return list(groups.values()), [line for line in lines if id(line) not in taken]


def _share_heights(a: Box, b: Box) -> bool:
    return min(a[3], b[3]) - max(a[1], b[1]) > 0.5 * min(a[3] - a[1], b[3] - b[1])


def _owner(line: Box, boxes: Sequence[Box]) -> tuple[int, bool] | None:
    """The number of the box that a line is right above or below, and whether it is above."""
    height = line[3] - line[1]
    for number, box in enumerate(boxes):
        if line[0] < box[0] - height or line[2] > box[2] + height:
            continue
        for is_above, gap in ((True, box[1] - line[3]), (False, line[1] - box[3])):
            if -0.5 * height < gap < CAPTION_GAP * height:
                return number, is_above
    return None


def usual_type(lines: Sequence[Line]) -> tuple[float, bool]:
    """The size in which the middle one of all characters is set, and whether most are bold."""
    weights = np.array([max(len(line.text), 1) for line in lines])
    sizes = np.array(list(map(type_size, lines)))
    order = np.argsort(sizes)
    passed = np.cumsum(weights[order])
    size = float(sizes[order][np.searchsorted(passed, passed[-1] / 2)])
    bold = np.array([line.is_bold for line in lines])
    return size, bool(weights[bold].sum() > passed[-1] / 2)


def _split_paragraphs(rows: Sequence[Row], left: float, right: float, known: bool) -> list[list[Row]]:
    size = float(np.median([row.size for row in rows]))
    distances = [after.middle - before.middle for before, after in pairwise(rows)]
    usual = float(np.quantile(distances, LEADING)) if distances else 0.0
    flush = all(right - row.box[2] < INDENT[0] / 2 * size for row in rows)  # right, and not only justified
    flush &= sum(row.box[0] - left > INDENT[0] * size for row in rows) * 2 >= len(rows)
    least, most = (size * part * (1.0 if known else OCR_SIZE) for part in LEADINGS)
    leading = min(max(usual, least), most)
    entries, below = (set(), set()) if flush else _hanging_rows(rows, left, right, size)
    groups = [[rows[0]]]
    for number, (before, row) in enumerate(pairwise(rows), 1):
        sizes = sorted((before.size, row.size))
        scale = max(1.0, sizes[0] / size) if known else 1.0  # lines of a large heading stand further apart
        gap = row.middle - before.middle - scale * leading > scale * PARAGRAPH_GAP * size * (
            1.0 if known else OCR_SIZE
        )
        indent, other = row.box[0] - left, right - row.box[2]
        before_indent = before.box[0] - left
        if row.rightward:
            indent, other, before_indent = other, indent, right - before.box[2]
        indented = (
            INDENT[0] * size <= indent <= INDENT[1] * size
            and before_indent < INDENT[0] / 2 * size
            and other < indent  # else it is centred
            and not flush
            and not _is_item(before)  # else it hangs below its bullet
            and number not in below
        )
        starts = row.counted or _starts_item(row.text, groups[-1][0].text, before.text)
        # What follows a check box's label begins anew, unless it hangs below the label.
        starts |= (
            groups[-1][0].text[:1] in CHECK_BOXES
            and row.box[0] <= groups[-1][0].box[0] + 0.5 * size
            and right - before.box[2] > SECTION_ROOM * (right - left)
        )
        after_item = _is_item(groups[-1][0]) and not _hangs(groups[-1], row, left, right)
        section = (
            len(groups[-1]) == 1
            and bool(_SECTION.match(before.text))
            and right - before.box[2] > SECTION_ROOM * (right - left) > right - row.box[2]
            and not row.text[:1].islower()
        )
        ended = (
            white_inside(before, left, right) > ROW_GAP >= white_inside(row, left, right)
            and len(row.text.split()) > SHORT_MOST
            and not is_beside_the_label(row, before)
        )
        caption = bool(TABLE_CAPTION.match(row.text) or _FIGURE_CAPTION.match(row.text)) and len(row.text) > 6
        if (
            gap
            or indented
            or number in entries
            or starts
            or section
            or ended
            or after_item
            or (caption and known and before.box[2] < right - size)
            or sizes[1] > SIZE_CHANGE[known] * sizes[0]
            or (known and row.bold != before.bold)
        ):
            groups.append([])
        groups[-1].append(row)
    return groups


def _hanging_rows(rows: Sequence[Row], left: float, right: float, size: float) -> tuple[set[int], set[int]]:
    """The rows that hang out of their paragraphs, and those below them: `hanging_rows`; items of lists are none."""
    if any(row.rightward for row in rows):
        return set(), set()
    texts = [row.text for row in rows]
    if any(map(_is_item, rows)):
        return set(), set()

    def is_full(number: int) -> bool:
        return not has_room(rows[number], rows[number + 1], texts[number + 1], left, right)

    reach = (INDENT[0] * size, HANGING * size)
    return hanging_rows([row.box[0] - left for row in rows], texts, is_full, reach)


def _is_item(row: Row) -> bool:
    return row.counted or _BULLET.match(row.text) is not None


def _starts_item(text: str, first: str, before: str) -> bool:
    """Whether a row begins an item of a list, by its text, that of its paragraph's first row, and that of the row
    before it. Initials in a bibliography begin none.
    """
    if not _BULLET.match(text):
        return False
    if _SIGN.match(text):
        return True
    if first[:1] == "[" and _BULLET.match(first):
        return text[0] == "["
    return bool(_BULLET.match(first)) or before.rstrip().endswith((":", ".", ";"))


def _hangs(item: Sequence[Row], row: Row, left: float, right: float) -> bool:
    """Whether a row goes on in a list's item: right of its mark, or below the mark after a row that was full."""
    mark = item[0].box[0] + 0.5 * row.size
    if row.box[0] > mark:
        return True
    hung = len(item) > 1 and item[-1].box[0] > mark
    return not hung and (row.text[:1].islower() or not has_room(item[-1], row, row.text, left, right))


def may_be_heading(text: str) -> bool:
    """Whether a text has letters, and is no formula and no caption."""
    said = sum(char.isalpha() for char in text) >= 2 or text.lstrip().startswith("§")
    said = said and not _PRICE.fullmatch(text.strip())
    return said and not is_formula(text) and not TABLE_CAPTION.match(text) and not _FIGURE_CAPTION.match(text)


def _is_tilted(row: Row) -> bool:
    """Whether a row of OCR runs askew, as a stamp's do; pages are made straight before."""
    right, down = np.sum([np.subtract(line.polygon[1], line.polygon[0]) for line in row.lines], axis=0)
    return all(line.style is None for line in row.lines) and abs(down) > TILTED * abs(right)


def _is_value_row(row: Row) -> bool:
    """Whether a row is a label with its value far to the right, such as a total; a heading may stand so behind its
    number.
    """
    return row.white > ROW_GAP and not re.fullmatch(
        r"(\w+\s+)?[\dIVXA-Z.()§]+", row.cells[0][-1].text.strip()
    )


def is_formula(text: str) -> bool:
    """Whether a line is mathematics: a relation or a sum, and no word of four letters but the names of functions."""
    words = [word for word in _WORD.findall(text) if word.lower() not in _FUNCTIONS]
    return bool(_RELATION.search(text)) and not words


def _label(
    group: Sequence[Row], text: str, usual: float, usual_bold: bool, known: bool, height: float
) -> str:
    if all(map(is_entry, text.split("\n"))):
        return "content"
    size = min(row.size for row in group)
    if TABLE_CAPTION.match(text) and len(group) <= 4:
        return "table_title"
    if _FIGURE_CAPTION.match(text) and len(group) <= 6:
        return "figure_title"
    short = (
        len(group) <= (LARGE_ROWS if known and size >= TITLE * usual else HEADING_ROWS)
        and not any(map(_is_tilted, group))
        and len(text) <= HEADING_CHARS
        and may_be_heading(text)
        and not _SIGN.match(text)
    )
    if short and size >= TITLE * usual and group[0].box[1] < height / 3:
        return "doc_title"
    if short and size >= HEADING[known] * usual:
        return "paragraph_title"
    bold = known and not usual_bold and all(row.bold and not _is_value_row(row) for row in group)
    bold = bold and not ENDS_WITH_AMOUNT.search(text)
    if short and bold and not text.rstrip().endswith((".", ",", ";", ":")) and size >= 0.95 * usual:
        return "paragraph_title"
    foot = known and size <= FOOTNOTE * usual and group[0].box[1] > height / 2
    if group[0].counted or (
        _BULLET.match(text) and any(map(str.isalnum, text)) and not (foot and text[0] in "*∗")
    ):
        return "list_item"
    if foot and _FOOTNOTE_MARK.match(text):
        return "footnote"
    return "text"


def heading_depth(text: str) -> int | None:
    """How deep a numbered heading is: "2 Method" 1, "2.1 Data" 2; None of one without a number."""
    match = _NUMBERED.match(text)
    return None if match is None else match[1].count(".") + 1
