"""`predictor(...)`: the short way in to detectors, on pictures whole and sliced, and on videos with tracking.

from detection import predictor

detect = predictor("picodet_s_320_coco", threshold=0.4)
print([box.label for box in detect("street.jpg").boxes])
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from detection.results import Box, DetectionResult
from detection.saving import CocoFile, MotFile
from detection.slicing import Slicing, sliced
from detection.tracking.bytetrack import ByteTrack, ByteTrackOptions
from framework.core.errors import ConfigError, FormatError, InputError, OarError
from framework.export import Artifact
from framework.inference.cache import ROOT
from framework.inference.image_predictor import ImagePredictor
from framework.vision import boxes as vision_boxes
from framework.vision.sample import Sample
from zoo.api import find_artifact, image_predictor

CONFIGS = ROOT / "configs" / "detection"
PACKAGES = ("detection", "zoo", "framework")
THRESHOLD = 0.5


class ObjectDetector:
    """Finds objects; made by `predictor`. Safe to call from several threads.

    A call takes a path, bytes, a file, an array or a PIL image and gives a DetectionResult, of a list of them a list.

    Args:
        model: Of one picture, or one tile of it.
        labels: The names of the classes.
        category_ids: The data set's own numbers of the classes, where it has some.
        slicing: How pictures are cut into tiles; None: they are not.
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

    def results(self, pictures: Iterable[tuple[np.ndarray, str]]) -> Iterator[DetectionResult]:
        """One result for each (image [H, W, 3] uint8 RGB, source), in order. Memory does not grow with their number."""
        if self.slicing is None:
            return self.model.results(pictures)
        return sliced(self.model.results, pictures, self.slicing)

    def pages(self, items: Iterable[tuple[np.ndarray, str, int]]) -> Iterator[DetectionResult]:
        """`results` of (image, source, number). With tracking the pictures are the frames of one video."""
        return self.frames(items, ByteTrackOptions.frame_rate)

    def frames(
        self, items: Iterable[tuple[np.ndarray, str, int]], frame_rate: float
    ) -> Iterator[DetectionResult]:
        """`pages` of a video of so many frames per second. Each call begins with no tracks."""
        results = self.results((picture, source) for picture, source, _ in items)
        if self.tracking is None:
            return results
        return tracked(results, replace(self.tracking, frame_rate=frame_rate))

    def saving(self, stem: str, files: Sequence[str] | None = None) -> CocoFile | MotFile:
        """The one file for the results of these pictures, or of a video, which has no `files`."""
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


def predictor(
    model: str | os.PathLike[str],
    *,
    device: str | None = None,
    precision: str = "auto",
    threshold: float | None = None,
    batch_size: int | None = None,
    slicing: Slicing | None = None,
    tracking: ByteTrackOptions | None = None,
    overrides: Sequence[str] = (),
) -> ObjectDetector:
    """An object that finds objects: `detect("a.jpg").boxes`.

    Args:
        model: The name of a config in configs/detection, a config file, or an artifact folder.
        device: "cpu", "gpu", "gpu:1", …; None is jax's default.
        precision: "float32", "bfloat16" or "auto".
        threshold: The least score of a box, 0.5 without it. With `tracking` the tracker's thresholds decide instead.
        batch_size: Pictures, or tiles of them, that run together.
        slicing: Cut pictures into tiles.
        tracking: Follow objects over the frames of a video.
        overrides: Settings of the config, as `-o` of the tools.

    Raises:
        InputError: no such model, or the threshold is out of range. HubError: weights are neither here nor reachable.
    """
    least = THRESHOLD if threshold is None else threshold
    if not 0 <= least <= 1:
        raise InputError("a score cannot be that", where="threshold", received=threshold, allowed="0 to 1")
    if tracking is not None:
        least = tracking.low
    artifact = find_artifact(model, CONFIGS, tuple(overrides), export_artifact)
    if artifact.config.get("domain") != "detection" or "labels" not in artifact.config:
        raise FormatError(
            "this artifact does not detect objects",
            where=str(model),
            received=f"domain: {artifact.config.get('domain')}",
            allowed="one that tools/export_model.py wrote from a config of configs/detection",
        )
    labels = tuple(artifact.config["labels"])

    def detected(outputs: dict[str, np.ndarray], sample: Sample, picture: np.ndarray) -> DetectionResult:
        boxes = interpret(outputs, sample, labels, least)
        return DetectionResult(str(sample.id), picture.shape[:2], boxes, picture)

    runs = image_predictor(artifact, detected, device, precision, batch_size=batch_size, packages=PACKAGES)
    ids = artifact.config.get("category_ids")
    return ObjectDetector(runs, labels, None if ids is None else tuple(ids), slicing, tracking)


