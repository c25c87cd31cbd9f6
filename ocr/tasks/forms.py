"""The kinds of a form's lines and their relations: what is trained, scored and exported of LayoutXLM.

Reference: PaddleOCR ppocr/data/imaug/{label_ops.py,vqa/token}, ppocr/losses/vqa_token_layoutlm_loss.py,
    ppocr/metrics/vqa_token_{ser,re}_metric.py, configs/kie/vi_layoutxlm
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import register
from framework.core.errors import ConfigError, InputError
from framework.core.model_config import config_of
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, Metric, Task
from framework.nn import functional as F
from framework.nn.layer import Layer
from framework.vision.sample import Sample
from ocr.fields.field_decoding import label_names
from ocr.fields.form_decoding import RelationScores
from ocr.fields.forms import (
    ANSWER,
    KIND_OF_LABEL,
    QUESTION,
    RELATION_LABELS,
    FormSample,
    first_tokens,
    pack_tokens,
    tokens_of,
)
from ocr.fields.scores import EntityScores
from ocr.layers.layoutxlm import LayoutXLMConfig
from ocr.models.layoutxlm_re import candidate_pairs

# NormalizeImage of configs/kie: in the order R, G, B; the network subtracts its own constants from the result, too.
_MEAN, _STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


class FormTask(Task[Sample, Layer]):
    """What SER and RE share: a page's tokens, padded to one length.

    Inputs: "input_ids" [N, T] int32, "bbox" [N, T, 4] int32, "mask" [N, T] bool, and with images "image" [N, 224, 224,
    3] uint8 RGB.
    """

    max_seq_len: int
    use_image: bool

    def pack_tokens(self, sample: Sample) -> dict[str, np.ndarray]:
        """The inputs of a page. Raises: InputError: no transform made tokens of it."""
        return pack_tokens(sample, self.max_seq_len, self.use_image)

    def image_of(self, inputs: Batch) -> tuple[jax.Array, ...]:
        """The image as the network takes it; nothing without images."""
        if not self.use_image:
            return ()
        pixels = inputs["image"].astype(jnp.float32)
        return ((pixels - jnp.array(_MEAN)) / jnp.array(_STD),)

    def check(self, model: Layer, labels: tuple[str, ...]) -> None:
        super().check(model, labels)
        config = config_of(model)
        reads_image = isinstance(config, LayoutXLMConfig) and config.size().use_visual_backbone
        if reads_image != self.use_image:
            raise ConfigError(
                "task and model differ in whether images are read",
                where="task.use_image",
                received=f"{self.use_image}, a model that reads {'the image too' if reads_image else 'no image'}",
                fix=f"-o task.use_image={str(reads_image).lower()}, and read_images of the data sets the same",
            )


@register("task")
@dataclass(frozen=True)
class SemanticEntityRecognition(FormTask):
    """The kind of each line: tags of its tokens by LayoutXLMForSer. The loss is the mean cross-entropy of all tokens.

    Attributes:
        max_seq_len: Tokens of a page, with padding.
        use_image: Whether the page's image goes to the model; that of LayoutXLM, not of VI-LayoutXLM.
    """

    max_seq_len: int = 512
    use_image: bool = False

    label_arrays: ClassVar[tuple[str, ...]] = ("tags",)

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        packed = self.pack_tokens(sample)
        segments, labels = _labels_of(sample)
        tags = np.full(self.max_seq_len, -1, np.int32)
        segments = segments[: self.max_seq_len]
        begins = labels[segments]
        is_first = np.zeros(len(segments), bool)
        is_first[list(first_tokens(segments).values())] = True
        tags[: len(segments)] = np.where((begins > 0) & ~is_first, begins + 1, begins)
        return {**packed, "tags": tags}

    def loss(self, model: Layer, batch: Batch) -> Losses:
        logits = self._logits(model, batch)
        loss = F.cross_entropy(logits, batch["tags"], ignore_index=-1)
        known = batch["tags"] >= 0
        hits = ((logits.argmax(axis=-1) == batch["tags"]) & known).sum() / jnp.maximum(known.sum(), 1)
        return Losses(loss, {"accuracy": hits.astype(jnp.float32)}, known.sum(dtype=jnp.float32))

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {"scores": {"meaning": "probability of each tag", "axis": "labels", "range": [0, 1]}}

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"scores": probabilities of tags [N, T, num_classes] float32}."""
        return {"scores": jax.nn.softmax(self._logits(model, inputs), axis=-1)}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"hmean": EntityScores(labels)}

    def describe_stage(self, buckets: tuple[int, ...] | None) -> dict[str, JSON]:
        """What an artifact's config holds, so that document readers know it."""
        return {"kind": "ser", "options": {"max_seq_len": self.max_seq_len, "use_image": self.use_image}}

    def _logits(self, model: Layer, batch: Batch) -> jax.Array:
        tokens = (batch["input_ids"], batch["bbox"], batch["mask"])
        return model(*tokens, *self.image_of(batch)).astype(jnp.float32)


