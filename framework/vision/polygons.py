"""Polygons `[N, 2]` of xy in the convention of `warp` (pixel i covers [i, i+1)) as masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.core.errors import ShapeError


def fill(polygons: Sequence[np.ndarray], size_hw: tuple[int, int]) -> np.ndarray:
    """The bool mask of the pixels whose centre lies inside one of `polygons`, each `[N, 2]`, by the even-odd rule.

    Centres on a left or top edge count, on a right or bottom edge do not: polygons that share an edge share no pixel,
    and the box (0, 0), (2, 0), (2, 2), (0, 2) has 4 pixels. A polygon with no area fills nothing.

    Raises:
        ShapeError: a polygon is empty, not finite or not [N, 2].
    """
    mask = np.zeros(size_hw, np.bool_)
    for polygon in polygons:
        points = np.asarray(polygon, np.float64)
        if points.ndim != 2 or points.shape[1] != 2 or not len(points) or not np.isfinite(points).all():
            raise ShapeError(
                "the points of a polygon must be finite [N, 2]",
                where="polygons.fill",
                received=list(points.shape),
                allowed="finite [N, 2] with N >= 1",
            )
        # Pixel indices whose centres can be inside, on the image.
        low = np.clip(np.ceil(points.min(axis=0) - 0.5), 0, size_hw[::-1]).astype(int)
        high = np.clip(np.ceil(points.max(axis=0) - 0.5), 0, size_hw[::-1]).astype(int)
        (x0, y0), (x1, y1) = low, high
        if x1 <= x0 or y1 <= y0:
            continue
        # Each edge changes inside and outside from where it crosses a row's centre line to the row's end.
        start, end = points, np.roll(points, -1, axis=0)
        # The same crossing, bit for bit, for both uses of an edge.
        downward = (start[:, 1] <= end[:, 1])[:, None]
        start, end = np.where(downward, start, end), np.where(downward, end, start)
        first = np.clip(np.ceil(start[:, 1] - 0.5), y0, y1).astype(int)
        count = np.clip(np.ceil(end[:, 1] - 0.5), y0, y1).astype(int) - first
        edge = np.repeat(np.arange(len(points)), count)
        row = np.arange(count.sum()) - np.repeat(count.cumsum() - count, count) + first[edge]
        slope = (end[edge, 0] - start[edge, 0]) / (end[edge, 1] - start[edge, 1])
        column = np.ceil(start[edge, 0] + (row + 0.5 - start[edge, 1]) * slope - 0.5)
        column = np.clip(column, x0, x1).astype(int)
        toggles = np.zeros((y1 - y0, x1 - x0 + 1), np.uint8)
        np.add.at(toggles, (row - y0, column - x0), 1)  # an overflow past 255 keeps the parity
        inside = np.cumsum(toggles[:, :-1], axis=1, dtype=np.uint8) & 1
        mask[y0:y1, x0:x1] |= inside.view(np.bool_)
    return mask
