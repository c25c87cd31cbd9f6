"""BERT: a Transformer encoder that learned to predict masked words and whether two sentences follow each other.

Paper: Devlin et al. 2019, https://arxiv.org/abs/1810.04805
Reference: PaddleNLP paddlenlp/transformers/bert/modeling.py (`BertModel`)
Differs: nothing in the function computed. Weights start from a normal distribution cut at two deviations, as the
    paper's own code has it.
Weights: PaddleNLP's `bert-*`, and those of Hugging Face; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.config import register
from zoo.layers.text_encoder import HUGGING_FACE, HeadNames, TextEncoder, TextEncoderConfig, TextSize

_LARGE = (1024, 24, 16, 4096)
# Section 3 of the paper; vocabularies from https://github.com/google-research/bert, the small ones from UER-py's
# model zoo as PaddleNLP's bert/configuration.py lists them. `params` as counted in transformers' BertModel (110 and 340
# million in the paper).
VARIANTS: dict[str, TextSize] = {
    "bert-base-uncased": TextSize(30522, params=109_482_240),
    "bert-large-uncased": TextSize(30522, *_LARGE, params=335_141_888),
    "bert-base-cased": TextSize(28996, params=108_310_272),
    "bert-large-cased": TextSize(28996, *_LARGE, params=333_579_264),
    "bert-base-multilingual-uncased": TextSize(105879, params=167_356_416),
    "bert-base-multilingual-cased": TextSize(119547, params=177_853_440),
    "bert-base-chinese": TextSize(21128, params=102_267_648),
    "chinese-roberta-medium": TextSize(21128, 512, 8, 8, 2048, params=36_563_456),
    "chinese-roberta-small": TextSize(21128, 512, 4, 8, 2048, params=23_953_920),
    "chinese-roberta-mini": TextSize(21128, 256, 4, 4, 1024, params=8_765_696),
    "chinese-roberta-tiny": TextSize(21128, 128, 2, 2, 512, params=3_183_488),
}


@dataclass(frozen=True)
class BertConfig(TextEncoderConfig):
    """See TextEncoderConfig."""

    variants = VARIANTS
    model_type = "bert"

    variant: str = "bert-base-uncased"


@register("backbone", config=BertConfig)
class Bert(TextEncoder):
    """See TextEncoder."""

    prefix = "bert"
    heads = HeadNames("bert")
    pads = False
    state_renames = ((r"^bert\.", ""), *HUGGING_FACE)
