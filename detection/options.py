"""Options of `detection.predictor`: keywords in Python, flags of tools/infer.py."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from detection.detector import ObjectDetector
from detection.slicing import Method, Metric, Slicing
from detection.tracking.bytetrack import ByteTrackOptions
from framework.core.errors import ConfigError
from framework.workflow.options import check_range, option

THRESHOLD = 0.5


@dataclass(frozen=True)
class DetectionOptions:
    """What is kept, whether images are cut into tiles, whether objects are followed, who finds people.

    Raises:
        InputError: a score is out of range. ConfigError: an option of something that was not asked for.
    """

    threshold: float | None = option(
        None, "least score of what is kept: of boxes 0.5 without it, of people with keypoints 0.2"
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
        given = {
            "size_hw": None if self.slice_size is None else tuple(self.slice_size),
            "overlap_hw": None if self.overlap_ratio is None else tuple(self.overlap_ratio),
            "method": self.combine_method,
            "metric": self.match_metric,
            "threshold": self.match_threshold,
        }
        return {name: value for name, value in given.items() if value is not None}

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
