"""LayoutXLMForSer: the kind of each line of a form by LayoutXLM or VI-LayoutXLM, semantic entity recognition.

Paper: LayoutXLM, https://arxiv.org/abs/2104.08836; VI-LayoutXLM, https://arxiv.org/abs/2210.05391
Reference: PaddleOCR ppocr/modeling/backbones/vqa_layoutlm.py (`LayoutXLMForSer`), PaddleNLP 2.6
    `LayoutXLMForTokenClassification`
Differs: see ocr/layers/layoutxlm.py.
Weights: `state_dict()` has the names of upstream's `model_state.pdparams`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from ocr.layers.layoutxlm import LayoutXLM, LayoutXLMConfig
from zoo.contracts import Contract
from zoo.layers.mlp import narrow_linear


class Row(NamedTuple):
    """`params` are counted in PaddleNLP 2.6, with 7 tags, without running statistics, which are 202,880 of
    LayoutXLM."""

    params: int


VARIANTS: dict[str, Row] = {
    "layoutxlm-base-uncased": Row(368_859_719),
    "vi-layoutxlm-base-uncased": Row(278_575_623),
}


@dataclass(frozen=True)
class LayoutXLMForSerConfig(LayoutXLMConfig):
    """`num_classes` are the tags, O and B- and I- of each label: 7 for XFUND. See LayoutXLMConfig."""

    num_classes: int = 7


@register("model", config=LayoutXLMForSerConfig)
class LayoutXLMForSer(nn.Model[LayoutXLMForSerConfig]):
    """Tokens with boxes -> logits of tags [N, T, num_classes]; the inputs are those of LayoutXLM."""

    training_only = tuple(f"layoutxlm.{name}" for name in LayoutXLM.training_only)

    contract = Contract(tested_in=("tests/golden/test_layoutxlm.py",))

    def __init__(self, config: LayoutXLMForSerConfig) -> None:
        super().__init__(config)
        self.layoutxlm = LayoutXLM(config)
        self.dropout = nn.Dropout(config.head_dropout)
        self.classifier = narrow_linear(self.layoutxlm.size.hidden_size, config.num_classes)

    def forward(
        self, input_ids: jax.Array, bbox: jax.Array, mask: jax.Array, image: jax.Array | None = None
    ) -> jax.Array:
        hidden = self.layoutxlm(input_ids, bbox, mask, image)  # [N, T, hidden_size]
        return self.classifier(self.dropout(hidden))
