"""Ruling lines and filled boxes of a page, whether drawn in a PDF or found in pixels: what tables are recognised by."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from framework.workflow.files.pdf_content import PageContent, PagePath
from ocr.results.blocks import Box

THIN = 4.0  # points: a filled rectangle up to this thickness is a line


@dataclass(frozen=True, eq=False)
class RulingLines:
    """Lines and boxes in pixels of the page.

    `horizontal` [H, 3] are (y, x0, x1), `vertical` [V, 3] are (x, y0, y1), centre lines, x0 <= x1 and y0 <= y1.
    `fills` are boxes filled with a colour other than white. `unit` is pixels a point (1/72 inch): all tolerances are
    given in points.
    """

    horizontal: np.ndarray
    vertical: np.ndarray
    fills: tuple[tuple[Box, tuple[int, ...]], ...] = field(default=())
    unit: float = 1.0


def ruling_lines_of_page(page: PageContent) -> RulingLines:
    """The ruling lines of a PDF page: strokes, thin filled rectangles, frames, and the edges of filled boxes."""
    unit = page.scale
    level: list[np.ndarray] = []
    upright: list[np.ndarray] = []
    fills: list[tuple[Box, tuple[int, ...]]] = []
    for path in page.paths:
        if path.stroke is not None and path.stroke[3] > 0 and len(path.segments):
            _add_segments(path.segments, unit, level, upright)
        if path.fill is None or path.fill[3] == 0:
            continue
        boxes = path.rectangles
        if not len(boxes) and _is_mitred(path, unit):
            boxes = np.array([path.bbox])
        if len(boxes) > 1 and (frames := _frames(boxes, unit)) is not None:
            _add_segments(frames, unit, level, upright)
            continue
        for box in boxes:
            width, height = box[2] - box[0], box[3] - box[1]
            if min(width, height) <= THIN * unit and max(width, height) > 1.5 * min(width, height):
                if width > height:
                    level.append(np.array([(box[1] + box[3]) / 2, box[0], box[2]]))
                else:
                    upright.append(np.array([(box[0] + box[2]) / 2, box[1], box[3]]))
                continue
            small = width * height < 0.7 * page.width * page.height
            if small and min(width, height) > THIN * unit and min(path.fill[:3]) < 252:
                fills.append((tuple(map(float, box)), path.fill))  # type: ignore[arg-type]
    return RulingLines(_stack(level), _stack(upright), tuple(fills), unit)


def _stack(lines: list[np.ndarray]) -> np.ndarray:
    return np.array(lines, np.float64).reshape(-1, 3)


def _add_segments(
    segments: np.ndarray, unit: float, level: list[np.ndarray], upright: list[np.ndarray]
) -> None:
    wide, high = np.abs(segments[:, 2] - segments[:, 0]), np.abs(segments[:, 3] - segments[:, 1])
    for at in np.flatnonzero((high <= 0.7 * unit) & (wide > high)):
        x0, y0, x1, y1 = segments[at]
        level.append(np.array([(y0 + y1) / 2, min(x0, x1), max(x0, x1)]))
    for at in np.flatnonzero((wide <= 0.7 * unit) & (high > wide)):
        x0, y0, x1, y1 = segments[at]
        upright.append(np.array([(x0 + x1) / 2, min(y0, y1), max(y0, y1)]))


def _is_mitred(path: PagePath, unit: float) -> bool:
    """Whether a filled path is a thin line whose ends are cut askew, as browsers draw a border beside one of another
    colour: two long sides along the page, and short ones between them.
    """
    width, height = path.bbox[2] - path.bbox[0], path.bbox[3] - path.bbox[1]
    if path.curved or not 3 <= len(path.segments) <= 4 or min(width, height) > THIN * unit:
        return False
    along, across = np.abs(path.segments[:, 2:] - path.segments[:, :2]).T
    if height > width:
        along, across = across, along
    long = (across < 0.1) & (along >= max(width, height) - 2.5 * min(width, height))
    return int(long.sum()) == 2


def _frames(boxes: np.ndarray, unit: float) -> np.ndarray | None:
    """The centre lines [4, 4] of an outline filled between two rectangles, one just inside the other; else None."""
    if len(boxes) != 2:
        return None
    outer, inner = sorted(boxes, key=lambda box: -(box[2] - box[0]) * (box[3] - box[1]))
    gaps = np.abs(outer - inner)
    if (gaps > THIN * unit).any() or (gaps < 0.05 * unit).any():
        return None
    left, top, right, bottom = (outer + inner) / 2
    return np.array(
        [
            [left, top, right, top],
            [right, top, right, bottom],
            [right, bottom, left, bottom],
            [left, bottom, left, top],
        ]
    )


def merge_lines(lines: np.ndarray, near: float, gap: float) -> np.ndarray:
    """Lines [N, 3] on one height made one: those within `near` of a common place, with gaps up to `gap` closed."""
    if not len(lines):
        return lines.reshape(-1, 3)
    lines = lines[np.argsort(lines[:, 0], kind="stable")]
    breaks = np.flatnonzero(np.diff(lines[:, 0]) > near) + 1
    merged = []
    for group in np.split(lines, breaks):
        place = float(np.average(group[:, 0], weights=np.maximum(group[:, 2] - group[:, 1], 1e-3)))
        group = group[np.argsort(group[:, 1])]
        first, last = group[0, 1], group[0, 2]
        for _, start, end in group[1:]:
            if start <= last + gap:
                last = max(last, end)
            else:
                merged.append((place, first, last))
                first, last = start, end
        merged.append((place, first, last))
    return np.array(merged, np.float64)
