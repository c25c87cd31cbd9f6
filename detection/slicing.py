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

_EDGE = 2.0  # pixels
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
        method: "nms" drops the worse of two boxes that match, "nmm" puts them together, "concat" keeps all. On dense
            scenes "nms" has the better recall: neighbours that touch do not become one (see docs/detection.md).
        metric: Of two boxes, the shared area over their union ("iou") or over the smaller box ("ios"): parts of an
            object that tiles cut have a small iou with the whole object and a large ios.
        threshold: Boxes match where the metric exceeds it, in (0, 1).
        per_class: Whether boxes of one class alone match.

    Raises:
        ConfigError: a value is out of its range.
    """

    size_hw: tuple[int, int] = (640, 640)
    overlap_hw: tuple[float, float] = (0.25, 0.25)
    whole: bool = True
    method: Method = "nms"
    metric: Metric = "ios"
    threshold: float = 0.6
    per_class: bool = True

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
    method: Method = "nms",
    metric: Metric = "ios",
    threshold: float = 0.6,
    per_class: bool = True,
    cut: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Puts boxes that show the same object together: (indices [R] of the best of each, boxes [R, 4]), best first.

    Greedy: of those left, the best box takes all of its class that match it. With "nms" it stays as it is. With "nmm"
    it grows to hold them, the better ones first, those that still match what it has grown to; a box that matches
    another one of them alone is none of it, or rows of neighbours would become one. "concat" leaves every box alone.
    Of equal scores the earlier one is the better.

    Args:
        boxes: [K, 4] xyxy.
        scores, labels: [K]
        per_class: Whether boxes of one class alone match.
        cut: [K] bool, boxes that the edge of a tile cuts. Any whole box comes before them, as a part of an object may
            have the better score, and none but they grow. None: this is not known.
    """
    scores = np.asarray(scores, np.float64)
    order = np.argsort(-scores if cut is None else np.asarray(cut, np.float64) * 2 - scores, kind="stable")
    boxes, labels = np.asarray(boxes, np.float64).reshape(-1, 4), np.asarray(labels)
    if method == "concat" or not len(order):
        return order, boxes[order]
    retained, merged = [], []
    while order.size:
        best, order = order[0], order[1:]
        match = _matches(boxes[best], boxes[order], metric, threshold)
        if per_class:
            match &= labels[order] == labels[best]
        box, matching = boxes[best], order[match]
        for one in boxes[matching] if method == "nmm" and (cut is None or cut[best]) else ():
            if _matches(box, one[None], metric, threshold)[0]:
                box = np.concatenate([np.minimum(box[:2], one[:2]), np.maximum(box[2:], one[2:])])
        order = order[~match]
        retained.append(max([best, *matching], key=scores.__getitem__) if method == "nmm" else best)
        merged.append(box)
    best_first = np.argsort(-scores[retained], kind="stable")
    return np.array(retained, np.int64)[best_first], np.array(merged, np.float64)[best_first]


def _matches(box: np.ndarray, others: np.ndarray, metric: Metric, threshold: float) -> np.ndarray:
    """[K] bool: which of boxes [K, 4] match a box [4]."""
    shared = vision_boxes.intersection(box[None], others)[0]
    area, areas = vision_boxes.area(box[None])[0], vision_boxes.area(others)
    against = area + areas - shared if metric == "iou" else np.minimum(area, areas)
    return shared > threshold * against


def detect_on_tiles(
    detect: Detect, items: Iterable[ImageItem], slicing: Slicing
) -> Iterator[DetectionResult]:
    """One result an image, in order, of a detector that is shown its tiles; those of several images share batches.

    Args:
        detect: Gives one result for each image, in order.
    """
    waiting: deque[tuple[ImageItem, np.ndarray, tuple[int, ...]]] = deque()

    def cut() -> Iterator[ImageItem]:
        for item in items:
            pixels = item.image if item.windows is None else item.windows
            height, width = pixels.shape[:2]
            grid = tiles((height, width), slicing.size_hw, slicing.overlap_hw)
            if slicing.whole and len(grid) > 1:
                grid = np.concatenate([[[0, 0, width, height]], grid])
            waiting.append((item, grid, (height, width)))
            for x0, y0, x1, y1 in grid:
                is_whole = (x1 - x0, y1 - y0) == (width, height)
                # Of an image that is read by windows the overview stands for the whole.
                window = item.image if is_whole else pixels[y0:y1, x0:x1]
                yield item._replace(image=np.ascontiguousarray(window), windows=None)

    boxes: list[Box] = []
    cut_off: list[bool] = []
    done = 0
    for result in detect(cut()):
        item, grid, size_hw = waiting[0]
        scale = (grid[done, 2] - grid[done, 0]) / result.width  # above 1 of an overview
        left, top = grid[done, :2].tolist()
        shifted = [_shift(box, left, top, float(scale)) for box in result.boxes]
        boxes += shifted
        cut_off += [_is_cut(box, grid[done], size_hw) for box in shifted]
        done += 1
        if done == len(grid):
            yield _combine(boxes, cut_off, item, size_hw, slicing)
            waiting.popleft()
            boxes, cut_off, done = [], [], 0


def _shift(box: Box, x: float, y: float, scale: float) -> Box:
    x0, y0, x1, y1 = (side * scale for side in box.bbox)
    return replace(box, bbox=(x0 + x, y0 + y, x1 + x, y1 + y))


def _is_cut(box: Box, tile: np.ndarray, size_hw: tuple[int, ...]) -> bool:
    """Whether a box reaches an edge of its tile that is none of the image's."""
    height, width = size_hw
    x0, y0, x1, y1 = (abs(value - edge) < _EDGE for value, edge in zip(box.bbox, tile.tolist()))
    left, top, right, bottom = tile.tolist()
    return (x0 and left > 0) or (y0 and top > 0) or (x1 and right < width) or (y1 and bottom < height)


def _combine(
    detections: list[Box], cut: list[bool], item: ImageItem, size_hw: tuple[int, ...], slicing: Slicing
) -> DetectionResult:
    height, width = size_hw
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
        per_class=slicing.per_class,
        cut=np.array(cut, bool),
    )
    together = tuple(replace(detections[i], bbox=(*box,)) for i, box in zip(retained, boxes.tolist()))
    return replace(every, boxes=together)
