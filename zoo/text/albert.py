"""ALBERT: BERT with one block for all depths, and embeddings narrower than the hidden states.

Paper: Lan et al. 2020, https://arxiv.org/abs/1909.11942
Reference: PaddleNLP paddlenlp/transformers/albert/modeling.py (`AlbertModel`)
Differs: without a mask padding tokens are hidden, as the other encoders do it. Upstream's buffer
    `embeddings.position_ids`, which counts from 0, is none of ours; a file may hold it.
Weights: PaddleNLP's `albert-*`, and those of Hugging Face; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.layers.attention import AttentionBase
from zoo.layers.hidden_activations import ACTIVATIONS
from zoo.layers.mlp import NARROW, narrow_linear
from zoo.layers.text_encoder import (
    DEFAULTS,
    SETTINGS,
    HeadNames,
    TextEncoder,
    TextEncoderConfig,
    TextSize,
)

HUGGING_FACE = ((r"(embeddings|attention|predictions)\.LayerNorm\.", r"\1.layer_norm."),)

# width, depth, heads, width of the feed-forward part
_BASE, _LARGE = (768, 12, 12, 3072), (1024, 24, 16, 4096)
_XLARGE, _XXLARGE = (2048, 24, 16, 8192), (4096, 12, 64, 16384)
_V2 = {"activation": "gelu_new", "dropout": 0.0, "attention_dropout": 0.0, "embedding_size": 128}
_GELU = {**_V2, "activation": "gelu"}
_RELU = {**_V2, "activation": "relu"}
# Table 1 of the paper, and the configurations that its authors and PaddleNLP (albert/configuration.py) publish;
# `params` as counted in transformers' AlbertModel (12, 18, 60 and 235 million in the paper).
VARIANTS: dict[str, TextSize] = {
    "albert-base-v1": TextSize(30000, *_BASE, embedding_size=128, params=11_683_584),
    "albert-large-v1": TextSize(30000, *_LARGE, embedding_size=128, params=17_683_968),
    "albert-xlarge-v1": TextSize(30000, *_XLARGE, embedding_size=128, params=58_724_864),
    "albert-xxlarge-v1": TextSize(30000, *_XXLARGE, **_GELU, params=222_595_584),
    "albert-base-v2": TextSize(30000, *_BASE, **_V2, params=11_683_584),
    "albert-large-v2": TextSize(30000, *_LARGE, **_V2, params=17_683_968),
    "albert-xlarge-v2": TextSize(30000, *_XLARGE, **_V2, params=58_724_864),
    "albert-xxlarge-v2": TextSize(30000, *_XXLARGE, **_V2, params=222_595_584),
    "albert-chinese-tiny": TextSize(21128, 312, 4, 12, 1248, **_GELU, params=4_080_520),
    "albert-chinese-small": TextSize(21128, 384, 6, 12, 1536, **_GELU, params=4_742_272),
    "albert-chinese-base": TextSize(21128, *_BASE, **_RELU, params=10_547_968),
    "albert-chinese-large": TextSize(21128, *_LARGE, **_RELU, params=16_548_352),
    "albert-chinese-xlarge": TextSize(21128, *_XLARGE, **_RELU, params=57_589_248),
    "albert-chinese-xxlarge": TextSize(21128, 4096, 12, 16, 16384, **_RELU, params=221_459_968),
}


@dataclass(frozen=True)
class AlbertConfig(TextEncoderConfig):
    """See TextEncoderConfig.

    Attributes:
        embedding_size: Width of the embeddings, before they are mapped to `hidden_size`.
        num_groups: Groups of blocks that share their weights; depth goes through the groups in order.
        layers_per_group: Different blocks in a group; `num_layers` counts how often a group runs.
    """

    variants = VARIANTS
    model_type = "albert"
    settings: ClassVar[Mapping[str, str]] = {
        **SETTINGS,
        "embedding_size": "embedding_size",
        "num_hidden_groups": "num_groups",
        "inner_group_num": "layers_per_group",
    }
    defaults: ClassVar[Mapping[str, int | float | str]] = {
        **DEFAULTS,
        "vocab_size": 30000,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "embedding_size": 128,
        "num_hidden_groups": 1,
        "inner_group_num": 1,
    }

    variant: str = "albert-base-v2"
    embedding_size: int | None = None
    num_groups: int | None = None
    layers_per_group: int | None = None


class NormalizedAttention(AttentionBase):
    """Self-attention of [N, T, hidden_size], added to its input and normalised."""

    def __init__(self, size: TextSize) -> None:
        names = ("query", "key", "value", "dense")
        super().__init__(size.hidden_size, size.num_heads, names, dropout=size.attention_dropout)
        self.layer_norm = nn.LayerNorm(size.hidden_size, size.epsilon)
        self.output_dropout = nn.Dropout(size.dropout)

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        return self.layer_norm(x + self.output_dropout(self.attend(x, None, mask)))


class Block(nn.Layer):
    """Attention and a feed-forward part. As upstream, nothing is dropped behind the latter."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        self.full_layer_layer_norm = nn.LayerNorm(size.hidden_size, size.epsilon)
        self.attention = NormalizedAttention(size)
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


class Pooler(nn.Linear):
    """tanh of a linear layer on the first token: [N, T, D] -> [N, D]."""

    def forward(self, x: jax.Array) -> jax.Array:
        return F.tanh(super().forward(x[:, 0]))


@register("backbone", config=AlbertConfig)
class Albert(TextEncoder):
    """See TextEncoder."""

    prefix = "transformer"
    heads = HeadNames(
        "albert", "qa_outputs", "predictions", "dense", "predictions.bias", renames=HUGGING_FACE
    )
    state_renames = ((r"^(?:transformer|albert)\.", ""), *HUGGING_FACE)

    def build_blocks(self) -> Blocks:
        return Blocks(self.size)

    def build_pooler(self, width: int) -> Pooler:
        return Pooler(width, width, weight_attr=NARROW)
