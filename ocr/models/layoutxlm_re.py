"""LayoutXLMForRe: which key of a form each value belongs to, by LayoutXLM or VI-LayoutXLM, relation extraction.

Paper: LayoutXLM, https://arxiv.org/abs/2104.08836, section 3.3; VI-LayoutXLM, https://arxiv.org/abs/2210.05391
Reference: PaddleOCR ppocr/modeling/backbones/vqa_layoutlm.py (`LayoutXLMForRe`), PaddleNLP 2.6
    `LayoutXLMForRelationExtraction` and `REDecoder`
Differs: all pairs of entities are scored at once, and what is no pair of a key and a value is masked in the loss and in
    decoding. A page without such a pair costs nothing, where upstream makes up two entities.
Weights: `state_dict()` has the names of upstream's `model_state.pdparams`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from ocr.fields.forms import ANSWER, QUESTION
from ocr.layers.layoutxlm import LayoutXLM, LayoutXLMConfig
from zoo.contracts import Contract
from zoo.layers.mlp import NARROW, narrow_linear


class Row(NamedTuple):
    """`params` are counted in PaddleNLP 2.6, without running statistics, which are 202,880 of LayoutXLM."""

    params: int


VARIANTS: dict[str, Row] = {
    "layoutxlm-base-uncased": Row(372_104_514),
    "vi-layoutxlm-base-uncased": Row(281_820_418),
}


@dataclass(frozen=True)
class LayoutXLMForReConfig(LayoutXLMConfig):
    """See LayoutXLMConfig."""


class BiaffineWeight(nn.Layer):
    """The weight [out, in, in] of a bilinear map without bias, under upstream's name."""

    def __init__(self, features: int, out_features: int) -> None:
        super().__init__()
        self.weight = self.create_parameter((out_features, features, features))


class BiaffineAttention(nn.Layer):
    """How well each head fits each tail: heads [N, E, D], tails [N, E, D] -> [N, E, E, out]."""

    def __init__(self, features: int, out_features: int) -> None:
        super().__init__()
        self.bilinear = BiaffineWeight(features, out_features)
        self.linear = narrow_linear(2 * features, out_features)

    def forward(self, heads: jax.Array, tails: jax.Array) -> jax.Array:
        pairs = jnp.einsum("nhi,oij,ntj->nhto", heads, self.bilinear.weight.astype(heads.dtype), tails)
        width = heads.shape[-1]
        weight, bias = self.linear.weight.astype(heads.dtype), self.linear.bias
        alone = (heads @ weight[:width])[:, :, None] + (tails @ weight[width:])[:, None]
        return pairs + alone + (0 if bias is None else bias.astype(heads.dtype))


class REDecoder(nn.Layer):
    """States of the entities' first tokens and their kinds -> logits of pairs."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.entity_emb = nn.Embedding(3, width, weight_attr=NARROW)
        self.ffnn_head, self.ffnn_tail = (
            nn.Sequential(
                narrow_linear(2 * width, width),
                nn.ReLU(),
                nn.Dropout(dropout),
                narrow_linear(width, width // 2),
                nn.ReLU(),
                nn.Dropout(dropout),
            )
            for _ in range(2)
        )
        self.rel_classifier = BiaffineAttention(width // 2, 2)

    def forward(self, hidden: jax.Array, starts: jax.Array, kinds: jax.Array) -> jax.Array:
        """hidden [N, T, C], starts and kinds [N, E] int32 -> [N, E, E, 2]"""
        first = jnp.take_along_axis(hidden, starts[..., None], axis=1)  # [N, E, C]
        entities = jnp.concatenate([first, self.entity_emb(kinds).astype(first.dtype)], axis=-1)
        return self.rel_classifier(self.ffnn_head(entities), self.ffnn_tail(entities))


@register("model", config=LayoutXLMForReConfig)
class LayoutXLMForRe(nn.Model[LayoutXLMForReConfig]):
    """Tokens with boxes and E entities -> logits [N, E, E, 2] of "entity i is the key of entity j": no, yes."""

    training_only = tuple(f"layoutxlm.{name}" for name in LayoutXLM.training_only)

    contract = Contract(tested_in=("tests/golden/test_layoutxlm.py",))

    def __init__(self, config: LayoutXLMForReConfig) -> None:
        super().__init__(config)
        self.layoutxlm = LayoutXLM(config)
        self.extractor = REDecoder(self.layoutxlm.size.hidden_size, config.dropout)
        self.dropout = nn.Dropout(config.head_dropout)

    def forward(
        self,
        input_ids: jax.Array,
        bbox: jax.Array,
        mask: jax.Array,
        starts: jax.Array,
        kinds: jax.Array,
        image: jax.Array | None = None,
    ) -> jax.Array:
        """`starts` [N, E] int32 are the entities' first tokens, `kinds` [N, E] their kinds, -1 where there is none; the
        other inputs are those of LayoutXLM."""
        hidden = self.dropout(self.layoutxlm(input_ids, bbox, mask, image))  # [N, T, hidden_size]
        return self.extractor(hidden, jnp.maximum(starts, 0), jnp.maximum(kinds, 0))


def candidate_pairs(kinds: jax.Array) -> jax.Array:
    """kinds [N, E] -> [N, E, E] bool: the pairs of a question and an answer, the only ones that can be related."""
    return (kinds == QUESTION)[:, :, None] & (kinds == ANSWER)[:, None, :]
