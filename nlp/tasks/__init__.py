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
    weight_array,
)
from framework.engine.details import ClassReport
from framework.engine.task import Batch, Losses, Metric, Task, check_classes
from framework.nn import functional as F
from framework.text.sample import TextSample
from nlp.contracts import MetricConfig, TextEmbedder
from nlp.packing import first_tokens, pack_tokens, tokens_of
from nlp.processors import ClassProcessor, TagProcessor

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
        independent: Each class has a probability of its own (sigmoid), as where a text may have several; it is trained
            with binary cross-entropy. Else they sum up to 1.
    """

    label_smoothing: float = 0.0
    scores: Metrics = ()
    independent: bool = False
    weight: ClassWeights = None

    label_arrays: ClassVar[tuple[str, ...]] = ("label",)
    processor = ClassProcessor

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

    def adapt(self, dataset: object) -> SequenceClassification:
        return replace(self, weight=resolve_class_weights(self.weight, dataset, "task.weight"))

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {**super().metrics(labels), "classes": ClassReport(labels)}

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        if sample.label is None:
            raise InputError("a text has no class", where=sample.id)
        return {**pack_tokens(sample), "label": np.asarray(sample.label, np.int32)}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        logits = model(tokens_of(batch))
        hits = (logits.argmax(axis=-1) == batch["label"]).mean(dtype=jnp.float32)
        if self.independent:
            target = jax.nn.one_hot(batch["label"], logits.shape[-1])
            target = F.label_smooth(target, epsilon=self.label_smoothing)
            loss = F.binary_cross_entropy_with_logits(logits, target)
        else:
            weight = weight_array(self.weight, logits.shape[-1], "task.weight")
            loss = F.cross_entropy(logits, batch["label"], weight, label_smoothing=self.label_smoothing)
        return Losses(loss, {"accuracy": hits})

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
        return Losses(model.loss(tokens_of(batch), batch["tags"]))

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
