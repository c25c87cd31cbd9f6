"""Where text stands on the page: reading order, columns and rows, words from characters.

Pure functions of polygons as `ocr.results.lines` defines them: image pixels, clockwise from the text's own top-left
corner.

A page is first turned upright, by the direction in which most of its text runs, so a skewed or rotated page is read
like a straight one. Pages of vertical text (Japanese, Chinese) are turned a quarter more: a column read from top to
bottom becomes a row, and the columns from right to left become rows from top to bottom. All distances are relative to
the height of the lines, never in pixels.

Two pieces of text beside one another are either cells of one row (a label and its price) or lines of two columns. Rows
are the default. Columns need a strip that only a few lines cross, with at least three rows beside one another on both
sides, long and of about one length as lines of prose are; the more so where the rows of both sides stand level. What
crosses the strip cuts the columns into bands, which are read from top to bottom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocr.results.lines import Char, Line, Word, as_polygon, is_unspaced

Row = list[int]
Region = list[Row]

MIN_COLUMN_ROWS = 3  # fewer rows side by side say nothing about columns
MIN_GUTTER = 0.6  # of the median line height, between boxes that are trimmed by DETECTOR_MARGIN
DETECTOR_MARGIN = 0.25  # of a line's height: how far boxes stand out at either end of the text
LONG = 8.0  # times its height: a line that tells the page's slope
# Lines of columns are long and of one length: (least median length over the median line height, least median length
# over the length of the longest tenth). Where the lines of both sides are level with one another they may as well be
# the cells of a table, so more is asked.
LEVEL = 0.25  # of the median line height
LEVEL_PROSE = (10.0, 0.75)
LOOSE_PROSE = (6.0, 0.6)
WIDE_PAGE = 8.0  # times the length of its lines, whose own tilt tells too little then


def quad_of(polygon: ArrayLike) -> NDArray[np.float64]:
    """The quad [4, 2] of a polygon [P, 2]: itself when P is 4, else the smallest rectangle along its upper edge."""
    points = np.asarray(polygon, dtype=np.float64)
    if len(points) == 4:
        return points
    right = points[(len(points) + 1) // 2 - 1] - points[0]
    return _rectangle(points, complex(*right))


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


def join_texts(first: str, second: str) -> str:
    """Two texts of which one goes on in the other: with a space between them, but for Chinese and Japanese."""
    unspaced = first and second and is_unspaced(first[-1]) and is_unspaced(second[0])
    return first + ("" if unspaced else " ") + second


def spaced_words(line: Line) -> Iterator[tuple[Word, bool]]:
    """The words of a line, each with whether white space follows it in the line's text.

    A line without words gives itself as one word. What has no text is left out.
    """
    words = line.words or (Word(line.text, line.score, line.polygon),)
    position = 0
    for word in (word for word in words if word.text):
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
    if all(len(polygon) == 4 for polygon in polygons):  # type: ignore[arg-type]
        quads = np.array(polygons, np.float64)
    else:
        quads = np.stack([quad_of(polygon) for polygon in polygons])
    top, side = _edges(quads)
    turn = _page_direction(top, side)
    centre = (quads[..., 0] + 1j * quads[..., 1]).mean(axis=1)
    turn *= _tilt_of_neighbours(centre / turn, top, side)
    top, side, centre = top / turn, side / turn, centre / turn
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


def _tilt_of_neighbours(
    centre: NDArray[np.complex128], top: NDArray[np.complex128], side: NDArray[np.complex128]
) -> complex:
    """Unit vector of the tilt that is left on a wide page of short lines: the median from each one to that on its
    right; 1 of other pages, and of vertical text.
    """
    x, y, width, height = centre.real, centre.imag, abs(top), abs(side)
    length = float(np.median(width))
    if np.ptp(x) <= WIDE_PAGE * length or np.median(height) > length:
        return 1.0 + 0.0j
    across, down = x - x[:, None], y - y[:, None]
    level = abs(down) <= np.minimum(height, height[:, None]) / 2
    across[~level | (across < (width + width[:, None]) / 4)] = np.inf
    right = across.argmin(axis=1)
    has_one = np.isfinite(across[np.arange(len(x)), right])
    if not has_one.any():
        return 1.0 + 0.0j
    return complex(np.exp(1j * np.median(np.angle(centre[right] - centre)[has_one])))


def slope_of(lines: Sequence[Line]) -> float:
    """By how much rows of level lines go down a pixel to the right.

    It is the median of the long lines' own, since detectors set short ones upright; without those that of neighbours in
    a row.
    """
    if not lines:
        return 0.0
    quads = np.stack([quad_of(line.polygon) for line in lines])
    top, side = _edges(quads)
    long = top.real >= LONG * abs(side)
    if long.sum() >= 3:
        slopes, weights = (top.imag / np.maximum(top.real, 1e-9))[long], top.real[long]
    else:
        boxes = np.concatenate([quads.min(axis=1), quads.max(axis=1)], axis=1)
        rows = [row for row in _rows(boxes, np.arange(len(boxes))) if len(row) > 1]
        pairs = np.array([pair for row in rows for pair in pairwise(row)], np.intp).reshape(-1, 2)
        centre = quads.mean(axis=1)
        apart = centre[pairs[:, 1]] - centre[pairs[:, 0]]
        if not len(pairs):
            return 0.0
        slopes, weights = apart[:, 1] / np.maximum(apart[:, 0], 1e-9), apart[:, 0]
    order = slopes.argsort()
    weight = weights[order].cumsum()
    return float(slopes[order][np.searchsorted(weight, weight[-1] / 2)])


def _regions(boxes: NDArray[np.float64], items: NDArray[np.intp]) -> list[Region]:
    parts = _columns(boxes, items)
    if parts is None:
        return [_rows(boxes, items)]
    return [region for part in parts if len(part) for region in _regions(boxes, part)]


def _columns(boxes: NDArray[np.float64], items: NDArray[np.intp]) -> list[NDArray[np.intp]] | None:
    """The items cut at the best gutter into parts in reading order, or None when there is no gutter.

    The best has most rows on both sides, then least that spans it, then the widest gap.
    """
    if len(items) < 2 * MIN_COLUMN_ROWS:
        return None
    height = boxes[items, 3] - boxes[items, 1]
    line_height = float(np.median(height))
    trim = np.minimum(DETECTOR_MARGIN * height, (boxes[items, 2] - boxes[items, 0]) / 4)
    x0, x1 = boxes[items, 0] + trim, boxes[items, 2] - trim
    edges = np.unique(np.concatenate([x0, x1]))
    cuts = (edges[:-1] + edges[1:]) / 2
    spanning = ((x0 < cuts[:, None]) & (x1 > cuts[:, None])).sum(axis=1)
    best, best_score, seen = None, (0, 0, 0.0), set()
    for index in spanning.argsort(kind="stable"):
        left, right = x1 <= cuts[index], x0 >= cuts[index]
        counts = (int(left.sum()), int(right.sum()))
        # Cuts in one strip see the same sides, and a column has no more rows than lines.
        hopeless = min(counts) < MIN_COLUMN_ROWS or (min(counts), -int(spanning[index])) < best_score[:2]
        if hopeless or counts in seen:
            continue
        seen.add(counts)
        gap = float(x0[right].min() - x1[left].max())
        if gap < MIN_GUTTER * line_height:
            continue
        rows, parts = _bands(boxes, items, left, right, line_height)
        score = (rows, -int(spanning[index]), gap)
        if rows and (best is None or score > best_score):
            best, best_score = parts, score
    return best


def _bands(
    boxes: NDArray[np.float64],
    items: NDArray[np.intp],
    left: NDArray[np.bool_],
    right: NDArray[np.bool_],
    line_height: float,
) -> tuple[int, list[NDArray[np.intp]]]:
    """Cuts the items where something spans the gutter: the rows of paired columns, and the parts in reading order."""
    spans = ~(left | right)
    middle = (boxes[items, 1] + boxes[items, 3]) / 2
    band_of = np.searchsorted(np.sort(middle[spans]), middle, side="right")
    total = 0
    parts, unpaired = [], np.zeros(0, dtype=np.intp)
    for band in range(int(spans.sum()) + 1):
        within = band_of == band
        columns = items[within & left], items[within & right]
        rows = _paired_rows(boxes, *columns, line_height)
        total += rows
        unpaired = np.concatenate([unpaired, items[within & spans] if rows else items[within]])
        if rows:
            parts += [unpaired, *columns]
            unpaired = unpaired[:0]
    return total, [*parts, unpaired]


def _paired_rows(
    boxes: NDArray[np.float64], left: NDArray[np.intp], right: NDArray[np.intp], line_height: float
) -> int:
    """How many rows the shorter of two columns has, or 0 when the two sides are not columns."""
    if min(len(left), len(right)) < MIN_COLUMN_ROWS:
        return 0
    lengths = [np.sort(boxes[part, 2] - boxes[part, 0]) for part in (left, right)]

    def prose(min_length: float, min_evenness: float) -> bool:
        return all(
            ordered[len(ordered) // 2]
            >= max(min_length * line_height, min_evenness * ordered[int(0.9 * len(ordered))])
            for ordered in lengths
        )

    if not prose(*LOOSE_PROSE):
        return 0
    tops, bottoms = zip(*((boxes[part, 1].min(), boxes[part, 3].max()) for part in (left, right)))
    if min(bottoms) - max(tops) < min(bottom - top for top, bottom in zip(tops, bottoms)) / 2:
        return 0
    few, many = sorted(
        (np.array([boxes[row][:, 1::2].mean() for row in _rows(boxes, part)]) for part in (left, right)),
        key=len,
    )
    apart = abs(few[:, None] - many[None]).min(axis=1)
    level = bool(np.median(apart) <= LEVEL * line_height)
    if len(few) < MIN_COLUMN_ROWS or (level and not prose(*LEVEL_PROSE)):
        return 0
    return len(few)


def _rows(boxes: NDArray[np.float64], items: NDArray[np.intp]) -> Region:
    """Rows from top to bottom, each from left to right.

    An item joins a row when it is level with the row's member nearest to it, within half the smaller height, so a row
    may bend over the page; two items above one another are never in one row.
    """
    x0, y0, x1, y1 = boxes[items].T.tolist()
    # Boxes of single letters overlap by the detector's margin.
    trims = [
        min(DETECTOR_MARGIN * (bottom - top), (right - left) / 4)
        for left, top, right, bottom in zip(x0, y0, x1, y1)
    ]
    x0 = [left + trim for left, trim in zip(x0, trims)]
    x1 = [right - trim for right, trim in zip(x1, trims)]
    middles = [(top + bottom) / 2 for top, bottom in zip(y0, y1)]
    heights = [bottom - top for top, bottom in zip(y0, y1)]
    rows: list[Row] = []
    highest = max(heights)
    near: list[Row] = []  # those that an item may still join
    for item in sorted(range(len(items)), key=lambda i: (middles[i], x0[i])):
        near = [row for row in near if middles[item] - middles[row[-1]] <= highest]
        home, home_distance = None, np.inf
        for row in near:
            gaps = [max(x0[i] - x1[item], x0[item] - x1[i]) for i in row]
            if any(gap < -0.3 * min(x1[i] - x0[i], x1[item] - x0[item]) for gap, i in zip(gaps, row)):
                continue
            beside = row[gaps.index(min(gaps))]
            distance = abs(middles[item] - middles[beside]) / max(min(heights[item], heights[beside]), 1e-9)
            if distance <= 0.5 and distance < home_distance:
                home, home_distance = row, distance
        if home is None:
            home = []
            rows.append(home)
            near.append(home)
        home.append(item)
    rows.sort(key=lambda row: sum(middles[i] for i in row) / len(row))
    return [items[sorted(row, key=lambda i: x0[i])].tolist() for row in rows]
