"""The shapes of CVAT's XML: boxes, turned ones, polygons, ellipses and masks.

Source: https://docs.cvat.ai/docs/manual/advanced/xml_format/
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from xml.etree.ElementTree import Element

import numpy as np

from framework.vision.annotations.groups import GroupedShape, join_groups
from framework.vision.annotations.objects import AnnotatedObject, bounds
from framework.vision.annotations.shapes import FARTHEST, ellipse_outline, turn_box

_NO_AREA = ("polyline", "points", "cuboid", "skeleton", "tag")
_LARGEST_MASK = 1 << 28  # pixels: more than an image that is read has


def read_shapes(
    shapes: Iterable[Element], where: str, no_area: Counter[str], problems: list[str]
) -> list[AnnotatedObject]:
    """The objects of shapes with labels, of which those of one group may be one (`join_groups`). Kinds without an area
    are counted in `no_area`, and what cannot be read gets a line in `problems`."""
    grouped: list[GroupedShape] = []
    for number, shape in enumerate(shapes, start=1):
        if shape.tag in _NO_AREA:
            no_area[f"{shape.tag} {shape.get('label')}"] += 1
            continue
        read = _READERS.get(shape.tag)
        if read is None:
            no_area[f"<{shape.tag}>"] += 1
            continue
        label = (shape.get("label") or "").strip()
        try:
            if not label:
                raise ValueError("no label")
            attributes = {
                one.get("name") or "": (one.text or "").strip() for one in shape.findall("attribute")
            }
            attributes |= {key: "1" for key in ("occluded",) if shape.get(key) == "1"}
            one_object = read(shape, label, attributes)
            if one_object.box[2] <= one_object.box[0] or one_object.box[3] <= one_object.box[1]:
                raise ValueError("no area")
        except ValueError as error:
            problems.append(f"{where}, shape {number} ({shape.tag} {label}): {error}")
            continue
        group = shape.get("group_id", "0")
        grouped.append(GroupedShape(one_object, "" if group == "0" else group, shape.tag == "polygon"))
    return join_groups(grouped)


def _number(shape: Element, name: str, default: float | None = None) -> float:
    text = shape.get(name)
    if text is None and default is not None:
        return default
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not abs(value) < FARTHEST:
        raise ValueError(f"{name}={text!r} is no number of pixels")
    return value


def _read_box(shape: Element, label: str, attributes: Mapping[str, str]) -> AnnotatedObject:
    x0, y0, x1, y1 = (_number(shape, side) for side in ("xtl", "ytl", "xbr", "ybr"))
    degrees = _number(shape, "rotation", 0.0)
    if not degrees:
        return AnnotatedObject(label, (x0, y0, x1, y1), attributes=attributes)
    outline = turn_box((x0, y0, x1, y1), degrees)
    return AnnotatedObject(label, bounds([outline]), (outline,), attributes=attributes)


def _read_polygon(shape: Element, label: str, attributes: Mapping[str, str]) -> AnnotatedObject:
    pairs = [pair.split(",") for pair in (shape.get("points") or "").split(";") if pair.strip()]
    outline = np.array([[float(x), float(y)] for x, y in pairs], np.float64).reshape(-1, 2)
    if len(outline) < 3 or not np.isfinite(outline).all() or np.abs(outline).max() > FARTHEST:
        raise ValueError(f"{len(outline)} points, but a polygon has three or more")
    return AnnotatedObject(label, bounds([outline]), (outline,), attributes=attributes)


def _read_ellipse(shape: Element, label: str, attributes: Mapping[str, str]) -> AnnotatedObject:
    x, y, across, down = (_number(shape, name) for name in ("cx", "cy", "rx", "ry"))
    outline = ellipse_outline(x, y, across, down, _number(shape, "rotation", 0.0))
    return AnnotatedObject(label, bounds([outline]), (outline,), attributes=attributes)


def _read_mask(shape: Element, label: str, attributes: Mapping[str, str]) -> AnnotatedObject:
    """Runs along the rows of its rectangle, the first of them outside."""
    left, top, width, height = (int(_number(shape, name)) for name in ("left", "top", "width", "height"))
    numbers = [int(run) for run in (shape.get("rle") or "").split(",") if run.strip()]
    if width < 1 or height < 1 or min(numbers, default=0) < 0 or sum(numbers) != width * height:
        raise ValueError(f"runs of {sum(numbers)} pixels for a mask of {width} x {height}")
    if width * height > _LARGEST_MASK:
        raise ValueError(f"a mask of {width} x {height} pixels is too large")
    runs = np.array(numbers, np.int64)
    inside = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(height, width)
    if not inside.any():
        raise ValueError("a mask without a pixel")
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    y0, y1, x0, x1 = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
    box = float(left + x0), float(top + y0), float(left + x1), float(top + y1)
    return AnnotatedObject(label, box, (), np.ascontiguousarray(inside[y0:y1, x0:x1]), attributes)


_READERS: Mapping[str, Callable[[Element, str, Mapping[str, str]], AnnotatedObject]] = {
    "box": _read_box,
    "polygon": _read_polygon,
    "ellipse": _read_ellipse,
    "mask": _read_mask,
}
