"""A tag for each token, chosen by itself, from what an encoder makes of it.

Paper: Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 5.3
Reference: PaddleNLP `{Bert,Ernie,Roberta,Albert}ForTokenClassification`
Differs: nothing in the function computed.
Weights: PaddleNLP's and Hugging Face's; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from framework.config import Kind, register
from framework.nn import functional as F
from nlp.contracts import Tokens
from nlp.layers.encoder_model import EncoderModel, check_head, head_linear
from zoo.layers.text_encoder import TextEncoderConfig


@dataclass(frozen=True)
class TokenClassifierConfig:
    """`encoder` is a TextEncoder; `dropout` before the classifier is the encoder's where None."""

    encoder: Annotated[TextEncoderConfig, Kind("backbone")]
    num_classes: int = 2
    dropout: float | None = None

    def __post_init__(self) -> None:
        check_head(self.num_classes, self.dropout, "TokenClassifier")


@register("model", config=TokenClassifierConfig)
class TokenClassifier(EncoderModel):
    """A Tagger."""

    def __init__(self, config: TokenClassifierConfig) -> None:
        super().__init__(config.encoder, config.dropout)
        self.config = config
        self.classifier = head_linear(self.size.hidden_size, config.num_classes)

    def forward(self, tokens: Tokens) -> jax.Array:
        """Logits [N, T, num_classes] float32."""
        return self.classifier(self.dropout(self.encode(tokens).hidden)).astype(jnp.float32)

    def loss(self, tokens: Tokens, tags: jax.Array) -> jax.Array:
        """Cross-entropy, its mean over the tokens that have a tag."""
        return F.cross_entropy(self(tokens), jnp.where(tags < 0, -100, tags))

    def tag(self, tokens: Tokens) -> tuple[jax.Array, jax.Array]:
        scores = F.softmax(self(tokens))
        return scores.argmax(axis=-1).astype(jnp.int32), scores.max(axis=-1)
