"""Sliced inference: small objects are found on tiles of a large image, each of which the network sees enlarged.

Source: https://arxiv.org/abs/2202.06934 (SAHI)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from detection.results import Box, DetectionResult
from framework.core.errors import ConfigError
from framework.vision import boxes as vision_boxes
from framework.workflow import ImageItem

Detect = Callable[[Iterable[ImageItem]], Iterator[DetectionResult]]
Metric = Literal["iou", "ios"]
Method = Literal["nmm", "nms", "concat"]


@dataclass(frozen=True)
class Slicing:
    """How an image is cut and how the boxes of its parts become one set.

    Attributes:
        size_hw: Height and width of a tile in pixels of the image. A smaller image is one tile.
        overlap_hw: The least share of a tile, in [0, 1), that the next one covers too, down and across.
        whole: Whether the whole image is looked at as well, for objects that no tile holds.
        method: "nms" drops the worse of two boxes that match, "nmm" puts them together, "concat" keeps all.
        metric: Of two boxes, the shared area over their union ("iou") or over the smaller box ("ios"): parts of an
            object that tiles cut have a small iou with the whole object and a large ios.
        threshold: Boxes of one class match where the metric exceeds it, in (0, 1).

    Raises:
        ConfigError: a value is out of its range.
    """

    size_hw: tuple[int, int] = (640, 640)
    overlap_hw: tuple[float, float] = (0.25, 0.25)
    whole: bool = True
    method: Method = "nmm"
    metric: Metric = "ios"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if min(self.size_hw) < 1 or not all(0 <= share < 1 for share in self.overlap_hw):
            raise ConfigError(
                "images cannot be cut like this",
                where="Slicing",
                received=f"tiles of {list(self.size_hw)}, overlap {list(self.overlap_hw)}",
                allowed="sides from 1, shares from 0 and below 1",
            )
        if self.method not in ("nmm", "nms", "concat") or self.metric not in ("iou", "ios"):
            raise ConfigError(
                "boxes of tiles are not put together like this",
                where="Slicing",
                received=f"{self.method} by {self.metric}",
                allowed="nmm, nms or concat by iou or ios",
            )
        if not 0 < self.threshold < 1:
            raise ConfigError(
                "boxes never match at this threshold",
                where="Slicing",
                received=self.threshold,
                allowed="a number between 0 and 1",
            )


def tiles(
    size_hw: tuple[int, int], tile_hw: tuple[int, int], overlap_hw: tuple[float, float] = (0.0, 0.0)
) -> np.ndarray:
    """The tiles of an image, row by row: [T, 4] int64 xyxy, which cover it and do not leave it.

    All are of `tile_hw`, or of the image's side where that is shorter; the last of a row and of a column are moved
    back into the image.
    """
    rows, columns = (
        _starts(side, tile, share) for side, tile, share in zip(size_hw, tile_hw, overlap_hw, strict=True)
    )
    height, width = min(size_hw[0], tile_hw[0]), min(size_hw[1], tile_hw[1])
    return np.array([[x, y, x + width, y + height] for y in rows for x in columns], np.int64)


def _starts(side: int, tile: int, share: float) -> list[int]:
    if side <= tile:
        return [0]
    step = max(1, tile - round(tile * share))
    return [*range(0, side - tile, step), side - tile]


def merge(
    boxes: np.ndarray,
    scores: np.ndarray,
    labels: np.ndarray,
    *,
    method: Method = "nmm",
    metric: Metric = "ios",
    threshold: float = 0.5,
) -> tuple[np.ndarray, np.ndarray]:
    """Puts boxes that show the same object together: (indices [R] of the best of each, boxes [R, 4]), best first.

    Greedy: of those left, the best box takes all of its class that match it. With "nms" it stays as it is. With "nmm"
    it also takes those that match one it took, as a whole object matches both of its halves, and grows to hold them
    all. "concat" leaves every box alone. Of equal scores the earlier one is the better.

    Args:
        boxes: [K, 4] xyxy.
        scores, labels: [K]
    """
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    boxes, labels = np.asarray(boxes, np.float64).reshape(-1, 4), np.asarray(labels)
    if method == "concat" or not len(order):
        return order, boxes[order]
    areas = vision_boxes.area(boxes)
    retained, merged = [], []
    while order.size:
        group, order = [order[0]], order[1:]
        for one in group:  # which grows meanwhile
            shared = vision_boxes.intersection(boxes[one : one + 1], boxes[order])[0]
            both = areas[one] + areas[order] - shared
            against = both if metric == "iou" else np.minimum(areas[one], areas[order])
            match = (shared > threshold * against) & (labels[order] == labels[one])
            group += order[match].tolist()
            order = order[~match]
            if method == "nms":
                group = group[:1]
                break
        retained.append(group[0])
        merged.append([*boxes[group, :2].min(axis=0), *boxes[group, 2:].max(axis=0)])
    return np.array(retained, np.int64), np.array(merged, np.float64)


def detect_on_tiles(
    detect: Detect, items: Iterable[ImageItem], slicing: Slicing
) -> Iterator[DetectionResult]:
    """One result an image, in order, of a detector that is shown its tiles; those of several images share batches.

    Args:
        detect: Gives one result for each image, in order.
    """
    waiting: deque[tuple[ImageItem, np.ndarray]] = deque()

    def cut() -> Iterator[ImageItem]:
        for item in items:
            height, width = item.image.shape[:2]
            grid = tiles((height, width), slicing.size_hw, slicing.overlap_hw)
            if slicing.whole and len(grid) > 1:
                grid = np.concatenate([[[0, 0, width, height]], grid])
            waiting.append((item, grid))
            for x0, y0, x1, y1 in grid:
                yield item._replace(image=np.ascontiguousarray(item.image[y0:y1, x0:x1]))

    boxes: list[Box] = []
    done = 0
    for result in detect(cut()):
        item, grid = waiting[0]
        boxes += [_shift(box, *grid[done, :2].tolist()) for box in result.boxes]
        done += 1
        if done == len(grid):
            yield _combine(boxes, item, slicing)
            waiting.popleft()
            boxes, done = [], 0


def _shift(box: Box, x: float, y: float) -> Box:
    x0, y0, x1, y1 = box.bbox
    return replace(box, bbox=(x0 + x, y0 + y, x1 + x, y1 + y))


def _combine(detections: list[Box], item: ImageItem, slicing: Slicing) -> DetectionResult:
    height, width = item.image.shape[:2]
    every = DetectionResult(
        tuple(detections), source=item.source, width=width, height=height, image=item.image
    )
    retained, boxes = merge(
        every.xyxy,
        every.scores,
        every.category_ids,
        method=slicing.method,
        metric=slicing.metric,
        threshold=slicing.threshold,
    )
    together = tuple(replace(detections[i], bbox=(*box,)) for i, box in zip(retained, boxes.tolist()))
    return replace(every, boxes=together)
