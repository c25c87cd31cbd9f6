"""Cells as networks and files give them, with spans that overlap or end nowhere, on a grid that a `Table` takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ocr.results.blocks import Cell, Table


def place_cells(cells: Iterable[Cell]) -> Table:
    """A table of cells whose spans may be wrong; all of them are in it, and no text is lost.

    Where a cell begins counts more than how far another one reaches: every cell has its own place, or the next free one
    of its row where two begin on one. In row order each then takes of its spans what is free, to the right and then
    downwards, within the rows and columns in which cells begin.
    """
    ordered = sorted(cells, key=lambda cell: (cell.row, cell.column))
    starts: list[tuple[int, int]] = []
    taken: set[tuple[int, int]] = set()
    for cell in ordered:
        column = cell.column
        while (cell.row, column) in taken:
            column += 1
        taken.add((cell.row, column))
        starts.append((cell.row, column))
    rows = max((row for row, _ in starts), default=-1) + 1
    columns = max((column for _, column in starts), default=-1) + 1
    placed: list[Cell] = []
    for cell, (row, column) in zip(ordered, starts, strict=True):
        width = 1
        while width < min(cell.colspan, columns - column) and (row, column + width) not in taken:
            width += 1
        height = 1
        while height < min(cell.rowspan, rows - row) and not any(
            (row + height, column + x) in taken for x in range(width)
        ):
            height += 1
        taken |= {(row + y, column + x) for y in range(height) for x in range(width)}
        placed.append(replace(cell, column=column, rowspan=height, colspan=width))
    return Table(tuple(placed), rows, columns)
