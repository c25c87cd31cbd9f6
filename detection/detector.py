"""What `predictor` gives: finds objects on images, whole and sliced, and follows them over the frames of videos."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from detection.result_files import CocoFile, MotFile
from detection.results import DetectionResult
from detection.slicing import Method, Metric, Slicing, detect_on_tiles
from detection.tracking.bytetrack import ByteTrack, ByteTrackOptions
from framework.core.errors import ConfigError
from framework.workflow import ImageItem, VisionPredictor
from framework.workflow.domain.options import check_range, option, value_range_option
from framework.workflow.runners.image_runner import ImageRunner

THRESHOLD = 0.5


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

    coco_name = "bbox.json"
    """Of the file of COCO's results"""

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
        return CocoFile(files, self.category_ids, self.coco_name)


def track(results: Iterable[DetectionResult], options: ByteTrackOptions) -> Iterator[DetectionResult]:
    """The results of the frames of one video, in order, with the boxes that belong to tracks, which they name."""
    tracker = ByteTrack(options)
    for result in results:
        ids = tracker.update(result.xyxy, result.scores, result.category_ids).tolist()
        boxes = tuple(replace(box, track_id=i) for box, i in zip(result.boxes, ids) if i > 0)
        yield replace(result, boxes=boxes)


@dataclass(frozen=True)
class DetectionOptions:
    """What is kept, whether images are cut into tiles, whether objects are followed, who finds people.

    Raises:
        InputError: a score is out of range. ConfigError: an option of something that was not asked for.
    """

    threshold: float | None = option(
        None,
        "least score of what is kept: of boxes 0.5 without it, of people with keypoints 0.2",
        aliases=("draw_threshold", "keypoint_threshold"),
    )
    batch_size: int | None = option(None, "how many run together")
    tracker: Literal["bytetrack"] | None = option(None, "follow objects over the frames of a video")
    detector: str | os.PathLike[str] | ObjectDetector | None = option(
        None, "what finds people for a pose model of one person's crop", aliases=("det_model_dir",)
    )
    det_threshold: float | None = option(None, "least score of what that detector finds, default: 0.5")
    slice_infer: bool = option(False, "look at tiles of an image")
    slice_size: tuple[int, int] | None = option(None, "of a tile, default: 640 640", metavar=("H", "W"))
    overlap_ratio: tuple[float, float] | None = option(
        None, "of tiles, default: 0.25 0.25", metavar=("H", "W")
    )
    combine_method: Method | None = option(None, "of the boxes of tiles")
    match_metric: Metric | None = option(None, "tells whether two boxes show one object")
    match_threshold: float | None = option(None, "the metric from which they do")
    value_range: tuple[float, float] | None = value_range_option()
    slicing: Slicing | None = option(None, "tiles, instead of the options above", flag=False)
    tracking: ByteTrackOptions | None = option(None, "a tracker with thresholds of its own", flag=False)

    def __post_init__(self) -> None:
        check_range(self.threshold, "threshold", 0, 1)
        check_range(self.det_threshold, "det_threshold", 0, 1)
        if self._tile_options() and not self.slice_infer:
            raise ConfigError(
                "nothing is sliced", received="an option of sliced inference", fix="add --slice_infer"
            )
        if self.det_threshold is not None and self.detector is None:
            raise ConfigError(
                "no detector looks for people first", received="--det_threshold", fix="add --det_model_dir"
            )

    def _tile_options(self) -> dict[str, object]:
        settings = {
            "size_hw": None if self.slice_size is None else tuple(self.slice_size),
            "overlap_hw": None if self.overlap_ratio is None else tuple(self.overlap_ratio),
            "method": self.combine_method,
            "metric": self.match_metric,
            "threshold": self.match_threshold,
        }
        return {name: value for name, value in settings.items() if value is not None}

    def make_slicing(self) -> Slicing | None:
        """How images are cut, or None. Raises: ConfigError, where a value is out of its range."""
        if self.slicing is not None or not self.slice_infer:
            return self.slicing
        return Slicing(**self._tile_options())  # type: ignore[arg-type]

    def make_tracking(self) -> ByteTrackOptions | None:
        """How objects are followed, or None. The tracker's thresholds follow from that of the boxes."""
        if self.tracking is not None or self.tracker is None:
            return self.tracking
        of_boxes = self.threshold if self.detector is None else self.det_threshold
        high = THRESHOLD if of_boxes is None else of_boxes
        return ByteTrackOptions(high=high, low=min(0.1, high), new=min(1.0, high + 0.1))
