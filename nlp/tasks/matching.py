"""Tasks on two texts: whether they match, which of two fits better, and embeddings whose cosine says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError, InputError
from framework.core.model_config import setting_of
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, check_classes
from framework.nn import functional as F
from framework.text.sample import TextSample
from nlp.contracts import Matcher, Tokens
from nlp.packing import count_left_out, count_tokens, pack_tokens, tokens_of
from nlp.processors import Outputs, TextProcessor
from nlp.results import Similarity
from nlp.tasks import Metrics, Texts, check_embedder

_NEGATIVE = "negative_"
_PADDED = ("input_ids", "mask", "type_ids", "pair_ids", "pair_mask")
_IGNORED = -100


def pack_pair(sample: TextSample) -> dict[str, np.ndarray]:
    """The tokens of two texts, which stand in one row or in one each. Raises: InputError, where there is one text."""
    if sample.pair is None:
        raise InputError(
            "there is one text, and matching takes two",
            where=sample.id,
            received=repr(sample.text[:40]),
            fix="give a tuple of two, --pair, or a line with a tab between the texts; in a data set name `pair`",
        )
    if sample.pair_ids is None:
        return pack_tokens(sample)
    arrays = pack_tokens(sample.replace(pair_ids=None))
    return {
        **{name: arrays[name] for name in ("input_ids", "mask")},
        "pair_ids": sample.pair_ids.astype(np.int32),
        "pair_mask": np.ones(len(sample.pair_ids), bool),
    }


def score_pairs(model: nn.Layer, batch: Batch, prefix: str = "") -> jax.Array:
    """What a model says of the pairs whose arrays have names with this prefix.

    Raises:
        ConfigError: the model reads texts apart and they stand in one row, or the other way round.
    """
    arrays = {name.removeprefix(prefix): value for name, value in batch.items() if name.startswith(prefix)}
    apart = "pair_ids" in arrays
    if apart != isinstance(model, Matcher):
        raise ConfigError(
            "the model reads pairs in another way than the transforms give them",
            where="transforms",
            received="a row of tokens for each text" if apart else "both texts in one row",
            fix=f"{type(model).__name__} needs "
            + ("Tokenize with apart: false" if apart else "Tokenize with apart: true, or HashFeatures"),
        )
    if not apart:
        return model(tokens_of(arrays))
    return model(tokens_of(arrays), Tokens(arrays["pair_ids"], arrays["pair_mask"]))


def class_count(model: nn.Layer) -> int | None:
    """Classes of a model; None where it gives one number."""
    return setting_of(model, "num_classes", int)


class PairProcessor(TextProcessor):
    """Of "similarity" []."""

    pairs = True

    def pack(self, part: TextSample) -> dict[str, np.ndarray]:
        return pack_pair(part)

    def result(
        self, sample: TextSample, parts: Sequence[TextSample], outputs: Sequence[Outputs]
    ) -> Similarity:
        assert sample.pair is not None
        score = float(outputs[0]["similarity"])
        return Similarity(sample.text, sample.pair, score, count_tokens(parts), count_left_out(parts))


class Pairs(Texts):
    """What the tasks share. Each infers {"similarity": [N] float32}, the larger the better two texts match."""

    padding: ClassVar[Mapping[str, int]] = {
        prefix + name: 0 for prefix in ("", _NEGATIVE) for name in _PADDED
    }
    processor = PairProcessor

    def inputs(self, sample: TextSample) -> dict[str, np.ndarray]:
        return pack_pair(sample)


@register("task")
@dataclass(frozen=True)
class TextMatching(Pairs):
    """Whether two texts match, from pairs of class 0 or 1: cross-entropy.

    The model is a Matcher with logits, or a TextClassifier that reads both texts in one row.
    """

    scores: Metrics = ()

    label_arrays: ClassVar[tuple[str, ...]] = ("label",)

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        check_classes(model, labels)
        count = class_count(model)
        if count != 2:
            raise ConfigError(
                "texts match or they do not",
                where="model.num_classes",
                received=count,
                allowed="2",
                fix="a model without classes, such as PairwiseMatching, learns with PairwiseRanking",
            )

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        if sample.label is None:
            raise InputError("a pair has no class", where=sample.id)
        return {**self.inputs(sample), "label": np.asarray(sample.label, np.int32)}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        logits = score_pairs(model, batch)
        hits = (logits.argmax(axis=-1) == batch["label"]).mean(dtype=jnp.float32)
        return Losses(F.cross_entropy(logits, batch["label"]), {"accuracy": hits})

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "similarity": {"meaning": "probability that the texts match", "range": [0, 1]},
            "scores": {"meaning": "probability of both classes", "range": [0, 1], "sum": 1},
        }

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"similarity": the probability that they match, [N]; "scores": of both classes, [N, 2]}, float32."""
        scores = F.softmax(score_pairs(model, inputs).astype(jnp.float32))
        return {"similarity": scores[:, 1], "scores": scores}


