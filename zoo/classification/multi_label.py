"""Images with several classes each, or with none: the data set, the task and its scores."""

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


class MultiLabelScores:
    """mAP, the mean over the classes that occur of their average precision, and of classes from a threshold on F1,
    precision and recall of all together, the mean F1 of the classes that occur, and the share of images whose classes
    are all right.

    Average precision is the sum of precision times the step of recall down the ranking, as scikit-learn's
    average_precision_score has it; images of one score count together.
    """

    higher_is_better = True

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._scores: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        self._scores.append(np.asarray(outputs["scores"], np.float64))
        self._labels.append(np.asarray(batch["label"]))

    def result(self) -> dict[str, float]:
        if not self._scores:
            return {"mAP": 0.0}
        scores, labels = np.concatenate(self._scores), np.concatenate(self._labels)
        classes = max(scores.shape[1], int(labels.max(initial=-1)) + 1)  # some unknown to the model
        scores = np.pad(scores, ((0, 0), (0, classes - scores.shape[1])))
        truth = np.zeros((len(scores), classes + 1), bool)
        np.put_along_axis(truth, np.where(labels < 0, classes, labels), True, axis=1)
        truth = truth[:, :classes]
        predicted = scores >= self.threshold
        hits, misses = (truth & predicted).sum(axis=0), (truth & ~predicted).sum(axis=0)
        alarms = (~truth & predicted).sum(axis=0)
        occurs = truth.any(axis=0)
        precisions = [average_precision(scores[:, c], truth[:, c]) for c in np.flatnonzero(occurs)]
        f1 = _share(2 * hits, 2 * hits + misses + alarms)
        return {
            "mAP": float(np.mean(precisions)) if precisions else 0.0,
            "f1": float(_share(2 * hits.sum(), 2 * hits.sum() + misses.sum() + alarms.sum())),
            "f1_macro": float(f1[occurs].mean()) if occurs.any() else 0.0,
            "precision": float(_share(hits.sum(), hits.sum() + alarms.sum())),
            "recall": float(_share(hits.sum(), hits.sum() + misses.sum())),
            "exact_match": float((predicted == truth).all(axis=1).mean()),
        }


def average_precision(scores: np.ndarray, truth: np.ndarray) -> float:
    """Of scores [N] and truth [N] bool with a true one or more."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(truth[order])
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # of each run of equal scores
    precision, recall = hits[last] / (last + 1), hits[last] / hits[-1]
    return float((np.diff(recall, prepend=0) * precision).sum())


def _share(count: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(count, whole, out=np.zeros(np.shape(count)), where=np.asarray(whole) > 0)
