"""Tasks on texts: a class for the whole, a tag for each token.

Besides what framework/engine/task.py asks of a task, each one here has `processor(context)`, which says how a text goes
through the program and what its outputs become: that is all that `nlp.predictor` knows of a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import Kind, register
from framework.core.errors import ConfigError, InputError
from framework.core.types import JSON
from framework.engine.class_weights import (
    ClassWeights,
    check_class_weights,
    resolve_class_weights,
    sum_weights,
    weight_array,
)
from framework.engine.details import ClassReport
from framework.engine.multi_label_scores import MultiLabelScores
from framework.engine.task import Batch, Losses, Metric, Task, check_classes
from framework.nn import functional as F
from framework.text.sample import TextSample
from nlp.contracts import MetricConfig, TextEmbedder
from nlp.packing import first_tokens, pack_tokens, tokens_of
from nlp.processors import ClassProcessor, ProcessorContext, TagProcessor

Metrics = tuple[Annotated[MetricConfig, Kind("metric")], ...]


def check_embedder(model: nn.Layer) -> None:
    """Raises: ConfigError, where the model is no TextEmbedder."""
    if not isinstance(model, TextEmbedder):
        raise ConfigError(
            "the model gives no embeddings of texts",
            where="model.type",
            received=type(model).__name__,
            allowed="such as SentenceEncoder or SimCSE",
        )


class Texts(Task[TextSample, nn.Layer]):
    """What the tasks share: texts of different lengths, whose arrays a loader pads."""

    label_arrays: ClassVar[tuple[str, ...]] = ()
    """Arrays of `pack` with numbers of the data's classes, which zoo/label_alignment.py turns into the model's."""
    padding: ClassVar[Mapping[str, int]] = {"input_ids": 0, "mask": 0, "type_ids": 0, "tags": -1}  # pyright: ignore[reportIncompatibleVariableOverride]

    scores: Metrics = ()
    """What is reported; the first chooses the best checkpoint."""

    def inputs(self, sample: TextSample) -> dict[str, np.ndarray]:
        """What a model reads of a sample, by name."""
        return pack_tokens(sample)

    def length(self, sample: TextSample) -> int:
        """Tokens of a sample, by which batches are put together."""
        return max(map(len, self.inputs(sample).values()))

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        check_classes(model, labels)

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        """Fresh ones, named by their places; their results have names of their own."""
        return {f"{place}": metric.start(labels) for place, metric in enumerate(self.scores)}


@register("task")
@dataclass(frozen=True)
class SequenceClassification(Texts):
    """One class for a text, or for a pair of texts: cross-entropy on the logits of a TextClassifier.

    Attributes:
        label_smoothing: Share of the target that is spread over all classes.
        weight: What the loss of each class is multiplied with: a list of numbers, or balanced, by how often the classes
            are in the training data. Classes that are independent take none.
        independent: Each class has a probability of its own (sigmoid), for texts with any number of classes; it is
            trained with binary cross-entropy, and scored as images with several classes are. Else they sum up to 1.
        threshold: Of independent classes, the probability from which a class is one of a result; None: a result has the
            best ones, whatever their probability, and 0.5 counts in scores.
        max_labels: The most classes of a text that are independent.
    """

    label_smoothing: float = 0.0
    scores: Metrics = ()
    independent: bool = False
    weight: ClassWeights = None
    threshold: float | None = None
    max_labels: int = 32

    label_arrays: ClassVar[tuple[str, ...]] = ("label",)

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(
                "label_smoothing is out of range",
                where="label_smoothing",
                received=self.label_smoothing,
                allowed="from 0, below 1",
            )
        if self.independent and self.weight is not None:
            raise ConfigError(
                "classes that are independent have no weights",
                where="task.weight",
                received=self.weight,
                allowed="weight with independent: false",
            )
        check_class_weights(self.weight, "task.weight")
        if self.threshold is not None and not (self.independent and 0 < self.threshold < 1):
            raise ConfigError(
                "a threshold is for classes that are independent",
                where="task.threshold",
                received=f"{self.threshold}, independent: {str(self.independent).lower()}",
                allowed="above 0, below 1, with independent: true",
            )
        if self.max_labels < 1:
            raise ConfigError(
                "a text has no room for a class",
                where="task.max_labels",
                received=self.max_labels,
                allowed="from 1",
            )
        if self.independent and self.scores:
            raise ConfigError(
                "classes that are independent have scores of their own",
                where="task.scores",
                received=", ".join(type(score).__name__ for score in self.scores),
                allowed="no scores with independent: true, which has mAP, f1, precision, recall, exact_match",
            )

    def processor(self, context: ProcessorContext) -> ClassProcessor:
        return ClassProcessor(context, self.threshold or 0.0)

    def adapt(self, dataset: object) -> SequenceClassification:
        return replace(self, weight=resolve_class_weights(self.weight, dataset, "task.weight"))

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        if self.independent:
            return {"multi_label": MultiLabelScores(0.5 if self.threshold is None else self.threshold)}
        return {**super().metrics(labels), "classes": ClassReport(labels)}

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        """`label` [] int32; of independent classes [max_labels] int32: class indices, then -1."""
        if self.independent:
            return {**pack_tokens(sample), "label": self._pack_labels(sample)}
        if sample.label is None:
            raise InputError(
                "a text has no class",
                where=sample.id,
                received="no class" if sample.labels is None else f"{len(sample.labels)} classes",
                allowed="one class",
                fix="set task.independent: true for texts with several"
                if sample.labels is not None
                else None,
            )
        return {**pack_tokens(sample), "label": np.asarray(sample.label, np.int32)}

    def _pack_labels(self, sample: TextSample) -> np.ndarray:
        labels = sample.labels
        if labels is None and sample.label is not None:
            labels = (sample.label,)
        if labels is None or len(labels) > self.max_labels:
            raise InputError(
                "a text has no list of classes, or too many",
                where=sample.id,
                received="no classes" if labels is None else f"{len(labels)} classes",
                allowed=f"up to {self.max_labels} classes",
                fix="set task.max_labels",
            )
        label = np.full(self.max_labels, -1, np.int32)
        label[: len(labels)] = labels
        return label

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        logits = model(tokens_of(batch))
        if self.independent:
            labels = batch["label"].reshape(len(logits), -1)  # [N, max_labels], or [N] with one class each
            target = jax.nn.one_hot(labels, logits.shape[-1]).max(axis=1)
            right = ((logits > 0) == (target > 0)).all(axis=-1).mean(dtype=jnp.float32)
            target = F.label_smooth(target, epsilon=self.label_smoothing)
            return Losses(F.binary_cross_entropy_with_logits(logits, target), {"exact_match": right})
        hits = (logits.argmax(axis=-1) == batch["label"]).mean(dtype=jnp.float32)
        weight = weight_array(self.weight, logits.shape[-1], "task.weight")
        loss = F.cross_entropy(logits, batch["label"], weight, label_smoothing=self.label_smoothing)
        return Losses(loss, {"accuracy": hits}, sum_weights(weight, batch["label"], self.label_smoothing))

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "scores": {
                "meaning": "probability of each class" + " by itself" * self.independent,
                "axis": "labels",
                "range": [0, 1],
            }
        }

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"scores": probabilities [N, num_classes] float32}."""
        logits = model(tokens_of(inputs)).astype(jnp.float32)
        return {"scores": F.sigmoid(logits) if self.independent else F.softmax(logits)}


