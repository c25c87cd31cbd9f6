"""Rows of a ruled table that no line parts: LaTeX's tables are often ruled around their head and their body alone.

The same ruling is that of cells of several lines. What the lines of text say tells which it is: numbers below one
another, each beside a text of the first column, are rows, and so are three lines or more in every cell that all end
before their column's side.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ocr.results.blocks import Box
from ocr.results.geometry import bounding_box, line_box, rows_of
from ocr.results.lines import Line
from ocr.tables.cell_text import is_number

LEAST = 3  # rows without a number
MOST_LINES = 0.5  # of the table's lines below its head stand in such rows, at least
SPACE = 0.6  # of the text's height: more than is between two words


class CellArea(NamedTuple):
    """A cell's place in the grid, its box and the lines in it."""

    row: int
    column: int
    rowspan: int
    colspan: int
    box: Box
    lines: Sequence[Line]


def part_rows(areas: Sequence[CellArea], rows: int) -> tuple[list[CellArea], int]:
    """(the areas, those of ruled rows that hold several rows of the table parted; how many rows there are)"""
    bands = [_bands([one for one in areas if one.row == row and one.rowspan == 1]) for row in range(rows)]
    counts = [_count_lines([one for one in areas if one.row == row]) for row in range(rows)]
    parted = sum(count for count, band in zip(counts, bands, strict=True) if band)
    if parted <= MOST_LINES * sum(counts[1 if rows > 1 else 0 :]):
        return list(areas), rows
    first = [0]  # row of the parted table of each ruled row
    for band in bands:
        first.append(first[-1] + len(band) + 1)
    new: list[CellArea] = []
    for one in areas:
        cuts = bands[one.row] if one.rowspan == 1 else []
        if not cuts:
            span = first[one.row + one.rowspan] - first[one.row]
            new.append(one._replace(row=first[one.row], rowspan=span))
            continue
        left, top, right, bottom = one.box
        for number, (upper, lower) in enumerate(pairwise([top, *cuts, bottom])):
            mine = [line for line in one.lines if bisect_right(cuts, _middle(line)) == number]
            area = CellArea(
                first[one.row] + number, one.column, 1, one.colspan, (left, upper, right, lower), mine
            )
            new.append(area)
    new.sort(key=lambda one: (one.row, one.column))
    return new, first[-1]


def _count_lines(areas: Sequence[CellArea]) -> int:
    return len(rows_of([line for one in areas for line in one.lines]))


def _middle(line: Line) -> float:
    _, top, _, bottom = line_box(line)
    return (top + bottom) / 2


def _bands(areas: Sequence[CellArea]) -> list[float]:
    """Where the cells of a ruled row are cut into rows of the table: heights, from the top; none where they are one."""
    rows = rows_of([line for one in areas for line in one.lines])
    if len(rows) < 2 or len(areas) < 2:
        return []
    number_of = {id(line): number for number, row in enumerate(rows) for line in row}
    cells: list[dict[int, str]] = []  # of each place: its text by the number of the line
    for one in areas:
        cell: dict[int, list[str]] = {}
        for line in one.lines:
            cell.setdefault(number_of[id(line)], []).append(line.text)
        cells.append({number: " ".join(texts) for number, texts in cell.items()})
    starts = _starts_by_numbers(cells) or _starts_by_ends(areas, cells, rows)
    edges = [bounding_box(map(line_box, row)) for row in rows]
    return [(edges[start - 1][3] + edges[start][1]) / 2 for start in starts[1:]]


def _starts_by_numbers(cells: Sequence[dict[int, str]]) -> list[int]:
    """The lines with which rows begin: those with a number in a column that has nothing else."""
    first, *others = cells
    starting: set[int] = set()
    for cell in others:
        if len(cell) > 1 and all(map(is_number, cell.values())):
            starting |= set(cell)
    starts = sorted(starting)
    if len(starts) < 2 or starts[0] or not starting <= set(first):
        return []
    # Errors in brackets stand below their values, and what goes on is no row.
    in_brackets = [all(cell.get(n, "(")[0] == "(" for cell in others) for n in starts]
    small = [first[n][:1].islower() for n in starts]
    if any(in_brackets) or any(small) != all(small):
        return []
    return starts


def _starts_by_ends(
    areas: Sequence[CellArea], cells: Sequence[dict[int, str]], rows: Sequence[Sequence[Line]]
) -> list[int]:
    """All lines, where each cell has most of them and every line ends where the next one's first word had room."""
    if len(rows) < LEAST or len(cells[0]) < len(rows):
        return []
    if any(len(cell) < 2 or 2 * len(cell) < len(rows) for cell in cells):
        return []
    for one in areas:
        pad = max(min(line_box(line)[0] for line in one.lines) - one.box[0], 0.0)
        width = one.box[2] - one.box[0] - 2 * pad
        lines = rows_of(one.lines)
        small = lines[0][0].text[:1].islower()
        for before, row in pairwise(lines):
            box = bounding_box(map(line_box, before))
            word = line_box(row[0].words[0] if row[0].words else row[0])
            room = width - (box[2] - box[0])
            goes_on = row[0].text[:1].islower() and not small
            if goes_on or word[2] - word[0] + SPACE * (word[3] - word[1]) > room:
                return []
    return list(range(len(rows)))
