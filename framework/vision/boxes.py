"""Axis-aligned boxes as `[K, 4]` float arrays: xyxy in the convention of `warp`, right and bottom exclusive.

So width is x1 - x0; with an `offset` of 1 right and bottom are inclusive pixels, as in older code. Results are float32
where the input is, float64 otherwise. The twin in programs is `framework.nn.functional.boxes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from framework.core.errors import ShapeError

_BLOCK = 64  # boxes whose pairs `suppress` compares at once
_ROW = 1024  # and of the rest, so that what is compared stays in the cache


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
    """The area that boxes share, by coordinate: [4, ...] each, since numpy is slow where the last axis is short."""
    sides = []
    for i in (0, 1):
        side = np.minimum(a[i + 2], b[i + 2])
        side -= np.maximum(a[i], b[i])  # in place: fresh memory takes as long as the numbers
        sides.append(np.where(side < 0, 0, side + offset) if offset else np.maximum(side, 0, out=side))
    return np.multiply(*sides, out=sides[0])


def _over_union(shared: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """The shared area by the union, where `areas` is the sum of both; written over them."""
    areas -= shared
    is_there = areas > 0
    if not is_there.all():  # `where` of a division takes ten times as long as this
        np.copyto(shared, 0, where=~is_there)
        np.copyto(areas, 1, where=~is_there)
    return np.divide(shared, areas, out=shared)


def intersection(a: np.ndarray, b: np.ndarray, offset: float = 0.0) -> np.ndarray:
    """Areas `[N, M]` that each of `a [N, 4]` shares with each of `b [M, 4]`."""
    a, b = _boxes(a, "boxes.intersection"), _boxes(b, "boxes.intersection")
    return _shared(a.T[:, :, None], b.T[:, None], offset)


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
    sides = np.ascontiguousarray(boxes.T)

    def overlaps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        shared = _shared(sides[:, a][:, :, None], sides[:, b][:, None], offset)
        return _over_union(shared, areas[a][:, None] + areas[b][None])

    def clashes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        shares = overlaps(a, b)
        clash = ~(shares <= iou_threshold)  # not-a-number drops a box
        if labels is not None:
            other = labels[a][:, None] != labels[b][None]
            clash = np.where(other, shares > other_threshold, clash)
        return clash

    most = len(boxes) if count is None else count
    everything = np.arange(len(boxes))
    if eta < 1:
        return _suppress_by_turns(everything, overlaps, labels, iou_threshold, other_threshold, most, eta)

    def select(left: np.ndarray) -> np.ndarray:
        selected = left[:0]
        while left.size and len(selected) < most:
            block, left = left[:_BLOCK], left[_BLOCK:]
            best = block[_first_come(clashes(block, block))][: most - len(selected)]
            selected = np.concatenate([selected, best])
            rests = [left[i : i + _ROW] for i in range(0, len(left), _ROW)]
            left = np.concatenate([left[:0], *(rest[~clashes(best, rest).any(0)] for rest in rests)])
        return selected

    if min(iou_threshold, other_threshold) < 0 or not np.isfinite(areas).all():
        return select(everything)  # boxes drop others that they do not meet
    selected = np.concatenate([everything[:0], *map(select, _split_by_columns(sides))])
    return np.sort(selected)[:most]


def _first_come(clash: np.ndarray) -> np.ndarray:
    """Which of K things stay where each in turn, if it stays, drops those after it with which it clashes [K, K]."""
    stays, later = np.ones(len(clash), bool), np.triu(clash, 1)
    for i in np.flatnonzero(later.any(1)).tolist():
        if stays[i]:
            stays[later[i]] = False
    return stays


def _split_by_columns(sides: np.ndarray) -> list[np.ndarray]:
    """Indices of boxes [4, K], each group in their order, so that boxes of two groups have no column in common: classes
    that lie beside one another, as torchvision's suppression moves them, are compared each on their own."""
    left, right = np.minimum(sides[0], sides[2]), np.maximum(sides[0], sides[2])
    order = np.argsort(left, kind="stable")
    reach = np.maximum.accumulate(right[order])
    starts = np.flatnonzero(left[order][1:] > reach[:-1]) + 1
    return [np.sort(group) for group in np.split(order, starts)]


def _suppress_by_turns(
    left: np.ndarray,
    overlaps: Callable[[np.ndarray, np.ndarray], np.ndarray],
    labels: np.ndarray | None,
    iou_threshold: float | np.float32,
    other_threshold: float,
    most: int,
    eta: float | np.float32,
) -> np.ndarray:
    """`suppress` where each box that stays lowers the threshold of the next."""
    selected: list[int] = []
    worst = np.zeros(len(left))  # the overlap with any box before
    while left.size and len(selected) < most:
        best, left = left[0], left[1:]
        selected.append(int(best))
        if iou_threshold > 0.5:
            iou_threshold = iou_threshold * eta
        row, gone = overlaps(best[None], left)[0], np.zeros(len(left), bool)
        if labels is not None:
            other = labels[left] != labels[best]
            gone, row = other & (row > other_threshold), np.where(other, 0, row)
        # A box is held against the threshold of its turn, which is no higher than this one.
        worst = np.maximum(worst[1:].astype(row.dtype), row)
        stays = (worst <= iou_threshold) & ~gone
        left, worst = left[stays], worst[stays]
    return np.array(selected, np.int64)


def clip(boxes: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
    """The boxes cut at the edges of an image of `size_hw`; those outside end with no area."""
    height, width = size_hw
    boxes = _boxes(boxes, "boxes.clip")
    return np.clip(boxes, 0, np.array([width, height, width, height], boxes.dtype))


def xywh_to_xyxy(boxes: np.ndarray) -> np.ndarray:
    """Left, top, width, height to corners."""
    boxes = _boxes(boxes, "boxes.xywh_to_xyxy")
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
