"""Curved lines of text, as on seals: a region's outline becomes two edges, between which the line is straightened.

An outline alone does not say where its line begins. The two ends lie farthest from each other on ways within it,
so that a line may run around most of a ring; the outline between them is cut into two edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from framework.vision.contours import fill_outlines, min_area_rects
from framework.vision.grid_warp import GridWarp
from ocr.text.polygons import polygon_area, polygon_perimeter

if TYPE_CHECKING:
    from scipy.sparse import coo_matrix

# PaddleX cuts a region out as a rectangle where it fills its smallest rectangle this far (CropByPolys).
_STRAIGHT = 0.7
_SHORTEST = 2.0  # the length of a curved line over its height
_EVEN = (0.6, 1.5)  # the distance of a line's edges over its height
_FAR = 0.02  # how much the distance from the other end counts against the turn of the outline at an end
_SIDE = 128  # of the mask on which ways are measured
_SAMPLES = 480  # of an outline
_POINTS = 12  # of an edge
_RING = math.radians(200)  # a line that turns farther stands with its head to the outside


@dataclass(frozen=True, eq=False)
class Band:
    """A curved line between its upper and its lower edge: `top` and `bottom` [K, 2], both from its begin to its end, in
    pixels."""

    top: np.ndarray
    bottom: np.ndarray

    @property
    def outline(self) -> np.ndarray:
        """[2 K, 2] clockwise from the line's upper left corner."""
        return np.concatenate([self.top, self.bottom[::-1]]).astype(np.float32)

    @property
    def quad(self) -> np.ndarray:
        """[4, 2]: its four corners."""
        return np.stack([self.top[0], self.top[-1], self.bottom[-1], self.bottom[0]]).astype(np.float32)

    def warp(self, size_hw: tuple[int, int]) -> GridWarp:
        """The way to the straight line, as long and as high as the band, out of an image of `size_hw`."""
        middle = (self.top + self.bottom) / 2
        length = np.linalg.norm(np.diff(middle, axis=0), axis=1).sum()
        height = np.linalg.norm(self.top - self.bottom, axis=1).mean()
        size = (max(2, round(float(height))), max(2, round(float(length))))
        return GridWarp(np.stack([self.top, self.bottom]), size, size_hw)