def interpret(
    outputs: dict[str, np.ndarray], sample: Sample, labels: tuple[str, ...], threshold: float
) -> tuple[Box, ...]:
    """The boxes of a program's outputs in pixels of the source and inside of it, as they come: best first.

    Args:
        outputs: "boxes" [K, 4] xyxy in pixels of the sample's image, "scores" [K], "labels" [K].
        threshold: Boxes with a lower score are left out, as are those with a score of 0, which is padding.
    """
    missing = {"boxes", "scores", "labels"} - outputs.keys()
    if missing:
        raise FormatError(
            "this program does not detect objects",
            received=f"outputs {', '.join(sorted(outputs))}",
            allowed="boxes, scores, labels",
        )
    scores = np.asarray(outputs["scores"], np.float64)
    boxes = np.asarray(outputs["boxes"], np.float64)
    if sample.warp is not None:
        boxes = sample.warp.inverse().boxes(boxes)
    boxes = vision_boxes.clip(boxes, sample.source_size or sample.size_hw)
    kept = (scores >= threshold) & (scores > 0) & (vision_boxes.area(boxes) > 0)
    return tuple(
        Box(labels[i] if i < len(labels) else str(i), i, score, (x0, y0, x1, y1))
        for i, score, (x0, y0, x1, y1) in zip(
            outputs["labels"][kept].tolist(), scores[kept].tolist(), boxes[kept].tolist()
        )
    )


def open_predictor(
    config: str | None,
    model_dir: str | None,
    device: str | None,
    precision: str,
    overrides: tuple[str, ...],
    *,
    threshold: float | None = None,
    batch_size: int | None = None,
    slice_infer: bool = False,
    slice_size: Sequence[int] | None = None,
    overlap_ratio: Sequence[float] | None = None,
    combine_method: Any = None,
    match_metric: Any = None,
    match_threshold: float | None = None,
    tracker: str | None = None,
) -> ObjectDetector:
    """What tools/infer.py runs; the keywords are its options of the same names. Raises: ConfigError."""
    given = {
        "size_hw": None if slice_size is None else tuple(slice_size),
        "overlap_hw": None if overlap_ratio is None else tuple(overlap_ratio),
        "method": combine_method,
        "metric": match_metric,
        "threshold": match_threshold,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if given and not slice_infer:
        raise ConfigError(
            "nothing is sliced",
            received="an option of sliced inference",
            fix="add --slice_infer",
        )
    tracking = None
    if tracker is not None:
        if tracker != "bytetrack":
            raise ConfigError("there is no such tracker", received=tracker, allowed="bytetrack")
        high = THRESHOLD if threshold is None else threshold
        tracking = ByteTrackOptions(high=high, low=min(0.1, high), new=min(1.0, high + 0.1))
    return predictor(
        model_dir if model_dir is not None else str(config),
        device=device,
        precision=precision,
        threshold=threshold,
        batch_size=batch_size,
        slicing=Slicing(**given) if slice_infer else None,
        tracking=tracking,
        overrides=overrides,
    )


def export_artifact(config: str, overrides: tuple[str, ...]) -> Artifact:
    """What tools/export_model.py writes. The data set's own numbers of the classes go with it, where it is here."""
    from framework.config import load
    from framework.engine.experiment import bind_experiment
    from zoo.export import export_experiment

    artifact = export_experiment(Path(config), overrides)
    data = bind_experiment(load(config, overrides)).data
    for dataset in (feed.dataset for feed in (data.eval, data.train) if feed is not None):
        with contextlib.suppress(
            OarError
        ):  # weights with labels of their own are exported without their data
            ids = getattr(dataset, "category_ids", ())
            if ids and list(dataset.class_names) == artifact.config["labels"]:
                artifact.config["category_ids"] = list(ids)
                break
    return artifact
