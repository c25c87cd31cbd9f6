"""Object detection: boxes with a class and a score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import jax
import numpy as np

from detection.contracts import Detector, MetricConfig, Targets
from framework.config import Kind, register
from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, Metric, Task
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from framework.vision.warp import Warp


def pad_rows(values: np.ndarray, room: int, dtype: type = np.float32) -> np.ndarray:
    """[K, ...] to [room, ...], with zeros at the end."""
    out = np.zeros((room, *values.shape[1:]), dtype)
    out[: len(values)] = values
    return out


def pack_objects(
    sample: Sample, room: int, preferred: np.ndarray | None = None
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(rows of the objects for which there is room, arrays of image and objects).

    Those that are `preferred` [K] bool and not to ignore come first. The arrays are all of a packed sample but the
    labels and keypoints.
    """
    count = 0 if sample.boxes is None else len(sample.boxes)
    valid = np.ones(count, bool) if sample.valid is None else sample.valid
    rows = np.argsort(~(valid if preferred is None else valid & preferred), kind="stable")[:room]
    boxes = np.zeros((0, 4)) if sample.boxes is None else sample.boxes[rows]
    warp = sample.warp or Warp.identity(sample.size_hw)
    return rows, {
        "image": sample.image,
        "boxes": pad_rows(boxes, room),
        # 0 padding, 1 an object, 2 one to ignore
        "kinds": pad_rows(np.where(valid[rows], 1, 2), room, np.int8),
        "left_out": np.asarray(count - len(rows), np.int32),
        **({} if sample.areas is None else {"areas": pad_rows(sample.areas[rows], room)}),  # in source pixels
        "matrix": np.linalg.inv(warp.matrix).astype(np.float32),
        "size": np.asarray(sample.source_size or sample.size_hw, np.int32),
    }


@register("task")
@dataclass(frozen=True)
class ObjectDetection(Task[Sample, Detector]):
    """Trains and runs a model that keeps to `detection.contracts.Detector`.

    Attributes:
        max_objects: Room for the objects of an image. Training leaves out those beyond it, first those to ignore; an
            evaluation ends with an error where an image has more.
        metric: What is reported.
    """

    label_arrays: ClassVar[tuple[str, ...]] = ("labels",)

    normalize: Normalize = field(default_factory=Normalize)
    max_objects: int = 100
    metric: Annotated[MetricConfig, Kind("metric")] | None = None

    def __post_init__(self) -> None:
        if self.max_objects < 1:
            raise ConfigError("max_objects is too small", received=self.max_objects, allowed="1 or more")

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        """Besides image and objects what brings boxes back to the source: `matrix`, and its `size` (height, width).

        `left_out` counts the objects for which there was no room.
        """
        rows, packed = pack_objects(sample, self.max_objects)
        labels = np.zeros(0) if sample.labels is None else sample.labels[rows]
        return packed | {"labels": pad_rows(labels, self.max_objects, np.int32)}

    def loss(self, model: Detector, batch: Batch) -> Losses:
        targets = Targets(batch["boxes"], batch["labels"], batch["kinds"] == 1, batch["step"])
        return model.loss(self.normalize(batch["image"]), targets)

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "boxes": {"format": "xyxy", "unit": "pixels of the input image", "order": "best first"},
            "scores": {"meaning": "of each box; 0 is padding", "range": [0, 1]},
            "labels": {"meaning": "class of each box, as a number in labels"},
        }

    def infer(self, model: Detector, inputs: Batch) -> dict[str, jax.Array]:
        """{"boxes" [N, K, 4] xyxy in pixels of the input, "scores" [N, K], "labels" [N, K]}, best first."""
        return model.detect(self.normalize(inputs["image"]))._asdict()

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"metric": self.metric.start(labels)} if self.metric is not None else {}
