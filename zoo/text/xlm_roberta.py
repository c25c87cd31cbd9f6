"""XLM-R: RoBERTa's network, trained on a hundred languages, with a vocabulary of SentencePiece.

Paper: Conneau et al. 2020, https://arxiv.org/abs/1911.02116
Reference: transformers models/xlm_roberta/modeling_xlm_roberta.py (`XLMRobertaModel`)
Differs: nothing in the function computed.
Weights: Hugging Face's `xlm-roberta-*`, and models on it such as bge-m3, multilingual-e5 and bge-reranker;
    `state_dict()` has PaddleNLP's names of RoBERTa.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.config import register
from zoo.layers.text_encoder import TextEncoderConfig, TextSize
from zoo.text.roberta import Roberta

_LANGUAGES = {"max_positions": 514, "type_vocab_size": 1, "epsilon": 1e-5, "pad_id": 1}
# Table 7 of the paper; `params` as counted in transformers' XLMRobertaModel (270 and 550 million there)
VARIANTS: dict[str, TextSize] = {
    "xlm-roberta-base": TextSize(250002, **_LANGUAGES, params=278_043_648),
    "xlm-roberta-large": TextSize(250002, 1024, 24, 16, 4096, **_LANGUAGES, params=559_890_432),
}


@dataclass(frozen=True)
class XLMRobertaConfig(TextEncoderConfig):
    """See TextEncoderConfig."""

    variants = VARIANTS
    model_type = "xlm-roberta"
    counts_padding = True

    variant: str = "xlm-roberta-base"


@register("backbone", config=XLMRobertaConfig)
class XLMRoberta(Roberta):
    """See TextEncoder. Positions count from `pad_id` + 1, and only tokens that are no padding."""