def find_band(outline: np.ndarray) -> Band | None:
    """The band of a region's outline [P, 2]; None where it is about a rectangle, or too short to have a direction."""
    outline = np.asarray(outline, np.float64)
    _, sides = min_area_rects([outline.astype(np.float32)])
    area, perimeter = polygon_area(outline), polygon_perimeter(outline)
    if area <= 0 or area >= _STRAIGHT * float(sides[0].prod()):
        return None
    # 2 (length + height) = perimeter and length * height = area
    root = perimeter**2 / 4 - 4 * area
    height = (perimeter / 2 - math.sqrt(root)) / 2 if root > 0 else math.inf
    if perimeter / 2 - height < _SHORTEST * height:
        return None
    points = _resample(np.concatenate([outline, outline[:1]]), _SAMPLES + 1)[:-1]
    width = min(max(int(height / perimeter * _SAMPLES), 1), _SAMPLES // 4)
    first, second = _find_ends(points, width)
    edges = []
    for start, stop in ((first + width, second), (second + width, first)):
        count = (stop - start) % _SAMPLES + 1
        if count < 3:
            return None
        edges.append(_resample(points[(start + np.arange(count)) % _SAMPLES], _POINTS))
    across = np.linalg.norm(edges[0] - edges[1][::-1], axis=1)
    if not _EVEN[0] * height < np.median(across) < _EVEN[1] * height:
        return None
    return _orient(edges[0], edges[1][::-1])


def _resample(path: np.ndarray, count: int) -> np.ndarray:
    """`count` points, evenly spread over an open path [P, 2]."""
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    at = np.concatenate([[0.0], np.cumsum(steps)])
    wanted = np.linspace(0, at[-1], count)
    return np.stack([np.interp(wanted, at, path[:, axis]) for axis in (0, 1)], axis=1)


def _find_ends(points: np.ndarray, width: int) -> tuple[int, int]:
    """Where on an outline [P, 2] its two ends start, each `width` points long."""
    from scipy.sparse.csgraph import dijkstra  # takes 0.1 s, and most pages have no curved lines

    low = points.min(axis=0)
    scale = (_SIDE - 1) / max(float((points.max(axis=0) - low).max()), 1e-6)
    pixels = np.round((points - low) * scale).astype(np.int32)
    mask = np.zeros((_SIDE + 1, _SIDE + 1), np.float32)
    fill_outlines(mask, [pixels], 1)
    numbers = np.full(mask.shape, -1)
    numbers[mask > 0] = np.arange(int(mask.sum()))
    nodes = numbers[pixels[:, 1], pixels[:, 0]]
    graph = _grid_graph(numbers)

    def ways(node: int) -> np.ndarray:
        """From a pixel to every point of the outline."""
        found = dijkstra(graph, directed=False, indices=node)[nodes]
        return np.where(np.isfinite(found), found, 0)

    start = ways(int(nodes[0]))
    one = int(start.argmax())
    other = int(ways(int(nodes[one])).argmax())
    # An end is a part of the outline as long as the line is high, near the place that is farthest from the other end;
    # before and after it the outline runs in opposite directions.
    reach = max(width // 2, 1)
    before = points - np.roll(points, reach, axis=0)
    after = np.roll(points, -(width + reach), axis=0) - np.roll(points, -width, axis=0)
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    opposite = -(before * after).sum(axis=1) / np.maximum(lengths, 1e-9)
    found = []
    for here, there in ((one, other), (other, one)):
        starts = np.arange(here - 3 * width // 2, here + width // 2 + 1) % len(points)
        far = _run_means(ways(int(nodes[there])), width)[starts]
        found.append(int(starts[(opposite[starts] + _FAR * far / max(width, 1)).argmax()]))
    return found[0], found[1]


def _run_means(values: np.ndarray, width: int) -> np.ndarray:
    """Of each value of a ring the mean of it and of the `width` that follow it."""
    ring = np.concatenate([values, values[:width]])
    return np.convolve(ring, np.full(width + 1, 1 / (width + 1)), "valid")


def _grid_graph(numbers: np.ndarray) -> coo_matrix:
    """Neighbours, with diagonal ones, among the pixels whose number is not -1."""
    from scipy.sparse import coo_matrix

    rows, columns, lengths = [], [], []
    height, width = numbers.shape
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        ours = numbers[: height - down, max(0, -right) : width - max(0, right)]
        theirs = numbers[down:, max(0, right) : width - max(0, -right)]
        both = (ours >= 0) & (theirs >= 0)
        rows.append(ours[both])
        columns.append(theirs[both])
        lengths.append(np.full(int(both.sum()), math.hypot(down, right)))
    count = int(numbers.max()) + 1
    parts = np.concatenate(lengths), (np.concatenate(rows), np.concatenate(columns))
    return coo_matrix(parts, shape=(count, count))


def _orient(one: np.ndarray, other: np.ndarray) -> Band:
    """The band of two edges that run the same way. It is read from left to right, one that lies on more than half of a
    ring clockwise, and one that stands from top to bottom."""
    middle = (one + other) / 2
    along = np.diff(middle, axis=0)
    headings = np.unwrap(np.arctan2(along[:, 1], along[:, 0]))
    turned = float(headings[-1] - headings[0])
    chord = middle[-1] - middle[0]
    if abs(turned) > _RING:
        forwards = turned > 0
    elif abs(chord[0]) > 0.2 * abs(chord[1]):
        forwards = chord[0] > 0
    else:
        forwards = chord[1] > 0
    if not forwards:
        one, other, along = one[::-1], other[::-1], -along[::-1]
    aside = (one - other)[:-1] + (one - other)[1:]
    above = (along[:, 0] * aside[:, 1] - along[:, 1] * aside[:, 0]).sum() < 0
    return Band(one, other) if above else Band(other, one)
