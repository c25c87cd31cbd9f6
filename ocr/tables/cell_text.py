"""Which words stand in which box, and what they say together: the text of table cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ocr.results.blocks import Box, Cell
from ocr.results.geometry import bounding_box, box_polygon, centre, line_box, rows_of
from ocr.results.lines import Line, Word
from ocr.text.reading_order import join_texts

OVERLAP = 0.3  # of the text's height, by which a text lies on another one
_NUMBER = re.compile(r"[\d.,%+\-−–()€$£¥±×/: ]*\d[\d.,%+\-−–()€$£¥±×/: eE]*[A-Za-z%]{0,3}")


def is_number(text: str) -> bool:
    """Whether a cell's text is an amount: digits with signs, separators, a currency or a unit of three letters."""
    return bool(_NUMBER.fullmatch(text.strip()))


def part_of_line(line: Line, words: Sequence[Word]) -> Line:
    """A line of some of the line's words, set as it is."""
    if len(words) == len(line.words):
        return line
    polygon = box_polygon(bounding_box(map(line_box, words)))
    text = " ".join(word.text for word in words)
    style = line.style
    if style is not None and words[-1] is not line.words[-1]:
        style = replace(style, hyphen=False)
    return Line(text, line.score, polygon, tuple(words), line.orientation, line.vertical, style)


def split_lines(lines: Iterable[Line], box: Box) -> tuple[list[Line], list[Line]]:
    """(lines inside the box, the other lines); a line over the box's edge is divided between its words."""
    inside: list[Line] = []
    rest: list[Line] = []
    for line in lines:
        bounds = line_box(line)
        if bounds[2] <= box[0] or bounds[0] >= box[2] or bounds[3] <= box[1] or bounds[1] >= box[3]:
            rest.append(line)
            continue
        words = line.words
        if not words:
            x, y = centre(bounds)
            (inside if box[0] <= x <= box[2] and box[1] <= y <= box[3] else rest).append(line)
            continue
        hit = [
            box[0] <= cx <= box[2] and box[1] <= cy <= box[3]
            for cx, cy in (centre(line_box(w)) for w in words)
        ]
        for target, wanted in ((inside, True), (rest, False)):
            if part := [word for word, is_in in zip(words, hit, strict=True) if is_in is wanted]:
                target.append(part_of_line(line, part))
    return inside, rest


def overflowing_lines(lines: Sequence[Line]) -> list[Line]:
    """Lines of a text layer on whose end another one of their row begins: texts that are too long for their cell."""
    overflowing: list[Line] = []
    for row in rows_of(line for line in lines if line.style is not None):
        boxes = [line_box(line) for line in row]
        for number, (left, top, right, bottom) in enumerate(boxes):
            least = OVERLAP * (bottom - top)
            if any(left + least < after[0] < right - least for after in boxes[number + 1 :]):
                overflowing.append(row[number])
    return overflowing


def begins_in(line: Line, box: Box) -> bool:
    """Whether a line begins in a box."""
    left, top, _, bottom = line_box(line)
    return box[0] <= left + OVERLAP * (bottom - top) <= box[2] and box[1] <= (top + bottom) / 2 <= box[3]


def cell_text(lines: Sequence[Line], width: float | None = None) -> tuple[str, tuple[Line, ...]]:
    """What the lines of a cell say and the lines in order.

    A line end is taken as the author's where the next line's first word would have fitted in the `width` pixels of the
    cell's text; None joins all with spaces. A hyphen at a line's end stays: it may belong to the word.
    """
    rows = rows_of(lines)
    text = ""
    for number, row in enumerate(rows):
        said = " ".join(line.text for line in row)
        if not text:
            text = said
            continue
        before = rows[number - 1]
        end, start = line_box(before[-1])[2], line_box(before[0])[0]
        head = row[0].words[0] if row[0].words else row[0]
        box = line_box(head)
        height = box[3] - box[1]
        room = None if width is None else width - (end - start)
        if room is not None and box[2] - box[0] + 0.6 * height < room:
            text += "\n" + said
        else:
            text = join_texts(text, said)
    return text, tuple(line for row in rows for line in row)


def count_header_rows(
    cells: Sequence[Cell], rows: int, bold: Sequence[bool], filled: Sequence[object]
) -> int:
    """How many leading rows are the head: those in bold or on another colour than the body; else the first row, where
    it names columns instead of holding values.

    `bold[i]` and `filled[i]` tell cells[i]'s type and colour (None: none).
    """
    if rows < 2:
        return 0
    by_row: list[list[int]] = [[] for _ in range(rows)]
    for number, cell in enumerate(cells):
        by_row[cell.row].append(number)

    def stands_out(row: int, marks: Sequence[object], against: object) -> bool:
        said = [marks[i] for i in by_row[row] if cells[i].text]
        return bool(said) and all(mark != against for mark in said)

    count = 0
    for marks in (bold, filled):
        body = [marks[i] for row in by_row[max(1, rows // 2) :] for i in row if cells[i].text]
        plain = max(set(body), key=body.count) if body else None
        if marks is bold and plain:
            continue
        if marks is filled and len({marks[i] for row in by_row[1:] for i in row}) > 2:
            continue
        here = 0
        while here < rows - 1 and stands_out(here, marks, plain):
            here += 1
        if 0 < here <= max(1, rows // 2):
            count = max(count, here) if marks is bold else count or here
    if not count:
        first = [cells[i] for i in by_row[0]]
        numbers = [is_number(cell.text) for cell in first if cell.text]
        if numbers and not any(numbers):
            count = 1
    # A cell that starts in the head stands in it with all its rows.
    grown = True
    while grown:
        ends = max((c.row + c.rowspan for c in cells if c.row < count), default=count)
        grown = ends > count
        count = max(count, ends)
    return count if count < rows else 0
