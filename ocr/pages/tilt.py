"""Scans that lie a little askew: seen straight for their rules and columns, and their blocks turned back.

Rules are looked for along the image's rows and columns, and a row of a table is level: two degrees over the width of a
page are three lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from framework.vision.image import resize, to_gray
from framework.vision.warp import Warp
from ocr.pages.preparation import map_lines
from ocr.results.blocks import Block, Box, Table
from ocr.results.lines import Line
from ocr.text.reading_order import quad_of

_LEAST, _MOST = 0.7, 10.0  # degrees
_STEPS = (0.5, 0.1)  # degrees: all angles, then those around the best
_SIDE = 800  # pixels of the longer side at which the angle is looked for
_SHARPER = 1.25  # times the concentration of the edges on the page as it lies
_LONG = 8.0  # heights of a line whose own tilt can be believed
_APART = 1.0  # degrees between that and the angle of the edges: they do not agree


def find_tilt(image: np.ndarray, lines: Sequence[Line]) -> float:
    """By how many degrees a page is turned clockwise from the nearest quarter; 0 where it is straight, or not clear.

    At the right angle the edges of letters and rules stand in the fewest rows; long lines must not speak against it.

    Args:
        image: [H, W, 3] uint8 RGB.
        lines: Its lines of text.
    """
    if not lines:
        return 0.0
    turned = sum(len(line.text) for line in lines if line.orientation in (90, 270))
    sideways = 2 * turned > sum(len(line.text) for line in lines)
    scale = min(1.0, _SIDE / max(image.shape[:2]))
    size_hw = max(1, round(image.shape[0] * scale)), max(1, round(image.shape[1] * scale))
    grey = to_gray(resize(image, size_hw, "area")).astype(np.int16)
    grey = np.ascontiguousarray(np.rot90(grey)) if sideways else grey
    steps = np.abs(np.diff(grey, axis=0))
    y, x = np.nonzero(steps > max(24, int(steps.max(initial=0)) // 3))
    if len(y) < 2:
        return 0.0

    def concentration(degrees: float) -> float:
        across = np.deg2rad(degrees)
        rows = np.rint(y * np.cos(across) - x * np.sin(across)).astype(np.int64)
        counts = np.bincount(rows - rows.min()).astype(np.float64)
        return float((counts**2).sum())

    coarse, fine = _STEPS
    best = max(np.arange(-_MOST, _MOST + coarse / 2, coarse), key=concentration)
    best = max(np.arange(best - coarse, best + coarse + fine / 2, fine), key=concentration)
    if abs(best) < _LEAST or concentration(best) < _SHARPER * concentration(0.0):
        return 0.0
    own = _tilt_of_lines(lines)
    return float(best) if own is None or abs(own - best) <= _APART else 0.0


def _tilt_of_lines(lines: Sequence[Line]) -> float | None:
    """The median of the tilts of long lines, in degrees from the nearest quarter; None where there are none."""
    quads = [quad_of(line.polygon) for line in lines if not line.vertical]
    tilts = []
    for quad in quads:
        along, down = (quad[1] - quad[0] + quad[2] - quad[3]) / 2, (quad[3] - quad[0] + quad[2] - quad[1]) / 2
        if np.hypot(*along) >= _LONG * np.hypot(*down):
            tilts.append((np.degrees(np.arctan2(along[1], along[0])) + 45) % 90 - 45)
    return float(np.median(tilts)) if tilts else None


@dataclass(frozen=True, eq=False)
class Straightened:
    """A page that was turned by a few degrees, so that its lines are level.

    Attributes:
        image: [H, W, 3] uint8 RGB, large enough for all of it.
        lines: Of the page, on that image.
        warp: From the page to the image.
        sources: The line of the page of each of `lines`.
    """

    image: np.ndarray
    lines: tuple[Line, ...]
    warp: Warp
    sources: Mapping[Line, Line]

    @classmethod
    def make(cls, image: np.ndarray, lines: Sequence[Line]) -> Straightened | None:
        """None for a page that is straight."""
        tilt = find_tilt(image, lines)
        if not tilt:
            return None
        warp = Warp.rotate((image.shape[0], image.shape[1]), -tilt, expand=True)
        ground = np.median(np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]]), axis=0)
        straight = map_lines(lines, warp.points, bent=False)
        sources = dict(zip(straight, lines, strict=True))
        return cls(warp.image(image, border=ground.tolist()), straight, warp, sources)

    def restore(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Blocks of the straight image as they stand on the page."""
        back = self.warp.inverse()

        def line(straight: Line) -> Line:
            return self.sources.get(straight) or map_lines([straight], back.points, bent=False)[0]

        return tuple(_restore(block, back, line) for block in blocks)


def _restore(block: Block, back: Warp, line: Callable[[Line], Line]) -> Block:
    def box(straight: Box) -> Box:
        left, top, right, bottom = straight
        points = back.points(np.array([[left, top], [right, top], [right, bottom], [left, bottom]]))
        low = points.min(axis=0).clip(0)
        high = np.minimum(points.max(axis=0), (back.size_hw[1], back.size_hw[0]))
        return float(low[0]), float(low[1]), float(max(high[0], low[0])), float(max(high[1], low[1]))

    content = block.content
    if isinstance(content, Table):
        cells = (
            replace(
                cell,
                bbox=None if cell.bbox is None else box(cell.bbox),
                lines=tuple(map(line, cell.lines)),
            )
            for cell in content.cells
        )
        content = Table(tuple(cells), content.rows, content.columns)
    outline = block.polygon
    if outline is not None:
        outline = tuple((float(x), float(y)) for x, y in back.points(np.array(outline)))
    return replace(
        block,
        bbox=box(block.bbox),
        lines=tuple(map(line, block.lines)),
        content=content,
        children=tuple(_restore(child, back, line) for child in block.children),
        polygon=outline,
    )
