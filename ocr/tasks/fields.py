"""Fields of pages: what is trained, scored and exported of a tagger over hashed features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import plain, register
from framework.core.errors import ConfigError, InputError, did_you_mean
from framework.core.model_config import setting_of
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, Metric, Task
from framework.nn import functional as F
from framework.nn.layer import Layer
from framework.vision.sample import Sample
from ocr.fields.field_decoding import FieldKind, label_names
from ocr.fields.field_stage import PADDING, FieldOptions, pack_words
from ocr.fields.scores import EntityScores, FieldScores, pack_page
from ocr.fields.words import PageWords, split_page


@register("task")
@dataclass(frozen=True)
class FieldExtraction(Task[Sample, Layer]):
    """The fields of a page by a FieldTagger. Inputs: "features" [N, T, K] int32, "places" [N, T, P] float32, "mask" [N,
    T] bool. The loss is the cross-entropy of the words' tags.

    Attributes:
        kinds: How the values of labels are read: as text, as a date, as an amount. By label, in lower case.
        buckets: How many numbers features are hashed to; those of the model.
        max_words: What comes after so many words of a page is left out.
        label_smoothing: Share of the target that is spread over all tags.
        main: What chooses the best checkpoint: "exact" fields, or the "hmean" of entities.
    """

    kinds: dict[str, FieldKind] = field(default_factory=dict)
    buckets: int = 16384
    max_words: int = 1024
    label_smoothing: float = 0.0
    main: str = "exact"

    padding: ClassVar[Mapping[str, int]] = {**PADDING, "tags": -1}  # pyright: ignore[reportIncompatibleVariableOverride]
    label_arrays: ClassVar[tuple[str, ...]] = ("tags",)

    def __post_init__(self) -> None:
        if self.main not in ("exact", "hmean"):
            raise ConfigError(
                "there is no such score", where="task.main", received=self.main, allowed="exact, hmean"
            )

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        words, tags = self._words(sample)
        assert isinstance(sample.text, tuple)
        return {
            **pack_words(words, self.buckets),
            "tags": tags,
            "page": pack_page(words, sample.text, tags),
        }

    def length(self, sample: Sample) -> int:
        return len(self._words(sample)[0])

    def _words(self, sample: Sample) -> tuple[PageWords, np.ndarray]:
        """The words of a sample and their tags [T] int32."""
        if not isinstance(sample.text, tuple) or sample.boxes is None or sample.labels is None:
            raise InputError(
                "a sample has no labelled lines",
                where=sample.id,
                allowed="texts, boxes and labels, as of FormFiles, XFUND, FUNSD and SROIE",
            )
        words = split_page(sample.text, sample.boxes).first(self.max_words)
        begins = sample.labels[words.lines] if len(words) else np.zeros(0, np.int32)
        is_first = (
            words.spans[:, 0]
            == np.array([len(text) - len(text.lstrip()) for text in sample.text], np.int32)[words.lines]
        )
        tags = np.where((begins > 0) & ~is_first, begins + 1, begins).astype(np.int32)
        return words, tags

    def check(self, model: Layer, labels: tuple[str, ...]) -> None:
        super().check(model, labels)
        rows = setting_of(model, "buckets", int)
        if rows not in (None, self.buckets):
            raise ConfigError(
                "task and model hash features to other numbers",
                where="task.buckets",
                received=f"{self.buckets}, model.buckets {rows}",
                allowed="the same",
                fix=f"-o task.buckets={rows}",
            )
        known = [name.lower() for name in label_names(labels)]
        for name in self.kinds:
            if known and name not in known:
                raise ConfigError(
                    "no label has this name",
                    where="task.kinds",
                    received=name,
                    allowed=", ".join(known),
                    fix=did_you_mean(name.lower(), known)
                    or "drop what a base configuration says: -o 'task.kinds={_inherited_: false, LABEL: KIND}'",
                )

    def loss(self, model: Layer, batch: Batch) -> Losses:
        logits = self._logits(model, batch)
        tags = batch["tags"]
        loss = F.cross_entropy(logits, tags, ignore_index=-1, label_smoothing=self.label_smoothing)
        known = tags >= 0
        hits = ((logits.argmax(axis=-1) == tags) & known).sum() / jnp.maximum(known.sum(), 1)
        return Losses(loss, {"accuracy": hits.astype(jnp.float32)}, known.sum(dtype=jnp.float32))

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {"scores": {"meaning": "probability of each tag", "axis": "labels", "range": [0, 1]}}

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"scores": probabilities of tags [N, T, num_classes] float32}."""
        return {"scores": jax.nn.softmax(self._logits(model, inputs), axis=-1)}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        both: dict[str, Metric] = {"exact": FieldScores(labels, self.kinds), "hmean": EntityScores(labels)}
        return dict(sorted(both.items(), key=lambda one: one[0] != self.main))

    def describe_stage(self, buckets: tuple[int, ...] | None) -> dict[str, JSON]:
        """What an artifact's config holds, so that it runs as a reader of fields."""
        options = FieldOptions(self.buckets, self.max_words, buckets or FieldOptions.lengths, self.kinds)
        return {"kind": "fields", "options": plain(options)}

    @staticmethod
    def _logits(model: Layer, batch: Batch) -> jax.Array:
        return model(batch["features"], batch["places"], batch["mask"]).astype(jnp.float32)
