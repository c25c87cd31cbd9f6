"""What `predictor` gives: finds objects on images, whole and sliced, and follows them over the frames of videos."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from detection.results import DetectionResult
from detection.saving import CocoFile, MotFile
from detection.slicing import Slicing, sliced
from detection.tracking.bytetrack import ByteTrack, ByteTrackOptions
from framework.inference.image_predictor import ImagePredictor


class ObjectDetector:
    """Finds objects; made by `predictor`. Safe to call from several threads.

    A call takes a path, bytes, a file, an array or a PIL image and gives a DetectionResult, of a list of them a list.

    Args:
        model: Of one image, or one tile of it.
        labels: The names of the classes.
        category_ids: The data set's own numbers of the classes, where it has some.
        slicing: How images are cut into tiles; None: they are not.
        tracking: How objects are followed over the frames of a video; None: they are not.
    """

    def __init__(
        self,
        model: ImagePredictor[DetectionResult],
        labels: tuple[str, ...],
        category_ids: tuple[int, ...] | None = None,
        slicing: Slicing | None = None,
        tracking: ByteTrackOptions | None = None,
    ) -> None:
        self.model, self.labels, self.category_ids = model, labels, category_ids
        self.slicing, self.tracking = slicing, tracking

    def __call__(self, source: Any) -> Any:
        if isinstance(source, (list, tuple)):
            return list(self.results(self.model.read(item) for item in source))
        return next(self.results(iter([self.model.read(source)])))

    def results(self, images: Iterable[tuple[np.ndarray, str]]) -> Iterator[DetectionResult]:
        """One result for each (image [H, W, 3] uint8 RGB, source), in order. Memory does not grow with their number."""
        if self.slicing is None:
            return self.model.results(images)
        return sliced(self.model.results, images, self.slicing)

    def pages(self, items: Iterable[tuple[np.ndarray, str, int]]) -> Iterator[DetectionResult]:
        """`results` of (image, source, number). With tracking the images are the frames of one video."""
        return self.frames(items, ByteTrackOptions.frame_rate)

    def frames(
        self, items: Iterable[tuple[np.ndarray, str, int]], frame_rate: float
    ) -> Iterator[DetectionResult]:
        """`pages` of a video of so many frames per second. Each call begins with no tracks."""
        results = self.results((image, source) for image, source, _ in items)
        if self.tracking is None:
            return results
        return tracked(results, replace(self.tracking, frame_rate=frame_rate))

    def saving(self, stem: str, files: Sequence[str] | None = None) -> CocoFile | MotFile:
        """The one file for the results of these images, or of a video, which has no `files`."""
        if files is None:
            return MotFile(stem, classes=len(self.labels) != 1)
        return CocoFile(files, self.category_ids)


def tracked(results: Iterable[DetectionResult], options: ByteTrackOptions) -> Iterator[DetectionResult]:
    """The results of the frames of one video, in order, with the boxes that belong to tracks, which they name."""
    tracker = ByteTrack(options)
    for result in results:
        ids = tracker.update(result.xyxy, result.scores, result.category_ids).tolist()
        boxes = tuple(replace(box, track_id=i) for box, i in zip(result.boxes, ids) if i > 0)
        yield replace(result, boxes=boxes)
