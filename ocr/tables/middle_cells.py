"""Cells without rules in the middle of two rows, such as a name beside a head of two rows: they span both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ocr.results.blocks import Cell
from ocr.results.geometry import bounding_box, line_box
from ocr.results.lines import Line
from ocr.tables.cell_text import cell_text
from ocr.tables.row_groups import Positions
from ocr.tables.text_segments import Segment, text_height

EXACT = 0.2  # of the text's height: how far a middle is off that of the rows above and below
FURTHEST = 2.6  # of the text's height, from one of the two rows to the other


class MiddleCell(NamedTuple):
    """A piece of text, the columns that it stands over, and the number of the row above it among the others."""

    segment: Segment
    first: int
    last: int
    above: int


def middle_cells(
    rows: Sequence[list[Segment]], placed: Positions, height: float
) -> tuple[list[int], list[MiddleCell]]:
    """(the numbers of the rows that are rows, the pieces of the others, which stand between two of them)"""
    remaining: list[int] = []
    cells: list[MiddleCell] = []
    middles = [_middle(row) for row in rows]
    for number, row in enumerate(rows):
        if remaining and remaining[-1] == number - 1 and number + 1 < len(rows):
            above, below = middles[number - 1], middles[number + 1]
            centred = abs(middles[number] - (above + below) / 2) <= EXACT * height
            around = {*_columns(placed[number - 1]), *_columns(placed[number + 1])}
            if (
                centred
                and below - above <= FURTHEST * height
                and middles[number] - above < height
                and not around & set(_columns(placed[number]))
                and len(rows[number - 1]) > 1
                and len(rows[number + 1]) > 1
            ):
                cells += [
                    MiddleCell(segment, first, last, len(remaining) - 1)
                    for segment, (first, last) in zip(row, placed[number], strict=True)
                ]
                continue
        remaining.append(number)
    return remaining, cells


def is_between(row: Sequence[Line], above: Sequence[Line], below: Sequence[Line]) -> bool:
    """Whether lines stand in the middle of two rows of several lines, and none of theirs is above or below them."""
    if min(len(above), len(below)) < 2:
        return False
    height = text_height(row)
    boxes = [list(map(line_box, lines)) for lines in (above, row, below)]
    first, middle, last = (sum(box[1] + box[3] for box in part) / 2 / len(part) for part in boxes)
    centred = abs(middle - (first + last) / 2) <= EXACT * height and last - first <= FURTHEST * height
    return centred and not any(
        box[0] < other[2] and other[0] < box[2] for box in boxes[1] for other in (*boxes[0], *boxes[2])
    )


def places_between(cells: Sequence[MiddleCell]) -> int:
    """How many places of a table cells between two rows fill."""
    return sum(2 * (cell.last - cell.first + 1) for cell in cells)


def spanning_columns(cells: Sequence[Cell], middle: Sequence[MiddleCell], rows: int) -> list[Cell]:
    """The cells, those that stand on a row in the middle of empty ones over all of these, in columns in which others
    stand between two rows: below the head such cells fill the column.
    """
    new = list(cells)
    for column in {cell.first for cell in middle if cell.first == cell.last}:
        numbers = [
            n for n, cell in enumerate(new) if cell.column == column and cell.text and cell.colspan == 1
        ]
        numbers.sort(key=lambda n: new[n].row)
        grown: dict[int, Cell] = {}
        end = new[numbers[0]].row + new[numbers[0]].rowspan if new[numbers[0]].row == 0 else 1
        for n in numbers:
            cell = new[n]
            if cell.row < end:
                continue
            above = cell.row - end
            if above:
                grown[n] = replace(cell, row=end, rowspan=cell.rowspan + 2 * above)
            end = cell.row + cell.rowspan + above
        whole = end == rows and not any(cell.column < column < cell.column + cell.colspan for cell in new)
        if whole:
            new = [grown.get(n, cell) for n, cell in enumerate(new)]
    return new


def add_middle_cells(
    cells: Sequence[Cell], middle: Sequence[MiddleCell], groups: Sequence[Sequence[int]]
) -> list[Cell]:
    """The cells of a table with those between its rows; where another one stands already, its text goes on with them.

    Args:
        groups: The numbers of the rows of text that each row of the table has.
    """
    new = list(cells)
    group_of = {row: number for number, members in enumerate(groups) for row in members}
    for one in middle:
        line = one.segment.line
        row, end = group_of[one.above], group_of[one.above + 1] + 1
        covered = [
            number
            for number, cell in enumerate(new)
            if cell.row < end
            and row < cell.row + cell.rowspan
            and cell.column <= one.last
            and one.first < cell.column + cell.colspan
        ]
        if covered:
            cell = new[covered[0]]
            text, ordered = cell_text([*cell.lines, line])
            box = bounding_box(map(line_box, ordered))
            new[covered[0]] = replace(cell, text=text, lines=ordered, bbox=box)
        else:
            span = one.last - one.first + 1
            new.append(Cell(row, one.first, line.text, end - row, span, line_box(line), 0.9, False, (line,)))
    return new


def _middle(row: Sequence[Segment]) -> float:
    return sum((segment.box[1] + segment.box[3]) / 2 for segment in row) / len(row)


def _columns(positions: Sequence[tuple[int, int]]) -> list[int]:
    return [column for first, last in positions for column in range(first, last + 1)]
