"""What a detector says of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import numpy as np

from detection.counts import FrameCounts
from framework.core.types import JSON
from framework.vision import draw
from framework.workflow.domain.result import ImageResult, Json, read_result


class _BoxData(TypedDict):
    label: str
    category_id: int
    score: float
    bbox: Sequence[float]
    track_id: NotRequired[int]
    keypoints: NotRequired[Sequence[Sequence[float]]]


class _ResultData(TypedDict):
    source: str
    width: int
    height: int
    boxes: Sequence[_BoxData]


@dataclass(frozen=True)
class Box:
    """One object. `bbox` is (x0, y0, x1, y1) in pixels of the source, right and bottom exclusive; score in [0, 1].

    `category_id` is the index of the class and `label` its name. `track_id` counts from 1 and stays with an object over
    the frames of a video; `keypoints` are (x, y, score) each.
    """

    label: str
    category_id: int
    score: float
    bbox: tuple[float, float, float, float]
    track_id: int | None = None
    keypoints: tuple[tuple[float, float, float], ...] | None = None

    @classmethod
    def from_dict(cls, data: _BoxData) -> Box:
        """The object that `to_dict` wrote."""
        points = data.get("keypoints")
        x0, y0, x1, y1 = map(float, data["bbox"])
        return cls(
            data["label"],
            data["category_id"],
            data["score"],
            (x0, y0, x1, y1),
            data.get("track_id"),
            None if points is None else tuple((x, y, score) for x, y, score in points),
        )

    def to_dict(self) -> dict[str, JSON]:
        """Plain data for JSON; what is not known is left out."""
        data: dict[str, JSON] = {
            "label": self.label,
            "category_id": self.category_id,
            "score": round(self.score, 4),
            "bbox": [round(value, 2) for value in self.bbox],
        }
        if self.track_id is not None:
            data["track_id"] = self.track_id
        if self.keypoints is not None:
            data["keypoints"] = [[round(x, 2), round(y, 2), round(s, 4)] for x, y, s in self.keypoints]
        return data


@dataclass(frozen=True)
class DetectionResult(ImageResult):
    """The objects of an image, best first.

    `skeleton` holds pairs of indices into the keypoints, which drawings join with lines; `counts` is what is counted up
    to this frame of a video, where something is.
    """

    boxes: tuple[Box, ...]
    skeleton: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    counts: FrameCounts | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> DetectionResult:
        """The result that `to_dict` wrote, without its image and what was counted. Raises: FormatError."""
        return read_result(data, _read, "objects of an image: source, width, height, boxes")

    @property
    def is_empty(self) -> bool:
        return not self.boxes

    @property
    def xyxy(self) -> np.ndarray:
        """[K, 4] float64"""
        return np.array([box.bbox for box in self.boxes], np.float64).reshape(-1, 4)

    @property
    def scores(self) -> np.ndarray:
        """[K] float64"""
        return np.array([box.score for box in self.boxes], np.float64)

    @property
    def category_ids(self) -> np.ndarray:
        """[K] int64"""
        return np.array([box.category_id for box in self.boxes], np.int64)

    def _content(self) -> Mapping[str, Json]:
        """Coordinates have two decimals, scores four."""
        boxes: dict[str, Json] = {"boxes": [box.to_dict() for box in self.boxes]}
        return boxes if self.counts is None else {**boxes, "counts": self.counts.to_dict()}

    def to_coco(self, image_id: int, category_ids: Sequence[int] | None = None) -> list[dict[str, JSON]]:
        """The objects as COCO's results: bbox is [left, top, width, height], and keypoints count pixels, whose centres
        are 0.5 further to the right and down in our coordinates.

        Args:
            category_ids: The data set's own number of each class; without them a class keeps its index.
        """
        records = []
        for box in self.boxes:
            x0, y0, x1, y1 = box.bbox
            record: dict[str, JSON] = {
                "image_id": image_id,
                "category_id": box.category_id if category_ids is None else category_ids[box.category_id],
                "bbox": [round(value, 2) for value in (x0, y0, x1 - x0, y1 - y0)],
                "score": round(box.score, 5),
            }
            if box.keypoints is not None:
                record["keypoints"] = [
                    value
                    for x, y, s in box.keypoints
                    for value in (round(x - 0.5, 2), round(y - 0.5, 2), round(s, 5))
                ]
            records.append(record)
        return records

    def to_yolo(self, *, with_scores: bool = False) -> str:
        """The objects in YOLO's format, a line each: class index, centre x and y, width and height as shares of the
        image's sides; then the score, and the number of the track where there is one."""
        lines = []
        for box in self.boxes:
            x0, y0, x1, y1 = box.bbox
            width, height = max(1, self.width), max(1, self.height)
            shares = ((x0 + x1) / 2 / width, (y0 + y1) / 2 / height, (x1 - x0) / width, (y1 - y0) / height)
            fields = [str(box.category_id), *(f"{share:.6f}" for share in shares)]
            fields += [f"{box.score:.6f}"] if with_scores else []
            fields += [] if box.track_id is None else [str(box.track_id)]
            lines.append(" ".join(fields) + "\n")
        return "".join(lines)

    def overlay(self) -> np.ndarray:
        """The image with its boxes and keypoints, [H, W, 3] uint8 RGB; of one that was read by windows its overview.

        Colours tell tracks apart; without them objects with keypoints, whose lines may cross, and else classes.
        """
        ids = [
            box.track_id or (box.category_id if box.keypoints is None else index)
            for index, box in enumerate(self.boxes)
        ]
        ratio = np.array(self.pixels.shape[1::-1]) / np.array([max(1, self.width), max(1, self.height)])
        boxes = self.xyxy * np.concatenate([ratio, ratio])
        image = draw.boxes(self.pixels, boxes, labels=[_caption(box) for box in self.boxes], ids=ids)
        posed = [(box.keypoints, i) for box, i in zip(self.boxes, ids) if box.keypoints]
        if posed:
            points = np.array([keypoints for keypoints, _ in posed])
            image = draw.keypoints(image, points, skeleton=self.skeleton, ids=[i for _, i in posed])
        return image if self.counts is None else self.counts.draw(image)


def _read(data: _ResultData) -> DetectionResult:
    return DetectionResult(
        source=data["source"],
        width=data["width"],
        height=data["height"],
        boxes=tuple(map(Box.from_dict, data["boxes"])),
    )


def _caption(box: Box) -> str:
    track = "" if box.track_id is None else f"#{box.track_id} "
    return f"{track}{box.label} {box.score:.2f}"
