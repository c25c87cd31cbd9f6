"""Tasks on texts: a class for the whole, a tag for each token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import Kind, register
from framework.core.errors import ConfigError, InputError
from framework.engine.task import Batch, Losses, Metric, check_classes
from framework.nn import functional as F
from framework.text.sample import TextSample
from nlp.contracts import Tokens

Metrics = tuple[Annotated[Any, Kind("metric")], ...]


def packed(sample: TextSample) -> dict[str, np.ndarray]:
    """The tokens of a sample. Raises: InputError, where no transform made any."""
    if sample.ids is None:
        raise InputError(
            "the text was not divided into tokens",
            where=sample.id,
            fix="put a transform such as Tokenize or HashFeatures into `transforms`",
        )
    arrays = {"input_ids": sample.ids.astype(np.int32), "mask": np.ones(len(sample.ids), bool)}
    if sample.type_ids is not None:
        arrays["type_ids"] = sample.type_ids.astype(np.int32)
    return arrays


def tokens_of(batch: Batch) -> Tokens:
    """What a model reads of a batch."""
    return Tokens(batch["input_ids"], batch["mask"], batch.get("type_ids"))


def first_tokens(word_ids: np.ndarray) -> np.ndarray:
    """[T] bool of `TextSample.word_ids`: whether a token is the first one of its word."""
    return (word_ids >= 0) & (word_ids != np.concatenate([[-1], word_ids[:-1]]))


def _started(metrics: Metrics, labels: tuple[str, ...]) -> dict[str, Metric]:
    return {f"{place}": metric.start(labels) for place, metric in enumerate(metrics)}


class _Texts:
    """What the tasks share: texts of different lengths, whose arrays a loader pads."""

    padding: ClassVar[Mapping[str, int]] = {"input_ids": 0, "mask": 0, "type_ids": 0, "tags": -1}

    def length(self, sample: TextSample) -> int:
        """Tokens of a sample, by which batches are put together."""
        return len(packed(sample)["input_ids"])

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        check_classes(model, labels)


@register("task")
@dataclass(frozen=True)
class SequenceClassification(_Texts):
    """One class for a text, or for a pair of texts: cross-entropy on the logits of a TextClassifier.

    Attributes:
        label_smoothing: Share of the target that is spread over all classes.
        scores: What is reported; the first chooses the best checkpoint.
    """

    label_smoothing: float = 0.0
    scores: Metrics = ()

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(
                "this is no share",
                where="label_smoothing",
                received=self.label_smoothing,
                allowed="from 0, below 1",
            )

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        if sample.label is None:
            raise InputError("a text has no class", where=sample.id)
        return {**packed(sample), "label": np.asarray(sample.label, np.int32)}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        logits = model(tokens_of(batch))
        hits = (logits.argmax(axis=-1) == batch["label"]).mean(dtype=jnp.float32)
        loss = F.cross_entropy(logits, batch["label"], label_smoothing=self.label_smoothing)
        return Losses(loss, {"accuracy": hits})

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"scores": probabilities [N, num_classes] float32}."""
        return {"scores": F.softmax(model(tokens_of(inputs)).astype(jnp.float32))}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return _started(self.scores, labels)


@register("task")
@dataclass(frozen=True)
class TokenClassification(_Texts):
    """A tag for each word, from a Tagger. Where a word has several tokens, its first one carries the tag.

    Attributes:
        scores: What is reported; the first chooses the best checkpoint.
    """

    scores: Metrics = ()

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        if sample.tags is None:
            raise InputError("a text has no tags", where=sample.id)
        arrays = packed(sample)
        assert sample.word_ids is not None
        tags = np.append(np.asarray(sample.tags, np.int32), -1)[sample.word_ids]
        return {**arrays, "tags": np.where(first_tokens(sample.word_ids), tags, -1).astype(np.int32)}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        return Losses(model.loss(tokens_of(batch), batch["tags"]))

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"tags" [N, T] int32, "scores" [N, T] float32 in [0, 1]}."""
        tags, scores = model.tag(tokens_of(inputs))
        return {"tags": tags, "scores": scores}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return _started(self.scores, labels)
