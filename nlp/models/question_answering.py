"""The answer to a question as a span of a text: where it starts and where it ends.

Paper: Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 4.2
Reference: PaddleNLP `{Bert,Ernie,Roberta,Albert,Electra}ForQuestionAnswering`
Differs: padding is never a start or an end; PaddleNLP's BERT drops some of the hidden states before the head in
    training, the others and the paper do not; its ALBERT returns the logits of the start twice.
Weights: PaddleNLP's and Hugging Face's; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp

from framework.config import Kind, register
from framework.nn import functional as F
from nlp.contracts import Tokens
from nlp.layers.encoder_model import EncoderModel, head_linear
from zoo.layers.text_encoder import TextEncoderConfig

_NEVER = -1e9


class Answers(NamedTuple):
    """Logits [N, T] float32 that the answer starts, and that it ends, at a token; the end belongs to the answer."""

    start: jax.Array
    end: jax.Array


@dataclass(frozen=True)
class QuestionAnsweringConfig:
    """`encoder` is a TextEncoder."""

    encoder: Annotated[TextEncoderConfig, Kind("backbone")]


@register("model", config=QuestionAnsweringConfig)
class QuestionAnswering(EncoderModel[QuestionAnsweringConfig]):
    """Reads a question and a text as a pair, and gives Answers."""

    def __init__(self, config: QuestionAnsweringConfig) -> None:
        super().__init__(config, config.encoder)
        self.add_prediction_head()
        self.add_sublayer(self.names.answers, head_linear(self.size.hidden_size, 2))
        self.state_renames = (*self.state_renames, (r"^qa_outputs\.", f"{self.names.answers}."))  # type: ignore[misc]

    def forward(self, tokens: Tokens) -> Answers:
        states = self.predict(self.encode(tokens).hidden)
        logits = getattr(self, self.names.answers)(states).astype(jnp.float32)
        logits = jnp.where(tokens.mask[..., None], logits, _NEVER)
        return Answers(logits[..., 0], logits[..., 1])

    def loss(self, tokens: Tokens, start: jax.Array, end: jax.Array) -> jax.Array:
        """The mean of the cross-entropies of start and end; `start`, `end` [N] int32 count tokens."""
        answers = self(tokens)
        return (F.cross_entropy(answers.start, start) + F.cross_entropy(answers.end, end)) / 2
