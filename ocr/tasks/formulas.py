"""The recognition of formulas: what is trained, scored and exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import plain, register
from framework.core.errors import InputError
from framework.core.model_config import ConfigT
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, Metric, Task
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from ocr.formulas.stage import FormulaOptions
from ocr.formulas.text import find_tokenizer
from ocr.layers.mbart_decoder import PAD, START
from ocr.tasks.contracts import FormulaNetwork


@register("task")
@dataclass(frozen=True)
class FormulaRecognition(Task[Sample, FormulaNetwork]):
    """The LaTeX of an image of one formula, by PP-FormulaNet. Input: "image" [N, H, W, 3] uint8 RGB, of FormulaImage.

    The loss is the mean cross-entropy of the tokens and of the end, without label smoothing, as upstream has it.
    Samples have their tokens as `labels`, see FormulaTokens.

    Attributes:
        tokenizer: As of FormulaTokens, for the scores.
        size_hw: Of the images.
        max_tokens: Formulas of more tokens, with start and end, do not count in training; in evaluation they do.

    Source: PaddleOCR configs/rec/PP-FormuaNet/PP-FormulaNet-S.yaml, ppocr/losses/rec_ppformulanet_loss.py
    """

    normalize: Normalize
    tokenizer: str
    size_hw: tuple[int, int] = (384, 384)
    max_tokens: int = 1024

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        packed = self.pack_evaluated(sample)
        if sample.labels is None or sample.labels.ndim != 1:
            raise InputError(
                "a sample has no tokens", where=sample.id, allowed="labels [T], as FormulaTokens makes them"
            )
        tokens = np.full(self.max_tokens, PAD, np.int32)
        counts = len(sample.labels) <= self.max_tokens
        if counts:
            tokens[: len(sample.labels)] = sample.labels
        return {**packed, "tokens": tokens, "counts": np.array(counts, np.float32)}

    def pack_evaluated(self, sample: Sample) -> dict[str, np.ndarray]:
        if not isinstance(sample.text, str):
            raise InputError("a sample has no formula", where=sample.id, allowed="LaTeX as text")
        return {"image": sample.image, "text": np.array(sample.text)}

    def adapt_model(self, config: ConfigT) -> ConfigT:
        if getattr(config, "max_tokens", 0) is not None:
            return config
        return replace(config, max_tokens=self.max_tokens)

    def loss(self, model: FormulaNetwork, batch: Batch) -> Losses:
        step, tokens = model.head.config.step, batch["tokens"]
        # The first tokens come after so many starts as are said in a step.
        starts = jnp.full((tokens.shape[0], step - 1), START, tokens.dtype)
        tokens = jnp.concatenate([starts, tokens], axis=1)
        logits = model(self.normalize(batch["image"]), tokens[:, :-step]).astype(jnp.float32)
        wanted = tokens[:, step:]
        counts = (wanted != PAD).astype(jnp.float32) * batch["counts"][:, None]
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), wanted[..., None], axis=-1)[..., 0]
        total = jnp.maximum(counts.sum(), 1.0)
        hits = jnp.where(logits.argmax(axis=-1) == wanted, counts, 0.0).sum() / total
        return Losses(-(picked * counts).sum() / total, {"accuracy": hits}, counts.sum())

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "tokens": {"meaning": "numbers of tokens, up to the first end token"},
            "probabilities": {"meaning": "of each token", "range": [0, 1]},
        }

    def infer(self, model: FormulaNetwork, inputs: Batch) -> dict[str, jax.Array]:
        """{"tokens": [N, T] int32, "probabilities": [N, T]}; what stands behind the first END says nothing."""
        tokens, probabilities, _ = model.read(self.normalize(inputs["image"]))
        return {"tokens": tokens, "probabilities": probabilities}

    def check(self, model: FormulaNetwork, labels: tuple[str, ...]) -> None:
        """Any model fits that `read`s; FormulaTokens compares the vocabularies."""

    def describe_stage(self, buckets: tuple[int, ...] | None) -> dict[str, JSON]:
        """What an artifact's config holds, so that it runs as the formula stage."""
        return {"kind": "formula", "options": plain(FormulaOptions(self.normalize, self.size_hw))}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        from ocr.formulas.scores import FormulaScores

        return {"formula": FormulaScores(find_tokenizer(self.tokenizer))}
