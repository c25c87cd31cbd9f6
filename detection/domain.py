"""Detection as a domain: boxes and keypoints, on images whole and sliced, and on videos with tracking."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from detection.comparison import compare_detections
from detection.detector import THRESHOLD, DetectionOptions, ObjectDetector, configure_detector
from detection.paddlex_routes import ROUTES
from detection.pose_predictor import POSE, KeypointMeta, open_pose_predictor
from detection.results import Box, DetectionResult
from framework.core.errors import ConfigError, OarError
from framework.core.types import JSON
from framework.export import Artifact
from framework.inference import Runtime
from framework.io.data_check import Observe, Report
from framework.io.dataset import Dataset
from framework.vision.sample import Sample
from framework.workflow import Domain, open_predictor
from framework.workflow.domain.capabilities import ResultReader, WebExport
from framework.workflow.domain.comparison import ResultComparison
from framework.workflow.domain.options import choose_value_range, select_classes
from framework.workflow.open.predict import make_predictor_function
from framework.workflow.runners.image_runner import open_runner, read_boxes

if TYPE_CHECKING:
    from framework.engine.experiment import Experiment
    from framework.nn.layer import Layer

# What PaddleDetection's infer_cfg.yml calls a family, where that is not the model's name.
_PADDLE_ARCH = {
    "DINO": "DETR",
    "RTDETR": "DETR",
    "PPYOLOE": "YOLO",
    "PicoDet": "GFL",
    "PicoDetESNet": "GFL",
    "TopDownHRNet": "HRNet",
}


def describe_page(artifact: Artifact) -> Mapping[str, JSON]:
    """What a page in a browser needs to find objects. Raises: ConfigError, of a model of keypoints."""
    from framework.workflow.export.web.pages import page_transforms

    if POSE in artifact.config:
        raise ConfigError(
            "the page draws boxes and no keypoints", where=artifact.source, received="a model of keypoints"
        )
    return {
        "transforms": page_transforms(artifact, DOMAIN.packages),
        "labels": list(artifact.setting("labels")),
        "threshold": THRESHOLD,
    }


class DetectionDomain(Domain[DetectionOptions]):
    """Objects, people with keypoints, tracks."""

    name = "detection"
    options = DetectionOptions
    suite = "paddledet"
    capabilities = (
        WebExport("boxes", describe_page),
        ResultComparison("boxes", 1.0, compare_detections),
        ResultReader(DetectionResult.from_dict),
        ROUTES,
    )
    program_modules = (
        "detection.models",
        "detection.layers",
        "detection.tasks",
        "detection.boxes",
        "detection.contracts",
    )

    def open(self, artifact: Artifact, options: DetectionOptions, runtime: Runtime) -> ObjectDetector:
        """Raises: ConfigError, where a pose model needs a detector and has none, or has one and needs none."""
        value_range = choose_value_range(options.value_range, artifact)
        if POSE in artifact.config:
            if options.classes is not None:
                raise ConfigError(
                    "a pose model has one class of objects",
                    where=str(artifact.config.get("name")),
                    received="--classes",
                    fix="leave --classes out",
                )
            detector = None if options.detector is None else self._open_detector(options, runtime)
            poses = open_pose_predictor(artifact, options, runtime, self.packages, detector)
            poses.value_range = value_range
            configure_detector(poses, options)
            return poses
        if options.detector is not None:
            raise ConfigError(
                "this model finds objects itself, and no keypoints",
                where=str(artifact.config.get("name")),
                received="a detector of people",
                fix="leave out --det_model_dir, or name a pose model first",
            )
        tracking = options.make_tracking()
        least_shown = THRESHOLD if options.threshold is None else options.threshold
        least = least_shown if tracking is None else min(least_shown, tracking.low)
        labels = artifact.setting("labels")
        selected = select_classes(options.classes, labels, str(artifact.config.get("name")))

        def detected(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> DetectionResult:
            boxes = interpret(outputs, sample, labels, least)
            if selected is not None:
                boxes = tuple(box for box in boxes if box.category_id in selected)
            height, width = image.shape[:2]
            return DetectionResult(boxes, source=str(sample.id), width=width, height=height, image=image)

        runner = open_runner(artifact, detected, runtime, self.packages, options.batch_size)
        ids = artifact.setting("category_ids", tuple[int, ...] | None, None)
        detector = ObjectDetector(runner, labels, ids, options.make_slicing(), tracking, least_shown)
        detector.value_range, detector.reads_windows = value_range, detector.slicing is not None
        configure_detector(detector, options)
        return detector

    def _open_detector(self, options: DetectionOptions, runtime: Runtime) -> ObjectDetector:
        """What finds people for a model that sees one person's crop; slicing and tracking are its own."""
        if isinstance(options.detector, ObjectDetector):
            return options.detector
        people = replace(
            options,
            threshold=options.det_threshold,
            batch_size=None,
            detector=None,
            det_threshold=None,
            tracker=None,
            tracking=options.make_tracking(),
        )
        settings = {name: value for name, value in vars(people).items() if value is not None}
        detector = open_predictor(str(options.detector), domain=self.name, runtime=runtime, options=settings)
        return cast(ObjectDetector, detector)

    def check_dataset(self, dataset: Dataset, observe: Observe) -> Report:
        from detection.data.check import validate_any  # what runs artifacts loads no data sets

        return validate_any(dataset, observe)

    def describe(self, experiment: Experiment, model: Layer, labels: tuple[str, ...]) -> Mapping[str, JSON]:
        """What Paddle's programs draw and call the family; the data set's own numbers of the classes, where it is here.

        Of a pose model the labels are the keypoints; its lines go with it too. Without the data set these are lines
        between keypoints of such names, and the objects are people, which COCO's files number 1.
        """
        from detection.pose_tasks import PoseEstimation

        facts: dict[str, JSON] = {"draw_threshold": THRESHOLD}
        if (arch := _PADDLE_ARCH.get(type(model).__name__)) is not None:
            facts["arch"] = arch
        pose = isinstance(experiment.task, PoseEstimation)
        if pose:
            facts[POSE] = KeypointMeta.from_names(labels).plain()
        feeds = (experiment.data.eval, experiment.data.train)
        datasets: list[Any] = [feed.dataset for feed in feeds if feed is not None]  # of any kind: see getattr
        for dataset in datasets:
            # Weights with labels of their own are exported without their data.
            with contextlib.suppress(OarError):
                ids = getattr(dataset, "category_ids", ())
                if ids and tuple(dataset.class_names) == labels:
                    facts["category_ids"] = list(ids)
                    if pose:
                        flips = KeypointMeta.from_names(labels).flip_pairs
                        facts[POSE] = KeypointMeta(dataset.object_name, dataset.skeleton, flips).plain()
                    break
        return facts


def interpret(
    outputs: dict[str, np.ndarray], sample: Sample, labels: tuple[str, ...], threshold: float
) -> tuple[Box, ...]:
    """The boxes of a program's outputs in pixels of the source and inside of it, as they come: best first.

    Args:
        outputs: "boxes" [K, 4] xyxy in pixels of the sample's image, "scores" [K], "labels" [K].
        threshold: Boxes with a lower score are left out, as are those with a score of 0, which is padding.
    """
    boxes = read_boxes(outputs, sample, threshold)
    return tuple(
        Box(labels[i] if i < len(labels) else str(i), i, score, (x0, y0, x1, y1))
        for i, score, (x0, y0, x1, y1) in zip(
            boxes.labels.tolist(), boxes.scores.tolist(), boxes.boxes.tolist(), strict=True
        )
    )


DOMAIN = DetectionDomain()
predictor = make_predictor_function(DOMAIN.name, DetectionOptions, ObjectDetector)
