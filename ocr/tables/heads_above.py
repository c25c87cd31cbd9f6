"""The head of a ruled table that stands above its ruling lines, without any of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ocr.results.blocks import Block, Cell, Table
from ocr.results.geometry import bounding_box, centre, line_box, rows_of
from ocr.results.lines import Line
from ocr.tables.cell_text import cell_text, is_number, part_of_line

# Of the text's height: most white between the head and the table, and between lines of the head.
NEAR, CLOSE = 1.0, 0.25
APART = 0.5  # of the text's height, at least, between the names of two columns
LINES = 3  # of a head, at most


def add_head_above(block: Block, lines: Sequence[Line]) -> tuple[Block, list[Line]]:
    """(the table with the names of its columns that stand above it as its head, the lines outside it); both as they
    are where the table has a head of its own, or what stands above names no columns: at least all but the first, none
    twice, and no column by a number.

    Args:
        block: A ruled table whose cells all have boxes.
        lines: Those of the page outside it.
    """
    table = block.content
    if not isinstance(table, Table) or not table.cells or not block.lines:
        return block, list(lines)
    if any(cell.header for cell in table.cells) and not all(_is_plain_head(cell) for cell in table.cells):
        return block, list(lines)
    edges = _column_edges(table)
    heights = [line_box(line)[3] - line_box(line)[1] for line in block.lines]
    height = float(np.median(heights))
    columns, members = _names(block, lines, edges, height)
    named = {number for number, one in enumerate(columns) if one}
    if len(named) < max(2, table.columns - 1) or not named >= set(range(1, table.columns)):
        return block, list(lines)
    texts = [cell_text(one) if one else ("", ()) for one in columns]
    if any(is_number(text) for text, _ in texts):
        return block, list(lines)
    has_head = any(cell.header for cell in table.cells)
    if has_head and not (len(named) == table.columns and all(line.is_bold for line in members)):
        return block, list(lines)
    box = bounding_box(map(line_box, members))
    top = min(box[1], block.bbox[1])
    heads = [
        Cell(
            0,
            number,
            text,
            bbox=(edges[number], top, edges[number + 1], block.bbox[1]),
            header=True,
            lines=own,
        )
        for number, (text, own) in enumerate(texts)
    ]
    cells = (*heads, *(replace(cell, row=cell.row + 1, header=False) for cell in table.cells))
    table_with_head = Table(cells, table.rows + 1, table.columns)
    own_lines = tuple(line for cell in table_with_head.cells for line in cell.lines)
    outer = (block.bbox[0], top, *block.bbox[2:])
    used = set(map(id, members))
    rest = [line for line in lines if id(line) not in used]
    return replace(
        block, bbox=outer, text=table_with_head.text, lines=own_lines, content=table_with_head
    ), rest


def _is_plain_head(cell: Cell) -> bool:
    """Whether a cell is no head, or one only because it is no number."""
    return not cell.header or (cell.row == 0 and not any(line.is_bold for line in cell.lines))


def _column_edges(table: Table) -> list[float]:
    """Where the columns begin and end [columns + 1], by the boxes of cells."""
    edges = [0.0] * (table.columns + 1)
    for cell in table.cells:
        if cell.bbox is not None:
            edges[cell.column], edges[cell.column + cell.colspan] = cell.bbox[0], cell.bbox[2]
    return edges


def _names(
    block: Block, lines: Sequence[Line], edges: Sequence[float], height: float
) -> tuple[list[list[Line]], list[Line]]:
    """What stands above each column, and the lines that this is of; nothing where one stands over two columns."""
    columns: list[list[Line]] = [[] for _ in edges[1:]]
    members: list[Line] = []
    top = block.bbox[1]
    above = [
        line
        for line in lines
        if line.orientation == 0
        and not line.vertical
        and line_box(line)[3] <= top + 0.3 * height
        and line_box(line)[2] > edges[0]
        and line_box(line)[0] < edges[-1]
    ]
    reach = NEAR
    for row in reversed(rows_of(above)[-LINES:]):
        bottom = max(line_box(line)[3] for line in row)
        if top - bottom > reach * height:
            break
        in_columns = _columns_of_row(row, edges, height)
        if in_columns is None or (members and not all(columns[number] for number in in_columns)):
            break
        for number, one in in_columns.items():
            columns[number] = [*one, *columns[number]]
        members += row
        top, reach = min(line_box(line)[1] for line in row), CLOSE
    return columns, members


def _columns_of_row(
    row: Sequence[Line], edges: Sequence[float], height: float
) -> dict[int, list[Line]] | None:
    """A row's lines by their columns; None where one goes over the edge of a column, or two are not apart."""
    by_column: dict[int, list[Line]] = {}
    last, before = -1, 0.0
    for line in row:
        groups: dict[int, list] = {}
        for word in line.words:
            box = line_box(word)
            number = int(np.searchsorted(edges, centre(box)[0])) - 1
            if not 0 <= number < len(edges) - 1:
                return None
            if box[0] < edges[number] - 0.3 * height or box[2] > edges[number + 1] + 0.3 * height:
                return None
            if number < last or (number > last >= 0 and box[0] - before < APART * height):
                return None
            groups.setdefault(number, []).append(word)
            last, before = number, box[2]
        if not groups:
            return None
        for number, words in groups.items():
            by_column.setdefault(number, []).append(part_of_line(line, words))
    return by_column
