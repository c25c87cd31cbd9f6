"""FieldTagger: a small network that tags the words of a page, trained from nothing on a few dozen pages.

Paper: none of this network; feature hashing https://arxiv.org/abs/0902.2206, attention https://arxiv.org/abs/1706.03762
Reference: our own. Features are those of `ocr.fields.features`.
Differs: from LayoutXLM, it reads hashed features in place of a pretrained vocabulary, and convolves along the order of
    reading in place of learning positions.
Weights: none are shipped; it is trained on the user's own pages (configs/ocr/kie/field_tagger_sroie.yml).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from ocr.fields.features import NUM_PLACES
from zoo.contracts import Contract


@dataclass(frozen=True)
class FieldTaggerConfig:
    """Sizes.

    Attributes:
        num_classes: Tags: O, then B- and I- of each label; twice the labels and 1.
        buckets: How many numbers features are hashed to.
        width: Of the hidden states, a multiple of `num_heads`.
        depth: Blocks.
        kernel: Words that a block's convolution sees, an odd number.
        feature_dropout: Share of the features that are not seen in training.
    """

    num_classes: int = 7
    buckets: int = 16384
    width: int = 64
    depth: int = 2
    num_heads: int = 4
    kernel: int = 5
    dropout: float = 0.3
    feature_dropout: float = 0.3

    def __post_init__(self) -> None:
        if self.width % self.num_heads or self.kernel % 2 == 0 or self.buckets < 2:
            raise ConfigError(
                "this is no FieldTagger",
                where="model",
                received=f"width {self.width}, heads {self.num_heads}, kernel {self.kernel}, buckets {self.buckets}",
                allowed="width a multiple of num_heads, an odd kernel, 2 buckets or more",
            )


class TaggerBlock(nn.Layer):
    """A convolution along the words, attention over all of them and an MLP, each behind a normalisation and added to
    its input: [N, T, width], mask [N, T] -> [N, T, width]."""

    def __init__(self, config: FieldTaggerConfig) -> None:
        super().__init__()
        width = config.width
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.near = nn.LayerList([nn.Linear(width, width) for _ in range(config.kernel)])
        self.attention = nn.MultiHeadAttention(width, config.num_heads, config.dropout)
        self.linear1, self.linear2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        seen = mask[..., None].astype(x.dtype)
        side = len(self.near) // 2
        padded = jnp.pad(self.norm1(x) * seen, ((0, 0), (side, side), (0, 0)))
        near = sum(
            (linear(padded[:, place : place + x.shape[1]]) for place, linear in enumerate(self.near)),
            jnp.zeros((), x.dtype),
        )
        x = x + self.dropout(F.gelu(near))
        y = self.norm2(x)
        x = x + self.dropout(self.attention(y, y, y, attn_mask=mask[:, None, None]))
        return x + self.dropout(self.linear2(F.gelu(self.linear1(self.norm3(x)))))


@register("model", config=FieldTaggerConfig)
class FieldTagger(nn.Model[FieldTaggerConfig]):
    """features [N, T, K] int32, places [N, T, NUM_PLACES] float32, mask [N, T] bool -> logits [N, T, num_classes]."""

    contract = Contract(tested_in=("tests/unit/ocr/tasks/test_field_tagger.py",))

    def __init__(self, config: FieldTaggerConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(
            config.buckets, config.width, 0, weight_attr=nn.initializer.Normal(std=0.1)
        )
        self.direct = nn.Embedding(
            config.buckets, config.num_classes, 0, weight_attr=nn.initializer.Constant(0.0)
        )
        self.places = nn.Linear(NUM_PLACES, config.width)
        self.norm = nn.LayerNorm(config.width)
        self.blocks = nn.LayerList([TaggerBlock(config) for _ in range(config.depth)])
        self.dropout = nn.Dropout(config.dropout)
        self.feature_dropout = nn.Dropout(config.feature_dropout)
        self.last_norm = nn.LayerNorm(config.width)
        self.classifier = nn.Linear(config.width, config.num_classes)

    def forward(self, features: jax.Array, places: jax.Array, mask: jax.Array) -> jax.Array:
        weight = self.feature_dropout((features != 0).astype(jnp.float32))[..., None]  # [N, T, K, 1]
        x = (self.embedding(features) * weight).sum(axis=2) + self.places(places)  # [N, T, width]
        x = self.dropout(self.norm(x))
        for block in self.blocks:
            x = block(x, mask)
        direct = (self.direct(features) * weight).sum(axis=2)  # [N, T, num_classes]
        return self.classifier(self.last_norm(x)) + direct
