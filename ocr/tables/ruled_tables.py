"""Tables from their ruling lines: lines that cross are a grid, and where the line between two places is missing, a
cell spans them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ocr.results.blocks import Block, Box, Cell, Table
from ocr.results.geometry import centre, line_box
from ocr.results.lines import Line
from ocr.tables.cell_text import begins_in, cell_text, count_header_rows, overflowing_lines, split_lines
from ocr.tables.heads_above import add_head_above
from ocr.tables.ruling_lines import RulingLines, merge_lines
from ocr.tables.unruled_rows import CellArea, part_rows

NEAR = 3.0  # points: lines closer than this are one (double borders, borders of neighbouring cells)
GAP = 4.0  # points: gaps in a line (dots, dashes, crossings left free)
COVER = 0.6  # of a cell's side must be ruled
MIN_SIDE = 4.0  # points: narrower columns and lower rows are no cells


def find_ruled_tables(
    ruling: RulingLines, lines: Sequence[Line]
) -> tuple[tuple[Block, ...], tuple[Line, ...]]:
    """The tables of a page that ruling lines tell, and the lines that stand in none of them.

    Args:
        ruling: The page's lines and filled boxes.
        lines: Its lines of text; their styles, where they are known, help to tell which rows are the head.
    Returns: blocks labelled "table", from top to bottom, with `Table` as content, and the remaining lines.
    """
    unit = ruling.unit
    level, upright = _with_fill_edges(ruling)
    level = merge_lines(level, NEAR * unit, GAP * unit)
    upright = merge_lines(upright, NEAR * unit, GAP * unit)
    level = level[level[:, 2] - level[:, 1] > MIN_SIDE * unit]
    upright = upright[upright[:, 2] - upright[:, 1] > MIN_SIDE * unit]
    found: list[tuple[Box, Block]] = []
    rest = list(lines)
    # Small grids first: a table inside a frame is the table.
    for group in sorted(_groups(level, upright, NEAR * unit), key=lambda g: _extent(*g)):
        made = _table(*group, ruling, rest)
        if made is None:
            continue
        block, rest = add_head_above(*made)
        found.append((block.bbox, block))
    blocks = sorted((block for _, block in found), key=lambda block: (block.bbox[1], block.bbox[0]))
    return tuple(blocks), tuple(rest)


def _extent(level: np.ndarray, upright: np.ndarray) -> float:
    return float(np.ptp(level[:, 1:]) * np.ptp(upright[:, 1:]))


def _with_fill_edges(ruling: RulingLines) -> tuple[np.ndarray, np.ndarray]:
    """Lines, and the edges of filled boxes that stand side by side or touch a line."""
    level, upright = [ruling.horizontal], [ruling.vertical]
    boxes = np.array([box for box, _ in ruling.fills], np.float64).reshape(-1, 4)
    tol = NEAR * ruling.unit
    for box in boxes:
        beside = np.minimum(np.abs(boxes[:, 0] - box[2]), np.abs(boxes[:, 2] - box[0])) < tol
        beside &= (np.minimum(boxes[:, 3], box[3]) - np.maximum(boxes[:, 1], box[1])) > 0.5 * (
            box[3] - box[1]
        )
        if not beside.any():
            continue
        level.append(np.array([[box[1], box[0], box[2]], [box[3], box[0], box[2]]]))
        upright.append(np.array([[box[0], box[1], box[3]], [box[2], box[1], box[3]]]))
    return np.concatenate(level), np.concatenate(upright)


def _groups(level: np.ndarray, upright: np.ndarray, near: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Lines that are connected by crossings, in groups with two or more of both directions in sum three."""
    if not len(level) or not len(upright):
        return []
    y, x0, x1 = level.T[:, :, None]
    x, y0, y1 = upright.T[:, None, :]
    meet = (x >= x0 - near) & (x <= x1 + near) & (y >= y0 - near) & (y <= y1 + near)
    label = np.arange(len(level))
    changed = True
    while changed:
        mine = np.where(meet, label[:, None], len(level)).min(0)
        new = np.minimum(label, np.where(meet, mine[None, :], len(level)).min(1))
        changed = bool((new != label).any())
        label = new
    groups = []
    for value in np.unique(label):
        rows = label == value
        columns = meet[rows].any(0)
        if columns.any() and rows.sum() + columns.sum() >= 4 and rows.sum() >= 2:
            groups.append((level[rows], upright[columns]))
    return groups


def _places(values: np.ndarray, near: float) -> np.ndarray:
    values = np.sort(values)
    return np.array([group.mean() for group in np.split(values, np.flatnonzero(np.diff(values) > near) + 1)])


