"""Boxes, polygons, masks, keypoints and labels on images.

Every function takes `[H, W, 3]` uint8 RGB and returns a new array. Lines and letters grow with the image, so that
labels read on a 12-megapixel photo fitted to a screen as on a 200-pixel thumbnail; `scale` makes all of it larger or
smaller. `ids` (class or track numbers, default 0, 1, 2 ...) choose the colours, the same ones always: `masks.color`.
Objects with a coordinate that is not finite are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from framework.core.errors import ShapeError
from framework.vision.fonts import text_alpha
from framework.vision.masks import color, palette

Color = tuple[int, int, int]

_SUBPIXEL_BITS = 4
_FAR = 2.0**20  # OpenCV's drawing is safe up to here


def boxes(
    image: np.ndarray,
    boxes: np.ndarray,
    *,
    labels: Sequence[str] | None = None,
    ids: Sequence[int] | np.ndarray | None = None,
    scale: float = 1.0,
) -> np.ndarray:
    """Outlines of `boxes [K, 4]` xyxy with `labels` at their top-left corners."""
    canvas = _canvas(image)
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    ids = _per_object("boxes", len(boxes), labels, ids)
    line = line_width(canvas.shape[:2], scale)
    shown = [index for index in range(len(boxes)) if np.isfinite(boxes[index]).all()]
    for index in shown:
        x0, y0, x1, y1 = np.rint(np.clip(boxes[index], -_FAR, _FAR)).astype(int).tolist()
        cv2.rectangle(canvas, (x0, y0), (max(x0, x1 - 1), max(y0, y1 - 1)), color(ids[index]), line)
    if labels is not None:  # after all the lines, which would cross them out
        for index in shown:
            _label(canvas, labels[index], boxes[index, :2], color(ids[index]), scale, line)
    return canvas


def polygons(
    image: np.ndarray,
    polygons: Sequence[np.ndarray],
    *,
    labels: Sequence[str] | None = None,
    ids: Sequence[int] | np.ndarray | None = None,
    opacity: float = 0.0,
    closed: bool = True,
    scale: float = 1.0,
) -> np.ndarray:
    """Outlines of `polygons` (each `[N, 2]`), filled with `opacity` 0 to 1; with `closed=False` open lines (trails)."""
    canvas = _canvas(image)
    ids = _per_object("polygons", len(polygons), labels, ids)
    line = line_width(canvas.shape[:2], scale)
    shown = {
        index: _pixels(polygon)
        for index, polygon in enumerate(polygons)
        if len(polygon) and np.isfinite(polygon).all()
    }
    if opacity > 0 and closed:
        for index, points in shown.items():
            (x0, y0), (x1, y1) = (
                points.min(axis=0) >> _SUBPIXEL_BITS,
                (points.max(axis=0) >> _SUBPIXEL_BITS) + 2,
            )
            x0, y0 = max(0, int(x0)), max(0, int(y0))
            region = canvas[y0 : max(0, int(y1)), x0 : max(0, int(x1))]
            if region.size:
                inside = np.zeros(region.shape[:2], np.uint8)
                shifted = points - (np.array([x0, y0]) << _SUBPIXEL_BITS)
                cv2.fillPoly(inside, [shifted.astype(np.int32)], (1,), shift=_SUBPIXEL_BITS)
                _tint(region, inside, color(ids[index]), opacity)
    for index, points in shown.items():
        cv2.polylines(canvas, [points], closed, color(ids[index]), line, cv2.LINE_AA, _SUBPIXEL_BITS)
    if labels is not None:
        for index in shown:
            points = np.asarray(polygons[index], np.float64)
            _label(
                canvas, labels[index], points[np.argmin(points.sum(axis=1))], color(ids[index]), scale, line
            )
    return canvas


def masks(
    image: np.ndarray,
    masks: np.ndarray,
    *,
    ids: Sequence[int] | np.ndarray | None = None,
    opacity: float = 0.5,
    scale: float = 1.0,
) -> np.ndarray:
    """Object masks `[K, H, W]` bool: tinted with `opacity` 0 to 1 and outlined."""
    canvas = _canvas(image)
    if masks.ndim != 3 or masks.shape[1:] != canvas.shape[:2]:
        raise ShapeError(
            "the masks do not fit the image",
            where="draw.masks",
            received=list(masks.shape),
            allowed=["K", *canvas.shape[:2]],
        )
    ids = _per_object("masks", len(masks), None, ids)
    line = max(1, line_width(canvas.shape[:2], scale) // 2)
    for index, mask in enumerate(masks):
        inside = np.ascontiguousarray(mask != 0).view(np.uint8)
        x, y, width, height = cv2.boundingRect(inside)
        if width == 0:
            continue
        inside = inside[y : y + height, x : x + width]
        _tint(canvas[y : y + height, x : x + width], inside, color(ids[index]), opacity)
        outline, _ = cv2.findContours(inside, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE, offset=(x, y))
        cv2.drawContours(canvas, outline, -1, color(ids[index]), line, cv2.LINE_AA)
    return canvas


def classes(
    image: np.ndarray,
    class_map: np.ndarray,
    *,
    colors: np.ndarray | None = None,
    opacity: float = 0.5,
    ignore: int | None = 255,
) -> np.ndarray:
    """A semantic map `[H, W]` of class indices over the image with `opacity` 0 to 1; `ignore` stays clear.

    `colors` is `[num_classes, 3]` uint8 RGB, by default `masks.palette`.
    """
    canvas = _canvas(image)
    if class_map.shape != canvas.shape[:2]:
        raise ShapeError(
            "the class map does not fit the image",
            where="draw.classes",
            received=list(class_map.shape),
            allowed=list(canvas.shape[:2]),
        )
    inside = np.ones(class_map.shape, np.bool_) if ignore is None else class_map != ignore
    known = np.where(inside, class_map, 0)
    if colors is None:
        colors = palette(int(known.max()) + 1)
    if known.min() < 0 or known.max() >= len(colors):
        raise ShapeError(
            "a class has no colour",
            where="draw.classes",
            received=f"classes {known.min()} to {known.max()}",
            allowed=f"0 to {len(colors) - 1}",
        )
    colors = np.asarray(colors, np.uint8)
    if len(colors) <= 256:  # a table look-up in OpenCV takes a tenth of NumPy's time
        table = np.zeros((1, 256, 3), np.uint8)
        table[0, : len(colors)] = colors
        colored = cv2.LUT(cv2.cvtColor(known.astype(np.uint8), cv2.COLOR_GRAY2RGB), table)
    else:
        colored = colors[known]
    tinted = cv2.addWeighted(canvas, 1 - opacity, colored, opacity, 0)
    return cv2.copyTo(tinted, inside.view(np.uint8), canvas)


def keypoints(
    image: np.ndarray,
    keypoints: np.ndarray,
    *,
    skeleton: Sequence[tuple[int, int]] = (),
    ids: Sequence[int] | np.ndarray | None = None,
    threshold: float = 0.3,
    scale: float = 1.0,
) -> np.ndarray:
    """Dots at `keypoints [K, J, 2 or 3]` (x, y, score) and lines along `skeleton`, pairs of keypoint indices.

    Keypoints with a score below `threshold`, and lines to them, are left out.
    """
    canvas = _canvas(image)
    keypoints = np.asarray(keypoints, np.float64)
    if keypoints.ndim != 3 or keypoints.shape[2] not in (2, 3):
        raise ShapeError(
            "keypoints have the wrong shape",
            where="draw.keypoints",
            received=list(keypoints.shape),
            allowed="[K, J, 2] or [K, J, 3]",
        )
    ids = _per_object("keypoints", len(keypoints), None, ids)
    line = line_width(canvas.shape[:2], scale)
    for index, kpts in enumerate(keypoints):
        seen = np.isfinite(kpts).all(axis=1)
        if kpts.shape[1] == 3:
            seen &= kpts[:, 2] >= threshold
        points = _pixels(np.where(seen[:, None], kpts[:, :2], 0.0))
        for first, second in skeleton:
            if seen[first] and seen[second]:
                ends = points[[first, second]]
                cv2.polylines(canvas, [ends], False, color(ids[index]), line, cv2.LINE_AA, _SUBPIXEL_BITS)
        radius = round(1.8 * line * 2**_SUBPIXEL_BITS)
        for x, y in points[seen].tolist():
            cv2.circle(
                canvas, (x, y), radius + (line << _SUBPIXEL_BITS) // 2, (255, 255, 255), -1, cv2.LINE_AA, 4
            )
            cv2.circle(canvas, (x, y), radius, color(ids[index]), -1, cv2.LINE_AA, _SUBPIXEL_BITS)
    return canvas


def text(
    image: np.ndarray,
    text: str,
    xy: tuple[float, float] | np.ndarray,
    *,
    background: Color = (0, 0, 0),
    scale: float = 1.0,
) -> np.ndarray:
    """One line of `text` on a filled box above `xy`, moved to where it fits; black or white, whichever reads better."""
    canvas = _canvas(image)
    _label(canvas, text, np.asarray(xy, np.float64), background, scale, 0)
    return canvas


def line_width(size_hw: tuple[int, int], scale: float = 1.0) -> int:
    """The width in pixels of lines on an image of `size_hw`: 1 at 640x480, 8 at 4000x3000."""
    return max(1, round(scale * (size_hw[0] * size_hw[1]) ** 0.5 / 450))


def font_size(size_hw: tuple[int, int], scale: float = 1.0) -> int:
    """The font size in pixels of labels on an image of `size_hw`: 11 up to 640x480, 69 at 4000x3000."""
    return max(6, round(scale * max(11.0, (size_hw[0] * size_hw[1]) ** 0.5 / 50)))


def _label(canvas: np.ndarray, text: str, xy: np.ndarray, background: Color, scale: float, line: int) -> None:
    """Writes into `canvas`: above `xy`, below it where there is no room, and never over the right edge."""
    height, width = canvas.shape[:2]
    size = font_size((height, width), scale)
    margin = size // 5
    alpha = text_alpha(text, size, max(1, width - 2 * margin))
    alpha = np.pad(alpha, ((0, 0), (margin, margin)))[:height, :width]
    x, y = np.rint(np.clip(xy, -_FAR, _FAR)).astype(int).tolist()
    x, y = x - line // 2, y - line // 2 - alpha.shape[0]
    if y < 0:
        y += alpha.shape[0] + line
    x, y = max(0, min(x, width - alpha.shape[1])), max(0, min(y, height - alpha.shape[0]))
    luminance = 0.299 * background[0] + 0.587 * background[1] + 0.114 * background[2]
    # All shades between the two colours are few: a table of 256 is faster than arithmetic on each pixel.
    shades = (
        np.linspace(background, (0, 0, 0) if luminance > 140 else (255, 255, 255), 256)
        .round()
        .astype(np.uint8)
    )
    canvas[y : y + alpha.shape[0], x : x + alpha.shape[1]] = shades[alpha]


def _tint(region: np.ndarray, inside: np.ndarray, tint: Color, opacity: float) -> None:
    """Mixes `tint` into `region`, a view that is changed, where `inside` uint8 is not 0."""
    levels = np.arange(256)[:, None] * (1 - opacity) + np.array(tint) * opacity
    tinted = cv2.LUT(np.ascontiguousarray(region), levels.round().astype(np.uint8)[None])
    region[...] = cv2.copyTo(tinted, inside, np.ascontiguousarray(region))


def _pixels(points: np.ndarray) -> np.ndarray:
    """Continuous xy as OpenCV's fixed-point int32, whose whole numbers are pixel centres."""
    moved = np.clip(np.asarray(points, np.float64) - 0.5, -_FAR, _FAR)
    return np.rint(moved * 2**_SUBPIXEL_BITS).astype(np.int32)


def _canvas(image: np.ndarray) -> np.ndarray:
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise ShapeError(
            "nothing can be drawn on this",
            where="draw",
            received=f"{image.dtype} {list(image.shape)}",
            allowed="uint8 [H, W, 3] RGB, not empty",
        )
    return np.array(image, order="C")


def _per_object(
    name: str, count: int, labels: Sequence[str] | None, ids: Sequence[int] | np.ndarray | None
) -> list[int]:
    for what, values in (("labels", labels), ("ids", ids)):
        if values is not None and len(values) != count:
            raise ShapeError(
                f"{what} and {name} do not belong together",
                where=f"draw.{name}",
                received=f"{len(values)} {what}, {count} {name}",
                allowed=f"one of the {what} for each",
            )
    return list(range(count)) if ids is None else [int(index) for index in ids]
