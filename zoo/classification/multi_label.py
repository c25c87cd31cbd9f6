"""Images with several classes each, or with none: the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config.registry import register
from framework.core.errors import ConfigError, InputError
from framework.core.types import JSON
from framework.engine.multi_label_scores import MultiLabelScores
from framework.engine.task import Batch, Losses, Metric, Task
from framework.nn import functional as F
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from zoo.classification.results import draw_first


@register("task")
@dataclass(frozen=True)
class MultiLabelClassification(Task[Sample, nn.Layer]):
    """Any number of classes an image: binary cross-entropy on the logits [N, num_classes] of a model, a class alone.

    Attributes:
        threshold: The probability from which a class counts as there, in scores and in results.
        max_labels: The most classes of an image.
        auxiliary_weight: Of the loss of each further classifier, where a model gives a tuple of logits in training.
    """

    label_arrays: ClassVar[tuple[str, ...]] = ("label",)

    normalize: Normalize = field(default_factory=Normalize)
    threshold: float = 0.5
    max_labels: int = 32
    auxiliary_weight: float = 0.3

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1 or self.max_labels < 1:
            raise ConfigError(
                "a setting of the classification is out of range",
                received=f"threshold {self.threshold}, max_labels {self.max_labels}",
                allowed="0 < threshold < 1, max_labels from 1",
            )

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        """`label` [max_labels] int32: class indices, then -1."""
        if sample.labels is None or sample.labels.ndim != 1 or len(sample.labels) > self.max_labels:
            raise InputError(
                "a sample has no list of classes, or too many",
                where=sample.id,
                received="no labels" if sample.labels is None else f"labels {list(sample.labels.shape)}",
                allowed=f"up to {self.max_labels} class indices",
                fix="set task.max_labels",
            )
        label = np.full(self.max_labels, -1, np.int32)
        label[: len(sample.labels)] = sample.labels
        return {"image": sample.image, "label": label}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        outputs = jax.tree.leaves(model(self.normalize(batch["image"])))
        target = jax.nn.one_hot(batch["label"], outputs[0].shape[-1]).max(axis=1)
        first, *inner = (
            F.binary_cross_entropy_with_logits(logits.astype(jnp.float32), target) for logits in outputs
        )
        right = ((outputs[0] > 0) == (target > 0)).all(axis=-1).mean(dtype=jnp.float32)
        return Losses(sum((self.auxiliary_weight * loss for loss in inner), first), {"exact_match": right})

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "scores": {"meaning": "probability of each class by itself", "axis": "labels", "range": [0, 1]}
        }

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"scores": probabilities [N, num_classes], each of its own}."""
        return {"scores": jax.nn.sigmoid(model(self.normalize(inputs["image"])).astype(jnp.float32))}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"multi_label": MultiLabelScores(self.threshold)}

    def visualize(
        self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray], labels: tuple[str, ...]
    ) -> np.ndarray:
        """The first image of a batch with its best classes, [H, W, 3] uint8 RGB."""
        return draw_first(outputs, batch, labels)
