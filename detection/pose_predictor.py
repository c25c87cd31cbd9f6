"""Predictors of poses: of all people at once, and of one person after the other, each found by a detector first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from detection.data import keypoints as keypoint_names
from detection.detector import DetectionOptions, ObjectDetector, track
from detection.results import Box, DetectionResult
from detection.tracking.counting import count_regions, note_times
from framework.config import plain
from framework.core.errors import ConfigError, FormatError
from framework.core.types import JSON
from framework.export import Artifact
from framework.inference import Runtime
from framework.vision import boxes as vision_boxes
from framework.vision.sample import Sample
from framework.vision.sample_transforms.affine_crop import CropToObject
from framework.workflow import ImageItem
from framework.workflow.runners.image_runner import ImageRunner, load_transforms, open_runner

POSE = "pose"
THRESHOLD = 0.2
_MIN_SCORE = (
    0.2  # keypoints with a lower score do not stretch a person's box; that of COCO's top-down evaluation
)


@dataclass(frozen=True)
class KeypointMeta:
    """What an artifact of a pose model tells of the keypoints that it finds.

    Attributes:
        category: What the objects with keypoints are called.
        skeleton: Pairs of keypoints that are joined by a line.
        flip_pairs: Pairs of keypoints that change places in a mirror.
    """

    category: str
    skeleton: tuple[tuple[int, int], ...]
    flip_pairs: tuple[tuple[int, int], ...]

    @classmethod
    def from_names(cls, names: Sequence[str]) -> KeypointMeta:
        """What the names of a person's keypoints tell."""
        return cls("person", keypoint_names.skeleton(names), keypoint_names.flip_pairs(names))

    def plain(self) -> JSON:
        """For an artifact's config."""
        return plain(self)

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> KeypointMeta:
        """From the config of an artifact."""
        return artifact.setting(POSE, cls)


class Pose(NamedTuple):
    """One person's keypoints in pixels of the source."""

    keypoints: np.ndarray
    """[J, 3] float64: x, y, score"""
    score: float


def interpret(outputs: dict[str, np.ndarray], sample: Sample) -> list[Pose]:
    """The people of a program's outputs, as they come: best first; without those that have a score of 0.

    Args:
        outputs: "keypoints" [K, J, 3] (x, y, score) in pixels of the sample's image, "scores" [K].

    Raises:
        FormatError: the outputs are others.
    """
    if not {"keypoints", "scores"} <= outputs.keys():
        raise FormatError(
            "this program does not find keypoints",
            received=f"outputs {', '.join(sorted(outputs))}",
            allowed="keypoints, scores",
        )
    keypoints = np.array(outputs["keypoints"], np.float64)
    keypoints[..., 2] = keypoints[..., 2].clip(0, 1)  # peaks of a heatmap may be a little beyond
    if sample.warp is not None:
        keypoints[..., :2] = sample.warp.inverse().points(keypoints[..., :2])
    scores = np.asarray(outputs["scores"], np.float64)
    return [Pose(keypoints[i], float(scores[i])) for i in np.flatnonzero(scores > 0)]


def person(pose: Pose, category: str, size_hw: tuple[int, int]) -> Box | None:
    """A box around the keypoints that are seen, or around all where none is, inside of the image.

    None where nothing is left of it.
    """
    visible = pose.keypoints[:, 2] > _MIN_SCORE
    xy = pose.keypoints[visible if visible.any() else slice(None), :2]
    bounds = vision_boxes.clip(np.concatenate([xy.min(axis=0), xy.max(axis=0)])[None], size_hw)
    if vision_boxes.area(bounds)[0] <= 0:
        return None
    x0, y0, x1, y1 = bounds[0].tolist()
    return Box(category, 0, pose.score, (x0, y0, x1, y1), keypoints=_triples(pose))


def _triples(pose: Pose) -> tuple[tuple[float, float, float], ...]:
    return tuple((x, y, score) for x, y, score in pose.keypoints.tolist())


class PoseDetector(ObjectDetector):
    """Finds the keypoints of all people of an image at once."""

    coco_name = "keypoint.json"


