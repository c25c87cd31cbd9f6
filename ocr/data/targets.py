"""What a DB detector is trained on: maps of shrunk text regions and of the distance to their borders.

Source: Liao et al. 2020, https://arxiv.org/abs/1911.08947, section 3.4; PaddleOCR
ppocr/data/imaug/{make_shrink_map,make_border_map}.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from framework.vision.contours import fill_outlines
from ocr.text.polygons import offset_polygon, polygon_area, polygon_perimeter


class DBTargets(NamedTuple):
    """Maps [H, W] float32.

    Attributes:
        shrink: 1 inside of shrunk regions.
        shrink_mask: 0 where a region is too small, or cannot be read.
        threshold: From the least value far from borders to the largest on them.
        threshold_mask: 1 near borders, where the threshold map is trained.
    """

    shrink: np.ndarray
    shrink_mask: np.ndarray
    threshold: np.ndarray
    threshold_mask: np.ndarray


def make_db_targets(
    polygons: Sequence[np.ndarray],
    readable: Sequence[bool],
    size_hw: tuple[int, int],
    *,
    shrink_ratio: float = 0.4,
    threshold_range: tuple[float, float] = (0.3, 0.7),
    least_side: float = 8,
) -> DBTargets:
    """The targets of one image.

    Args:
        polygons: [P, 2] xy in pixels of the image.
        readable: False for those that do not count.
        shrink_ratio: Regions shrink by area * (1 - ratio²) / perimeter.
        threshold_range: Least and largest value of the threshold map.
        least_side: Regions less high or wide, in pixels, do not count.
    """
    shrink, shrink_mask = np.zeros(size_hw, np.float32), np.ones(size_hw, np.float32)
    border, border_mask = np.zeros(size_hw, np.float32), np.zeros(size_hw, np.float32)
    limit = np.array(size_hw[::-1], np.float32) - 1
    for polygon, clear in zip(polygons, readable, strict=True):
        points = np.clip(polygon, 0, limit).astype(np.float32)
        sides = points.max(0) - points.min(0)
        if not clear or sides.min() < least_side or polygon_area(points) < 1:
            fill_outlines(shrink_mask, [points], 0.0)
            continue
        inner = _shrink(points, shrink_ratio)
        if not inner:
            fill_outlines(shrink_mask, [points], 0.0)
            continue
        fill_outlines(shrink, inner, 1.0)
        _draw_border(border, border_mask, points, shrink_ratio)
    low, high = threshold_range
    return DBTargets(shrink, shrink_mask, border * (high - low) + low, border_mask)


def _distance(points: np.ndarray, ratio: float) -> float:
    return polygon_area(points) * (1 - ratio**2) / max(polygon_perimeter(points), 1e-6)


def _shrink(points: np.ndarray, ratio: float) -> list[np.ndarray]:
    """The region by the ratio; where that ends or splits it, by twice the ratio, and so on below 1."""
    inner: list[np.ndarray] = []
    for tried in np.arange(ratio, 1, ratio):
        inner = offset_polygon(points, -_distance(points, float(tried)))
        if len(inner) == 1:
            break
    return inner


def _draw_border(canvas: np.ndarray, mask: np.ndarray, points: np.ndarray, ratio: float) -> None:
    """Raise `canvas` around an outline to 1 - (distance to it) / (how far the region shrinks)."""
    distance = _distance(points, ratio)
    grown = offset_polygon(points, distance)
    if distance <= 0 or not grown:
        return
    outer = grown[0]
    fill_outlines(mask, [outer], 1.0)
    height, width = canvas.shape
    x0, y0 = outer.min(0)
    x1, y1 = outer.max(0)
    left, top, right, bottom = max(x0, 0), max(y0, 0), min(x1, width - 1), min(y1, height - 1)
    if right < left or bottom < top:
        return
    away = _distances_to_outline(points, np.arange(left, right + 1), np.arange(top, bottom + 1))
    near = 1 - np.clip(away / distance, 0, 1)
    view = canvas[top : bottom + 1, left : right + 1]
    np.maximum(view, near, out=view)


def _distances_to_outline(points: np.ndarray, columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """[rows, columns] float32: how far each pixel is from the nearest edge."""
    x, y = columns.astype(np.float32)[None, :], rows.astype(np.float32)[:, None]
    nearest = np.full((len(rows), len(columns)), np.inf, np.float32)
    for (ax, ay), (bx, by) in zip(points, np.roll(points, -1, axis=0)):
        dx, dy = bx - ax, by - ay
        length = dx * dx + dy * dy
        along = np.clip(((x - ax) * dx + (y - ay) * dy) / length, 0, 1) if length > 0 else np.float32(0)
        away = (x - ax - along * dx) ** 2 + (y - ay - along * dy) ** 2
        np.minimum(nearest, away, out=nearest)
    return np.sqrt(nearest)
