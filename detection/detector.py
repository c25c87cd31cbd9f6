"""What `predictor` gives: finds objects on images, whole and sliced, and follows them over the frames of videos."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from detection.counts import EventFile
from detection.result_files import CocoFile, MotFile
from detection.results import DetectionResult
from detection.slicing import Method, Metric, Slicing, detect_on_tiles
from detection.tracking.bytetrack import ByteTrack, ByteTrackOptions
from detection.tracking.counting import (
    Anchor,
    CountOptions,
    count_regions,
    note_times,
    parse_line,
    parse_zone,
)
from framework.core.errors import ConfigError
from framework.vision import boxes as vision_boxes
from framework.workflow import ImageItem, VisionPredictor
from framework.workflow.domain.options import check_range, option, value_range_option
from framework.workflow.runners.image_runner import ImageRunner

THRESHOLD = 0.5
AGNOSTIC_IOU = 0.5


class ObjectDetector(VisionPredictor[DetectionResult]):
    """Finds objects, or people and their keypoints; made by `predictor`. Safe to call from several threads.

    A call takes a path, bytes, a file, an array or a PIL image and gives a DetectionResult, of a list of them a list.

    Args:
        runner: Of an image, or of one tile of it where there is `slicing`.
        labels: The names of the classes.
        category_ids: The data set's own numbers of the classes, if they are known.
        slicing: Cut images into tiles.
        tracking: Follow objects over the frames of a video.
        threshold: The score from which boxes are kept that belong to no track.
    """

    counting: CountOptions | None = None
    """The lines and zones whose tracks are counted."""
    agnostic_iou: float | None = None
    """The IoU from which boxes of different classes suppress one another; None: they do not."""
    with_scores: bool = False
    """Whether lines in YOLO's format end in the score."""
    coco_name = "bbox.json"
    """Of the file of COCO's results"""

    def __init__(
        self,
        runner: ImageRunner[DetectionResult],
        labels: tuple[str, ...],
        category_ids: tuple[int, ...] | None = None,
        slicing: Slicing | None = None,
        tracking: ByteTrackOptions | None = None,
        threshold: float = THRESHOLD,
    ) -> None:
        self.runner, self.labels, self.category_ids = runner, labels, category_ids
        self.slicing, self.tracking, self.threshold = slicing, tracking, threshold
        self.independent = tracking is None
        self.empty_note = f"no object has a score of {threshold:g} or more (--threshold)"

    def detect(self, items: Iterable[ImageItem]) -> Iterator[DetectionResult]:
        """One result for each image, in order, without tracks."""
        results = self._detect(items)
        iou = self.agnostic_iou
        return results if iou is None else (suppress_across_classes(result, iou) for result in results)

    def _detect(self, items: Iterable[ImageItem]) -> Iterator[DetectionResult]:
        if self.slicing is None:
            return self.runner.predict(items)
        return detect_on_tiles(self.runner.predict, items, self.slicing)

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[DetectionResult]:
        """One result for each image, in order. With tracking the images are the frames of one video."""
        return self.predict_video(items, ByteTrackOptions.frame_rate)

    def predict_video(self, frames: Iterable[ImageItem], frame_rate: float) -> Iterator[DetectionResult]:
        """`predict_stream` of a video of so many frames per second. Each call begins with no tracks."""
        times: deque[float | None] = deque()
        results = self.detect(frames if self.counting is None else note_times(frames, times))
        if self.tracking is None:
            return results
        tracked = track(results, replace(self.tracking, frame_rate=frame_rate), self.threshold)
        return tracked if self.counting is None else count_regions(tracked, self.counting, frame_rate, times)

    def event_writer(self, stem: str, stride: int = 1) -> EventFile | None:
        return None if self.counting is None else EventFile(stem, stride)

    def to_text(self, result: DetectionResult, suffix: str) -> str:
        return result.to_yolo(with_scores=self.with_scores)

    def result_writer(self, stem: str, files: Sequence[str] | None = None) -> CocoFile | MotFile:
        if files is None:
            tracked = self.tracking is not None
            return MotFile(stem, classes=len(self.labels) != 1, tracks_alone=tracked)
        return CocoFile(files, self.category_ids, self.coco_name)


