"""Where text stands on the page: reading order, columns and rows, words from characters.

Pure functions of polygons as `ocr.results` defines them: image pixels, clockwise from the text's own top-left corner.

A page is first turned upright, by the direction in which most of its text runs, so a skewed or rotated page is read
like a straight one. Pages of vertical text (Japanese, Chinese) are turned a quarter more: a column read from top to
bottom becomes a row, and the columns from right to left become rows from top to bottom. All distances are relative to
the height of the lines, never in pixels.

Two pieces of text beside one another are either cells of one row (a label and its price) or lines of two columns. Rows
are the default. Columns need a strip free of text with at least three rows on both sides that stand beside one another,
and either full lines on both sides, as prose has them, or lines that do not stand at the same heights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocr.results import Char, Line, Word, as_polygon

Row = list[int]
Region = list[Row]

MIN_COLUMN_ROWS = 3  # fewer rows side by side say nothing about columns
MIN_GUTTER = 0.7  # of the median line height; detectors widen boxes by up to half a height on each side
PROSE_WIDTH = 8.0  # of the median line height: narrower than any column of prose
PROSE_FILL = 0.6  # how much of the column's width its median row covers


def quad_of(polygon: ArrayLike) -> NDArray[np.float64]:
    """The quad [4, 2] of a polygon [P, 2]: itself when P is 4, else the smallest rectangle along its upper edge."""
    points = np.asarray(polygon, dtype=np.float64)
    if len(points) == 4:
        return points
    right = points[(len(points) + 1) // 2 - 1] - points[0]
    return _rectangle(points, complex(*right))


def bounds_of(polygon: ArrayLike) -> tuple[float, float, float, float]:
    """The upright box (left, top, right, bottom) around a polygon [P, 2]."""
    points = np.asarray(polygon, dtype=np.float64)
    (left, top), (right, bottom) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return left, top, right, bottom


def merge_quads(quads: ArrayLike) -> NDArray[np.float64]:
    """The rectangle [4, 2] around quads [N >= 1, 4, 2], turned as they are turned on average, top-left first."""
    quads = np.asarray(quads, dtype=np.float64)
    if len(quads) == 1:
        return quads[0]
    top, side = _edges(quads)
    return _rectangle(quads.reshape(-1, 2), complex(top.sum() + (side * -1j).sum()))


def _rectangle(points: NDArray[np.float64], right: complex) -> NDArray[np.float64]:
    turn = right / abs(right) if right else 1.0 + 0.0j
    upright = (points[:, 0] + 1j * points[:, 1]) / turn
    x0, x1, y0, y1 = upright.real.min(), upright.real.max(), upright.imag.min(), upright.imag.max()
    corners = np.array([x0 + 1j * y0, x1 + 1j * y0, x1 + 1j * y1, x0 + 1j * y1]) * turn
    return np.stack([corners.real, corners.imag], axis=1)


def _edges(quads: NDArray[np.float64]) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Mean of upper and lower edge (left to right), and of both sides (downwards), of [N, 4, 2], as x + iy."""
    z = quads[..., 0] + 1j * quads[..., 1]
    return (z[:, 1] - z[:, 0] + z[:, 2] - z[:, 3]) / 2, (z[:, 3] - z[:, 0] + z[:, 2] - z[:, 1]) / 2


def words_from_chars(chars: Sequence[Char]) -> tuple[Word, ...]:
    """The words of one line, from its characters in the order of the text, spaces included.

    White space separates words and belongs to none. Nothing else separates: a run of Chinese or Japanese is one word,
    alone or together with the Latin letters that touch it, so the words joined by spaces are the line's text again.
    A word's score is the mean of its characters'; its quad is the rectangle around theirs.
    """
    runs = [list(run) for space, run in groupby(chars, key=lambda char: char.text.isspace()) if not space]
    return tuple(
        Word(
            text="".join(char.text for char in run),
            score=sum(char.score for char in run) / len(run),
            polygon=as_polygon(merge_quads([quad_of(char.polygon) for char in run])),
            chars=tuple(run),
        )
        for run in runs
    )


