"""Boxes for the cells of a table whose structure is known, from a detector's boxes of cells.

Source: PaddleX paddlex/inference/pipelines/table_recognition/pipeline_v2.py: boxes that overlap are thinned, at most as
many as the structure has cells are kept, and those of a row stand in the order of its cells. There what the detector
missed is made up from boxes of text; here the rows and columns that the other cells show say where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from framework.vision import boxes as vision_boxes
from ocr.results.blocks import Cell, Table
from ocr.tables.network_tables import TableReader

_SAME_IOU = 0.3  # of two boxes that overlap more the better one stays
_LEAST_SHARE = 0.6  # of the cells that were detected: with fewer no cell gets a box
_ROW_TOLERANCE = 0.5  # of the median height: boxes of one row begin within it


class CellDetector(Protocol):
    """What finds the cells of an image of one table, such as `ocr.documents.table_models.CellBoxes`."""

    def __call__(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """image [H, W, 3] uint8 RGB -> boxes [K, 4] xyxy in its pixels, scores [K]."""
        ...


class DetectedTableReader:
    """Tables whose structure is from one network and whose cells' boxes are from another."""

    def __init__(self, structure: TableReader, cells: CellDetector) -> None:
        self.structure, self.cells = structure, cells

    def __call__(self, image: np.ndarray) -> Table:
        """As a TableReader; cells have no boxes where too few were detected."""
        table = self.structure(image)
        if not table.cells:  # an image of no table: the detector need not be asked
            return table
        return place_by_cells(table, *self.cells(image))


def place_by_cells(table: Table, boxes: np.ndarray, scores: np.ndarray) -> Table:
    """The table with a box for each of its cells, or without any where fewer than 0.6 of its cells were detected.

    Args:
        boxes: [K, 4] xyxy, those of cells, in any order. scores: [K].
    """
    cells = table.cells
    kept = thin_boxes(boxes, scores, len(cells))
    if not len(kept) or len(kept) < _LEAST_SHARE * len(cells):
        return replace(table, cells=tuple(replace(cell, bbox=None) for cell in cells))
    found = _match(table, kept)
    edges = [_find_edges(cells, found, axis, count) for axis, count in ((0, table.columns), (1, table.rows))]
    placed = []
    for number, cell in enumerate(cells):
        box = found.get(number)
        if box is None:
            (lefts, rights), (tops, bottoms) = edges
            last_column, last_row = cell.column + cell.colspan - 1, cell.row + cell.rowspan - 1
            corners = [[lefts[cell.column], tops[cell.row]], [rights[last_column], bottoms[last_row]]]
            box = np.sort(corners, axis=0).reshape(4)  # boxes that stand in no rows have edges in no order
        placed.append(replace(cell, bbox=tuple(box.tolist())))
    return replace(table, cells=tuple(placed))


def thin_boxes(boxes: np.ndarray, scores: np.ndarray, most: int) -> np.ndarray:
    """[K, 4]: of boxes that overlap the best, and of these the `most` best."""
    order = np.argsort(-np.asarray(scores), kind="stable")
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)[order]
    return boxes[vision_boxes.suppress(boxes, _SAME_IOU, count=most)]


def align_in_order(cost: np.ndarray) -> list[tuple[int, int]]:
    """Pairs (i, j) of all of the shorter side of `cost` [M, N], in the order of both, of the least sum."""
    if cost.shape[0] > cost.shape[1]:
        return [(i, j) for j, i in align_in_order(cost.T)]
    rows, columns = cost.shape
    best = np.full((rows + 1, columns + 1), np.inf)
    best[0] = 0
    for i in range(rows):
        for j in range(i, columns):
            best[i + 1, j + 1] = min(best[i + 1, j], best[i, j] + cost[i, j])
    pairs, j = [], columns
    for i in range(rows, 0, -1):
        while best[i, j] == best[i, j - 1]:
            j -= 1
        pairs.append((i - 1, j - 1))
        j -= 1
    return pairs[::-1]


def _match(table: Table, boxes: np.ndarray) -> dict[int, np.ndarray]:
    """The box of each cell, by its number, that was detected."""
    rows = [
        sorted(
            (n for n, cell in enumerate(table.cells) if cell.row == row), key=lambda n: table.cells[n].column
        )
        for row in range(table.rows)
    ]
    rows = [row for row in rows if row]  # one that spans from above fill has none of its own
    bands = _rows_of_boxes(boxes)
    tops = np.array([band[:, 1].mean() for band in bands])
    places = (tops - tops[0]) / max(tops[-1] - tops[0], 1e-9) * (len(rows) - 1)
    counts = np.array([[abs(len(band) - len(row)) for row in rows] for band in bands], np.float64)
    cost = counts + np.abs(places[:, None] - np.arange(len(rows)))
    pairs = [(bands[i], rows[j]) for i, j in align_in_order(cost)]
    found: dict[int, np.ndarray] = {}
    for band, row in pairs:
        if len(band) == len(row):
            found |= dict(zip(row, band))
    lefts, rights = _find_edges(
        table.cells, found, 0, table.columns, band=(boxes[:, 0].min(), boxes[:, 2].max())
    )
    for band, row in pairs:
        if len(band) != len(row):
            cells = [table.cells[number] for number in row]
            wanted = np.array([[lefts[c.column], rights[c.column + c.colspan - 1]] for c in cells])
            apart = np.abs(band[:, None, [0, 2]] - wanted[None]).sum(axis=2)
            found |= {row[j]: band[i] for i, j in align_in_order(apart)}
    return found


def _rows_of_boxes(boxes: np.ndarray) -> list[np.ndarray]:
    """Boxes that begin at about one height, from left to right, rows from top to bottom."""
    boxes = boxes[np.argsort(boxes[:, 1], kind="stable")]
    tolerance = _ROW_TOLERANCE * float(np.median(boxes[:, 3] - boxes[:, 1]))
    breaks = np.flatnonzero(np.diff(boxes[:, 1]) > tolerance) + 1
    return [band[np.argsort(band[:, 0], kind="stable")] for band in np.split(boxes, breaks)]


def _find_edges(
    cells: Sequence[Cell],
    found: dict[int, np.ndarray],
    axis: int,
    count: int,
    band: tuple[float, float] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Where columns (axis 0) or rows (1) begin and end, [count] each: the medians of the boxes that do so there.

    What no box shows lies between its neighbours, in equal parts, or within `band`, all that is covered.
    """
    starts: list[list[float]] = [[] for _ in range(count)]
    ends: list[list[float]] = [[] for _ in range(count)]
    for number, box in found.items():
        cell = cells[number]
        first, span = (cell.column, cell.colspan) if axis == 0 else (cell.row, cell.rowspan)
        starts[first].append(box[axis])
        ends[first + span - 1].append(box[axis + 2])
    known = np.concatenate(list(found.values())).reshape(-1, 4) if found else np.zeros((0, 4))
    low, high = band or (known[:, axis].min(), known[:, axis + 2].max())
    # One row of edges: start 0, end 0, start 1, …; an end and the start behind it lie together where one is unknown.
    edges = np.array(
        [np.median(values) if values else np.nan for pair in zip(starts, ends) for values in pair]
    )
    places = np.repeat(np.arange(count + 1), 2)[1:-1].astype(np.float64)
    missing = np.isnan(edges)
    if missing.any():
        places = np.concatenate([[-1e-6], places, [count + 1e-6]])
        values = np.concatenate([[low], edges, [high]])
        good = ~np.isnan(values)
        edges = np.where(missing, np.interp(places, places[good], values[good])[1:-1], edges)
    return edges[0::2], edges[1::2]