@register("task")
@dataclass(frozen=True)
class RelationExtraction(FormTask):
    """Which question each answer belongs to, by LayoutXLMForRe. Inputs besides those of FormTask: "starts" and "kinds"
    [N, E] int32, the first tokens and kinds of entities, -1 where there is none.

    Attributes:
        max_entities: Entities of a page, with padding; later ones are left out.
        max_seq_len, use_image: As of SemanticEntityRecognition.
    """

    max_seq_len: int = 512
    use_image: bool = False
    max_entities: int = 512

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        packed = self.pack_tokens(sample)
        segments, labels = _labels_of(sample)
        segments = segments[: self.max_seq_len]
        starts, kinds = (np.full(self.max_entities, -1, np.int32) for _ in range(2))
        places: dict[int, int] = {}
        for segment, start in first_tokens(segments).items():
            label = int(labels[segment])
            if label and len(places) < self.max_entities:
                kinds[len(places)] = self._kind_of(label)
                starts[len(places)] = start
                places[segment] = len(places)
        related = np.zeros((self.max_entities, self.max_entities), np.int32)
        links = sample.links if isinstance(sample, FormSample) else None
        for pair in () if links is None else links.tolist():
            if all(one in places for one in pair):
                head, tail = sorted((places[one] for one in pair), key=lambda one: kinds[one])
                if kinds[head] == QUESTION and kinds[tail] == ANSWER:
                    related[head, tail] = 1
        return {**packed, "starts": starts, "kinds": kinds, "related": related}

    @staticmethod
    def _kind_of(label: int) -> int:
        """Of a B- tag of `RELATION_LABELS`."""
        place = (label - 1) // 2
        if place >= len(RELATION_LABELS):
            raise InputError(
                "relations are of questions and answers",
                where="RelationExtraction",
                received=f"a class number {place + 1}",
                allowed="data with the classes question, answer, header",
                fix="take XFUND's classes",
            )
        return KIND_OF_LABEL[RELATION_LABELS[place]]

    def check(self, model: Layer, labels: tuple[str, ...]) -> None:
        super().check(model, labels)
        names = label_names(labels)
        if labels and names != RELATION_LABELS:
            raise ConfigError(
                "relations are of questions and answers",
                where="data.train.dataset.classes",
                received=", ".join(names),
                allowed="question, answer, header, in this order",
            )

    def loss(self, model: Layer, batch: Batch) -> Losses:
        logits = self._logits(model, batch)
        loss = relation_loss(logits, batch["related"], batch["kinds"])
        return Losses(loss)

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {"scores": {"meaning": "probability that entity i is the key of entity j", "range": [0, 1]}}

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"scores": [N, E, E] float32: the probability that entity i is the key of entity j, 0 where it cannot be}."""
        scores = jax.nn.softmax(self._logits(model, inputs), axis=-1)[..., 1]
        return {"scores": jnp.where(candidate_pairs(inputs["kinds"]), scores, 0.0)}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"hmean": RelationScores()}

    def describe_stage(self, buckets: tuple[int, ...] | None) -> dict[str, JSON]:
        """As of SemanticEntityRecognition."""
        options = {
            "max_seq_len": self.max_seq_len,
            "use_image": self.use_image,
            "max_entities": self.max_entities,
        }
        return {"kind": "re", "options": options}

    def _logits(self, model: Layer, batch: Batch) -> jax.Array:
        tokens = (batch["input_ids"], batch["bbox"], batch["mask"], batch["starts"], batch["kinds"])
        return model(*tokens, *self.image_of(batch)).astype(jnp.float32)


def relation_loss(logits: jax.Array, related: jax.Array, kinds: jax.Array) -> jax.Array:
    """Cross-entropy of the pairs of a question and an answer, the mean of each page, added up over the pages.

    Args:
        logits: [N, E, E, 2].
        related: [N, E, E] int32, 1 where entity i is the key of entity j.
        kinds: [N, E] int32.

    Source: PaddleNLP 2.6 paddlenlp/transformers/layoutxlm/modeling.py, REDecoder
    """
    pairs = candidate_pairs(jnp.asarray(kinds)).astype(jnp.float32)
    chances = jax.nn.log_softmax(jnp.asarray(logits).astype(jnp.float32), axis=-1)
    picked = jnp.take_along_axis(chances, jnp.asarray(related)[..., None], axis=-1)[..., 0]
    each = -(picked * pairs).sum(axis=(1, 2)) / jnp.maximum(pairs.sum(axis=(1, 2)), 1.0)
    return each.sum()


def _labels_of(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    """The line of each token, and the class of each line. Raises: InputError, where the lines have no labels."""
    _, segments, _ = tokens_of(sample)
    if sample.labels is None:
        raise InputError(
            "the lines of a page have no labels", where=sample.id, allowed="those of a data set of forms"
        )
    return segments, sample.labels
