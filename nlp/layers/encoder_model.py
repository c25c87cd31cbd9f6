"""What the models on a text encoder share: the encoder under upstream's name, and upstream's names of heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import Kind, build
from framework.core.errors import ConfigError
from framework.core.model_config import ConfigT
from framework.nn import initializer as I
from nlp.contracts import Tokens
from zoo.layers.text_encoder import Encoded, TextEncoder, TextEncoderConfig

_START = I.Normal(0.0, 0.02)  # `initializer_range` of the published configurations


def head_linear(in_features: int, out_features: int) -> nn.Linear:
    """A linear layer that starts as upstream's heads do."""
    return nn.Linear(in_features, out_features, weight_attr=_START)


def check_head(num_classes: int, dropout: float | None, where: str) -> None:
    """Raises: ConfigError, where there is no class or `dropout` is no probability."""
    if num_classes < 1 or not 0 <= (dropout or 0) < 1:
        raise ConfigError(
            "a setting of the head is out of range",
            where=where,
            received=f"num_classes {num_classes}, dropout {dropout}",
            allowed="num_classes from 1, 0 <= dropout < 1",
        )


@dataclass(frozen=True)
class ClassifierConfig:
    """`encoder` is a TextEncoder; `dropout` before the classifier is the encoder's where None."""

    encoder: Annotated[TextEncoderConfig, Kind("backbone")]
    num_classes: int = 2
    dropout: float | None = None

    def __post_init__(self) -> None:
        check_head(self.num_classes, self.dropout, type(self).__name__.removesuffix("Config"))


class EncoderModel(nn.Model[ConfigT]):
    """Base of the models. The encoder hangs under its own `prefix`, so that names are upstream's.

    `dropout` before the head is the encoder's where it is None.
    """

    training_only: tuple[str, ...] = ()  # what else a file may hold

    def __init__(self, config: ConfigT, encoder: TextEncoderConfig, dropout: float | None = None) -> None:
        super().__init__(config)
        built: TextEncoder = build(encoder)
        self.prefix, self.size, self.names = built.prefix, built.size, built.heads
        if not self.names.pooler:
            built.pooler = None
        self.add_sublayer(self.prefix, built)
        self.head: nn.Layer | None = None
        self.dropout = nn.Dropout(self.size.dropout if dropout is None else dropout)
        spare = (*built.training_only, *(() if self.names.pooler else ("pooler.",)))
        self.training_only = tuple(f"{self.prefix}.{name}" for name in spare)
        self.state_renames = (  # type: ignore[misc]
            (rf"^(?:{self.names.huggingface}|ptm)\.", f"{self.prefix}."),  # `ptm` in PaddleNLP's examples
            *self.names.renames,
        )

    @property
    def text_encoder(self) -> TextEncoder:
        return getattr(self, self.prefix)

    @property
    def vocab_size(self) -> int:
        """Numbers of tokens are below it."""
        return self.size.vocab_size

    @property
    def max_tokens(self) -> int:
        """The longest text that has a position for each token."""
        return self.text_encoder.max_tokens

    def encode(self, tokens: Tokens) -> Encoded:
        return self.text_encoder(tokens.ids, tokens.type_ids, tokens.mask)

    def add_prediction_head(self) -> None:
        """`head`, where the encoder has a layer that stands under all heads."""
        self.head = self.text_encoder.build_prediction_head()

    def predict(self, hidden: jax.Array) -> jax.Array:
        """[..., hidden_size]: what a head reads of states."""
        return hidden if self.head is None else self.head(hidden)

    @staticmethod
    def mean(hidden: jax.Array, mask: jax.Array) -> jax.Array:
        """The mean of the real tokens of hidden [N, T, D] by `mask` [N, T], [N, D] float32."""
        total = jnp.where(mask[..., None], hidden.astype(jnp.float32), 0).sum(axis=1)
        return total / jnp.maximum(mask.sum(axis=1, keepdims=True, dtype=jnp.float32), 1)

    def first(self, tokens: Tokens) -> jax.Array:
        """[N, D]: what the pooler gives; the first token's state where there is no pooler."""
        encoded = self.encode(tokens)
        return encoded.hidden[:, 0] if encoded.pooled is None else encoded.pooled
