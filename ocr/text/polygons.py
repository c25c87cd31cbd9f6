"""Areas of polygons and of their intersections, and polygons moved inwards and outwards, by Clipper.

Points [P, 2] are xy in pixels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from framework.core.errors import MissingExtraError

_SCALE = 256  # Clipper counts in integers


def import_clipper() -> Any:
    """The package. Raises: MissingExtraError."""
    try:
        import pyclipper
    except ImportError as error:
        raise MissingExtraError("pyclipper", "ocr", "growing and shrinking regions of text") from error
    return pyclipper


def has_clipper() -> bool:
    """Whether the package is there."""
    try:
        import_clipper()
    except MissingExtraError:
        return False
    return True


def grow_rectangles(quads: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """The smallest rectangles around rectangles [N, 4, 2] whose outlines are moved outwards by `distances` [N].

    Round corners, as of `offset_polygon`, lie inside of them, so that no Clipper is needed: float64 [N, 4, 2].
    """
    corners = quads.astype(np.float64)
    along = np.roll(corners, -1, axis=1) - corners
    along /= np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), 1e-12)
    # From each corner back along the edge that leaves it, and on along the edge that arrives at it.
    return corners + distances[:, None, None] * (np.roll(along, 1, axis=1) - along)


def polygon_area(polygon: np.ndarray) -> float:
    """The area within the outline, whichever way it runs."""
    x, y = polygon.astype(np.float64).T
    x, y = x - x[0], y - y[0]  # relative to the first corner, so that large coordinates lose no digits
    return float(abs((x * np.roll(y, -1) - y * np.roll(x, -1)).sum()) / 2)


def polygon_perimeter(polygon: np.ndarray) -> float:
    """The length of the outline."""
    steps = np.roll(polygon, -1, axis=0).astype(np.float64) - polygon
    return float(np.hypot(steps[:, 0], steps[:, 1]).sum())


def intersection_area(one: np.ndarray, other: np.ndarray) -> float:
    """The area that two polygons share."""
    clipper = import_clipper()
    job = clipper.Pyclipper()
    try:
        job.AddPath(_whole(one), clipper.PT_CLIP, True)
        job.AddPath(_whole(other), clipper.PT_SUBJECT, True)
    except clipper.ClipperException:  # a polygon without extent
        return 0.0
    fill = clipper.PFT_NONZERO
    paths = job.Execute(clipper.CT_INTERSECTION, fill, fill)
    return abs(sum(clipper.Area(path) for path in paths)) / _SCALE**2


def offset_polygon(polygon: np.ndarray, distance: float) -> list[np.ndarray]:
    """The polygon with its outline moved outwards (negative: inwards) by `distance`, with round corners: none, one or
    several polygons [Q, 2] int64. Corners are cut to whole pixels, as PaddleOCR's are."""
    clipper = import_clipper()
    offset = clipper.PyclipperOffset()
    offset.AddPath([tuple(point) for point in polygon.tolist()], clipper.JT_ROUND, clipper.ET_CLOSEDPOLYGON)
    return [np.array(path, np.int64).reshape(-1, 2) for path in offset.Execute(distance)]


def _whole(polygon: np.ndarray) -> list[list[int]]:
    return np.round(polygon.astype(np.float64) * _SCALE).astype(np.int64).tolist()
