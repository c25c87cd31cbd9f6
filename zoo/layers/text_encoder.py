"""What BERT and its kin share: sizes, embeddings, blocks that normalise behind the residual, and the pooler.

Paper: Devlin et al. 2019, https://arxiv.org/abs/1810.04805; the block is that of https://arxiv.org/abs/1706.03762
Reference: PaddleNLP paddlenlp/transformers/{bert,ernie,roberta}/modeling.py
Weights: PaddleNLP's names; `HUGGING_FACE` turns those of the transformers library into them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.core.errors import ConfigError, ShapeError, nearest
from framework.io.interop.model_folder import is_model_folder
from framework.nn import functional as F
from zoo.contracts import Encoded
from zoo.layers.mlp import NARROW, narrow_linear
from zoo.text.folder_config import folder_fields

ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate=True),
    "relu": F.relu,
    "silu": F.silu,
    "tanh": F.tanh,
}
"""By the names in upstream's `hidden_act`."""

_BLOCK = r"encoder\.layer\.(\d+)\."
HUGGING_FACE = (
    (r"LayerNorm\.gamma$", "LayerNorm.weight"),
    (r"LayerNorm\.beta$", "LayerNorm.bias"),
    (r"embeddings\.LayerNorm\.", "embeddings.layer_norm."),
    (_BLOCK + r"attention\.self\.(q|k|v)(?:uery|ey|alue)\.", r"encoder.layers.\1.self_attn.\2_proj."),
    (_BLOCK + r"attention\.output\.dense\.", r"encoder.layers.\1.self_attn.out_proj."),
    (_BLOCK + r"attention\.output\.LayerNorm\.", r"encoder.layers.\1.norm1."),
    (_BLOCK + r"intermediate\.dense\.", r"encoder.layers.\1.linear1."),
    (_BLOCK + r"output\.dense\.", r"encoder.layers.\1.linear2."),
    (_BLOCK + r"output\.LayerNorm\.", r"encoder.layers.\1.norm2."),
)
"""Patterns and replacements for `state_renames`, wherever the encoder stands in a model."""


class TextSize(NamedTuple):
    """What a variant says. Each entry can be set in the config as well.

    `max_positions` counts the rows of the position embedding, `epsilon` is that of every normalisation, `dropout` that
    of the hidden states and `attention_dropout` that of the attention's weights.
    """

    vocab_size: int
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int = 3072
    max_positions: int = 512
    type_vocab_size: int = 2
    activation: str = "gelu"
    epsilon: float = 1e-12
    pad_id: int = 0
    dropout: float = 0.1
    attention_dropout: float = 0.1
    task_types: int = 0
    """Kinds of pre-training tasks that have an embedding; 0: none is added. ERNIE only."""
    embedding_size: int | None = None
    """Width of the embeddings where it is not `hidden_size`. ALBERT only, as what follows."""
    num_groups: int = 1
    layers_per_group: int = 1


@dataclass(frozen=True)
class TextEncoderConfig:
    """A row of the module's VARIANTS, or a folder with the config.json of such a model, as transformers and PaddleNLP
    write it; what is not None replaces an entry of it (see TextSize).

    `pooler` makes `Encoded.pooled`: a linear layer and tanh on the first token.
    """

    variant: str = ""
    vocab_size: int | None = None
    hidden_size: int | None = None
    num_layers: int | None = None
    num_heads: int | None = None
    intermediate_size: int | None = None
    max_positions: int | None = None
    type_vocab_size: int | None = None
    activation: str | None = None
    epsilon: float | None = None
    pad_id: int | None = None
    dropout: float | None = None
    attention_dropout: float | None = None
    pooler: bool = True

    def size(self, variants: dict[str, TextSize]) -> TextSize:
        """The row of `variants` with this config's own entries.

        Raises:
            ConfigError: the variant is unknown, a size below 1, heads that do not divide the width, an unknown
                activation, a dropout that is no probability, or a padding token outside of the vocabulary.
        """
        row = self._row(variants)
        own = {name: getattr(self, name, None) for name in row._fields}
        size = row._replace(**{name: value for name, value in own.items() if value is not None})
        checks = {
            "activation": (size.activation in ACTIVATIONS, ", ".join(ACTIVATIONS)),
            "num_heads": (
                size.num_heads > 0 and size.hidden_size % size.num_heads == 0,
                "a divisor of hidden_size",
            ),
            "dropout": (0 <= size.dropout < 1, "from 0, below 1"),
            "attention_dropout": (0 <= size.attention_dropout < 1, "from 0, below 1"),
            "pad_id": (0 <= size.pad_id < size.vocab_size, "a token of the vocabulary"),
            "num_groups": (
                0 < size.num_groups <= max(size.num_layers, 0) and size.num_layers % size.num_groups == 0,
                "a divisor of num_layers",
            ),
        }
        for name in ("vocab_size", "hidden_size", "num_layers", "intermediate_size", "layers_per_group"):
            checks[name] = (getattr(size, name) > 0, "from 1")
        for name in ("max_positions", "type_vocab_size"):
            checks[name] = (getattr(size, name) > 0, "from 1")
        for name, (fits, allowed) in checks.items():
            if not fits:
                raise ConfigError(
                    "this is no text encoder",
                    where=f"{type(self).__name__}.{name}",
                    received=repr(getattr(size, name)),
                    allowed=allowed,
                )
        return size

    def _row(self, variants: dict[str, TextSize]) -> TextSize:
        if self.variant in variants:
            return variants[self.variant]
        name, folder = type(self).__name__.removesuffix("Config"), Path(self.variant).expanduser()
        if is_model_folder(folder):
            return TextSize(**folder_fields(folder, name.lower()))
        near = nearest(self.variant, variants)
        raise ConfigError(
            f"unknown variant of {name}",
            received=repr(self.variant),
            allowed=f"{', '.join(variants)}; or a folder with a config.json",
            fix=f"did you mean {near!r}?" if near else None,
        )


