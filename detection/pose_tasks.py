"""Pose estimation: the keypoints of all people on an image, or of the one person of a crop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import jax
import numpy as np

from detection.contracts import MetricConfig, PoseEstimator, PoseTargets
from detection.tasks import pack_objects, pad_rows
from framework.config import Kind, register
from framework.core.errors import ConfigError
from framework.core.model_config import setting_of
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, Metric, Task
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample

# The models number pixels, as COCO's annotations and all published weights do; in our coordinates a pixel's centre is
# half a pixel further to the right and down. Unlabelled keypoints are moved too: their visibility is what is read.
_CENTRE = np.array([0.5, 0.5, 0.0], np.float32)


@register("task")
@dataclass(frozen=True)
class PoseEstimation(Task[Sample, PoseEstimator]):
    """Trains and runs a model that keeps to `detection.contracts.PoseEstimator`. Its classes are the keypoints.

    Attributes:
        max_people: People of an image that are trained on; those with labelled keypoints come first. 1 for a model that
            sees one person's crop.
        metric: What is reported.
    """

    normalize: Normalize = field(default_factory=Normalize)
    max_people: int = 30
    metric: Annotated[MetricConfig, Kind("metric")] | None = None

    def __post_init__(self) -> None:
        if self.max_people < 1:
            raise ConfigError("max_people is too small", received=self.max_people, allowed="1 or more")

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        """What detection packs, and the keypoints; `image_id` [2] is the upper and the lower 31 bits of the number.

        `left_out` counts the people for whom there was no room, which an evaluation does not take.
        """
        if sample.keypoints is None or sample.boxes is None or not isinstance(sample.id, int):
            raise ConfigError(
                "this data set has no people with keypoints",
                where="data",
                received=f"sample {sample.id!r}",
                allowed="keypoints, boxes and images with numbers, as of CocoPose",
                fix="dataset: {type: CocoPose, ...}",
            )
        labelled = np.any(sample.keypoints[..., 2] > 0, axis=1)
        rows, packed = pack_objects(sample, self.max_people, labelled)
        return packed | {
            "keypoints": pad_rows(sample.keypoints[rows], self.max_people),
            "labels": np.zeros(self.max_people, np.int32),
            **({} if sample.mask is None else {"ignore": ~sample.mask.astype(bool)}),
            "image_id": np.array([sample.id >> 31, sample.id & (2**31 - 1)], np.int32),
        }

    def loss(self, model: PoseEstimator, batch: Batch) -> Losses:
        """Of people to ignore, and of those without a labelled keypoint, no loss is taken."""
        keypoints = batch["keypoints"]
        valid = (batch["kinds"] == 1) & (keypoints[..., 2] > 0).any(axis=-1)
        targets = PoseTargets(keypoints - _CENTRE, batch["boxes"], valid, batch.get("ignore"))
        return model.loss(self.normalize(batch["image"]), targets)

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "keypoints": {"format": "x, y, score", "axis": "labels", "unit": "pixels of the input image"},
            "scores": {"meaning": "of each person; 0 is padding", "range": [0, 1], "order": "best first"},
        }

    def infer(self, model: PoseEstimator, inputs: Batch) -> dict[str, jax.Array]:
        """{"keypoints" [N, K, J, 3] (x, y, score) in pixels of the input, "scores" [N, K]}, best first."""
        poses = model.detect(self.normalize(inputs["image"]))
        return {"keypoints": poses.keypoints + _CENTRE, "scores": poses.scores}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"metric": self.metric.start(labels)} if self.metric is not None else {}

    def check(self, model: PoseEstimator, labels: tuple[str, ...]) -> None:
        count = setting_of(model, "num_keypoints", int)
        if count is None:
            raise ConfigError(
                "this model finds no keypoints",
                where="model",
                received=type(model).__name__,
                allowed="a model with num_keypoints, such as TopDownHRNet",
            )
        if labels and count != len(labels):
            raise ConfigError(
                "the model and the data have different numbers of keypoints",
                where="model.num_keypoints",
                received=f"{count} for the {len(labels)} keypoints {', '.join(labels[:5])}",
                allowed=str(len(labels)),
                fix=f"-o model.num_keypoints={len(labels)}",
            )
