"""Semantic segmentation: a class for every pixel."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import Kind, register
from framework.core.errors import ConfigError, InputError
from framework.core.types import JSON
from framework.engine.class_weights import balance_classes
from framework.engine.task import Batch, Losses, Metric, Task
from framework.nn.layer import Layer
from framework.vision import draw
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from segmentation.contracts import CountedPixels, Loss, MetricConfig, PixelMean
from segmentation.losses import balance_loss
from segmentation.test_time_augmentation import TestTimeAugmentation

log = logging.getLogger("oar")


@dataclass(frozen=True)
class WeightedLoss:
    """The loss of one output of the model, and its share in the sum."""

    loss: Annotated[Loss, Kind("loss")]
    weight: float = 1.0


@register("task")
@dataclass(frozen=True)
class SemanticSegmentation(Task[Sample, Layer]):
    """Trains and runs a model that keeps to `segmentation.contracts.Segmenter`.

    Attributes:
        losses: One for each output that the model has in training, in their order.
        metric: What is reported; its first score chooses the best checkpoint.
    """

    label_arrays: ClassVar[tuple[str, ...]] = ("mask",)

    normalize: Normalize = field(default_factory=Normalize)
    losses: tuple[WeightedLoss, ...] = ()
    inference: TestTimeAugmentation = field(default_factory=TestTimeAugmentation)
    metric: Annotated[MetricConfig, Kind("metric")] | None = None

    def adapt(self, dataset: object) -> SemanticSegmentation:
        """With the weights of classes that losses leave to the training masks, which are read for them."""
        weights = functools.cache(lambda: _balance(dataset))
        return replace(
            self, losses=tuple(replace(one, loss=balance_loss(one.loss, weights)) for one in self.losses)
        )

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        if sample.mask is None or sample.mask.ndim != 2:
            raise InputError(
                "a sample has no classes of its pixels",
                where=sample.id,
                received="no mask" if sample.mask is None else f"{len(sample.mask)} masks of objects",
                allowed="one mask [H, W] of class indices",
            )
        return {"image": sample.image, "mask": sample.mask.astype(np.int32)}

    def loss(self, model: Layer, batch: Batch) -> Losses:
        outputs = model(self.normalize(batch["image"]))
        if len(outputs) != len(self.losses):
            raise ConfigError(
                "each output of the model has its loss",
                where="task.losses",
                received=f"{len(self.losses)} losses",
                allowed=f"{len(outputs)}, as many as {type(model).__name__} has outputs in training",
            )
        values = [one.loss(output, batch["mask"]) for one, output in zip(self.losses, outputs)]
        total = sum((one.weight * value for one, value in zip(self.losses, values)), jnp.float32(0))
        counts = (
            one.loss.count(output, batch["mask"])
            for one, output in zip(self.losses, outputs)
            if isinstance(one.loss, PixelMean)
        )
        # One number stands for all outputs: their losses mostly leave out the same pixels.
        count = next((count for count in counts if count is not None), None)
        return Losses(jnp.asarray(total), dict(zip(self._name_losses(), values)), count)

    def _name_losses(self) -> list[str]:
        """Of the losses, numbered where one comes twice."""
        names = [type(one.loss).__name__ for one in self.losses]
        return [
            name if names.count(name) == 1 else f"{name}_{names[:place].count(name) + 1}"
            for place, name in enumerate(names)
        ]

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        if self.inference.output == "scores":
            return {
                "scores": {
                    "meaning": "logit of each class of each pixel of the input image",
                    "axis": "labels",
                }
            }
        return {"labels": {"meaning": "class of each pixel of the input image, as a number in labels"}}

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"labels": [N, H, W] uint8}, or what `inference.output` says; of the sizes of the images."""

        def forward(images: jax.Array) -> jax.Array:
            return model(self.normalize(images))[0].astype(jnp.float32)

        return self.inference.on_device(forward, inputs["image"])

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"metric": self.metric.start(labels)} if self.metric is not None else {}

    def visualize(
        self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray], labels: tuple[str, ...]
    ) -> np.ndarray:
        """The first image of a batch under the classes that were found, [H, W, 3] uint8 RGB."""
        return draw.classes(batch["image"][0], outputs["labels"][0], ignore=None)


def _balance(dataset: object) -> tuple[float, ...]:
    """Raises: ConfigError, where the data set does not know its pixels."""
    if not isinstance(dataset, CountedPixels):
        raise ConfigError(
            "this data set does not know how many pixels its classes have",
            where="task.losses, weight",
            received=f"balanced, for {type(dataset).__name__}",
            allowed="a number for each class; or a data set with `count_pixels()`, such as MaskFolder",
        )
    log.info("counting the pixels of each class in %s, for weight: balanced", type(dataset).__name__)
    weights = balance_classes(dataset.count_pixels())
    log.info("weights of the classes: %s", ", ".join(f"{weight:.3g}" for weight in weights))
    return weights