@register("task")
@dataclass(frozen=True)
class TokenClassification(Texts):
    """A tag for each word, from a Tagger. Where a word has several tokens, its first one carries the tag."""

    scores: Metrics = ()

    label_arrays: ClassVar[tuple[str, ...]] = ("tags",)
    processor = TagProcessor

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        if sample.tags is None:
            raise InputError("a text has no tags", where=sample.id)
        arrays = pack_tokens(sample)
        assert sample.word_ids is not None
        tags = np.append(np.asarray(sample.tags, np.int32), -1)[sample.word_ids]
        return {**arrays, "tags": np.where(first_tokens(sample.word_ids), tags, -1).astype(np.int32)}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        loss = model.loss(tokens_of(batch), batch["tags"])
        is_by_token = getattr(model, "mean_over", "texts") == "tokens"
        return Losses(loss, weight=(batch["tags"] >= 0).sum(dtype=jnp.float32) if is_by_token else None)

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "tags": {
                "meaning": "tag of each token, as a number in labels; that of a word is at its first token"
            },
            "scores": {"meaning": "of each tag", "range": [0, 1]},
        }

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"tags" [N, T] int32, "scores" [N, T] float32 in [0, 1]}."""
        tags, scores = model.tag(tokens_of(inputs))
        return {"tags": tags, "scores": scores}
