"""What `predictor` gives: finds objects on images, whole and sliced, and follows them over the frames of videos."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from detection.result_files import CocoFile, MotFile
from detection.results import DetectionResult
from detection.slicing import Slicing, detect_on_tiles
from detection.tracking.bytetrack import ByteTrack, ByteTrackOptions
from framework.workflow import ImageItem, VisionPredictor
from framework.workflow.image_runner import ImageRunner


class ObjectDetector(VisionPredictor[DetectionResult]):
    """Finds objects, or people and their keypoints; made by `predictor`. Safe to call from several threads.

    A call takes a path, bytes, a file, an array or a PIL image and gives a DetectionResult, of a list of them a list.

    Args:
        runner: Of an image, or of one tile of it where there is `slicing`.
        labels: The names of the classes.
        category_ids: The data set's own numbers of the classes, if they are known.
        slicing: Cut images into tiles.
        tracking: Follow objects over the frames of a video.
    """

    def __init__(
        self,
        runner: ImageRunner[DetectionResult],
        labels: tuple[str, ...],
        category_ids: tuple[int, ...] | None = None,
        slicing: Slicing | None = None,
        tracking: ByteTrackOptions | None = None,
    ) -> None:
        self.runner, self.labels, self.category_ids = runner, labels, category_ids
        self.slicing, self.tracking = slicing, tracking

    def detect(self, items: Iterable[ImageItem]) -> Iterator[DetectionResult]:
        """One result for each image, in order, without tracks."""
        if self.slicing is None:
            return self.runner.predict(items)
        return detect_on_tiles(self.runner.predict, items, self.slicing)

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[DetectionResult]:
        """One result for each image, in order. With tracking the images are the frames of one video."""
        return self.predict_video(items, ByteTrackOptions.frame_rate)

    def predict_video(self, frames: Iterable[ImageItem], frame_rate: float) -> Iterator[DetectionResult]:
        """`predict_stream` of a video of so many frames per second. Each call begins with no tracks."""
        results = self.detect(frames)
        if self.tracking is None:
            return results
        return track(results, replace(self.tracking, frame_rate=frame_rate))

    def result_writer(self, stem: str, files: Sequence[str] | None = None) -> CocoFile | MotFile:
        if files is None:
            return MotFile(stem, classes=len(self.labels) != 1)
        return CocoFile(files, self.category_ids)


def track(results: Iterable[DetectionResult], options: ByteTrackOptions) -> Iterator[DetectionResult]:
    """The results of the frames of one video, in order, with the boxes that belong to tracks, which they name."""
    tracker = ByteTrack(options)
    for result in results:
        ids = tracker.update(result.xyxy, result.scores, result.category_ids).tolist()
        boxes = tuple(replace(box, track_id=i) for box, i in zip(result.boxes, ids) if i > 0)
        yield replace(result, boxes=boxes)
