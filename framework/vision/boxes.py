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


def scale(boxes: np.ndarray, factor_xy: tuple[float, float]) -> np.ndarray:
    """The boxes with x multiplied by `factor_xy[0]` and y by `factor_xy[1]`."""
    boxes = _boxes(boxes, "boxes.scale")
    return boxes * np.array([*factor_xy, *factor_xy], boxes.dtype)


def xyxy_to_xywh(boxes: np.ndarray) -> np.ndarray:
    """Corners to left, top, width, height (COCO's files)."""
    boxes = _boxes(boxes, "boxes.xyxy_to_xywh")
    return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)


def xywh_to_xyxy(boxes: np.ndarray) -> np.ndarray:
    """Left, top, width, height to corners."""
    boxes = _boxes(boxes, "boxes.xywh_to_xyxy")
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def xyxy_to_cxcywh(boxes: np.ndarray) -> np.ndarray:
    """Corners to centre, width, height."""
    boxes = _boxes(boxes, "boxes.xyxy_to_cxcywh")
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], axis=1)


def cxcywh_to_xyxy(boxes: np.ndarray) -> np.ndarray:
    """Centre, width, height to corners."""
    boxes = _boxes(boxes, "boxes.cxcywh_to_xyxy")
    half = boxes[:, 2:] / 2
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)


def nms(
    boxes: np.ndarray, scores: np.ndarray, iou_threshold: float, *, labels: np.ndarray | None = None
) -> np.ndarray:
    """Greedy non-maximum suppression: indices `[kept]` int64 of the boxes that stay, best score first.

    A box goes when its IoU with a better one that stays exceeds `iou_threshold`; of equal scores the earlier one is
    the better. With `labels [K]`, boxes of different labels leave one another alone.

    Raises:
        ShapeError: `scores` or `labels` are not as many as the boxes.
    """
    boxes = _boxes(boxes, "boxes.nms")
    for name, values in (("scores", scores), ("labels", labels)):
        if values is not None and np.shape(values) != (len(boxes),):
            raise ShapeError(
                f"{name} and boxes do not belong together",
                where="boxes.nms",
                received=f"{name} {list(np.shape(values))}, boxes {list(boxes.shape)}",
                allowed=f"one of the {name} a box",
            )
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    kept = []
    while order.size:
        best, order = order[0], order[1:]
        kept.append(best)
        rival = iou(boxes[best : best + 1], boxes[order])[0] > iou_threshold
        if labels is not None:
            rival &= np.asarray(labels)[order] == np.asarray(labels)[best]
        order = order[~rival]
    return np.array(kept, np.int64)
