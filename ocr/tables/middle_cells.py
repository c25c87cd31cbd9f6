"""Cells without rules in the middle of two rows, such as a name beside a head of two rows: they span both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ocr.results.blocks import Cell
from ocr.results.geometry import bounding_box, line_box
from ocr.tables.cell_text import cell_text
from ocr.tables.row_groups import Positions
from ocr.tables.text_segments import Segment

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
