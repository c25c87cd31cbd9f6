"""Image classification: one class an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError, InputError
from framework.core.rng import next_key
from framework.core.types import JSON
from framework.engine.class_weights import (
    ClassWeights,
    check_class_weights,
    resolve_class_weights,
    sum_weights,
    weight_array,
)
from framework.engine.details import ClassReport
from framework.engine.task import Batch, Losses, Metric, Task
from framework.metric import top_k_correct
from framework.nn import functional as F
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from zoo.classification.results import draw_first


@register("task")
@dataclass(frozen=True)
class ImageClassification(Task[Sample, nn.Layer]):
    """Cross-entropy on the logits [N, num_classes] of a model, and in training on those of its inner classifiers.

    Attributes:
        topk: The accuracies that are reported; the first chooses the best checkpoint.
        label_smoothing: Share of the target that is spread over all classes.
        weight: What the loss of each class is multiplied with, before the mean by the weights: a list of numbers, or
            balanced, by how often the classes are in the training data.
        auxiliary_weight: Of the loss of each further classifier, where a model gives a tuple of logits in training.
            Source: PaddleClas ppcls/loss/googlenetloss.py
        mixup, cutmix: Alpha of the Beta distribution that mixes pairs of a batch; 0 is off. With both, each batch
            takes one of them at random. Source: https://arxiv.org/abs/1710.09412, https://arxiv.org/abs/1905.04899
        mix_steps: Pairs are mixed in the first so many training steps alone, so that the last ones see images as they
            are: timm's `mixup_off_epoch` times the steps of an epoch. None: in all.
    """

    label_arrays: ClassVar[tuple[str, ...]] = ("label",)

    normalize: Normalize = field(default_factory=Normalize)
    topk: tuple[int, ...] = (1, 5)
    label_smoothing: float = 0.0
    auxiliary_weight: float = 0.3
    mixup: float = 0.0
    cutmix: float = 0.0
    mix_steps: int | None = None
    weight: ClassWeights = None

    def __post_init__(self) -> None:
        if (
            not self.topk
            or min(self.topk) < 1
            or not 0 <= self.label_smoothing < 1
            or min(self.mixup, self.cutmix, self.mix_steps or 0) < 0
        ):
            raise ConfigError(
                "a setting of the classification is out of range",
                received=f"topk {list(self.topk)}, label_smoothing {self.label_smoothing}, mixup {self.mixup}, "
                f"cutmix {self.cutmix}, mix_steps {self.mix_steps}",
                allowed="topk from 1, 0 <= label_smoothing < 1, mixup, cutmix and mix_steps from 0",
            )

        check_class_weights(self.weight, "task.weight")

    def adapt(self, dataset: object) -> ImageClassification:
        return replace(self, weight=resolve_class_weights(self.weight, dataset, "task.weight"))

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        if sample.labels is None or sample.labels.ndim != 0:
            raise InputError(
                "a sample has no class",
                where=sample.id,
                received="no label" if sample.labels is None else f"{len(sample.labels)} labels",
                allowed="one class index for the whole image",
            )
        return {"image": sample.image, "label": np.asarray(sample.labels, np.int32)}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        images, label = self.normalize(batch["image"]), batch["label"]
        if self.mixup or self.cutmix:
            mixed, other, share = self._mix(images)
            if self.mix_steps is not None:
                goes_on = batch["step"] < self.mix_steps
                mixed, share = jnp.where(goes_on, mixed, images), jnp.where(goes_on, share, 1)
            images = mixed
            outputs = jax.tree.leaves(model(images))
            target = share * self._loss(outputs, label) + (1 - share) * self._loss(outputs, label[other])
        else:
            outputs = jax.tree.leaves(model(images))
            target = self._loss(outputs, label)
        hits = (outputs[0].argmax(axis=-1) == label).mean(dtype=jnp.float32)
        weight = weight_array(self.weight, outputs[0].shape[-1], "task.weight")
        # Mixed pairs change the order of the labels, not their sum.
        return Losses(target, {"accuracy": hits}, sum_weights(weight, label, self.label_smoothing))

    def _loss(self, outputs: list[jax.Array], label: jax.Array) -> jax.Array:
        """Of the logits of the model, and behind them of its inner classifiers."""
        weight = weight_array(self.weight, outputs[0].shape[-1], "task.weight")
        first, *inner = (
            F.cross_entropy(logits, label, weight, label_smoothing=self.label_smoothing) for logits in outputs
        )
        return sum((self.auxiliary_weight * loss for loss in inner), first)

    def _mix(self, images: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """(images, index of the other one of each pair, share [] of the first)."""
        key = next_key()
        order, beta, where, choice = jax.random.split(key, 4)
        other = jax.random.permutation(order, images.shape[0])
        cut = jax.random.bernoulli(
            choice, float(self.cutmix > 0) / (float(self.cutmix > 0) + float(self.mixup > 0))
        )
        alpha = jnp.where(cut, self.cutmix, self.mixup)
        share = jax.random.beta(beta, alpha, alpha)
        height, width = images.shape[1:3]
        side = jnp.sqrt(1 - share)
        centre = jax.random.uniform(where, (2,))
        rows = jnp.arange(height, dtype=jnp.float32) + 0.5
        columns = jnp.arange(width, dtype=jnp.float32) + 0.5
        in_rows = jnp.abs(rows / height - centre[0]) < side / 2
        in_columns = jnp.abs(columns / width - centre[1]) < side / 2
        patch = (in_rows[:, None] & in_columns[None, :])[None, :, :, None]
        pasted = jnp.where(patch, images[other], images)
        blended = share * images + (1 - share) * images[other]
        kept = 1 - patch.mean(dtype=jnp.float32)
        return jnp.where(cut, pasted, blended), other, jnp.where(cut, kept, share)

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "scores": {"meaning": "probability of each class", "axis": "labels", "range": [0, 1], "sum": 1}
        }

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"scores": probabilities [N, num_classes]}."""
        return {"scores": F.softmax(model(self.normalize(inputs["image"])).astype(jnp.float32))}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"accuracy": TopAccuracy(self.topk), "classes": ClassReport(labels)}

    def visualize(
        self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray], labels: tuple[str, ...]
    ) -> np.ndarray:
        """The first image of a batch with its best classes, [H, W, 3] uint8 RGB."""
        return draw_first(outputs, batch, labels)


class TopAccuracy:
    """Shares of samples whose label is among the best k classes."""

    higher_is_better = True

    def __init__(self, topk: tuple[int, ...]) -> None:
        self.topk, self.hits, self.count = topk, [0] * len(topk), 0

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        correct = top_k_correct(outputs["scores"], batch["label"], max(self.topk))
        self.hits = [old + int(correct[:, :k].any(axis=1).sum()) for old, k in zip(self.hits, self.topk)]
        self.count += len(correct)

    def result(self) -> dict[str, float]:
        return {f"top{k}": hits / max(1, self.count) for k, hits in zip(self.topk, self.hits)}
