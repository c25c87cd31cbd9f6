"""Axis-aligned boxes as `[K, 4]` float arrays: xyxy in the convention of `warp`, right and bottom exclusive.

So width is x1 - x0; with an `offset` of 1 right and bottom are inclusive pixels, as in older code. Results are float32
where the input is, float64 otherwise. The twin in programs is `framework.nn.functional.boxes`.
"""

from __future__ import annotations

import math

import numpy as np

from framework.core.errors import ShapeError


def _boxes(boxes: np.ndarray, where: str) -> np.ndarray:
    boxes = np.asarray(boxes)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(
            "boxes must be an array [K, 4]",
            where=where,
            received=list(boxes.shape),
            allowed="[K, 4]; none: [0, 4]",
        )
    return boxes if boxes.dtype == np.float32 else boxes.astype(np.float64)


def _area(low: np.ndarray, high: np.ndarray, offset: float) -> np.ndarray:
    sides = high - low
    sides = np.where(sides < 0, 0, sides + offset) if offset else np.maximum(sides, 0)
    return sides[..., 0] * sides[..., 1]


def area(boxes: np.ndarray, offset: float = 0.0) -> np.ndarray:
    """Areas `[K]`; 0 for boxes whose right or bottom lies before their left or top."""
    boxes = _boxes(boxes, "boxes.area")
    return _area(boxes[:, :2], boxes[:, 2:], offset)


def _shared(a: np.ndarray, b: np.ndarray, offset: float) -> np.ndarray:
    return _area(np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:]), offset)


def _over_union(shared: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """The shared area by the union, where `areas` is the sum of both."""
    union = areas - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def intersection(a: np.ndarray, b: np.ndarray, offset: float = 0.0) -> np.ndarray:
    """Areas `[N, M]` that each of `a [N, 4]` shares with each of `b [M, 4]`."""
    a, b = _boxes(a, "boxes.intersection"), _boxes(b, "boxes.intersection")
    return _shared(a[:, None], b[None, :], offset)


def iou(a: np.ndarray, b: np.ndarray, offset: float = 0.0) -> np.ndarray:
    """Intersection over union `[N, M]`; 0 where the union is empty."""
    areas = area(a, offset)[:, None] + area(b, offset)[None, :]
    return _over_union(intersection(a, b, offset), areas)


def suppress(
    boxes: np.ndarray,
    iou_threshold: float | np.float32,
    *,
    labels: np.ndarray | None = None,
    other_threshold: float = math.inf,
    count: int | None = None,
    eta: float | np.float32 = 1.0,
    offset: float = 0.0,
) -> np.ndarray:
    """Indices of the boxes that stay: each in turn drops those after it that overlap it by more than the threshold.

    Args:
        boxes: [K, 4], best first.
        labels: [K]: boxes of other labels drop one another by `other_threshold`, which by default they do not.
        count: At most so many, the first.
        eta: Below 1 it lowers the threshold, while that is above 0.5, with each box that stays.
    """
    boxes, areas = _boxes(boxes, "boxes.suppress"), area(boxes, offset)
    left, overlap = np.arange(len(boxes)), np.zeros(len(boxes), boxes.dtype)
    kept: list[int] = []
    while left.size and (count is None or len(kept) < count):
        best, left = int(left[0]), left[1:]
        kept.append(best)
        if eta < 1 and iou_threshold > 0.5:
            iou_threshold = iou_threshold * eta
        row = _over_union(_shared(boxes[best], boxes[left], offset), areas[best] + areas[left])
        gone = np.zeros(len(left), bool)
        if labels is not None:
            other = labels[left] != labels[best]
            gone, row = other & (row > other_threshold), np.where(other, 0, row)
        if eta < 1:  # a box is held against the threshold of its turn, which is no higher than this one
            row = overlap = np.maximum(overlap[1:], row)
        stays = (row <= iou_threshold) & ~gone
        left, overlap = left[stays], overlap[stays] if eta < 1 else overlap
    return np.array(kept, np.int64)


def clip(boxes: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
    """The boxes cut at the edges of an image of `size_hw`; those outside end with no area."""
    height, width = size_hw
    boxes = _boxes(boxes, "boxes.clip")
    return np.clip(boxes, 0, np.array([width, height, width, height], boxes.dtype))


def xywh_to_xyxy(boxes: np.ndarray) -> np.ndarray:
    """Left, top, width, height to corners."""
    boxes = _boxes(boxes, "boxes.xywh_to_xyxy")
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
