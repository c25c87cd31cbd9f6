"""The task of embedding texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.engine.task import Batch, Losses
from framework.text.sample import TextSample
from nlp.packing import count_left_out, count_tokens, pack_tokens, tokens_of
from nlp.processors import Outputs, TextProcessor
from nlp.results import TextVector
from nlp.tasks import Texts, check_embedder


class EmbeddingProcessor(TextProcessor):
    """Of "vector" [D]."""

    def result(
        self, sample: TextSample, parts: Sequence[TextSample], outputs: Sequence[Outputs]
    ) -> TextVector:
        return TextVector(
            sample.text,
            np.array(outputs[0]["vector"]),
            sample.pair,
            count_tokens(parts),
            count_left_out(parts),
        )


@register("task")
@dataclass(frozen=True)
class TextEmbedding(Texts):
    """The embeddings of a model that has `embed`, such as SentenceEncoder. Nothing is trained by it."""

    processor = EmbeddingProcessor

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        check_embedder(model)

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        return pack_tokens(sample)

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        """Raises: ConfigError."""
        raise ConfigError(
            "this task gives embeddings, and trains nothing",
            where="task",
            received="TextEmbedding",
            fix="train the encoder with another task, such as MaskedLanguageModelling; name its run under `weights`",
        )

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {"vector": {"meaning": "embedding of the text"}}

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"vector": [N, D] float32}."""
        return {"vector": model.embed(tokens_of(inputs)).astype(jnp.float32)}
