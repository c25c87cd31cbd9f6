"""Axis-aligned boxes as `[K, 4]` float arrays: xyxy in the convention of `warp`, right and bottom exclusive.

So width is x1 - x0, without the +1 of older code. Results are float32 where the input is, float64 otherwise.
"""

from __future__ import annotations

import numpy as np

from framework.core.errors import ShapeError


def _boxes(boxes: np.ndarray, where: str) -> np.ndarray:
    boxes = np.asarray(boxes)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(
            "these are no boxes", where=where, received=list(boxes.shape), allowed="[K, 4]; none: [0, 4]"
        )
    return boxes if boxes.dtype == np.float32 else boxes.astype(np.float64)


def area(boxes: np.ndarray) -> np.ndarray:
    """Areas `[K]`; 0 for boxes whose right or bottom lies before their left or top."""
    boxes = _boxes(boxes, "boxes.area")
    return np.maximum(boxes[:, 2] - boxes[:, 0], 0) * np.maximum(boxes[:, 3] - boxes[:, 1], 0)


def intersection(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Areas `[N, M]` that each of `a [N, 4]` shares with each of `b [M, 4]`."""
    a, b = _boxes(a, "boxes.intersection"), _boxes(b, "boxes.intersection")
    sides = np.minimum(a[:, None, 2:], b[None, :, 2:]) - np.maximum(a[:, None, :2], b[None, :, :2])
    return np.maximum(sides, 0).prod(axis=-1)


def iou(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intersection over union `[N, M]`; 0 where the union is empty."""
    shared = intersection(a, b)
    union = area(a)[:, None] + area(b)[None, :] - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def clip(boxes: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
    """The boxes cut at the edges of an image of `size_hw`; those outside end with no area."""
    height, width = size_hw
    boxes = _boxes(boxes, "boxes.clip")
    return np.clip(boxes, 0, np.array([width, height, width, height], boxes.dtype))


def xywh_to_xyxy(boxes: np.ndarray) -> np.ndarray:
    """Left, top, width, height to corners."""
    boxes = _boxes(boxes, "boxes.xywh_to_xyxy")
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
