"""Pages made upright and flat before they are read, and what was found on them brought back to the image as it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from framework.vision.grid_warp import GridWarp
from framework.vision.warp import Warp
from ocr.pages.stages import PageOrientationClassifier, Unwarper
from ocr.results.lines import Char, Line, Polygon, Word
from ocr.results.pages import Page

_BOW = 1.0  # pixels that the edge of a line may leave the straight one; beyond, its polygon gets more points
_PARTS = 6  # of each long edge of a bent line
_SHARES = np.linspace(0, 1, _PARTS + 1)[:, None]
Affine = tuple[float, float, float, float, float, float]  # as `Page.to_points`
_Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class PreparedImage:
    """An upright and flat page, and how it came about.

    Attributes:
        image: [H, W, 3] uint8 RGB.
        turn: From the image as it was given to the upright one.
        grid: From the upright image to the flat one; None where it was left as it is.
        angle: By how many degrees clockwise the page was found turned; None where nobody looked.
    """

    image: np.ndarray
    turn: Warp
    grid: GridWarp | None
    angle: int | None
    seconds: float

    def source_points(self, xy: np.ndarray) -> np.ndarray:
        """Points [..., 2] of the prepared image in the image as it was given."""
        points = np.asarray(xy, np.float64)
        flat = (points if self.grid is None else self.grid.source_points(points)).reshape(-1, 2)
        return self.turn.inverse().points(flat).reshape(points.shape)

    def compose(self, to_points: Affine) -> Affine | None:
        """Of the map from pixels of the given image to points of a PDF's page, that from pixels of the prepared one.

        None after unwarping, which no such map says.
        """
        if self.grid is not None:
            return None
        a, b, c, d, e, f = to_points
        matrix = np.array([[a, c, e], [b, d, f], [0, 0, 1]]) @ self.turn.inverse().matrix
        (a, c, e), (b, d, f) = matrix[:2].tolist()
        return a, b, c, d, e, f

    def restore(self, page: Page, image: np.ndarray) -> Page:
        """A page of the prepared image as one of `image`, the one that was given.

        Polygons go on being clockwise from the text's own top-left corner. After unwarping the upper and the lower edge
        of a line that is bent have more points than two.
        """
        height, width = image.shape[:2]
        lines = map_lines(page.lines, self.source_points, bent=self.grid is not None)
        return self.describe(replace(page, lines=lines, image=image, width=width, height=height))

    def describe(self, page: Page) -> Page:
        """The page with what was done to its image and how long that took."""
        seconds = {"prepare": self.seconds, **page.seconds}
        if "total" in seconds:
            seconds["total"] += self.seconds
        return replace(page, angle=self.angle, unwarped=self.grid is not None, seconds=seconds)


class PagePreparation:
    """Turns pages upright and makes them flat, each where its stage is there."""

    def __init__(self, orientation: PageOrientationClassifier | None, unwarper: Unwarper | None) -> None:
        self.orientation, self.unwarper = orientation, unwarper

    @property
    def stages(self) -> tuple[PageOrientationClassifier | Unwarper, ...]:
        """Those that are there."""
        return tuple(stage for stage in (self.orientation, self.unwarper) if stage is not None)

    def __call__(self, image: np.ndarray) -> PreparedImage:
        """image [H, W, 3] uint8 RGB"""
        started = time.perf_counter()
        angle = None if self.orientation is None else self.orientation.find_angle(image)
        turn = Warp.rotate90((image.shape[0], image.shape[1]), -(angle or 0) // 90)
        upright = turn.image(image) if angle else image
        grid = None if self.unwarper is None else self.unwarper(upright)
        flat = upright if grid is None else grid.image(upright)
        return PreparedImage(flat, turn, grid, angle, time.perf_counter() - started)


def map_lines(lines: Sequence[Line], to_source: _Map, *, bent: bool) -> tuple[Line, ...]:
    """The lines with all polygons moved, in one go: a page may have thousands of characters."""
    outlines = [_with_edges(line.polygon) if bent else line.polygon for line in lines]
    parts = [part for line in lines for word in line.words for part in (word, *word.chars)]
    polygons = [*outlines, *(part.polygon for part in parts)]
    if not polygons:
        return ()
    moved = to_source(np.concatenate([np.array(polygon) for polygon in polygons]))
    ends = np.cumsum([len(polygon) for polygon in polygons])
    pieces = iter(np.split(moved, ends[:-1]))
    outer = [_simplify(next(pieces)) if bent else _as_polygon(next(pieces)) for _ in lines]
    found = []
    for line, polygon in zip(lines, outer):
        words = []
        for word in line.words:
            own = _as_polygon(next(pieces))
            chars = tuple(Char(char.text, char.score, _as_polygon(next(pieces))) for char in word.chars)
            words.append(Word(word.text, word.score, own, chars))
        found.append(Line(line.text, line.score, polygon, tuple(words), vertical=line.vertical))
    return tuple(found)


def _as_polygon(points: np.ndarray) -> Polygon:
    return tuple((float(x), float(y)) for x, y in points)


def _with_edges(polygon: Polygon) -> Polygon:
    """A quad with points between the corners of its upper and of its lower edge; others as they are."""
    if len(polygon) != 4:
        return polygon
    corners = np.array(polygon)
    edges = [corners[a] + _SHARES * (corners[b] - corners[a]) for a, b in ((0, 1), (2, 3))]
    return _as_polygon(np.concatenate(edges))


def _simplify(points: np.ndarray) -> Polygon:
    """The quad of the corners, where the points of `_with_edges` still lie on its edges."""
    edges = points[: _PARTS + 1], points[_PARTS + 1 :]
    if len(points) == 2 * (_PARTS + 1) and all(
        np.abs(edge - (edge[0] + _SHARES * (edge[-1] - edge[0]))).max() <= _BOW for edge in edges
    ):
        return _as_polygon(points[[0, _PARTS, _PARTS + 1, -1]])
    return _as_polygon(points)
