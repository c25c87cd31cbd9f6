"""Shapes that several tools have, as objects with outlines."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision.annotations.objects import AnnotatedObject, bounds
from framework.vision.image import MAX_PIXELS

FARTHEST = 1e7  # pixels
_CORNERS = 48  # of the polygon that stands for an ellipse


def box_object(
    label: str, box: tuple[float, float, float, float], attributes: Mapping[str, str], is_valid: bool = True
) -> AnnotatedObject:
    """The object of a box xyxy. Raises: ValueError, where it has no area, or a side is no number of pixels."""
    if not all(abs(side) < FARTHEST for side in box):
        raise ValueError(f"{label}: {list(box)} are no pixels")
    if box[2] <= box[0] or box[3] <= box[1]:
        raise ValueError(f"{label}: {[round(side, 1) for side in box]} has no area")
    return AnnotatedObject(label, box, attributes=attributes, is_valid=is_valid)


def outline_object(
    label: str, outline: np.ndarray, attributes: Mapping[str, str], is_valid: bool = True
) -> AnnotatedObject:
    """The object of an outline [N, 2]. Raises: ValueError, where it has no area, or a point is no pixel."""
    if len(outline) < 3:
        raise ValueError(f"{label}: {len(outline)} points, but a polygon has three or more")
    if not np.isfinite(outline).all() or np.abs(outline).max() > FARTHEST:
        raise ValueError(f"{label}: the points are no pixels")
    box = box_object(label, bounds([outline]), attributes).box
    return AnnotatedObject(label, box, (outline,), attributes=attributes, is_valid=is_valid)


def turn(points: np.ndarray, degrees: float, centre: np.ndarray | None = None) -> np.ndarray:
    """Points [N, 2] turned clockwise, as one sees it, around `centre`, or around the middle of their box."""
    if not degrees:
        return points
    if centre is None:
        centre = (points.min(axis=0) + points.max(axis=0)) / 2
    angle = math.radians(degrees)
    matrix = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    return (points - centre) @ matrix + centre


def turn_box(box: tuple[float, float, float, float], degrees: float) -> np.ndarray:
    """[4, 2]: the corners of a box xyxy that is turned clockwise around its middle."""
    x0, y0, x1, y1 = box
    return turn(np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], np.float64), degrees)


def ellipse_outline(x: float, y: float, across: float, down: float, degrees: float = 0.0) -> np.ndarray:
    """[48, 2]: the outline of an ellipse around (x, y) with these radii, turned clockwise."""
    angles = np.arange(_CORNERS) * (2 * math.pi / _CORNERS)
    outline = np.stack([x + across * np.cos(angles), y + down * np.sin(angles)], axis=1)
    return turn(outline, degrees)


def read_xy_points(value: JSON) -> np.ndarray:
    """[N, 2]: a list of `{"x": 1, "y": 2}`. Raises: ValueError."""
    listed = value if isinstance(value, list) else []
    pairs = [(one.get("x"), one.get("y")) for one in listed if isinstance(one, dict)]
    points = [(float(x), float(y)) for x, y in pairs if is_number(x) and is_number(y)]
    if not points or len(points) < len(listed):
        raise ValueError(f"the points are {str(value)[:60]}")
    return np.array(points, np.float64)


def read_image_size(value: JSON) -> tuple[int, int] | None:
    """(height, width) of `{"height": 480, "width": 640}`; None where no image has such a size."""
    sides = [value.get(side) for side in ("height", "width")] if isinstance(value, dict) else []
    numbers = [int(side) for side in sides if is_number(side) and side >= 1]
    return (numbers[0], numbers[1]) if len(numbers) == 2 and math.prod(numbers) <= MAX_PIXELS else None