@register("task")
@dataclass(frozen=True)
class CrossEncoding(Pairs):
    """How well a text answers another, from one number that a model makes of both in one row: a reranker.

    It learns from pairs of class 0 or 1, with binary cross-entropy.

    Source: CrossEncoder of sentence-transformers

    Attributes:
        activation: What is done to the number for a result: sigmoid makes a probability of it.
    """

    activation: Literal["identity", "sigmoid"] = "sigmoid"
    scores: Metrics = ()

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        count = class_count(model)
        if count != 1:
            raise ConfigError(
                "a reranker gives one number for a pair",
                where="model.num_classes",
                received=count,
                allowed="1",
                fix="a model of two classes learns with TextMatching",
            )

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        if sample.label is None:
            raise InputError("a pair has no class", where=sample.id)
        return {**self.inputs(sample), "label": np.asarray(sample.label, np.int32)}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        logits = score_pairs(model, batch)[:, 0].astype(jnp.float32)
        target = batch["label"].astype(jnp.float32)
        hits = ((logits > 0) == (target > 0)).mean(dtype=jnp.float32)
        return Losses(F.binary_cross_entropy_with_logits(logits, target), {"accuracy": hits})

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        bounds = {"range": [0, 1]} if self.activation == "sigmoid" else {}
        return {"similarity": {"meaning": "score of the pair, larger fits better", **bounds}}

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"similarity": [N] float32}."""
        scores = score_pairs(model, inputs)[:, 0].astype(jnp.float32)
        return {"similarity": F.sigmoid(scores) if self.activation == "sigmoid" else scores}


@register("task")
@dataclass(frozen=True)
class PairwiseRanking(Pairs):
    """Which of two texts fits a query better, from triples such as TextTriples: the margin ranking loss.

    The model gives one number a pair. Evaluation takes pairs with a class, as TextClassification has them.

    Attributes:
        margin: So much better than the negative the positive is to be.
    """

    margin: float = 0.1
    scores: Metrics = ()

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        if class_count(model) is not None:
            raise ConfigError(
                "ranking takes one number a pair, and the model gives classes",
                where="model.type",
                received=type(model).__name__,
                allowed="such as PairwiseMatching or SimCSE",
            )

    def inputs(self, sample: TextSample) -> dict[str, np.ndarray]:
        pair = pack_pair(sample)
        if sample.negative is None:
            return pair
        return pair | {_NEGATIVE + name: value for name, value in pack_pair(sample.negative).items()}

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        if sample.negative is not None:
            return self.inputs(sample)
        if sample.label is None:
            raise InputError("a pair has neither a text that fits less nor a class", where=sample.id)
        return {**self.inputs(sample), "label": np.asarray(sample.label, np.int32)}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        if _NEGATIVE + "input_ids" not in batch:
            raise ConfigError(
                "ranking learns from triples",
                where="data.train.dataset",
                received="pairs",
                allowed="a query, a text that fits it and one that fits less, such as TextTriples",
            )
        positives = {name: value for name, value in batch.items() if not name.startswith(_NEGATIVE)}
        better, worse = score_pairs(model, positives), score_pairs(model, batch, _NEGATIVE)
        loss = F.margin_ranking_loss(better, worse, jnp.ones_like(better), self.margin)
        return Losses(loss, {"accuracy": (better > worse).mean(dtype=jnp.float32)})

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {"similarity": {"meaning": "score of the pair, larger fits better"}}

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"similarity": as the model gives it, [N] float32}."""
        pair = {name: value for name, value in inputs.items() if not name.startswith(_NEGATIVE)}
        return {"similarity": score_pairs(model, pair).astype(jnp.float32)}


@register("task")
@dataclass(frozen=True)
class InBatchNegatives(Pairs):
    """Embeddings of texts, from pairs that match: the other pairs of its batch are a text's negatives.

    Where a text has no pair it is its own, and dropout makes the two differ. Where pairs have a class, those of class 0
    are only negatives of the others. The model is a TextEmbedder, such as SimCSE.

    Source: Gao et al. 2021, section 3, equations 1 and 5

    Attributes:
        scale: Factor of the cosines before the softmax: 1 / temperature.
        margin: Taken from the cosine of a pair.
    """

    scale: float = 20.0
    margin: float = 0.0
    scores: Metrics = ()

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise ConfigError(
                "scale must be above 0",
                where="InBatchNegatives.scale",
                received=self.scale,
                allowed="above 0",
            )

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        check_embedder(model)

    def inputs(self, sample: TextSample) -> dict[str, np.ndarray]:
        if sample.pair is not None and sample.pair_ids is None:
            raise InputError(
                "the texts of the pair stand in one row of tokens",
                where=sample.id,
                fix="Tokenize with apart: true gives each one its own",
            )
        return pack_pair(sample)

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        label = 1 if sample.label is None or sample.pair is None else sample.label
        return {**self.inputs(_pair_with_itself(sample)), "label": np.asarray(label, np.int32)}

    def length(self, sample: TextSample) -> int:
        return super().length(_pair_with_itself(sample))

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        texts = model.embed(tokens_of(batch))
        pairs = model.embed(Tokens(batch["pair_ids"], batch["pair_mask"]))
        count = len(texts)
        logits = self.scale * (texts @ pairs.T - self.margin * jnp.eye(count))
        target = jnp.where(batch["label"] == 0, _IGNORED, jnp.arange(count))
        hits = (logits.argmax(axis=-1) == target).sum(dtype=jnp.float32)
        accuracy = hits / jnp.maximum((target >= 0).sum(dtype=jnp.float32), 1)
        return Losses(F.cross_entropy(logits, target, ignore_index=_IGNORED), {"accuracy": accuracy})

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {"similarity": {"meaning": "cosine of the texts", "range": [-1, 1]}}

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"similarity": cosines [N] float32}."""
        return {"similarity": score_pairs(model, inputs).astype(jnp.float32)}


def _pair_with_itself(sample: TextSample) -> TextSample:
    return sample if sample.pair is not None else sample.replace(pair=sample.text, pair_ids=sample.ids)
