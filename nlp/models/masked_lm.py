"""The words behind masked tokens: what encoders are pre-trained with.

Paper: Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 3.1
Reference: PaddleNLP `{Bert,Ernie,Roberta,Albert,Electra}ForMaskedLM`
Differs: upstream's state dict holds the word embeddings and the bias a second time, as the decoder's; ours does not,
    and takes them from there where a file has nothing else. A second head of pre-training (`cls.seq_relationship`,
    `sop_classifier`) may be in a file and is not ours. The head's normalisation has the
    encoder's epsilon, as in ALBERT's own code and in transformers; PaddleNLP's ALBERT has 1e-5 there.
Weights: PaddleNLP's and Hugging Face's; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import Kind, register
from framework.nn import functional as F
from nlp.contracts import Tokens
from nlp.layers.encoder_model import EncoderModel, head_linear
from zoo.layers.hidden_activations import ACTIVATIONS
from zoo.layers.text_encoder import HeadNames, TextEncoderConfig, TextSize


@dataclass(frozen=True)
class MaskedLMConfig:
    """`encoder` is a TextEncoder."""

    encoder: Annotated[TextEncoderConfig, Kind("backbone")]


class WordHead(nn.Layer):
    """[..., hidden_size] -> logits [..., vocab_size] without a bias: a layer, and products with the word embeddings."""

    def __init__(self, size: TextSize, names: HeadNames) -> None:
        super().__init__()
        width = size.embedding_size or size.hidden_size
        self.names, self.activation = names, ACTIVATIONS[size.activation]
        self.add_sublayer(names.transform, head_linear(size.hidden_size, width))
        self.layer_norm = nn.LayerNorm(width, size.epsilon)

    def forward(self, hidden: jax.Array, words: jax.Array) -> jax.Array:
        """`words` [vocab_size, width] are the encoder's."""
        x = self.layer_norm(self.activation(getattr(self, self.names.transform)(hidden)))
        return F.matmul(x, words, transpose_y=True)


def _sublayer(owner: nn.Layer, path: Sequence[str]) -> nn.Layer:
    """The layer at a path, made on the way where it is not there."""
    for name in path:
        inner = dict(owner.named_children()).get(name)
        owner = owner.add_sublayer(name, nn.Layer()) if inner is None else inner
    return owner


@register("model", config=MaskedLMConfig)
class MaskedLM(EncoderModel[MaskedLMConfig]):
    """Scores every word of the vocabulary for each token."""

    def __init__(self, config: MaskedLMConfig) -> None:
        super().__init__(config, config.encoder)
        names = self.names
        self.add_prediction_head()
        if self.head is None:
            *above, last = names.masked_lm.split(".")
            _sublayer(self, above).add_sublayer(last, WordHead(self.size, names))
        *above, last = names.bias.split(".")
        owner = _sublayer(self, above)
        owner.add_parameter(last, self.create_parameter((self.size.vocab_size,), is_bias=True))
        head = re.escape(names.masked_lm)
        self.training_only = (*self.training_only, "cls.seq_relationship.", "sop_classifier.", *names.unused)
        self.state_renames = (  # type: ignore[misc]
            *self.state_renames,
            (rf"^{head}\.decoder[._]weight$", f"{self.prefix}.embeddings.word_embeddings.weight"),
            (rf"^{head}\.(?:decoder[._])?bias$", names.bias),
            (rf"^({head}\.)transform\.LayerNorm\.", r"\1layer_norm."),
            (rf"^({head}\.)transform\.dense\.", r"\1transform."),
        )

    def forward(self, tokens: Tokens, positions: jax.Array | None = None) -> jax.Array:
        """Logits [N, T, vocab_size] float32, or [N, K, vocab_size] at the tokens `positions` [N, K] int32."""
        hidden = self.encode(tokens).hidden
        if positions is not None:
            hidden = jnp.take_along_axis(hidden, positions[..., None], axis=1)
        head: nn.Layer = functools.reduce(getattr, self.names.masked_lm.split("."), self)
        bias: jax.Array = functools.reduce(getattr, self.names.bias.split("."), self)  # type: ignore[assignment]
        words = self.text_encoder.embeddings.word_embeddings.weight
        logits = head(hidden, words) if self.head is None else F.matmul(head(hidden), words, transpose_y=True)
        return (logits + bias).astype(jnp.float32)

    def loss(self, tokens: Tokens, words: jax.Array, positions: jax.Array | None = None) -> jax.Array:
        """Cross-entropy of `words` [N, T] int32, or [N, K] at `positions`: the mean over those that are not below 0."""
        return F.cross_entropy(self(tokens, positions), jnp.where(words < 0, -100, words))
