"""ALBERT: BERT with one block for all depths, and embeddings narrower than the hidden states.

Paper: Lan et al. 2020, https://arxiv.org/abs/1909.11942
Reference: PaddleNLP paddlenlp/transformers/albert/modeling.py (`AlbertModel`)
Differs: without a mask padding tokens are hidden, as the other encoders do it. Upstream's buffer
    `embeddings.position_ids`, which counts from 0, is none of ours; a file may hold it.
Weights: PaddleNLP's `albert-*`, and those of Hugging Face; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Encoded
from zoo.layers.mlp import narrow_linear
from zoo.layers.text_encoder import ACTIVATIONS, TextEmbeddings, TextEncoderConfig, TextSize, check_ids

HUGGING_FACE = ((r"(embeddings|attention|predictions)\.LayerNorm\.", r"\1.layer_norm."),)

_SIZES = {  # width, depth, heads, width of the feed-forward part
    "base": (768, 12, 12, 3072),
    "large": (1024, 24, 16, 4096),
    "xlarge": (2048, 24, 16, 8192),
    "xxlarge": (4096, 12, 64, 16384),
}
_V2 = {"activation": "gelu_new", "dropout": 0.0, "attention_dropout": 0.0, "embedding_size": 128}
_GELU = {**_V2, "activation": "gelu"}
_RELU = {**_V2, "activation": "relu"}
# Table 1 of the paper, and the configurations that its authors and PaddleNLP (albert/configuration.py) publish
VARIANTS: dict[str, TextSize] = {
    **{f"albert-{name}-v1": TextSize(30000, *sizes, embedding_size=128) for name, sizes in _SIZES.items()},
    "albert-xxlarge-v1": TextSize(30000, *_SIZES["xxlarge"], **_GELU),
    **{f"albert-{name}-v2": TextSize(30000, *sizes, **_V2) for name, sizes in _SIZES.items()},
    "albert-chinese-tiny": TextSize(21128, 312, 4, 12, 1248, **_GELU),
    "albert-chinese-small": TextSize(21128, 384, 6, 12, 1536, **_GELU),
    "albert-chinese-base": TextSize(21128, *_SIZES["base"], **_RELU),
    "albert-chinese-large": TextSize(21128, *_SIZES["large"], **_RELU),
    "albert-chinese-xlarge": TextSize(21128, *_SIZES["xlarge"], **_RELU),
    "albert-chinese-xxlarge": TextSize(21128, 4096, 12, 16, 16384, **_RELU),
}
SMALL = "albert-chinese-tiny"


@dataclass(frozen=True)
class AlbertConfig(TextEncoderConfig):
    """See TextEncoderConfig.

    Attributes:
        embedding_size: Width of the embeddings, before they are mapped to `hidden_size`.
        num_groups: Groups of blocks that share their weights; depth goes through the groups in order.
        layers_per_group: Different blocks in a group; `num_layers` counts how often a group runs.
    """

    variant: str = "albert-base-v2"
    embedding_size: int | None = None
    num_groups: int | None = None
    layers_per_group: int | None = None


class Attention(nn.Layer):
    """Self-attention of [N, T, hidden_size], added to its input and normalised."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        width = size.hidden_size
        self.heads, self.attention_dropout = size.num_heads, size.attention_dropout
        self.query, self.key, self.value, self.dense = (narrow_linear(width, width) for _ in range(4))
        self.layer_norm = nn.LayerNorm(width, size.epsilon)
        self.output_dropout = nn.Dropout(size.dropout)

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        n, t, c = x.shape
        query, key, value = (
            part(x).reshape(n, t, self.heads, c // self.heads) for part in (self.query, self.key, self.value)
        )
        mixed = F.scaled_dot_product_attention(
            query, key, value, mask, self.attention_dropout, training=self.training
        )
        return self.layer_norm(x + self.output_dropout(self.dense(mixed.reshape(n, t, c))))


class Block(nn.Layer):
    """Attention and a feed-forward part. As upstream, nothing is dropped behind the latter."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        self.full_layer_layer_norm = nn.LayerNorm(size.hidden_size, size.epsilon)
        self.attention = Attention(size)
        self.ffn = narrow_linear(size.hidden_size, size.intermediate_size)
        self.ffn_output = narrow_linear(size.intermediate_size, size.hidden_size)
        self.activation = ACTIVATIONS[size.activation]

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        x = self.attention(x, mask)
        return self.full_layer_layer_norm(x + self.ffn_output(self.activation(self.ffn(x))))


class Group(nn.Layer):
    """Blocks that run one after the other each time."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        self.albert_layers = nn.LayerList([Block(size) for _ in range(size.layers_per_group)])

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        for layer in self.albert_layers:
            x = layer(x, mask)
        return x


class Blocks(nn.Layer):
    """[N, T, embedding_size] -> [N, T, hidden_size]: each group runs num_layers / num_groups times."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        self.times = size.num_layers // size.num_groups
        self.embedding_hidden_mapping_in = narrow_linear(
            size.embedding_size or size.hidden_size, size.hidden_size
        )
        self.albert_layer_groups = nn.LayerList([Group(size) for _ in range(size.num_groups)])

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        x = self.embedding_hidden_mapping_in(x)
        for group in self.albert_layer_groups:
            for _ in range(self.times):
                x = group(x, mask)
        return x


@register("backbone", config=AlbertConfig)
class Albert(nn.Layer):
    """TextEncoder of zoo/contracts.py."""

    prefix = "transformer"
    training_only = ("embeddings.position_ids", "embeddings.token_type_ids")  # constants in files
    state_renames = ((r"^(?:transformer|albert)\.", ""), *HUGGING_FACE)

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        self.config = config
        self.size = size = config.size(VARIANTS)
        self.embeddings = TextEmbeddings(size, padding=True)
        self.encoder = Blocks(size)
        self.pooler = narrow_linear(size.hidden_size, size.hidden_size) if config.pooler else None

    @property
    def max_tokens(self) -> int:
        """The longest text that has a position for each token."""
        return self.size.max_positions

    def forward(
        self, input_ids: jax.Array, token_type_ids: jax.Array | None = None, mask: jax.Array | None = None
    ) -> Encoded:
        check_ids(input_ids, self.max_tokens, "Albert")
        seen = input_ids != self.size.pad_id if mask is None else mask
        x = self.embeddings(input_ids, token_type_ids, jnp.arange(input_ids.shape[1]))
        hidden = self.encoder(x, seen[:, None, None])
        return Encoded(hidden, None if self.pooler is None else F.tanh(self.pooler(hidden[:, 0])))
