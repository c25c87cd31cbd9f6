"""Words read in any order: the training of PARSeq."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework.config import register
from framework.core.errors import ConfigError
from framework.core.rng import next_key
from framework.engine.task import Batch, Losses
from framework.nn.layer import Layer
from ocr.layers.parseq import END, random_permutations
from ocr.losses.text import permuted_cross_entropy, permuted_weights
from ocr.tasks.text import TextRecognition


@register("task")
@dataclass(frozen=True)
class PermutedTextRecognition(TextRecognition):
    """What words say, by a model that reads them in any order, such as PARSeq. Inputs and scores as of TextRecognition,
    but every word is stretched to the size of the model, so no column is padding.

    Every step draws orders of reading for the whole batch: from left to right, from right to left, and others, each
    with its mirror image. The loss is the cross-entropy of each symbol, given those before it in that order.

    Attributes:
        permutations: How many orders; even. 2: those two alone.

    Source: https://arxiv.org/abs/2207.06966, section 3.2, PaddleOCR configs/rec/rec_vit_parseq.yml
    """

    height: int = 32
    width: int | None = 128
    stretch: bool = True
    permutations: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.permutations < 2 or self.permutations % 2:
            raise ConfigError(
                "orders of reading come in pairs",
                where="task.permutations",
                received=self.permutations,
                allowed="2, 4, 6, …",
            )
        for name in ("center", "distill"):
            if getattr(self, name) is not None:
                raise ConfigError(
                    f"{name} is for recognisers with a CTC head",
                    where=f"task.{name}",
                    received=type(getattr(self, name)).__name__,
                    allowed="none, or the task TextRecognition",
                )

    def loss(self, model: Layer, batch: Batch) -> Losses:
        tokens = self.word_tokens(batch["target"], batch["target_length"])
        orders = random_permutations(next_key(), self.max_text_length, self.permutations)
        logits = model.forward_permuted(self.normalize(batch["image"]), tokens, orders)
        marks = {"end": END, "padding": model.head.padding}
        value = permuted_cross_entropy(logits, tokens, batch["counts"], **marks)
        weights = permuted_weights(self.permutations, tokens, batch["counts"], **marks)
        return Losses(value, weight=weights.sum())

    def word_tokens(self, target: jax.Array, length: jax.Array) -> jax.Array:
        """Classes [N, L] as the decoder takes them [N, L + 2]: start, symbols, end, padding."""
        start = self.alphabet.characters.num_classes
        position = jnp.arange(target.shape[1] + 2)[None]
        tokens = jnp.where(position <= length[:, None], jnp.pad(target, ((0, 0), (1, 1))), start + 1)
        tokens = jnp.where(position == length[:, None] + 1, END, tokens)
        return jnp.where(position == 0, start, tokens)

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """As of TextRecognition; "width" is not looked at."""
        indices, probabilities = model.read(self.normalize(inputs["image"]))
        return {"indices": indices, "probabilities": probabilities}
