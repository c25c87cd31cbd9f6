"""A class for a text, or for a pair of texts, from what an encoder makes of the first token.

Paper: Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 4.1
Reference: PaddleNLP `{Bert,Ernie,Roberta,Albert,Electra}ForSequenceClassification`
Differs: nothing in the function computed.
Weights: PaddleNLP's and Hugging Face's; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from nlp.contracts import Tokens
from nlp.layers.encoder_model import ClassifierConfig, EncoderModel, head_linear
from zoo.layers.hidden_activations import ACTIVATIONS


@dataclass(frozen=True)
class SequenceClassifierConfig(ClassifierConfig):
    """See ClassifierConfig. The encoder has its pooler."""


class FirstTokenClassifier(nn.Layer):
    """A layer and a function instead of a pooler, [N, T, width] -> [N, num_classes]."""

    def __init__(self, width: int, num_classes: int, dropout: float, activation: str) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.dense = head_linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.out_proj = head_linear(width, num_classes)

    def forward(self, hidden: jax.Array) -> jax.Array:
        x = self.activation(self.dense(self.dropout(hidden[:, 0])))
        return self.out_proj(self.dropout(x))


@register("model", config=SequenceClassifierConfig)
class SequenceClassifier(EncoderModel[SequenceClassifierConfig]):
    """A TextClassifier."""

    def __init__(self, config: SequenceClassifierConfig) -> None:
        super().__init__(config, config.encoder, config.dropout)
        self.add_prediction_head()
        width = self.size.hidden_size
        if self.head is not None:
            self.classifier = head_linear(width, config.num_classes)
        elif not self.names.pooler:
            self.classifier = FirstTokenClassifier(
                width, config.num_classes, self.dropout.p, self.names.activation
            )
        elif self.text_encoder.pooler is None:
            raise ConfigError(
                "the classifier reads what the pooler gives",
                where="SequenceClassifier.encoder.pooler",
                received=False,
                allowed=True,
            )
        else:
            self.classifier = head_linear(width, config.num_classes)

    def forward(self, tokens: Tokens) -> jax.Array:
        encoded = self.encode(tokens)
        if self.head is not None:
            is_mean = self.size.classifier_pooling == "mean"
            state = self.mean(encoded.hidden, tokens.mask) if is_mean else encoded.hidden[:, 0]
            logits = self.classifier(self.dropout(self.predict(state)))
        elif self.names.pooler:
            logits = self.classifier(self.dropout(encoded.pooled))
        else:
            logits = self.classifier(encoded.hidden)
        return logits.astype(jnp.float32)
