"""Boxes of text and the rows that they stand in: upright, (left, top, right, bottom), in pixels of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocr.results.lines import Line, Polygon

Box = tuple[float, float, float, float]
SAME_ROW = 0.5  # share of the lower one's height by which neighbours in a row overlap
# What stands below columns: rows of it at most; how far the ends of columns are apart, and the white between rows, to
# the white above it; how much higher than it what ends above it is.
FEW_BELOW, LEVEL_ENDS, MORE_WHITE, MUCH_HIGHER = 3, 0.5, 1.15, 2.0


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


def part_below(
    boxes: np.ndarray,
    columns: list[NDArray[np.intp]],
    least_gap: float,
    *,
    rows: NDArray[np.bool_] | None = None,
) -> tuple[list[NDArray[np.intp]], NDArray[np.intp]]:
    """Columns, and the few items that stand in one of them, below all, and are no part of it: a remark below two tables
    that stand side by side.

    All columns end at one height, and the white below it is more than that between the rows of the column, or what ends
    there begins at one height, too, and is much higher than the remark or the end of a list, as the remark is not.
    Prose in columns ends so by chance alone.

    Args:
        boxes: [N, 4].
        columns: Items of each, two or more.
        least_gap: Of the white, in the unit of the boxes.
        rows: [N], which of them are items of a list.
    """
    bottoms = [boxes[column, 3].max() for column in columns]
    longest = int(np.argmax(bottoms))
    end = max(bottom for number, bottom in enumerate(bottoms) if number != longest)
    column = columns[longest]
    is_below = boxes[column, 1] >= end
    below = column[is_below]
    parted = [column[~is_below] if number == longest else one for number, one in enumerate(columns)]
    unchanged = columns, column[:0]
    if not len(below) or not len(parted[longest]) or len(split_at_stripes(boxes, below, axis=1)) > FEW_BELOW:
        return unchanged
    ends = [one[np.argmax(boxes[one, 3])] for one in parted]
    lasts = boxes[ends]
    gap = boxes[below, 1].min() - lasts[:, 3].max()
    if gap < least_gap or np.ptp(lasts[:, 3]) > LEVEL_ENDS * gap:
        return unchanged
    highest = below[np.argmin(boxes[below, 1])]
    is_list = rows is not None and bool(rows[ends].all()) and not rows[highest]
    height = float((boxes[below, 3] - boxes[below, 1]).min())
    is_row = np.ptp(lasts[:, 1]) <= gap and (
        is_list or (lasts[:, 3] - lasts[:, 1]).min() >= MUCH_HIGHER * height
    )
    bands = split_at_stripes(boxes, parted[longest], axis=1)
    gaps = [boxes[after, 1].min() - boxes[before, 3].max() for before, after in pairwise(bands)]
    return (parted, below) if is_row or gap >= MORE_WHITE * max(gaps, default=0.0) else unchanged