def suppress_across_classes(result: DetectionResult, iou: float) -> DetectionResult:
    """The result without the boxes that a better one of whatever class overlaps by more than `iou`."""
    order = np.argsort(-result.scores, kind="stable")
    rows = order[vision_boxes.suppress(result.xyxy[order], iou)]
    return replace(result, boxes=tuple(result.boxes[row] for row in rows.tolist()))


def track(
    results: Iterable[DetectionResult], options: ByteTrackOptions, threshold: float = THRESHOLD
) -> Iterator[DetectionResult]:
    """The results of the frames of one video, in order, with the tracks that boxes belong to.

    A track hides nothing: boxes from `threshold` on stay where they belong to none, such as the first of an object that
    no second frame has confirmed; below it those of tracks stay.
    """
    tracker = ByteTrack(options)
    for result in results:
        ids = tracker.update(result.xyxy, result.scores, result.category_ids).tolist()
        boxes = tuple(
            replace(box, track_id=i) if i > 0 else box
            for box, i in zip(result.boxes, ids)
            if i > 0 or box.score >= threshold
        )
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
        aliases=("draw_threshold", "keypoint_threshold", "conf"),  # the last one is ultralytics' name
    )
    batch_size: int | None = option(None, "how many run together", request=False)
    tracker: Literal["bytetrack"] | None = option(
        None, "follow objects over the frames of a video", request=False
    )
    track_high_threshold: float | None = option(
        None,
        "score from which boxes are matched to tracks first, default: the threshold",
        aliases=("track_high_thresh",),
    )
    track_low_threshold: float | None = option(
        None, "score from which a box goes on with a track, default: 0.1", aliases=("track_low_thresh",)
    )
    track_new_threshold: float | None = option(
        None,
        "score from which a box begins a track, default: that of track_high_threshold",
        aliases=("new_track_thresh", "new_track_threshold"),
    )
    track_match_threshold: float | None = option(
        None, "1 - IoU * score from which box and track do not match, default: 0.8", aliases=("match_thresh",)
    )
    track_buffer: int | None = option(
        None, "frames, at 30 a second, that a track waits for its object, default: 30"
    )
    track_per_class: bool = option(True, "a track holds boxes of one class")
    count_line: tuple[str, ...] | None = option(
        None, "count tracks that cross lines x1,y1,x2,y2 in pixels; a name before it: gate=x1,y1,x2,y2"
    )
    zone: tuple[str, ...] | None = option(
        None,
        "count tracks in zones x1,y1,x2,y2,x3,y3,…, or x1,y1,x2,y2 of a rectangle, and how long they stay",
    )
    count_anchor: Anchor | None = option(
        None, "what of a box is on a side of a line or in a zone; default: corners, and bottom for zones"
    )
    count_frames: int | None = option(None, "frames that a track must be beyond a line, default: 1")
    agnostic_nms: bool = option(False, "boxes of different classes suppress one another too")
    agnostic_iou: float | None = option(None, "the IoU from which they do, default: 0.5")
    save_txt: bool = option(
        False, "write the boxes of each image in YOLO's format too, into the folder labels"
    )
    save_conf: bool = option(False, "with their scores at the end of the line")
    classes: tuple[str, ...] | None = option(None, "names of the classes that are kept; default: all")
    detector: str | os.PathLike[str] | ObjectDetector | None = option(
        None,
        "what finds people for a pose model of one person's crop",
        aliases=("det_model_dir",),
        request=False,
    )
    det_threshold: float | None = option(None, "least score of what that detector finds, default: 0.5")
    slice_infer: bool = option(False, "look at tiles of an image")
    slice_size: tuple[int, int] | None = option(
        None, "of a tile, default: 640 640", metavar=("H", "W"), request=False
    )
    overlap_ratio: tuple[float, float] | None = option(
        None, "of tiles, default: 0.25 0.25", metavar=("H", "W"), request=False
    )
    slice_whole: bool | None = option(None, "look at the whole image as well (default), for large objects")
    combine_method: Method | None = option(
        None, "of the boxes of tiles, default: nms; nmm puts matching ones together"
    )
    match_metric: Metric | None = option(None, "tells whether two boxes show one object, default: ios")
    match_threshold: float | None = option(None, "the metric from which they do, default: 0.6")
    match_per_class: bool | None = option(None, "only boxes of one class do (default)")
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
        of_tracker = (
            *(self.track_high_threshold, self.track_low_threshold, self.track_new_threshold),
            *(self.track_match_threshold, self.track_buffer),
        )
        asks = not self.track_per_class or any(value is not None for value in of_tracker)
        if asks and self.tracker is None:
            raise ConfigError(
                "nothing is tracked", received="an option of a tracker", fix="add --tracker bytetrack"
            )
        self._check_regions()
        check_range(self.agnostic_iou, "agnostic_iou", 0, 1)
        for name, is_set, needed in (
            ("agnostic_iou", self.agnostic_iou is not None, self.agnostic_nms),
            ("save_conf", self.save_conf, self.save_txt),
        ):
            if is_set and not needed:
                other = {"agnostic_iou": "agnostic_nms", "save_conf": "save_txt"}[name]
                raise ConfigError(f"--{name} belongs to --{other}", fix=f"add --{other}")
        if self.det_threshold is not None and self.detector is None:
            raise ConfigError(
                "no detector looks for people first", received="--det_threshold", fix="add --det_model_dir"
            )

    def _check_regions(self) -> None:
        regions = self.count_line or self.zone
        if regions and self.tracker is None and self.tracking is None:
            raise ConfigError(
                "lines and zones count tracks", received="no tracker", fix="add --tracker bytetrack"
            )
        if not regions and (self.count_anchor is not None or self.count_frames is not None):
            raise ConfigError(
                "nothing is counted", received="an option of counting", fix="add --count_line or --zone"
            )
        self.make_counting()

    def make_counting(self) -> CountOptions | None:
        """What is counted, or None. Raises: ConfigError, where a line or a zone is none."""
        if not (self.count_line or self.zone):
            return None
        return CountOptions(
            tuple(parse_line(text) for text in self.count_line or ()),
            tuple(parse_zone(text) for text in self.zone or ()),
            line_anchor=self.count_anchor or CountOptions.line_anchor,
            zone_anchor=self.count_anchor or CountOptions.zone_anchor,
            frames=1 if self.count_frames is None else self.count_frames,
        )

    def _tile_options(self) -> dict[str, object]:
        settings = {
            "size_hw": None if self.slice_size is None else tuple(self.slice_size),
            "overlap_hw": None if self.overlap_ratio is None else tuple(self.overlap_ratio),
            "whole": self.slice_whole,
            "method": self.combine_method,
            "metric": self.match_metric,
            "threshold": self.match_threshold,
            "per_class": self.match_per_class,
        }
        return {name: value for name, value in settings.items() if value is not None}

    def make_slicing(self) -> Slicing | None:
        """How images are cut, or None. Raises: ConfigError, where a value is out of its range."""
        if self.slicing is not None or not self.slice_infer:
            return self.slicing
        return Slicing(**self._tile_options())  # type: ignore[arg-type]

    def make_tracking(self) -> ByteTrackOptions | None:
        """How objects are followed, or None. The tracker's thresholds follow from that of the boxes: each box from it
        on may begin a track.

        Raises: ConfigError, where a threshold is out of its range."""
        if self.tracking is not None or self.tracker is None:
            return self.tracking
        of_boxes = self.threshold if self.detector is None else self.det_threshold
        default = ByteTrackOptions()
        high, low, new = self.track_high_threshold, self.track_low_threshold, self.track_new_threshold
        if high is None:
            high = THRESHOLD if of_boxes is None else of_boxes
        return ByteTrackOptions(
            high=high,
            low=min(default.low, high) if low is None else low,
            new=high if new is None else new,
            buffer=default.buffer if self.track_buffer is None else self.track_buffer,
            match=default.match if self.track_match_threshold is None else self.track_match_threshold,
            per_class=self.track_per_class,
        )


def configure_detector(detector: ObjectDetector, options: DetectionOptions) -> None:
    """Set what is counted, suppressed and written besides."""
    detector.counting = options.make_counting()
    if options.agnostic_nms:
        detector.agnostic_iou = AGNOSTIC_IOU if options.agnostic_iou is None else options.agnostic_iou
    if options.save_txt:
        detector.text_suffixes = (".txt",)
        detector.with_scores = options.save_conf