class TopDownDetector(PoseDetector):
    """Finds people first, and then the keypoints of each on a crop of its own. Boxes are those of the detector.

    Args:
        detector: Finds people, whole or on tiles, with tracks or without.
        crops: Gives the poses of a sample with one box.
        person_class: The index of the detector's class that has keypoints.
        keypoints, category_ids: Of the pose model.
        threshold: The least product of the scores of a box and of its pose.
    """

    def __init__(
        self,
        detector: ObjectDetector,
        crops: ImageRunner[list[Pose]],
        person_class: int,
        keypoints: KeypointMeta,
        category_ids: tuple[int, ...],
        threshold: float,
    ) -> None:
        super().__init__(detector.runner, (keypoints.category,), category_ids, threshold=threshold)
        self.detector, self.crops, self.wanted = detector, crops, person_class
        self.keypoints = keypoints

    def detect(self, items: Iterable[ImageItem]) -> Iterator[DetectionResult]:
        return self._add_poses(self._people(items))

    def predict_video(self, frames: Iterable[ImageItem], frame_rate: float) -> Iterator[DetectionResult]:
        times: deque[float | None] = deque()
        people = self._people(frames if self.counting is None else note_times(frames, times))
        if self.detector.tracking is not None:
            tracking = replace(self.detector.tracking, frame_rate=frame_rate)
            people = track(people, tracking, self.detector.threshold)
        posed = self._add_poses(people)
        return posed if self.counting is None else count_regions(posed, self.counting, frame_rate, times)

    def _people(self, items: Iterable[ImageItem]) -> Iterator[DetectionResult]:
        for one in self.detector.detect(items):
            yield replace(one, boxes=tuple(box for box in one.boxes if box.category_id == self.wanted))

    def _add_poses(self, results: Iterator[DetectionResult]) -> Iterator[DetectionResult]:
        # As many images at a time as the detector looks at: their people share batches, and those held are few.
        while group := list(islice(results, self.detector.runner.batch_size)):
            poses = self.crops.predict_samples(
                Sample(one.pixels, boxes=np.array([box.bbox], np.float32), id=one.source)
                for one in group
                for box in one.boxes
            )
            for one in group:
                posed = [self._with(box, next(poses)) for box in one.boxes]
                boxes = sorted((box for box in posed if box is not None), key=lambda box: -box.score)
                yield replace(one, boxes=tuple(boxes), skeleton=self.keypoints.skeleton)

    def _with(self, box: Box, poses: list[Pose]) -> Box | None:
        """The box with the pose on its crop; None where it has none, or a poor one."""
        if not poses or box.score * poses[0].score < self.threshold:
            return None
        return replace(
            box,
            label=self.keypoints.category,
            category_id=0,
            score=box.score * poses[0].score,
            keypoints=_triples(poses[0]),
        )


def open_pose_predictor(
    artifact: Artifact,
    options: DetectionOptions,
    runtime: Runtime,
    packages: Sequence[str],
    detector: ObjectDetector | None,
) -> ObjectDetector:
    """The predictor of an artifact of a pose model.

    Args:
        detector: Finds people, for a model that sees one person at a time.

    Raises:
        ConfigError: such a model has no detector, another one has; the detector does not know people; or a model that
            looks at whole images is to look at tiles.
    """
    keypoints, name = KeypointMeta.from_artifact(artifact), str(artifact.config.get("name"))
    ids = artifact.setting("category_ids", tuple[int, ...] | None, None) or (1,)
    least = THRESHOLD if options.threshold is None else options.threshold
    top_down = any(isinstance(one, CropToObject) for one in load_transforms(artifact, packages))
    if top_down:
        if detector is None:
            raise ConfigError(
                "this model sees one person at a time, and nothing finds them",
                where=name,
                received="no detector",
                allowed="an artifact or a config of a detector that knows the class " + keypoints.category,
                fix="--det_model_dir=..., or predictor(model, detector=...)",
            )

        def poses_of(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> list[Pose]:
            return interpret(outputs, sample)

        crops = open_runner(artifact, poses_of, runtime, packages, options.batch_size)
        person_class = _class_of(detector, keypoints.category)
        return TopDownDetector(detector, crops, person_class, keypoints, ids, least)
    sliced = options.make_slicing() is not None
    if detector is not None or sliced:
        raise ConfigError(
            "this model finds all people of an image at once",
            where=name,
            received="a detector of people" if detector is not None else "tiles of an image",
            fix="leave out " + ("--det_model_dir" if detector is not None else "--slice_infer"),
        )
    tracking = options.make_tracking()
    least_shown, least = least, least if tracking is None else min(least, tracking.low)

    def people_of(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> DetectionResult:
        height, width = image.shape[:2]
        people = [
            person(pose, keypoints.category, (height, width))
            for pose in interpret(outputs, sample)
            if pose.score >= least
        ]
        boxes = tuple(box for box in people if box is not None)
        return DetectionResult(
            boxes, keypoints.skeleton, source=str(sample.id), width=width, height=height, image=image
        )

    runner = open_runner(artifact, people_of, runtime, packages, options.batch_size)
    return PoseDetector(runner, (keypoints.category,), ids, None, tracking, least_shown)


def _class_of(detector: ObjectDetector, category: str) -> int:
    """The class of a detector that a pose model asks for: the one of this name, or its only one."""
    if category in detector.labels:
        return detector.labels.index(category)
    if len(detector.labels) == 1:
        return 0
    raise ConfigError(
        "this detector does not find what the pose model looks at",
        where="the detector",
        received=f"classes {', '.join(detector.labels[:5]) or 'without names'}",
        allowed=f"one with the class {category}, or with one class alone",
    )