def spaced_words(line: Line) -> Iterator[tuple[Word, bool]]:
    """The words of a line, each with whether white space follows it in the line's text.

    A line without words gives itself as one word; an empty line gives none.
    """
    words = line.words or ((Word(line.text, line.score, line.polygon),) if line.text else ())
    position = 0
    for word in words:
        found = line.text.find(word.text, position)
        position = found + len(word.text) if found >= 0 else position
        yield word, found < 0 or line.text[position : position + 1].isspace()


def reading_order(polygons: Sequence[ArrayLike] | NDArray[np.float64]) -> NDArray[np.intp]:
    """Indices [N] of the polygons ([N, 4, 2], or a sequence of [P, 2]) in the order in which a person reads them."""
    order = [index for region in reading_regions(polygons) for row in region for index in row]
    return np.array(order, dtype=np.intp)


def reading_regions(polygons: Sequence[ArrayLike] | NDArray[np.float64]) -> list[Region]:
    """The page as regions in reading order (columns, or what spans them), rows of each, indices in each row.

    Every polygon stands in exactly one row.
    """
    boxes = upright_boxes(polygons)
    return _regions(boxes, np.arange(len(boxes))) if len(boxes) else []


def upright_boxes(polygons: Sequence[ArrayLike] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Boxes [N, 4] (left, top, right, bottom) in the frame in which rows run to the right and follow downwards.

    Vertical text is turned in this frame: its columns are rows. The origin of the frame is arbitrary.
    """
    if len(polygons) == 0:
        return np.zeros((0, 4))
    quads = np.stack([quad_of(polygon) for polygon in polygons])
    top, side = _edges(quads)
    turn = _page_direction(top, side)
    top, side = top / turn, side / turn
    centre = (quads[..., 0] + 1j * quads[..., 1]).mean(axis=1) / turn
    # Not the extent of the corners: a long line that is a little askew would overlap its neighbours.
    width = np.maximum(abs(top.real), abs(side.real))
    height = np.maximum(abs(top.imag), abs(side.imag))
    area = width * height
    if area[height >= 2 * width].sum() > area.sum() / 2:
        centre, width, height = centre * -1j, height, width
    return np.stack(
        [
            centre.real - width / 2,
            centre.imag - height / 2,
            centre.real + width / 2,
            centre.imag + height / 2,
        ],
        axis=1,
    )


def _page_direction(top: NDArray[np.complex128], side: NDArray[np.complex128]) -> complex:
    """Unit vector of the page's "right": the quarter turn that most text has, then the median tilt within it."""
    right = np.where(abs(top) >= abs(side), top, side * -1j)  # the longer edge tells the angle better
    quarter = np.round(np.angle(right) / (np.pi / 2)).astype(int) % 4
    votes = np.bincount(quarter, weights=abs(right), minlength=4)
    winner = int(votes.argmax())
    chosen = right[quarter == winner]
    tilt = np.angle(chosen * (-1j) ** winner)
    order = tilt.argsort()
    weight = abs(chosen)[order].cumsum()
    median = tilt[order][np.searchsorted(weight, weight[-1] / 2)]
    return complex(1j**winner * np.exp(1j * median))


def _regions(boxes: NDArray[np.float64], items: NDArray[np.intp]) -> list[Region]:
    bands = _columns(boxes, items)
    if bands is None:
        return [_rows(boxes, items)]
    regions: list[Region] = []
    for parts in bands:  # what spans the columns, or left and right column
        for part in parts:
            regions += _regions(boxes, part)
    return regions


def _columns(boxes: NDArray[np.float64], items: NDArray[np.intp]) -> list[list[NDArray[np.intp]]] | None:
    """The items cut at the best gutter: bands from top to bottom, each of one part or of a left and a right one."""
    if len(items) < 2 * MIN_COLUMN_ROWS:
        return None
    x0, x1 = boxes[items, 0], boxes[items, 2]
    middle = (boxes[items, 1] + boxes[items, 3]) / 2
    line_height = float(np.median(boxes[items, 3] - boxes[items, 1]))
    edges = np.unique(np.concatenate([x0, x1]))
    best, best_score, seen = None, (0, 0.0), set()
    for cut in (edges[:-1] + edges[1:]) / 2:
        left, right = x1 <= cut, x0 >= cut
        if min(left.sum(), right.sum()) < MIN_COLUMN_ROWS:
            continue
        gutter = float(x0[right].min() - x1[left].max())
        # Cuts in the same strip see the same sides.
        if gutter < MIN_GUTTER * line_height or (key := (int(left.sum()), int(right.sum()))) in seen:
            continue
        seen.add(key)
        spanning = np.sort(middle[~(left | right)])
        band_of = np.searchsorted(spanning, middle, side="right")
        bands: list[list[NDArray[np.intp]]] = []
        loose: list[NDArray[np.intp]] = []
        rows = 0
        for band in range(len(spanning) + 1):
            within = band_of == band
            sides = items[within & left], items[within & right]
            paired = _paired_rows(boxes, *sides, line_height)
            if paired:
                rows += paired
                loose.append(items[within & ~(left | right)])
                bands += [[np.concatenate(loose)]] if sum(map(len, loose)) else []
                bands.append(list(sides))
                loose = []
            else:
                loose.append(items[within])
        bands += [[np.concatenate(loose)]] if sum(map(len, loose)) else []
        if rows and (rows, gutter) > best_score:
            best, best_score = bands, (rows, gutter)
    return best


def _paired_rows(
    boxes: NDArray[np.float64], left: NDArray[np.intp], right: NDArray[np.intp], line_height: float
) -> int:
    """How many rows the shorter of two columns has, or 0 when the two sides are not columns."""
    if min(len(left), len(right)) < MIN_COLUMN_ROWS:
        return 0
    sides = [(part, _rows(boxes, part)) for part in (left, right)]
    count = min(len(rows) for _, rows in sides)
    tops, bottoms = zip(*((boxes[part, 1].min(), boxes[part, 3].max()) for part, _ in sides))
    shared = min(bottoms) - max(tops)
    if count < MIN_COLUMN_ROWS or shared < min(b - t for t, b in zip(tops, bottoms)) / 2:
        return 0
    prose, narrowest = True, np.inf
    for part, rows in sides:
        width = boxes[part, 2].max() - boxes[part, 0].min()
        covered = np.median([(boxes[row, 2] - boxes[row, 0]).sum() for row in rows])
        prose &= bool(width >= PROSE_WIDTH * line_height and covered >= PROSE_FILL * width)
        narrowest = min(narrowest, float(width))
    if prose:
        return count
    few, many = sorted((np.array([boxes[row][:, 1::2].mean() for row in rows]) for _, rows in sides), key=len)
    apart = abs(few[:, None] - many[None]).min(axis=1) > 0.3 * line_height
    return count if apart.mean() > 0.5 and narrowest >= 0.75 * PROSE_WIDTH * line_height else 0


def _rows(boxes: NDArray[np.float64], items: NDArray[np.intp]) -> Region:
    """Rows from top to bottom, each from left to right.

    An item joins a row when it is level with the row's member nearest to it, within half the smaller height, so a row
    may bend over the page; two items above one another are never in one row.
    """
    rows: list[list[int]] = []
    middles = ((boxes[:, 1] + boxes[:, 3]) / 2).tolist()
    heights = (boxes[:, 3] - boxes[:, 1]).tolist()
    for item in sorted(items.tolist(), key=lambda i: (middles[i], boxes[i, 0])):
        left, right = boxes[item, 0], boxes[item, 2]
        home, home_distance = None, np.inf
        for row in reversed(rows):
            if middles[item] - middles[row[-1]] > heights[item]:
                continue
            members = np.array(row)
            gaps = np.maximum(boxes[members, 0] - right, left - boxes[members, 2])
            narrower = np.minimum(boxes[members, 2] - boxes[members, 0], right - left)
            if (gaps < -0.3 * narrower).any():
                continue
            near = members[gaps.argmin()]
            distance = abs(middles[item] - middles[near]) / max(min(heights[item], heights[near]), 1e-9)
            if distance <= 0.5 and distance < home_distance:
                home, home_distance = row, distance
        if home is None:
            rows.append([item])
        else:
            home.append(item)
    rows.sort(key=lambda row: sum(middles[i] for i in row) / len(row))
    return [sorted(row, key=lambda i: (boxes[i, 0], i)) for row in rows]
