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
            "these are no boxes", where=where, received=list(boxes.shape), allowed="[K, 4]; none: [0, 4]"
        )
    return boxes if boxes.dtype == np.float32 else boxes.astype(np.float64)


def _area(low: np.ndarray, high: np.ndarray, offset: float) -> np.ndarray:
    sides = high - low
    return np.where(sides < 0, 0, sides + offset).prod(axis=-1)


def area(boxes: np.ndarray, offset: float = 0.0) -> np.ndarray:
    """Areas `[K]`; 0 for boxes whose right or bottom lies before their left or top."""
    boxes = _boxes(boxes, "boxes.area")
    return _area(boxes[:, :2], boxes[:, 2:], offset)


def intersection(a: np.ndarray, b: np.ndarray, offset: float = 0.0) -> np.ndarray:
    """Areas `[N, M]` that each of `a [N, 4]` shares with each of `b [M, 4]`."""
    a, b = _boxes(a, "boxes.intersection"), _boxes(b, "boxes.intersection")
    return _area(
        np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:]), offset
    )


def iou(a: np.ndarray, b: np.ndarray, offset: float = 0.0) -> np.ndarray:
    """Intersection over union `[N, M]`; 0 where the union is empty."""
    shared = intersection(a, b, offset)
    union = area(a, offset)[:, None] + area(b, offset)[None, :] - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


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
    boxes = _boxes(boxes, "boxes.suppress")
    left, overlap = np.arange(len(boxes)), np.zeros(len(boxes), boxes.dtype)
    kept: list[int] = []
    while left.size and (count is None or len(kept) < count):
        best, left = int(left[0]), left[1:]
        kept.append(best)
        if eta < 1 and iou_threshold > 0.5:
            iou_threshold = iou_threshold * eta
        row = iou(boxes[best : best + 1], boxes[left], offset)[0]
        other = np.zeros(len(left), bool) if labels is None else labels[left] != labels[best]
        overlap = np.maximum(overlap[1:], np.where(other, 0, row))
        # A box is held against the threshold of its turn, which is no higher than this one.
        stays = (overlap <= iou_threshold) & ~(other & (row > other_threshold))
        left, overlap = left[stays], overlap[stays]
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
