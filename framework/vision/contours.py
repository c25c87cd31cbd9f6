"""Outlines of the regions of a map, what is measured on them and cut out along them, for detectors that segment.

Unlike the rest of `vision`, points here are pixel indices: pixel i's centre is at i. The rules of DB, PSE and the
like are stated on indices, and a shift by half a pixel changes which boxes pass their thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from framework.core.errors import ShapeError

_SPREAD = np.ones((2, 2), np.uint8)
_OPENCV_SIDE = 32_766  # cv2.warpPerspective addresses source pixels with 16 bits


def find_contours(mask: np.ndarray, *, dilate: bool = False) -> list[np.ndarray]:
    """The outlines [P, 2] int32 of the 8-connected regions of bool `mask [H, W]` and of their holes.

    They come in OpenCV's order, the lowest region first; of straight runs only the ends are kept. With `dilate` every
    pixel first spreads to its right, lower and lower right neighbour.

    Raises:
        ShapeError: the mask is not bool [H, W].
    """
    if mask.ndim != 2 or mask.dtype != np.bool_:
        raise ShapeError(
            "a mask must be an array [H, W]",
            where="find_contours",
            received=f"{mask.dtype} {list(mask.shape)}",
            allowed="bool [H, W]",
        )
    if mask.size == 0:
        return []
    pixels = np.ascontiguousarray(mask).view(np.uint8)
    if dilate:
        pixels = cv2.dilate(pixels, _SPREAD)
    found, _ = cv2.findContours(pixels, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    return [points.reshape(-1, 2) for points in found]


def trace_pixel_edges(mask: np.ndarray) -> list[np.ndarray]:
    """The outlines [P, 2] int32 of the 8-connected regions of bool `mask [H, W]` and of their holes, along the edges of
    the pixels: here pixel i covers [i, i + 1). Filled by the even-odd rule together they are the mask.

    They come in OpenCV's order; outlines of holes run the other way round. Of straight runs only the ends are kept.

    Raises:
        ShapeError: the mask is not bool [H, W].
    """
    # With pixels of 2x2 the two sides of an edge are different points, 2i - 1 and 2i, and no corner is cut off.
    outlines = []
    for points in find_contours(np.repeat(np.repeat(mask, 2, axis=0), 2, axis=1)):
        corners = (points + 1) // 2
        corners = corners[(corners != np.roll(corners, 1, axis=0)).any(axis=1)]
        before, after = corners - np.roll(corners, 1, axis=0), np.roll(corners, -1, axis=0) - corners
        outlines.append(corners[before[:, 0] * after[:, 1] != before[:, 1] * after[:, 0]])
    return outlines


def min_area_rects(point_sets: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The smallest rotated rectangle around each of N point sets [P, 2] (int32 or float32, P >= 1).

    Returns:
        Corners [N, 4, 2] float32, clockwise from the upper of the two leftmost, and side lengths [N, 2] float32.
    """
    rects = [cv2.minAreaRect(points) for points in point_sets]
    if not rects:
        return np.zeros((0, 4, 2), np.float32), np.zeros((0, 2), np.float32)
    corners = np.stack([cv2.boxPoints(rect) for rect in rects])
    return order_corners(corners), np.array([rect[1] for rect in rects], np.float32)


def order_corners(quads: np.ndarray) -> np.ndarray:
    """Quads [N, 4, 2], dtype kept, clockwise from the upper of the two leftmost corners.

    The two leftmost corners are the left edge and the other two the right one, whatever the order was before. Of two
    that are equally high the left one counts as the upper. Of a narrow quad that leans, the short sides are the left
    and the right edge; where rounding has turned one of them, so that sides would cross, it is turned back.
    """
    by_x = np.take_along_axis(quads, np.argsort(quads[:, :, :1], axis=1, kind="stable"), axis=1)
    left, right = by_x[:, :2], by_x[:, 2:]
    left_down = (left[:, 1, 1] >= left[:, 0, 1])[:, None]
    right_down = (right[:, 1, 1] >= right[:, 0, 1])[:, None]
    ordered = np.stack(
        [
            np.where(left_down, left[:, 0], left[:, 1]),
            np.where(right_down, right[:, 0], right[:, 1]),
            np.where(right_down, right[:, 1], right[:, 0]),
            np.where(left_down, left[:, 1], left[:, 0]),
        ],
        axis=1,
    )
    swapped = ordered[:, [0, 2, 1, 3]]
    area, other = _signed_areas(ordered), _signed_areas(swapped)
    crosses = np.abs(other) > np.abs(area)  # a quad whose sides cross covers less
    if crosses.any():
        swapped[other < 0] = swapped[other < 0][:, [0, 3, 2, 1]]
        ordered[crosses] = swapped[crosses]
    return ordered


def _signed_areas(quads: np.ndarray) -> np.ndarray:
    """[N] float64, above 0 where the corners [N, 4, 2] run clockwise, as y points down."""
    x, y = np.moveaxis(quads.astype(np.float64) - quads[:, :1], 2, 0)
    return (x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1) / 2


