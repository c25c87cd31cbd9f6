"""ELECTRA: BERT's network, which learned to tell the words of a text from those that a small generator put there.

Paper: Clark et al. 2020, https://arxiv.org/abs/2003.10555
Reference: PaddleNLP paddlenlp/transformers/electra/modeling.py (`ElectraModel`); modeling_electra.py of transformers 5
Differs: there is no head that tells replaced words, as no task here has a use for it; a file may hold it. The head of
    the generator has the encoder's epsilon, as in transformers. Weights start from a normal distribution cut at two
    deviations.
Weights: PaddleNLP's `electra-*`, and those of Hugging Face; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from framework.config import register
from zoo.layers.text_encoder import (
    CONFIG,
    DEFAULTS,
    HUGGING_FACE,
    SETTINGS,
    HeadNames,
    TextEncoder,
    TextEncoderConfig,
    TextSize,
)

# width, depth, heads, width of the feed-forward part
_SMALL, _BASE, _LARGE = (256, 12, 4, 1024), (768, 12, 12, 3072), (1024, 24, 16, 4096)
_DEEP_SMALL = (256, 24, 4, 1024)


def _english(sizes: tuple[int, int, int, int], embedding_size: int, params: int) -> TextSize:
    return TextSize(30522, *sizes, embedding_size=embedding_size, params=params)


# Table 6 of the paper, and PaddleNLP's electra/configuration.py; `params` as counted in transformers' ElectraModel (14,
# 110 and 335 million in the paper). The encoders without a word behind their size are those of discriminators, which
# are fine-tuned; the generators fill masks.
VARIANTS: dict[str, TextSize] = {
    "electra-small": _english(_SMALL, 128, 13_483_008),
    "electra-base": _english(_BASE, 768, 108_891_648),
    "electra-large": _english(_LARGE, 1024, 334_092_288),
    "electra-small-generator": _english(_SMALL, 128, 13_483_008),
    "electra-base-generator": _english(_SMALL, 768, 33_511_168),
    "electra-large-generator": _english(_DEEP_SMALL, 1024, 50_999_552),
    "chinese-electra-small": TextSize(21128, *_SMALL, embedding_size=128, params=12_280_576),
    "chinese-electra-base": TextSize(21128, *_BASE, embedding_size=768, params=101_677_056),
    "ernie-health-chinese": TextSize(22608, *_BASE, embedding_size=768, epsilon=1e-5, params=102_813_696),
}
# What PaddleNLP takes where config.json says nothing, unlike transformers.
_PADDLES = {
    "vocab_size": 22608,
    "hidden_size": 768,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "embedding_size": 768,
}


@dataclass(frozen=True)
class ElectraConfig(TextEncoderConfig):
    """See TextEncoderConfig.

    Attributes:
        embedding_size: Width of the embeddings, before they are mapped to `hidden_size`.
    """

    variants = VARIANTS
    model_type = "electra"
    settings: ClassVar[Mapping[str, str]] = {**SETTINGS, "embedding_size": "embedding_size"}
    defaults: ClassVar[Mapping[str, int | float | str]] = {
        **DEFAULTS,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "embedding_size": 128,
    }

    variant: str = "electra-base"
    embedding_size: int | None = None

    @classmethod
    def from_pretrained_config(
        cls, settings: Mapping[str, object], where: str = CONFIG, paddle: bool = False
    ) -> Self:
        return super().from_pretrained_config({**(_PADDLES if paddle else {}), **settings}, where, paddle)


@register("backbone", config=ElectraConfig)
class Electra(TextEncoder):
    """See TextEncoder. It has no pooler."""

    prefix = "electra"
    heads = HeadNames(
        "electra",
        masked_lm="generator_predictions",
        transform="dense",
        bias="generator_lm_head_bias",
        pooler=False,
        activation="gelu",
        pretraining="encoder",
        unused=("discriminator_predictions.",),
        renames=(
            (r"^generator_predictions\.LayerNorm\.", "generator_predictions.layer_norm."),
            (r"^generator_lm_head\.weight$", "electra.embeddings.word_embeddings.weight"),
            (r"^generator_lm_head\.bias$", "generator_lm_head_bias"),
        ),
    )
    pads = False
    projects = True
    state_renames = ((r"^electra\.", ""), *HUGGING_FACE)

    def build_pooler(self, width: int) -> None:
        return None
