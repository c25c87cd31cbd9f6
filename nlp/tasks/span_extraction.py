"""The task of question answering: finding the answer in a text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError, InputError
from framework.core.types import JSON
from framework.engine.task import Batch, Losses
from framework.text.sample import TextSample
from nlp.answers import NEVER, AnswerProcessor, pack_question
from nlp.packing import tokens_of
from nlp.tasks import Metrics, Texts


@register("task")
@dataclass(frozen=True)
class SpanExtraction(Texts):
    """Where an answer starts and ends in a text, from a QuestionAnswering: the mean of two cross-entropies over tokens.

    Texts come from QuestionAnswers by way of QuestionWindows. A window without the answer has the first token for it.

    Attributes:
        max_answer_length: An answer has at most so many tokens.
        candidates: So many answers of each window are given, each with another first token.
        unanswerable: A text may hold no answer, as in SQuAD 2.0. The score of "none" is that of the first token in the
            window where it is lowest.
        null_threshold: There is no answer where "none" scores more than the best answer and this.
    """

    max_answer_length: int = 30
    candidates: int = 8
    unanswerable: bool = False
    null_threshold: float = 0.0
    scores: Metrics = ()

    padding: ClassVar[Mapping[str, int]] = {**Texts.padding, "context": 0, "offsets": 0}
    processor = AnswerProcessor

    def __post_init__(self) -> None:
        if min(self.max_answer_length, self.candidates) < 1:
            raise ConfigError(
                "no answer can be found",
                where="SpanExtraction",
                received=f"max_answer_length {self.max_answer_length}, candidates {self.candidates}",
                allowed="1 or more",
            )

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        """ "start" and "end" int32, the first and the last token of the first answer, and for the metrics the texts."""
        if sample.answers is None:
            raise InputError("a question has no answers to learn from", where=sample.id, received=sample.pair)
        arrays = pack_question(sample)
        assert sample.offsets is not None
        start, end = _tokens(sample.offsets, arrays["context"], sample.answers[:1])
        right = [sample.text[first:last] for first, last in sample.answers]
        return {
            **arrays,
            "start": np.asarray(start, np.int32),
            "end": np.asarray(end, np.int32),
            "offsets": sample.offsets.astype(np.int32),
            "question": np.asarray(str(sample.id)),
            "text": np.asarray(sample.text),
            "answers": np.asarray(json.dumps(right)),
        }

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        return Losses(model.loss(tokens_of(batch), batch["start"], batch["end"]))

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "first": {"meaning": "first token of each answer", "order": "best first"},
            "last": {"meaning": "last token of each answer, inclusive"},
            "scores": {"meaning": "sum of the two logits of an answer"},
            "none": {"meaning": "sum of the two logits of no answer"},
        }

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"first", "last" [N, candidates] int32: tokens of the best answers; "scores" [N, candidates] and "none" [N]
        float32: sums of two logits, below NEVER / 2 where there is no such answer}."""
        start, end = model(tokens_of(inputs))
        none = start[:, 0] + end[:, 0] - self.null_threshold
        start, end = (jnp.where(inputs["context"], x, NEVER) for x in (start, end))
        count = start.shape[1]
        padded = jnp.pad(end, ((0, 0), (0, self.max_answer_length - 1)), constant_values=NEVER)
        ends = jnp.stack([padded[:, n : n + count] for n in range(self.max_answer_length)], axis=-1)
        # Columns without an answer make up for rows that have fewer tokens than candidates.
        more = ((0, 0), (0, self.candidates))
        best = jnp.pad(start + ends.max(axis=-1), more, constant_values=2 * NEVER)
        scores, first = jax.lax.top_k(best, self.candidates)
        length = jnp.take_along_axis(jnp.pad(ends.argmax(axis=-1), more), first, axis=1)
        return {
            "first": first.astype(jnp.int32),
            "last": (first + length).astype(jnp.int32),
            "scores": scores,
            "none": none if self.unanswerable else jnp.full_like(none, NEVER),
        }


def _tokens(
    offsets: np.ndarray, context: np.ndarray, answers: tuple[tuple[int, int], ...]
) -> tuple[int, int]:
    """First and last token of an answer; (0, 0) where it is not wholly in the window, or there is none."""
    of_context = np.flatnonzero(context)
    if not answers or not len(of_context):
        return 0, 0
    (start, end), starts, ends = answers[0], offsets[of_context, 0], offsets[of_context, 1]
    if start < starts[0] or end > ends[-1]:
        return 0, 0
    return int(of_context[np.flatnonzero(starts <= start)[-1]]), int(
        of_context[np.flatnonzero(ends >= end)[0]]
    )
