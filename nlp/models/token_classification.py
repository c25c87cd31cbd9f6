"""A tag for each token, chosen by itself, from what an encoder makes of it.

Paper: Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 5.3
Reference: PaddleNLP `{Bert,Ernie,Roberta,Albert,Electra}ForTokenClassification`
Differs: nothing in the function computed.
Weights: PaddleNLP's and Hugging Face's; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp

from framework.config import register
from framework.nn import functional as F
from nlp.contracts import Tokens
from nlp.layers.encoder_model import ClassifierConfig, EncoderModel, head_linear


@dataclass(frozen=True)
class TokenClassifierConfig(ClassifierConfig):
    """See ClassifierConfig."""


@register("model", config=TokenClassifierConfig)
class TokenClassifier(EncoderModel[TokenClassifierConfig]):
    """A Tagger."""

    mean_over: ClassVar[Literal["tokens"]] = "tokens"

    def __init__(self, config: TokenClassifierConfig) -> None:
        super().__init__(config, config.encoder, config.dropout)
        self.add_prediction_head()
        self.classifier = head_linear(self.size.hidden_size, config.num_classes)

    def forward(self, tokens: Tokens) -> jax.Array:
        """Logits [N, T, num_classes] float32."""
        states = self.predict(self.encode(tokens).hidden)
        return self.classifier(self.dropout(states)).astype(jnp.float32)

    def loss(self, tokens: Tokens, tags: jax.Array) -> jax.Array:
        """Cross-entropy, its mean over the tokens that have a tag."""
        return F.cross_entropy(self(tokens), jnp.where(tags < 0, -100, tags))

    def tag(self, tokens: Tokens) -> tuple[jax.Array, jax.Array]:
        scores = F.softmax(self(tokens))
        return scores.argmax(axis=-1).astype(jnp.int32), scores.max(axis=-1)