def check_ids(input_ids: jax.Array, limit: int, where: str) -> None:
    """Raises: ShapeError, where ids are not [N, T] or there are more tokens than positions."""
    if input_ids.ndim != 2:
        raise ShapeError(
            "a text encoder takes one id a token", where=where, received=input_ids.shape, allowed="[N, T]"
        )
    count = input_ids.shape[1]
    if isinstance(count, int) and not 1 <= count <= limit:
        raise ShapeError(
            "there are not as many positions as tokens",
            where=where,
            received=f"{count} tokens",
            allowed=f"from 1 to {limit}",
            fix="cut the texts: max_length of the tokenizer's transform",
        )


class TextEmbeddings(nn.Layer):
    """The sum of the embeddings of words, positions and types, normalised: [N, T] -> [N, T, width].

    With `padding` the padding token's vector is zero and not trained.
    """

    def __init__(self, size: TextSize, padding: bool) -> None:
        super().__init__()
        width = size.embedding_size or size.hidden_size
        pad = size.pad_id if padding else None
        self.word_embeddings = nn.Embedding(size.vocab_size, width, pad, weight_attr=NARROW)
        self.position_embeddings = nn.Embedding(size.max_positions, width, weight_attr=NARROW)
        self.token_type_embeddings = nn.Embedding(size.type_vocab_size, width, weight_attr=NARROW)
        if size.task_types:
            self.task_type_embeddings = nn.Embedding(size.task_types, width, weight_attr=NARROW)
        self.has_tasks = size.task_types > 0
        self.layer_norm = nn.LayerNorm(width, size.epsilon)
        self.dropout = nn.Dropout(size.dropout)

    def forward(
        self,
        input_ids: jax.Array,
        token_type_ids: jax.Array | None,
        positions: jax.Array,
        task_type_ids: jax.Array | None = None,
    ) -> jax.Array:
        """`positions` [T], or [N, T]; types are 0 where None."""
        zero = jnp.zeros((), jnp.int32)
        x = self.word_embeddings(input_ids) + self.position_embeddings(positions)
        x = x + self.token_type_embeddings(zero if token_type_ids is None else token_type_ids)
        if self.has_tasks:
            x = x + self.task_type_embeddings(zero if task_type_ids is None else task_type_ids)
        return self.dropout(self.layer_norm(x))


class Block(nn.Layer):
    """Attention and a feed-forward part on [N, T, hidden_size]; each is added to its input, and the sum normalised."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        width = size.hidden_size
        self.self_attn = nn.MultiHeadAttention(
            width, size.num_heads, size.attention_dropout, weight_attr=NARROW
        )
        self.linear1 = narrow_linear(width, size.intermediate_size)
        self.linear2 = narrow_linear(size.intermediate_size, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, size.epsilon), nn.LayerNorm(width, size.epsilon)
        self.dropout = nn.Dropout(size.dropout)
        self.activation = ACTIVATIONS[size.activation]

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """`mask` [N, 1, 1, T] bool: the tokens that are seen."""
        x = self.norm1(x + self.dropout(self.self_attn(x, attn_mask=mask)))
        return self.norm2(x + self.dropout(self.linear2(self.activation(self.linear1(x)))))


class Blocks(nn.Layer):
    """`layers`, one after the other."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        self.layers = nn.LayerList([Block(size) for _ in range(size.num_layers)])

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Pooler(nn.Layer):
    """tanh of a linear layer on the first token: [N, T, D] -> [N, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = narrow_linear(width, width)

    def forward(self, hidden: jax.Array) -> jax.Array:
        return F.tanh(self.dense(hidden[:, 0]))


class PostNormEncoder(nn.Layer):
    """The TextEncoder that BERT, ERNIE and RoBERTa are. They differ in what they say of positions and of padding."""

    prefix: ClassVar[str]
    training_only = ("embeddings.position_ids", "embeddings.token_type_ids")  # constants in older files
    pads: ClassVar[bool]
    """Whether the padding token's word vector is zero and not trained."""

    def __init__(self, config: TextEncoderConfig, size: TextSize) -> None:
        super().__init__()
        self.config, self.size = config, size
        self.embeddings = TextEmbeddings(size, self.pads)
        self.encoder = Blocks(size)
        self.pooler = Pooler(size.hidden_size) if config.pooler else None

    @property
    def max_tokens(self) -> int:
        """The longest text that has a position for each token."""
        return self.size.max_positions

    def positions(self, input_ids: jax.Array) -> jax.Array:
        """The rows of the position embedding that the tokens get, [T] or [N, T] int32."""
        return jnp.arange(input_ids.shape[1])

    def forward(
        self,
        input_ids: jax.Array,
        token_type_ids: jax.Array | None = None,
        mask: jax.Array | None = None,
        task_type_ids: jax.Array | None = None,
    ) -> Encoded:
        """As TextEncoder; `task_type_ids` [N, T] int32, 0 where None, are read where the size has `task_types`."""
        check_ids(input_ids, self.max_tokens, type(self).__name__)
        seen = input_ids != self.size.pad_id if mask is None else mask
        x = self.embeddings(input_ids, token_type_ids, self.positions(input_ids), task_type_ids)
        hidden = self.encoder(x, seen[:, None, None])
        return Encoded(hidden, None if self.pooler is None else self.pooler(hidden))
