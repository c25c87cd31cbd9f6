"""The task of predicting masked tokens: pre-training of encoders, and fill-mask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError, InputError
from framework.core.types import JSON
from framework.engine.task import Batch, Losses
from framework.nn import functional as F
from framework.text.sample import TextSample
from nlp.fill_mask import MaskProcessor, pack_masked
from nlp.packing import tokens_of
from nlp.processors import ProcessorContext
from nlp.tasks import Metrics, Texts


@register("task")
@dataclass(frozen=True)
class MaskedLanguageModelling(Texts):
    """The tokens that a transform such as MaskTokens hid, from a MaskedLM: cross-entropy, its mean over these tokens.

    Attributes:
        max_positions: A text has at most so many of them: as many as MaskTokens may hide. A predictor reads a text with
            more mask tokens several times.
        candidates: How many tokens are given for each, best first.
    """

    max_positions: int = 20
    candidates: int = 10
    scores: Metrics = ()

    def __post_init__(self) -> None:
        if min(self.max_positions, self.candidates) < 1:
            raise ConfigError(
                "nothing is predicted",
                where="MaskedLanguageModelling",
                received=f"max_positions {self.max_positions}, candidates {self.candidates}",
                allowed="1 or more",
            )

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        """ "positions" and "words" [max_positions] int32, "words" -1 behind the last one, and the tokens."""
        if sample.positions is None or sample.target_ids is None:
            raise InputError(
                "no token of the text is hidden",
                where=sample.id,
                fix="put MaskTokens behind Tokenize into `transforms`",
            )
        words = np.full(self.max_positions, -1, np.int32)
        arrays = pack_masked(sample, self.max_positions)
        words[: len(sample.positions)] = sample.target_ids
        return {**arrays, "words": words}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        logits, hidden = model(tokens_of(batch), batch["positions"]), batch["words"] >= 0
        hits = (logits.argmax(axis=-1) == batch["words"]) & hidden
        loss = F.cross_entropy(logits, jnp.where(hidden, batch["words"], -100))
        count = hidden.sum(dtype=jnp.float32)
        share = hits.sum(dtype=jnp.float32) / jnp.maximum(count, 1)
        return Losses(loss, {"accuracy": share}, count)

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "candidates": {"meaning": "tokens for each masked position", "order": "best first"},
            "scores": {"meaning": "probability of each candidate", "range": [0, 1]},
        }

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"candidates" [N, K, candidates] int32, "scores" their probabilities, float32}, best first.

        Where "words" are known, "log_likelihood" [N, K] float32 of these too.
        """
        chances = F.log_softmax(model(tokens_of(inputs), inputs["positions"]))
        scores, best = jax.lax.top_k(chances, min(self.candidates, chances.shape[-1]))
        predictions = {"candidates": best.astype(jnp.int32), "scores": jnp.exp(scores)}
        if "words" in inputs:
            words = jnp.maximum(inputs["words"], 0)[..., None]
            predictions["log_likelihood"] = jnp.take_along_axis(chances, words, axis=-1)[..., 0]
        return predictions

    def processor(self, context: ProcessorContext) -> MaskProcessor:
        return MaskProcessor(context, self.max_positions)
