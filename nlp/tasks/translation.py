"""The task of translating: one text in, another out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from framework.nn import functional as F
from framework.text.sample import TextSample
from framework.text.words import pieces
from nlp.contracts import Tokens
from nlp.decoding import search
from nlp.packing import pack_tokens, tokens_of
from nlp.processors import Outputs, ProcessorContext, TextProcessor, tokenizer_of
from nlp.results import Translated
from nlp.tasks import Metrics, Texts

_IGNORED = -100


class TranslationProcessor(TextProcessor):
    """Of "ids" [S] and "scores" [].

    A text that is too long as a whole is translated sentence by sentence, and a long sentence in halves.

    Raises:
        ConfigError: no transform has a tokenizer. InputError: for a pair of texts.
    """

    def __init__(self, context: ProcessorContext) -> None:
        super().__init__(context)
        self.tokenize, self.source = tokenizer_of(context)
        self.target = self.tokenize.target()

    def parts(self, sample: TextSample) -> Sequence[TextSample]:
        if sample.pair is not None:
            raise InputError("a translation is of one text", received="a pair", allowed="str")
        return [self.tokenize_sample(sample.replace(text=text)) for text in self._cut(sample.text)]

    def _cut(self, text: str) -> list[str]:
        if len(text) < 2 or len(self.source.encode(text)) <= self.tokenize.max_length:
            return [text]
        sentences = pieces(text, len(text))
        if len(sentences) == 1:
            sentences = pieces(text, -(-len(text) // 2))
        return [part for _, piece in sentences for part in self._cut(piece)]

    def result(
        self, sample: TextSample, parts: Sequence[TextSample], outputs: Sequence[Outputs]
    ) -> Translated:
        texts = [
            self.target.decode(rows["ids"]) if part.text.strip() else "" for part, rows in zip(parts, outputs)
        ]
        scores = [float(rows["scores"]) for part, rows in zip(parts, outputs) if part.text.strip()]
        between = " " if any(part.text[-1:].isspace() for part in parts) else ""
        text = between.join(one for one in texts if one)
        return Translated(sample.text, text, sum(scores) / max(1, len(scores)))


@register("task")
@dataclass(frozen=True)
class Translation(Texts):
    """A text for a text, from a SequenceToSequence: cross-entropy of each token of the target, given those before it.

    Attributes:
        label_smoothing: Share of the target that is spread over the vocabulary.
        beam_size: How many texts are followed at a time; 1 takes the most probable token each time.
        length_penalty: `alpha` of nlp.decoding.penalty: the larger, the longer the translations.
        max_length: Tokens of a translation, at most.
    """

    label_smoothing: float = 0.1
    beam_size: int = 4
    length_penalty: float = 0.6
    max_length: int = 64
    scores: Metrics = ()

    padding: ClassVar[Mapping[str, int]] = {"input_ids": 0, "mask": 0, "target_ids": 0, "next_ids": -1}
    processor = TranslationProcessor

    def __post_init__(self) -> None:
        for name, is_right, allowed in (
            ("label_smoothing", 0 <= self.label_smoothing < 1, "from 0, below 1"),
            ("beam_size", self.beam_size >= 1, "1 or more"),
            ("length_penalty", self.length_penalty >= 0, "0 or more"),
            ("max_length", self.max_length >= 1, "1 or more"),
        ):
            if not is_right:
                raise ConfigError(
                    "a setting is out of range",
                    where=f"Translation.{name}",
                    received=getattr(self, name),
                    allowed=allowed,
                )

    def pack(self, sample: TextSample) -> dict[str, np.ndarray]:
        arrays = {name: value for name, value in pack_tokens(sample).items() if name != "type_ids"}
        target = sample.target_ids
        if target is None or len(target) < 2:
            raise InputError(
                "a text has no translation",
                where=sample.id,
                received=repr(sample.target),
                allowed="a target whose tokens begin and end with special ones",
                fix="use a data set such as ParallelText, and a tokenizer with cls and sep tokens",
            )
        target = target.astype(np.int32)
        return {**arrays, "target_ids": target[:-1], "next_ids": target[1:]}

    def length(self, sample: TextSample) -> int:
        """Tokens of the longer one of the two texts, by which batches are put together."""
        return max(map(len, self.pack(sample).values()))

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        """Raises: ConfigError, where a translation may have more tokens than the model has positions."""
        positions = model.config.max_length
        if self.max_length > positions:
            raise ConfigError(
                "translations may be longer than the model's positions",
                where="task.max_length",
                received=self.max_length,
                allowed=f"up to {positions}, model.max_length",
            )

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        loss = self._cross_entropy(model, batch, "mean", self.label_smoothing)
        return Losses(loss, weight=(batch["next_ids"] >= 0).sum(dtype=jnp.float32))

    def _cross_entropy(self, model: nn.Layer, batch: Batch, reduction: str, smoothing: float) -> jax.Array:
        labelled = batch["next_ids"] >= 0
        logits = model(tokens_of(batch), Tokens(batch["target_ids"], labelled))
        target = jnp.where(labelled, batch["next_ids"], _IGNORED)
        return F.cross_entropy(
            logits, target, ignore_index=_IGNORED, reduction=reduction, label_smoothing=smoothing
        )

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "ids": {"meaning": "tokens of the translation, up to the end token"},
            "scores": {"meaning": "logarithm of the probability, by the length penalty"},
        }

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"ids" [N, max_length] int32, "scores" [N] float32}, see nlp.decoding.DecodedSequences; where the translation
        is known also {"losses" [N] float32}, the cross-entropy of its tokens, added up."""
        config, tokens = model.config, tokens_of(inputs)
        step, state = model.start(tokens, self.beam_size, self.max_length)
        decoded = search(
            step,
            state,
            jnp.zeros_like(tokens.ids[:, 0]) + config.bos_id,
            beam_size=self.beam_size,
            max_length=self.max_length,
            eos_id=config.eos_id,
            pad_id=config.pad_id,
            alpha=self.length_penalty,
        )
        outputs = {"ids": decoded.ids, "scores": decoded.scores}
        if "next_ids" not in inputs:
            return outputs
        return {**outputs, "losses": self._cross_entropy(model, inputs, "none", 0.0).sum(axis=1)}
