"""Boxes of text and the rows that they stand in: upright, (left, top, right, bottom), in pixels of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocr.results.lines import Line, Polygon

Box = tuple[float, float, float, float]
SAME_ROW = 0.5  # share of the lower one's height by which neighbours in a row overlap


class HasPolygon(Protocol):
    """A line, word or character."""

    @property
    def polygon(self) -> Polygon: ...


def line_box(line: HasPolygon) -> Box:
    """The upright box around a line, word or character."""
    polygon = line.polygon
    if len(polygon) == 4:  # nearly all are boxes, and a page asks for those of its words thousands of times
        (left, top), (x1, y1), (right, bottom), (x3, y3) = polygon
        if left == x3 <= right == x1 and top == y1 <= bottom == y3:
            return left, top, right, bottom
    xs, ys = zip(*polygon, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def bounds_of(polygon: ArrayLike) -> Box:
    """The upright box around a polygon [P, 2]."""
    points = np.asarray(polygon, dtype=np.float64)
    (left, top), (right, bottom) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return left, top, right, bottom


def bounding_box(boxes: Iterable[Box]) -> Box:
    """The box around one box or more."""
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


def box_polygon(box: Iterable[float]) -> Polygon:
    """The corners of a box, clockwise from the upper left one."""
    left, top, right, bottom = map(float, box)
    return (left, top), (right, top), (right, bottom), (left, bottom)


def centre(box: Box) -> tuple[float, float]:
    """The middle (x, y) of a box."""
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def median(values: Iterable[float]) -> float:
    """The median of one number or more, as that of NumPy, which takes longer for the few lines of a page."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def mirrored(boxes: ArrayLike | Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Boxes [N, 4] as a mirror shows them: what is read from right to left is read from left to right there."""
    array = np.array(boxes, np.float64).reshape(-1, 4)
    return np.stack([-array[:, 2], array[:, 1], -array[:, 0], array[:, 3]], axis=1)


def rows_of_boxes(boxes: Sequence[Sequence[float]] | np.ndarray) -> list[list[int]]:
    """The numbers of boxes [K, 4] that stand on one height together, from left to right; rows from top to bottom.

    Boxes are taken by their middles, downwards; one that overlaps the last one of a row is in that row.
    """
    rows: list[list[int]] = []
    for number in sorted(range(len(boxes)), key=lambda i: boxes[i][1] + boxes[i][3]):
        if rows:
            box, last = boxes[number], boxes[rows[-1][-1]]
            overlap = min(box[3], last[3]) - max(box[1], last[1])
            if overlap > SAME_ROW * min(box[3] - box[1], last[3] - last[1]):
                rows[-1].append(number)
                continue
        rows.append([number])
    return [sorted(row, key=lambda number: boxes[number][0]) for row in rows]


def rows_of(lines: Iterable[Line]) -> list[list[Line]]:
    """Lines that stand on one height together; see `rows_of_boxes`."""
    lines = list(lines)
    return [[lines[number] for number in row] for row in rows_of_boxes([line_box(line) for line in lines])]


def split_at_stripes(boxes: np.ndarray, items: NDArray[np.intp], axis: int) -> list[NDArray[np.intp]]:
    """The items of boxes [N, 4] in groups between white stripes that part all of them: columns from left to right
    (`axis` 0), or bands downwards (1)."""
    first = boxes[items, axis]
    order = np.argsort(first, kind="stable")
    ends = np.maximum.accumulate(boxes[items, axis + 2][order])
    cuts = (np.flatnonzero(first[order][1:] >= ends[:-1]) + 1).tolist()
    ordered = items[order]
    return [ordered[start:end] for start, end in zip([0, *cuts], [*cuts, len(ordered)], strict=True)]
