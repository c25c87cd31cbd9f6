"""The task of writing on: pre-training of decoders, and fine-tuning on instructions and chats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import register
from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, Metric
from nlp.data.packing import IGNORED, TokenSample
from nlp.language_metrics import LanguageScores
from nlp.tasks.decoder_task import DecoderTask
from nlp.token_scores import TokenScores, token_scores
from zoo.layers.decoder import Decoder

PADDING: Mapping[str, int] = {"input_ids": 0, "targets": IGNORED, "positions": 0, "segments": 0}


def pack_row(sample: TokenSample) -> dict[str, np.ndarray]:
    """The arrays of a row of tokens."""
    arrays = {"input_ids": sample.ids, "targets": sample.targets, "positions": sample.positions}
    return arrays if sample.segments is None else {**arrays, "segments": sample.segments}


@register("task")
@dataclass(frozen=True)
class CausalLanguageModel(DecoderTask[TokenSample]):
    """What follows each token, from a decoder: cross-entropy, its mean over the tokens that have a target.

    Attributes:
        chunks: In how many steps the vocabulary is scored: so many times fewer logits are in memory at a time.
    """

    chunks: int = 1

    padding: ClassVar[Mapping[str, int]] = PADDING  # pyright: ignore[reportIncompatibleVariableOverride]

    def __post_init__(self) -> None:
        if self.chunks < 1:
            raise ConfigError(
                "chunks is too small", where="task.chunks", received=self.chunks, allowed="1 or more"
            )

    def pack(self, sample: TokenSample) -> dict[str, np.ndarray]:
        return pack_row(sample)

    def pack_evaluated(self, sample: TokenSample) -> dict[str, np.ndarray]:
        """Also "text_bytes" [], which the metrics read."""
        return {**pack_row(sample), "text_bytes": np.int64(sample.text_bytes)}  # pyright: ignore[reportReturnType]

    def length(self, sample: TokenSample) -> int:
        return len(sample.ids)

    def loss(self, model: Decoder, batch: Batch) -> Losses:
        scores = score_batch(model, batch, self.chunks)
        count = (batch["targets"] >= 0).sum(dtype=jnp.float32)
        divisor = jnp.maximum(count, 1)
        share = scores.right.sum(dtype=jnp.float32) / divisor
        return Losses(-scores.log_likelihood.sum() / divisor, {"accuracy": share}, count)

    def infer(self, model: Decoder, inputs: Batch) -> dict[str, jax.Array]:
        """{"log_likelihood" [N] float32, summed over the tokens that have a target, "tokens" and "right" [N] int32}."""
        scores = score_batch(model, inputs, self.chunks)
        return {
            "log_likelihood": scores.log_likelihood.sum(axis=1),
            "tokens": (inputs["targets"] >= 0).sum(axis=1, dtype=jnp.int32),
            "right": scores.right.sum(axis=1, dtype=jnp.int32),
        }

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "log_likelihood": {
                "meaning": "sum of the logarithms of the probabilities of the targets",
                "unit": "nats",
            },
            "tokens": {"meaning": "how many targets there are"},
            "right": {"meaning": "how many targets are the most probable token"},
        }

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"language": LanguageScores()}


def score_batch(model: Decoder, batch: Batch, chunks: int) -> TokenScores:
    """How probable the targets of a batch are."""
    hidden = model.hidden(batch["input_ids"], batch["positions"], batch.get("segments"))
    return token_scores(hidden, batch["targets"], model.logits, chunks)
