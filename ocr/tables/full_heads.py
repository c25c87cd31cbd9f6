"""Tables of groups without rules: below a full head most rows leave some of its columns empty.

White between such columns is as high as the table, so that they look like columns of a page. That all pieces begin
below a name of the head, or end where one does, tells that they are a table's.
"""

from __future__ import annotations

from collections.abc import Sequence

from ocr.results.geometry import Box, line_box, rows_of
from ocr.results.lines import Line
from ocr.tables.cell_text import is_number
from ocr.tables.text_segments import Segment, segments_of, text_height

LEAST_NAMES, NAME_WORDS = 4, 3  # of a head; words of each, at most
LEAST_ROWS = 3  # below a head
EDGE = 0.25  # of the text height: how far a piece begins or ends from where a name does
ROW_GAP = 1.8  # of the text height, between rows, at most
EMPTY = 0.3  # of the rows leave the first column empty, or fill few others, at least


def headed_regions(lines: Sequence[Line]) -> list[list[Line]]:
    """The lines of each head and of the rows that keep to its columns, of upright lines."""
    rows = rows_of(lines)
    regions: list[list[Line]] = []
    number = 0
    while number < len(rows):
        end = _end_of_table(rows, number)
        if end > number:
            regions.append([line for row in rows[number:end] for line in row])
        number = max(end, number + 1)
    return regions


def _end_of_table(rows: Sequence[Sequence[Line]], number: int) -> int:
    """The number behind the last row of the table whose head a row is; `number` where it is none."""
    # Names that stand apart are lines of their own, of a text layer and of OCR.
    if len(rows) - number <= LEAST_ROWS or len(rows[number]) < 2:
        return number
    height = text_height(rows[number])
    names = segments_of(rows[number], height)
    texts = [name.line.text for name in names]
    if len(names) < LEAST_NAMES or any(is_number(text) or len(text.split()) > NAME_WORDS for text in texts):
        return number
    end, bottom = number + 1, _bottom(rows[number])
    filled: list[set[int]] = []
    while end < len(rows):
        top = min(line_box(line)[1] for line in rows[end])
        columns = [_column(segment, names, height) for segment in segments_of(rows[end], height)]
        if top - bottom > ROW_GAP * height or None in columns:
            break
        filled.append({column for column in columns if column is not None})
        bottom = _bottom(rows[end])
        end += 1
    without_first = sum(0 not in row for row in filled)
    with_first = [row for row in filled if 0 in row]
    sparse = len(with_first) > 1 and without_first >= EMPTY * len(filled)
    # Groups begin in the first column and leave what their rows fill empty.
    sparse = sparse and sum(len(row) + 1 < len(names) for row in with_first) > 1
    whole = len(set().union(*filled)) == len(names)
    return end if len(filled) >= LEAST_ROWS and sparse and whole else number


def _column(segment: Segment, names: Sequence[Segment], height: float) -> int | None:
    """The number of the name at whose left edge a piece begins, or at whose right edge it ends."""
    box: Box = segment.box
    for column, name in enumerate(names):
        if min(abs(box[0] - name.box[0]), abs(box[2] - name.box[2])) < EDGE * height:
            following = names[column + 1].box[0] if column + 1 < len(names) else float("inf")
            before = names[column - 1].box[2] if column else float("-inf")
            return column if box[2] < following and box[0] > before else None
    return None


def _bottom(row: Sequence[Line]) -> float:
    return max(line_box(line)[3] for line in row)
