"""Object detection: boxes with a class and a score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import jax
import numpy as np

from detection.contracts import Targets
from framework.config import Kind, register
from framework.core.errors import ConfigError
from framework.engine.task import Batch, Losses, Metric, check_classes
from framework.nn.layer import Layer
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from framework.vision.warp import Warp


@register("task")
@dataclass(frozen=True)
class ObjectDetection:
    """Trains and runs a model that keeps to `detection.contracts.Detector`.

    Attributes:
        max_objects: Room for the objects of an image. Training leaves out those beyond it, first those to ignore; an
            evaluation ends with an error where an image has more.
        metric: What is reported.
    """

    normalize: Normalize = field(default_factory=Normalize)
    max_objects: int = 100
    metric: Annotated[Any, Kind("metric")] | None = None

    def __post_init__(self) -> None:
        if self.max_objects < 1:
            raise ConfigError("max_objects is too small", received=self.max_objects, allowed="1 or more")

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        """Besides image and objects what brings boxes back to the source: `matrix`, and its `size` (height, width).

        `left_out` counts the objects for which there was no room.
        """
        count = 0 if sample.boxes is None else len(sample.boxes)
        valid = np.ones(count, bool) if sample.valid is None else sample.valid
        order = np.argsort(~valid, kind="stable")[: self.max_objects]
        boxes = np.zeros((self.max_objects, 4), np.float32)
        labels = np.zeros(self.max_objects, np.int32)
        kinds = np.zeros(self.max_objects, np.int8)  # 0 padding, 1 an object, 2 one to ignore
        areas = np.zeros(self.max_objects, np.float32)  # in source pixels
        if count:
            assert sample.boxes is not None and sample.labels is not None
            boxes[: len(order)] = sample.boxes[order]
            labels[: len(order)] = sample.labels[order]
            kinds[: len(order)] = np.where(valid[order], 1, 2)
            if sample.areas is not None:
                areas[: len(order)] = sample.areas[order]
        warp = sample.warp or Warp.identity(sample.size_hw)
        return {
            "image": sample.image,
            "boxes": boxes,
            "labels": labels,
            "kinds": kinds,
            "left_out": np.asarray(count - len(order), np.int32),
            **({} if sample.areas is None else {"areas": areas}),
            "matrix": np.linalg.inv(warp.matrix).astype(np.float32),
            "size": np.asarray(sample.source_size or sample.size_hw, np.int32),
        }

    def loss(self, model: Layer, batch: Batch) -> Losses:
        targets = Targets(batch["boxes"], batch["labels"], batch["kinds"] == 1, batch["step"])
        return model.loss(self.normalize(batch["image"]), targets)

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"boxes" [N, K, 4] xyxy in pixels of the input, "scores" [N, K], "labels" [N, K]}, best first."""
        return model.detect(self.normalize(inputs["image"]))._asdict()

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"metric": self.metric.start(labels)} if self.metric is not None else {}

    def check(self, model: Layer, labels: tuple[str, ...]) -> None:
        check_classes(model, labels)
