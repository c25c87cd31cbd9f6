"""`predictor(...)`: the short way in to detectors, on images whole and sliced, and on videos with tracking.

from detection import predictor

detect = predictor("picodet_s_320_coco", threshold=0.4)
print([box.label for box in detect("street.jpg").boxes])
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from detection.detector import ObjectDetector
from detection.pose_api import POSE, KeypointMeta, pose_predictor
from detection.results import Box, DetectionResult
from detection.slicing import Slicing
from detection.tracking.bytetrack import ByteTrackOptions
from framework.core.errors import ConfigError, FormatError, InputError, OarError
from framework.export import Artifact
from framework.inference.cache import ROOT
from framework.vision import boxes as vision_boxes
from framework.vision.sample import Sample
from zoo.api import find_artifact, image_predictor

CONFIGS = ROOT / "configs" / "detection"
PACKAGES = ("detection", "zoo", "framework")
THRESHOLD = 0.5


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
    detector: str | os.PathLike[str] | ObjectDetector | None = None,
    det_threshold: float | None = None,
) -> ObjectDetector:
    """An object that finds objects, or people and their keypoints: `detect("a.jpg").boxes`.

    Args:
        model: The name of a config in configs/detection, a config file, or an artifact folder.
        device: "cpu", "gpu", "gpu:1", …; None is jax's default.
        precision: "float32", "bfloat16" or "auto".
        threshold: The least score of a box, 0.5 without it, of a person with keypoints 0.2. With `tracking` the
        tracker's
            thresholds decide instead.
        batch_size: Images, or tiles of them, that run together.
        slicing: Cut images into tiles.
        tracking: Follow objects over the frames of a video.
        overrides: Settings of the config, as `-o` of the tools.
        detector: What finds people for a model that sees one person's crop: as `model`, or a predictor. Slicing and
            tracking are then the detector's.
        det_threshold: `threshold` of that detector.

    Raises:
        InputError: no such model, or a threshold is out of range. HubError: weights are neither here nor reachable.
        ConfigError: a pose model needs a detector and has none, or has one and needs none.
    """
    for name, value in (("threshold", threshold), ("det_threshold", det_threshold)):
        if value is not None and not 0 <= value <= 1:
            raise InputError("a score cannot be that", where=name, received=value, allowed="0 to 1")
    artifact = find_artifact(model, CONFIGS, tuple(overrides), "does not detect objects", export_artifact)
    if POSE in artifact.config:

        def opened() -> ObjectDetector:
            if isinstance(detector, ObjectDetector):
                return detector
            return predictor(
                detector,  # pyright: ignore[reportArgumentType]
                device=device,
                precision=precision,
                threshold=det_threshold,
                slicing=slicing,
                tracking=tracking,
            )

        return pose_predictor(
            artifact,
            device,
            precision,
            threshold=threshold,
            batch_size=batch_size,
            sliced=slicing is not None,
            tracking=tracking,
            detector=None if detector is None else opened,
            packages=PACKAGES,
        )
    if detector is not None:
        raise ConfigError(
            "this model finds objects itself, and no keypoints",
            where=str(model),
            received="a detector of people",
            fix="leave out --det_model_dir, or name a pose model first",
        )
    least = THRESHOLD if threshold is None else threshold
    if tracking is not None:
        least = tracking.low
    labels = tuple(artifact.config["labels"])

    def detected(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> DetectionResult:
        boxes = interpret(outputs, sample, labels, least)
        return DetectionResult(str(sample.id), image.shape[:2], boxes, image)

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
    det_model_dir: str | None = None,
    det_threshold: float | None = None,
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
    if det_threshold is not None and det_model_dir is None:
        raise ConfigError(
            "no detector looks for people first", received="--det_threshold", fix="add --det_model_dir"
        )
    tracking = None
    if tracker is not None:
        if tracker != "bytetrack":
            raise ConfigError("there is no such tracker", received=tracker, allowed="bytetrack")
        of_boxes = threshold if det_model_dir is None else det_threshold
        high = THRESHOLD if of_boxes is None else of_boxes
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
        detector=det_model_dir,
        det_threshold=det_threshold,
    )


def export_artifact(config: str, overrides: tuple[str, ...]) -> Artifact:
    """What tools/export_model.py writes. The data set's own numbers of the classes go with it, where it is here.

    Of a pose model the labels are the keypoints; its lines go with it too. Without the data set these are lines between
    keypoints of such names, and the objects are people, which COCO's files number 1.
    """
    from detection.pose_tasks import PoseEstimation
    from framework.config import load
    from framework.engine.experiment import bind_experiment
    from zoo.export import export_experiment

    artifact = export_experiment(Path(config), overrides)
    experiment = bind_experiment(load(config, overrides))
    labels, pose = artifact.config["labels"], isinstance(experiment.task, PoseEstimation)
    if pose:
        artifact.config[POSE] = KeypointMeta.named(labels).plain()
    feeds = (experiment.data.eval, experiment.data.train)
    for dataset in (feed.dataset for feed in feeds if feed is not None):
        # Weights with labels of their own are exported without their data.
        with contextlib.suppress(OarError):
            ids = getattr(dataset, "category_ids", ())
            if ids and list(dataset.class_names) == labels:
                artifact.config["category_ids"] = list(ids)
                if pose:
                    here = KeypointMeta(
                        dataset.object_name, dataset.skeleton, KeypointMeta.named(labels).flip_pairs
                    )
                    artifact.config[POSE] = here.plain()
                break
    return artifact
