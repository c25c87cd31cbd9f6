"""Rows, columns and merges of a table: as a network learns them, and back to cells.

A projection has a place for every 2 pixels of the padded image; it says where there is nothing but the space between
two rows (or columns) or outside of the table.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ocr.tables.structure import GridCell

BIN = 2


class GridTargets(NamedTuple):
    """What a network learns of one table: projections float32 [H/2], [W/2], merges [rows, columns], `counts` 0 or 1.

    A table does not count whose rows and columns cannot be told from the boxes of its cells.
    """

    between_rows: np.ndarray
    head: np.ndarray
    between_columns: np.ndarray
    right: np.ndarray
    down: np.ndarray
    grid: np.ndarray
    counts: np.ndarray


def make_targets(
    cells: Sequence[GridCell],
    boxes: np.ndarray,
    filled: np.ndarray,
    size_hw: tuple[int, int],
    most: tuple[int, int],
) -> GridTargets:
    """From cells and the boxes of their text [K, 4] in pixels.

    Args:
        filled: [K] bool: which cells have a box.
        most: Rows and columns of the merges.
    """
    rows = max((cell.row + cell.rowspan for cell in cells), default=0)
    columns = max((cell.column + cell.colspan for cell in cells), default=0)
    down_spans = _extents(
        [(c.row, c.rowspan, boxes[i, 1], boxes[i, 3]) for i, c in enumerate(cells) if filled[i]], rows
    )
    across_spans = _extents(
        [(c.column, c.colspan, boxes[i, 0], boxes[i, 2]) for i, c in enumerate(cells) if filled[i]], columns
    )
    right, down, grid = (np.zeros(most, np.float32) for _ in range(3))
    empty = GridTargets(
        np.ones(size_hw[0] // BIN, np.float32),
        np.zeros(size_hw[0] // BIN, np.float32),
        np.ones(size_hw[1] // BIN, np.float32),
        *(right, down, grid, np.zeros((), np.float32)),
    )
    if down_spans is None or across_spans is None or rows > most[0] or columns > most[1]:
        return empty
    between_rows = _between(down_spans, size_hw[0] // BIN)
    between_columns = _between(across_spans, size_hw[1] // BIN)
    if _count_runs(between_rows) != rows or _count_runs(between_columns) != columns:
        return empty
    head_rows = 0
    while head_rows < rows and all(c.header for c in cells if c.row <= head_rows < c.row + c.rowspan):
        head_rows += 1
    if head_rows:
        last = down_spans[head_rows - 1][1]
        next_ = down_spans[head_rows][0] if head_rows < rows else last
        empty.head[: round((last + next_) / 2 / BIN)] = 1
    grid[:rows, :columns] = 1
    for cell in cells:
        y, x = slice(cell.row, cell.row + cell.rowspan), slice(cell.column, cell.column + cell.colspan)
        right[y, x.start : x.stop - 1] = 1
        down[y.start : y.stop - 1, x] = 1
    return GridTargets(between_rows, empty.head, between_columns, right, down, grid, np.ones((), np.float32))


def _extents(parts: list[tuple[int, int, float, float]], count: int) -> list[tuple[float, float]] | None:
    """From (first line, lines, begin, end) of boxes the extent of each line; None where one cannot be told.

    A line whose cells all reach into others is what these leave over.
    """
    found: list[tuple[float, float] | None] = [None] * count
    for line, span, begin, end in parts:
        if span == 1:
            old = found[line]
            found[line] = (begin, end) if old is None else (min(old[0], begin), max(old[1], end))
    if not count or None in found:
        return None
    extents = [one for one in found if one is not None]
    if any(later[0] <= one[0] or later[1] <= one[1] for one, later in itertools.pairwise(extents)):
        return None
    return extents


def _between(extents: Sequence[tuple[float, float]], length: int) -> np.ndarray:
    """1 where no line lies, at least in the middle of two lines."""
    centres = (np.arange(length) + 0.5) * BIN
    between = np.ones(length, np.float32)
    for begin, end in extents:
        between[(centres > begin) & (centres < end)] = 0
        between[min(int((begin + end) / 2 / BIN), length - 1)] = 0
    for (_, end), (begin, _) in itertools.pairwise(extents):
        between[min(int((begin + end) / 2 / BIN), length - 1)] = 1
    return between


def _count_runs(between: np.ndarray) -> int:
    inside = between < 0.5
    return int((inside & ~np.concatenate([[False], inside[:-1]])).sum())


class FoundGrid(NamedTuple):
    """Cells in the order of HTML, their boxes [K, 4] (left, top, right, bottom) in pixels of the image, scores [K]."""

    cells: list[GridCell]
    boxes: np.ndarray
    scores: np.ndarray
    rows: int


def read_grid(outputs: Mapping[str, np.ndarray], size_hw: tuple[int, int]) -> FoundGrid:
    """Cells from the probabilities of one table, see `TableGrid.infer`.

    Args:
        outputs: "between_rows" and "head" [H/2], "between_columns" [W/2], "right" and "down" [R, C].
        size_hw: Rows and columns of pixels that are no padding: boxes end there.
    """
    rows = _runs(outputs["between_rows"], size_hw[0])
    columns = _runs(outputs["between_columns"], size_hw[1])
    right, down = (np.asarray(outputs[name], np.float32) for name in ("right", "down"))
    known = min(len(rows), right.shape[0]), min(len(columns), right.shape[1])
    head = [float(np.mean(outputs["head"][begin:end])) > 0.5 for begin, end in rows]
    if False in head:
        head[head.index(False) :] = [False] * (len(head) - head.index(False))
    edges_y, edges_x = _edges(rows, size_hw[0]), _edges(columns, size_hw[1])
    certain_y, certain_x = (_certainty(outputs[name], runs) for name, runs in
                            (("between_rows", rows), ("between_columns", columns)))  # fmt: skip
    taken = np.zeros((len(rows), len(columns)), bool)
    cells, boxes, scores = [], [], []
    for y in range(len(rows)):
        for x in range(len(columns)):
            if taken[y, x]:
                continue
            width, height = 1, 1
            while (
                x + width < known[1]
                and y < known[0]
                and right[y, x + width - 1] > 0.5
                and not taken[y, x + width]
            ):
                width += 1
            while (
                y + height < known[0]
                and x < known[1]
                and head[y + height] == head[y]
                and float(np.mean(down[y + height - 1, x : min(x + width, known[1])])) > 0.5
                and not taken[y + height, x : x + width].any()
            ):
                height += 1
            taken[y : y + height, x : x + width] = True
            cells.append(GridCell(y, x, height, width, head[y]))
            boxes.append((edges_x[x], edges_y[y], edges_x[x + width], edges_y[y + height]))
            scores.append(certain_y[y] * certain_x[x])
    return FoundGrid(
        cells, np.array(boxes, np.float32).reshape(-1, 4), np.array(scores, np.float32), len(rows)
    )


def _runs(between: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Begin and end of each run that is not between, in places."""
    inside = np.concatenate([[False], np.asarray(between)[: -(-size // BIN)] < 0.5, [False]])
    changes = np.flatnonzero(inside[1:] != inside[:-1])
    return [(int(begin), int(end)) for begin, end in zip(changes[::2], changes[1::2])]


def _edges(runs: Sequence[tuple[int, int]], size: int) -> list[float]:
    """Where each line begins, and where the last one ends, in pixels: in the middle of the gaps."""
    middle = [float(end + begin) / 2 * BIN for (_, end), (begin, _) in itertools.pairwise(runs)]
    return [0.0, *middle, float(size)] if runs else [0.0]


def _certainty(between: np.ndarray, runs: Sequence[tuple[int, int]]) -> list[float]:
    return [float(1 - np.mean(between[begin:end])) for begin, end in runs]