def _table(
    level: np.ndarray, upright: np.ndarray, ruling: RulingLines, lines: list[Line]
) -> tuple[Block, list[Line]] | None:
    unit = ruling.unit
    xs, ys = _places(upright[:, 0], MIN_SIDE * unit), _places(level[:, 0], MIN_SIDE * unit)
    # A table without its outer lines at the sides ends where its other lines end.
    open_sides: list[tuple[int, float]] = []
    for low, high, at, other in (
        (level[:, 1].min(), level[:, 2].max(), "x", xs),
        (upright[:, 1].min(), upright[:, 2].max(), "y", ys),
    ):
        extra = [value for value in (low, high) if np.abs(other - value).min() > 2 * MIN_SIDE * unit]
        extra = [value for value in extra if value < other[0] or value > other[-1]]
        if extra:
            open_sides += [(0 if at == "x" else 1, float(value)) for value in extra]
            if at == "x":
                xs = np.sort(np.append(xs, extra))
            else:
                ys = np.sort(np.append(ys, extra))
    rows, columns = len(ys) - 1, len(xs) - 1
    if rows < 1 or columns < 2 or rows * columns < 2 or rows > 2000 or columns > 200:
        return None
    near = NEAR * unit
    right = np.array(
        [[_ruled(upright, xs[c + 1], ys[r], ys[r + 1], near) for c in range(columns)] for r in range(rows)]
    )
    below = np.array(
        [[_ruled(level, ys[r + 1], xs[c], xs[c + 1], near) for c in range(columns)] for r in range(rows)]
    )
    spans = _spans(right, below)
    box: Box = (float(xs[0]), float(ys[0]), float(xs[-1]), float(ys[-1]))
    inside, rest = split_lines(lines, (box[0] - near, box[1] - near, box[2] + near, box[3] + near))
    whole = overflowing_lines(inside)
    used = set(map(id, whole))
    inside = [line for line in inside if id(line) not in used]
    areas: list[CellArea] = []
    for row, column, height, width in spans:
        bounds: Box = (float(xs[column]), float(ys[row]), float(xs[column + width]), float(ys[row + height]))
        mine, inside = split_lines(inside, bounds)
        begun = [line for line in whole if begins_in(line, bounds)]
        whole = [line for line in whole if line not in begun]
        areas.append(CellArea(row, column, height, width, bounds, [*mine, *begun]))
    filled = sum(any(line.text.strip() for line in area.lines) for area in areas)
    if len(areas) < 2 or filled < 2 or filled < 0.2 * len(areas) or (rows == 1 and filled < len(areas)):
        return None
    areas, rows = part_rows(areas, rows)
    cells, is_bold, fills = [], [], []
    for row, column, height, width, bounds, mine in areas:
        pad = min((line_box(line)[0] - bounds[0] for line in mine), default=0.0)
        text, ordered = cell_text(mine, bounds[2] - bounds[0] - 2 * max(pad, 0.0))
        cells.append(Cell(row, column, text, height, width, bounds, 1.0, False, ordered))
        is_bold.append(bool(mine) and all(line.is_bold for line in mine))
        fills.append(_fill(ruling, bounds))
    head = count_header_rows(cells, rows, is_bold, fills)
    cells = [replace(cell, header=cell.row < head) for cell in cells]
    table = Table(tuple(cells), rows, columns)
    ordered = tuple(line for cell in table.cells for line in cell.lines)
    return Block("table", box, table.text, ordered, content=table), [*rest, *inside, *whole]


def _ruled(lines: np.ndarray, place: float, first: float, last: float, near: float) -> bool:
    at = lines[np.abs(lines[:, 0] - place) <= near]
    covered = np.clip(np.minimum(at[:, 2], last) - np.maximum(at[:, 1], first), 0, None).sum()
    return bool(covered >= COVER * (last - first))


def _spans(right: np.ndarray, below: np.ndarray) -> list[tuple[int, int, int, int]]:
    """(row, column, rows, columns) of the cells of a grid: right[r, c] says that a line stands right of the place."""
    rows, columns = right.shape
    taken = np.zeros((rows, columns), bool)
    cells = []
    for row in range(rows):
        for column in range(columns):
            if taken[row, column]:
                continue
            width = 1
            while (
                column + width < columns
                and not right[row, column + width - 1]
                and not taken[row, column + width]
            ):
                width += 1
            height = 1
            across = slice(column, column + width)
            while (
                row + height < rows
                and not below[row + height - 1, across].any()
                and not taken[row + height, across].any()
                and not right[row + height, column : column + width - 1].any()
            ):
                height += 1
            taken[row : row + height, across] = True
            cells.append((row, column, height, width))
    return cells


def _fill(ruling: RulingLines, box: Box) -> object:
    """The colour of the smallest filled box under a cell's centre."""
    x, y = centre(box)
    under = [(b, color) for b, color in ruling.fills if b[0] <= x <= b[2] and b[1] <= y <= b[3]]
    return (
        min(under, key=lambda item: (item[0][2] - item[0][0]) * (item[0][3] - item[0][1]))[1]
        if under
        else None
    )
