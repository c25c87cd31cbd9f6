"""Points, quadrilaterals and polygons: `[N, 2]` arrays of xy in the convention of `warp` (pixel i covers [i, i+1)).

Results are float32 where the input is, float64 otherwise. "Clockwise" is as seen on the screen, where y points down.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from framework.core.errors import ShapeError
from framework.vision.warp import Warp


def _points(points: np.ndarray, where: str, *, least: int = 1) -> np.ndarray:
    points = np.asarray(points)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < least or not np.isfinite(points).all():
        raise ShapeError(
            "these are no points of a polygon",
            where=where,
            received=f"{list(points.shape)}"
            + ("" if points.ndim != 2 or np.isfinite(points).all() else ", not finite"),
            allowed=f"finite [N, 2] with N >= {least}",
        )
    return points if points.dtype == np.float32 else points.astype(np.float64)


def area(polygon: np.ndarray) -> float:
    """The area inside `polygon [N, 2]` whatever its direction; 0 for fewer than three points."""
    return abs(signed_area(polygon))


def signed_area(polygon: np.ndarray) -> float:
    """The shoelace area: positive when the points run clockwise on the screen."""
    x, y = _points(polygon, "polygons.area").astype(np.float64).T
    x, y = x - x[0], y - y[0]  # far from the origin the products would lose digits
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def perimeter(polygon: np.ndarray) -> float:
    """The length of the closed outline."""
    points = _points(polygon, "polygons.perimeter").astype(np.float64)
    return float(np.linalg.norm(points - np.roll(points, -1, axis=0), axis=1).sum())


def order_quad(quad: np.ndarray) -> np.ndarray:
    """The corners of a convex `quad [4, 2]` clockwise from its top-left one.

    Top-left is the upper of the two leftmost corners. So for a line of text turned by less than about 80 degrees
    either way, the first two corners are its upper edge, which the corner of the least x + y would not give.
    """
    quad = _points(quad, "polygons.order_quad", least=4)
    if len(quad) != 4:
        raise ShapeError(
            "a quadrilateral has four corners",
            where="polygons.order_quad",
            received=list(quad.shape),
            allowed="[4, 2]",
        )
    out_x, out_y = (quad - quad.mean(axis=0)).T
    quad = quad[np.argsort(np.arctan2(out_y, out_x), kind="stable")]
    left = np.argsort(quad[:, 0], kind="stable")[:2]
    return np.roll(quad, -left[np.argmin(quad[left, 1])], axis=0)


def min_area_rect(points: np.ndarray) -> np.ndarray:
    """The smallest rotated rectangle around `points [N, 2]`, as an ordered quad [4, 2] (see `order_quad`).

    One point, or points on a line, give a rectangle without area.
    """
    points = _points(points, "polygons.min_area_rect")
    origin = points.min(axis=0)  # OpenCV works in float32: near zero all its digits go into the shape
    corners = cv2.boxPoints(cv2.minAreaRect((points - origin).astype(np.float32)))
    return order_quad(corners.astype(points.dtype) + origin)


def edge_lengths(quad: np.ndarray) -> tuple[float, float]:
    """(height, width) of an ordered quad: the longer of each pair of opposite edges."""
    quad = _points(quad, "polygons.edge_lengths", least=4).astype(np.float64)
    edges = np.linalg.norm(quad - np.roll(quad, -1, axis=0), axis=1)
    return float(max(edges[1], edges[3])), float(max(edges[0], edges[2]))


def simplify(polygon: np.ndarray, tolerance: float, *, closed: bool = True) -> np.ndarray:
    """Fewer points, none of the dropped farther than `tolerance` pixels from the new outline (Douglas-Peucker)."""
    points = _points(polygon, "polygons.simplify")
    origin = points.min(axis=0)
    kept = cv2.approxPolyDP((points - origin).astype(np.float32), tolerance, closed)
    return kept.reshape(-1, 2).astype(points.dtype) + origin


def convex_hull(points: np.ndarray) -> np.ndarray:
    """The corners of the convex hull `[M, 2]`, clockwise."""
    points = _points(points, "polygons.convex_hull")
    origin = points.min(axis=0)
    chosen = cv2.convexHull(
        (points - origin).astype(np.float32), clockwise=False, returnPoints=False
    ).reshape(-1)
    hull = points[chosen]
    return hull if signed_area(hull) >= 0 else hull[::-1]


def contours(mask: np.ndarray) -> list[np.ndarray]:
    """The outlines [N, 2] float64 of the regions in `mask [H, W]` and of their holes, through border pixels' centres.

    Regions are 8-connected. Only the ends of straight runs are kept. An outline through centres is half a pixel
    smaller all round than the region: `masks.to_polygons` gives the one along the pixels' edges.
    """
    _check_mask(mask, "polygons.contours")
    if mask.size == 0:
        return []
    found, _ = cv2.findContours((mask != 0).view(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    return [contour.reshape(-1, 2) + 0.5 for contour in found]


def fill(polygons: Sequence[np.ndarray], size_hw: tuple[int, int]) -> np.ndarray:
    """The bool mask of the pixels whose centre lies inside one of `polygons`, each `[N, 2]`, by the even-odd rule.

    Centres on a left or top edge count, on a right or bottom edge do not: polygons that share an edge share no pixel,
    and the box (0, 0), (2, 0), (2, 2), (0, 2) has 4 pixels. A polygon with no area fills nothing.
    """
    mask = np.zeros(size_hw, np.bool_)
    for polygon in polygons:
        points = _points(polygon, "polygons.fill").astype(np.float64)
        # Pixel indices whose centres can be inside, on the image.
        low = np.clip(np.ceil(points.min(axis=0) - 0.5), 0, size_hw[::-1]).astype(int)
        high = np.clip(np.ceil(points.max(axis=0) - 0.5), 0, size_hw[::-1]).astype(int)
        (x0, y0), (x1, y1) = low, high
        if x1 <= x0 or y1 <= y0:
            continue
        # Each edge changes inside and outside from where it crosses a row's centre line to the row's end.
        start, end = points, np.roll(points, -1, axis=0)
        downward = (start[:, 1] <= end[:, 1])[
            :, None
        ]  # the same crossing, bit for bit, for both uses of an edge
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


def mean_in_polygon(values: np.ndarray, polygon: np.ndarray) -> float:
    """The mean of `values [H, W]` over the pixels that `polygon [N, 2]` covers or touches; 0 where that is none.

    Corners are moved to the centre of the pixel up and left of them, and the pixels under the outline count: the rule
    of PaddleOCR's DB post-processing, whose box scores this reproduces.
    """
    _check_mask(values, "polygons.mean_in_polygon")
    # The slack keeps a corner that float32 has put just before a centre at that centre.
    corners = np.floor(_points(polygon, "polygons.mean_in_polygon").astype(np.float64) - 0.5 + 1e-4)
    limit = np.array(values.shape[::-1]) - 1
    if values.size == 0 or (corners.max(axis=0) < 0).any() or (corners.min(axis=0) > limit).any():
        return 0.0
    low, high = (
        np.clip(corners.min(axis=0), 0, limit).astype(int),
        np.clip(corners.max(axis=0), 0, limit).astype(int),
    )
    part = values[low[1] : high[1] + 1, low[0] : high[0] + 1]
    inside = np.zeros(part.shape, np.uint8)
    cv2.fillPoly(inside, [np.clip(corners - low, -32768, 32767).astype(np.int32)], (1,))
    return float(part[inside.view(np.bool_)].mean(dtype=np.float64)) if inside.any() else 0.0


def crop_quad(image: np.ndarray, quad: np.ndarray, *, size_hw: tuple[int, int] | None = None) -> np.ndarray:
    """The part of `image [H, W(, C)]` inside an ordered `quad`, straightened: bicubic, edge pixels repeated outside.

    Without `size_hw` the result is as high and wide as the longer of the opposite edges, rounded down, at least 1.

    Raises:
        ShapeError: the quad is degenerate: three of its corners lie on one line.
    """
    if size_hw is None:
        height, width = edge_lengths(quad)
        size_hw = max(1, int(height + 1e-6)), max(1, int(width + 1e-6))
    return Warp.perspective(image.shape[:2], quad, size_hw).image(image, "cubic", border=None)


def quad_iou(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intersection over union `[N, M]` float64 of convex quads `a [N, 4, 2]` and `b [M, 4, 2]`, in either direction."""
    a, b = np.asarray(a, np.float64).reshape(-1, 4, 2), np.asarray(b, np.float64).reshape(-1, 4, 2)
    result = np.zeros((len(a), len(b)))
    meet = (a.min(axis=1)[:, None] < b.max(axis=1)[None]) & (b.min(axis=1)[None] < a.max(axis=1)[:, None])
    for i, j in zip(*np.nonzero(meet.all(axis=-1)), strict=True):
        shared = intersection_area(a[i], b[j])
        union = area(a[i]) + area(b[j]) - shared
        result[i, j] = shared / union if union > 0 else 0.0
    return result


def intersection_area(a: np.ndarray, b: np.ndarray) -> float:
    """The area that two convex polygons `[N, 2]` and `[M, 2]` share."""
    a, b = (_points(points, "polygons.intersection_area", least=3).astype(np.float64) for points in (a, b))
    origin = a.min(axis=0)
    shared, _ = cv2.intersectConvexConvex((a - origin).astype(np.float32), (b - origin).astype(np.float32))
    return float(shared)


def _check_mask(mask: np.ndarray, where: str) -> None:
    if mask.ndim != 2:
        raise ShapeError("this is no map", where=where, received=list(mask.shape), allowed="[H, W]")
