"""SimNet: two texts, each turned into a vector by one and the same small network, and a classifier of both.

Paper: Mou et al. 2016, https://arxiv.org/abs/1512.08422 (two texts, one encoder, a classifier of both vectors)
Reference: PaddleNLP slm/examples/text_matching/simnet (`SimNet`: bow, cnn, gru, lstm)
Differs: `compare` "difference", which learns from few pairs; dropout, 0 by default; a token may be a sum of features;
    what is padded takes no part in the maximum of "cnn"; `fc_hidden_size` is 128 in all networks (upstream: 96 in gru).
Weights: PaddleNLP's names but for the recurrent layers, see `state_renames`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.functional.slopes import absolute
from nlp.contracts import Tokens
from nlp.layers.token_embedding import check_network, embed
from nlp.models.text_cnn import WidthEncoder
from zoo.contracts import Contract


@dataclass(frozen=True)
class SimNetConfig:
    """The defaults are PaddleNLP's.

    Attributes:
        vocab_size: Token ids, or features, are below it; 0 is padding.
        network: "bow" adds the tokens' vectors up, "cnn" takes the largest values of filters over three tokens, "gru"
            and "lstm" the last state.
        hidden_size: Filters of "cnn"; width of "gru" and "lstm". "bow" has none.
        compare: What the classifier reads of the vectors u and v: "concat" is [u, v]; "difference" is [|u - v|, u . v]
            of the vectors scaled to length 1, so their cosine is known and it does not matter which text is the first.
    """

    vocab_size: int
    network: Literal["bow", "cnn", "gru", "lstm"] = "bow"
    num_classes: int = 2
    embedding_dim: int = 128
    hidden_size: int = 128
    fc_hidden_size: int = 128
    compare: Literal["concat", "difference"] = "concat"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        sizes = (self.vocab_size, self.num_classes, self.embedding_dim, self.hidden_size, self.fc_hidden_size)
        check_network("SimNet", sizes, self.dropout)


@register("model", config=SimNetConfig)
class SimNet(nn.Model[SimNetConfig]):
    """A Matcher."""

    apart = True
    state_renames = (
        (r"^model\.", ""),
        (r"^(?:gru_encoder\.gru_layer|lstm_encoder\.lstm_layer)\.", "rnn."),
    )

    contract = Contract(fields={"network": "cnn", "compare": "difference"})

    def __init__(self, config: SimNetConfig) -> None:
        super().__init__(config)
        uniform = nn.ParamAttr(initializer=I.Uniform(-0.1, 0.1))
        self.embedder = nn.Embedding(config.vocab_size, config.embedding_dim, weight_attr=uniform)
        self.dropout = nn.Dropout(config.dropout)
        width = config.embedding_dim if config.network == "bow" else config.hidden_size
        if config.network == "cnn":
            self.encoder = WidthEncoder(config.embedding_dim, width, (3,))
        elif config.network != "bow":
            self.rnn = (nn.GRU if config.network == "gru" else nn.LSTM)(config.embedding_dim, width)
        read = 2 * width if config.compare == "concat" else width + 1
        self.fc = nn.Linear(read, config.fc_hidden_size)
        self.output_layer = nn.Linear(config.fc_hidden_size, config.num_classes)

    def vector(self, tokens: Tokens) -> jax.Array:
        """[N, D]"""
        x = embed(self.embedder, tokens.ids)
        if self.config.network == "bow":
            return F.tanh(jnp.where(tokens.mask[..., None], x, 0).sum(axis=1))
        if self.config.network == "cnn":
            return self.encoder(x, tokens.mask)
        _, last = self.rnn(x, sequence_length=tokens.mask.sum(axis=1))
        return (last if self.config.network == "gru" else last[0])[-1]

    def forward(self, tokens: Tokens, pair: Tokens) -> jax.Array:
        """Logits [N, num_classes] float32."""
        x = self.compare(self.vector(tokens), self.vector(pair))
        # No dropout before this: it would make the vectors of one text differ.
        x = F.tanh(self.fc(self.dropout(x)))
        return self.output_layer(self.dropout(x)).astype(jnp.float32)

    def compare(self, u: jax.Array, v: jax.Array) -> jax.Array:
        """What the classifier reads of two vectors [N, D]."""
        if self.config.compare == "concat":
            return jnp.concatenate([u, v], axis=-1)
        u, v = F.normalize(u, axis=-1), F.normalize(v, axis=-1)
        return jnp.concatenate([absolute(u - v), (u * v).sum(axis=-1, keepdims=True)], axis=-1)