def simplify(points: np.ndarray, tolerance: float) -> np.ndarray:
    """A closed outline [P, 2] int32 with fewer points (Douglas-Peucker); `tolerance` is a share of its length."""
    return cv2.approxPolyDP(points, tolerance * cv2.arcLength(points, True), True).reshape(-1, 2)


def means_inside(values: np.ndarray, polygons: np.ndarray | Sequence[np.ndarray]) -> np.ndarray:
    """The mean [N] float64 of `values [H, W]` over the pixels that each polygon [P, 2] covers or touches.

    Corners between pixels count as those of the pixel up and left of them; what lies outside the map is left out.

    Raises:
        ShapeError: the map is empty or not [H, W].
    """
    if values.ndim != 2 or values.size == 0:
        raise ShapeError(
            "a map must be an array [H, W]",
            where="means_inside",
            received=list(values.shape),
            allowed="[H, W]",
        )
    if not len(polygons):
        return np.zeros(0)
    limit = (values.shape[1] - 1, values.shape[0] - 1)
    if isinstance(polygons, np.ndarray):
        low, high = polygons.min(axis=1), polygons.max(axis=1)
    else:
        low, high = np.array([p.min(axis=0) for p in polygons]), np.array([p.max(axis=0) for p in polygons])
    low, high = (np.clip(ends, 0, limit).astype(np.int32) for ends in (np.floor(low), np.ceil(high)))
    means = np.empty(len(polygons))
    for i, (polygon, (x0, y0), (x1, y1)) in enumerate(
        zip(polygons, low.tolist(), high.tolist(), strict=True)
    ):
        inside = np.zeros((y1 - y0 + 1, x1 - x0 + 1), np.uint8)
        cv2.fillPoly(inside, [(polygon - low[i]).astype(np.int32)], (1,))
        means[i] = cv2.mean(values[y0 : y1 + 1, x0 : x1 + 1], inside)[0]
    return means


def fill_outlines(mask: np.ndarray, polygons: Sequence[np.ndarray], value: float) -> None:
    """Set the pixels of float32 `mask [H, W]` inside of each polygon [P, 2] and on its outline; points are cut to
    whole pixels."""
    for points in polygons:
        cv2.fillPoly(mask, [points.astype(np.int32)], value)


def quad_sizes(quads: np.ndarray) -> np.ndarray:
    """Heights and widths [N, 2] int64 of ordered quads [N, 4, 2]: the longer of opposite edges, cut off, at least 1."""
    edges = np.linalg.norm(quads - np.roll(quads, -1, axis=1), axis=2)
    sizes = np.stack([np.maximum(edges[:, 1], edges[:, 3]), np.maximum(edges[:, 0], edges[:, 2])], axis=1)
    return np.maximum(sizes.astype(np.int64), 1)


def cut_quads(image: np.ndarray, quads: np.ndarray) -> list[np.ndarray]:
    """The parts of `image [H, W, 3]` uint8 inside ordered `quads` [N, 4, 2], straightened, each of its `quad_sizes`.

    Bicubic, edge pixels repeated outside the image. Upright quads on whole pixels are copied, which gives the same.
    """
    quads = quads.astype(np.float32)
    sizes = quad_sizes(quads)
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = quads.transpose(1, 2, 0)
    height, width = image.shape[:2]
    upright = (x0 == x3) & (x1 == x2) & (y0 == y1) & (y2 == y3) & (x0 < x1) & (y0 < y2)
    upright &= (
        (quads == np.round(quads)).all(axis=(1, 2)) & (x0 >= 0) & (y0 >= 0) & (x1 <= width) & (y2 <= height)
    )
    crops = []
    for quad, (high, wide), copy in zip(quads, sizes.tolist(), upright.tolist(), strict=True):
        if copy:
            left, top = int(quad[0, 0]), int(quad[0, 1])
            crops.append(image[top : top + high, left : left + wide].copy())
            continue
        part, corner = image, np.zeros(2, np.float32)
        if max(height, width) > _OPENCV_SIDE:
            # The surroundings alone, with room for the bicubic kernel. Not always, as samples may round differently.
            corner = np.clip(np.floor(quad.min(axis=0)) - 4, 0, (width - 1, height - 1)).astype(np.float32)
            end = np.clip(np.ceil(quad.max(axis=0)) + 5, corner + 1, (width, height)).astype(int)
            part = image[int(corner[1]) : end[1], int(corner[0]) : end[0]]
        target = np.array([[0, 0], [wide, 0], [wide, high], [0, high]], np.float32)
        matrix = cv2.getPerspectiveTransform(quad - corner, target)
        flags, border = cv2.INTER_CUBIC, cv2.BORDER_REPLICATE
        crops.append(cv2.warpPerspective(part, matrix, (wide, high), flags=flags, borderMode=border))
    return crops
