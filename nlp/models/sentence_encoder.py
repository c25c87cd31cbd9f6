"""An embedding for each text, from what an encoder makes of its tokens.

Papers: Devlin et al. 2019, https://arxiv.org/abs/1810.04805 (the pooler); Reimers and Gurevych 2019,
https://arxiv.org/abs/1908.10084, section 3 (the first token, and the mean)
Reference: PaddleNLP `Taskflow("feature_extraction")` (taskflow/text_feature_extraction.py); sentence-transformers
Weights: of an encoder, and of any model on one, whose heads are left out; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from framework.config import Kind, register
from framework.core.errors import ConfigError
from nlp.contracts import Tokens
from nlp.layers.embedding_head import DenseConfig, EmbeddingHead, Pooling, pool
from nlp.layers.encoder_model import EncoderModel
from zoo.contracts import Contract
from zoo.layers.text_encoder import TextEncoderConfig

# Heads that files hold besides; that of a masked language model is the family's own.
_HEADS = ("cls.", "classifier.", "qa_outputs.", "sop_classifier.", "emb_reduce_linear.")


@dataclass(frozen=True)
class SentenceEncoderConfig:
    """`encoder` is a TextEncoder.

    Attributes:
        pooling: The vector of the first token (cls), the mean of those of all tokens, what the encoder's pooler gives,
            or another of nlp/layers/embedding_head.py.
        normalized: Vectors get length 1, so that the product of two is their cosine.
        dense: Linear layers behind the pooling.
    """

    encoder: Annotated[TextEncoderConfig, Kind("backbone")]
    pooling: Pooling = "cls"
    normalized: bool = False
    dense: tuple[DenseConfig, ...] = ()


@register("model", config=SentenceEncoderConfig)
class SentenceEncoder(EncoderModel[SentenceEncoderConfig]):
    """What is padded does not change a text's vector."""

    contract = Contract(fields={"pooling": "mean", "normalized": True})

    def __init__(self, config: SentenceEncoderConfig) -> None:
        super().__init__(config, config.encoder)
        if config.pooling == "pooler" and self.text_encoder.pooler is None:
            raise ConfigError(
                "the encoder has no pooler",
                where="SentenceEncoder.pooling",
                received="pooler",
                allowed="cls, mean" + ("; or encoder.pooler: true" if self.names.pooler else ""),
            )
        self.dense = EmbeddingHead(self.size.hidden_size, config.dense, config.normalized)
        words = (self.names.masked_lm.partition(".")[0] + ".", self.names.bias, *self.names.unused)
        self.training_only = (*self.training_only, *_HEADS, *words)
        if config.pooling != "pooler" and self.text_encoder.pooler is None:
            self.training_only = (*self.training_only, f"{self.prefix}.pooler.", "pooler.")
        self.state_renames = (  # type: ignore[misc]
            *self.state_renames,
            (r"^(embeddings|embeddings_project|encoder|pooler)\.", rf"{self.prefix}.\1."),
        )

    def embed(self, tokens: Tokens) -> jax.Array:
        """[N, D] float32; D is `hidden_size`, or the width of the last linear layer."""
        encoded = self.encode(tokens)
        if self.config.pooling == "pooler":
            return self.dense(encoded.pooled.astype(jnp.float32))  # type: ignore[union-attr]
        return self.dense(pool(encoded.hidden, tokens.mask, self.config.pooling))

    def forward(self, tokens: Tokens) -> jax.Array:
        return self.embed(tokens)
