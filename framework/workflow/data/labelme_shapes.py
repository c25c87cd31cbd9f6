"""The shapes of labelme as outlines and masks."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping

import numpy as np

from framework.core.errors import InputError
from framework.core.fields import is_number, read_list, read_text, shorten
from framework.core.types import JSON
from framework.vision import raw_images

_FARTHEST = 1e6  # pixels: no image is so large
_LEAST_CORNERS, _MOST_CORNERS = 12, 360  # of the polygon that stands for a circle
_DEVIATION = 0.1  # pixels between a circle and that polygon
_OUTLINES = {
    "polygon": (3, 100_000),
    "rectangle": (2, 4),
    "oriented_rectangle": (4, 4),
    "rotation": (4, 4),  # this and the next of X-AnyLabeling, which writes labelme's files
    "quadrilateral": (4, 4),
    "circle": (2, 2),
}
"""The least and the greatest number of points of what has an outline."""
NO_AREA = ("line", "linestrip", "point", "points", "cuboid")
SHAPES = (*_OUTLINES, "mask", *NO_AREA)


def read_kind(shape: Mapping[str, JSON], where: str) -> str:
    """What a shape is; files of old versions do not say it: polygons. Raises: InputError."""
    kind = read_text(shape, "shape_type", where, default="polygon")
    if kind not in SHAPES:
        raise InputError(
            "labelme has no such shape", where=f"{where}.shape_type", received=kind, allowed=", ".join(SHAPES)
        )
    return kind


def read_points(shape: Mapping[str, JSON], where: str) -> np.ndarray:
    """[N, 2] in pixels. Raises: InputError."""
    points = read_list(shape, "points", where)
    if not all(isinstance(one, list) and len(one) == 2 and all(map(_is_coordinate, one)) for one in points):
        raise _misfit("shape", points, "[x, y] in pixels, each", where)
    return np.array(points, np.float64).reshape(-1, 2)


def is_unfinished(shape: Mapping[str, JSON], kind: str, where: str) -> bool:
    """Whether a shape is a polygon of too few points, as a stray click leaves one. Raises: InputError."""
    return kind == "polygon" and len(read_points(shape, where)) < _OUTLINES[kind][0]


def read_outline(shape: Mapping[str, JSON], kind: str, where: str) -> np.ndarray:
    """[N, 2]: the outline of a shape that has one. Raises: InputError, where the points do not make one."""
    points = read_points(shape, where)
    least, most = _OUTLINES[kind]
    if not least <= len(points) <= most or (kind == "rectangle" and len(points) == 3):
        counts = "2 or 4" if kind == "rectangle" else str(least) if least == most else f"{least} or more"
        raise _misfit(kind, shape.get("points"), f"{counts} points [x, y] in pixels", where)
    if kind == "circle":
        return circle_outline(points[0], float(np.hypot(*(points[1] - points[0]))), where)
    if kind != "rectangle":
        return points
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]])


def circle_outline(centre: np.ndarray, radius: float, where: str) -> np.ndarray:
    """[N, 2]: a polygon that lies within a tenth of a pixel of the circle. Raises: InputError, where radius is 0."""
    if radius <= 0:
        raise _misfit("circle", [centre.tolist()] * 2, "its centre and another point of its edge", where)
    corners = math.ceil(math.pi / math.acos(max(0.0, 1 - _DEVIATION / radius)))
    angles = np.arange(min(max(corners, _LEAST_CORNERS), _MOST_CORNERS))
    angles = angles * (2 * math.pi / len(angles))
    return centre + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def read_mask(shape: Mapping[str, JSON], size_hw: tuple[int, int], where: str) -> np.ndarray:
    """[H, W] bool: a mask, which lies as a PNG in base64 in the rectangle of its two points, the last pixel included.

    Raises:
        InputError: it is damaged, empty, or of another size than its rectangle.
    """
    points = read_points(shape, where)
    if len(points) != 2:
        raise _misfit("mask", shape.get("points"), "[[x, y], [x, y]], the corners of its rectangle", where)
    text = read_text(shape, "mask", where)
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(
            "the mask of a shape is damaged", where=where, received=error, allowed="a PNG in base64"
        ) from error
    values = raw_images.read_labels(content)
    inside = np.asarray(values.any(axis=-1) if values.ndim == 3 else values != 0)
    x, y = points.min(axis=0).astype(int).tolist()  # of a mask that was moved labelme cuts the fractions
    height, width = inside.shape[0], inside.shape[1]
    whole = np.zeros(size_hw, bool)
    left, top = max(0, x), max(0, y)
    right, bottom = min(size_hw[1], x + width), min(size_hw[0], y + height)
    if right > left and bottom > top:
        whole[top:bottom, left:right] = inside[top - y : bottom - y, left - x : right - x]
    if not whole.any():
        raise InputError(
            "the mask of a shape has no pixel on the image",
            where=where,
            received=f"{width} x {height} at {x}, {y}",
        )
    return whole


def _is_coordinate(value: object) -> bool:
    return is_number(value) and -_FARTHEST < value < _FARTHEST


def _misfit(kind: str, points: object, allowed: str, where: str) -> InputError:
    return InputError(
        f"the points do not make a {kind}", where=f"{where}.points", received=shorten(points), allowed=allowed
    )
