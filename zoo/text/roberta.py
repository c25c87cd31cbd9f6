"""RoBERTa: BERT's network, trained for longer and without sentence pairs.

Paper: Liu et al. 2019, https://arxiv.org/abs/1907.11692
Reference: PaddleNLP paddlenlp/transformers/roberta/modeling.py (`RobertaModel`)
Differs: nothing in the function computed.
Weights: Hugging Face's `roberta-*` and PaddleNLP's; `state_dict()` has PaddleNLP's names. What PaddleNLP calls
    `hfl/roberta-wwm-ext` was trained as a BERT.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework.config import register
from zoo.layers.text_encoder import HUGGING_FACE, HeadNames, TextEncoder, TextEncoderConfig, TextSize

_ENGLISH = {"max_positions": 514, "type_vocab_size": 1, "epsilon": 1e-5, "pad_id": 1}
# Section 2 and table 9 of the paper; `params` as counted in transformers' RobertaModel (125 and 355 million there)
VARIANTS: dict[str, TextSize] = {
    "roberta-base": TextSize(50265, **_ENGLISH, params=124_645_632),
    "roberta-large": TextSize(50265, 1024, 24, 16, 4096, **_ENGLISH, params=355_359_744),
}


@dataclass(frozen=True)
class RobertaConfig(TextEncoderConfig):
    """See TextEncoderConfig."""

    variants = VARIANTS
    model_type = "roberta"
    counts_padding = True

    variant: str = "roberta-base"


@register("backbone", config=RobertaConfig)
class Roberta(TextEncoder):
    """See TextEncoder. Positions count from `pad_id` + 1, and only tokens that are no padding."""

    prefix = "roberta"
    heads = HeadNames("roberta", masked_lm="lm_head", transform="dense", bias="lm_head.bias", pooler=False)
    state_renames = ((r"^roberta\.", ""), *HUGGING_FACE)

    @property
    def max_tokens(self) -> int:
        return self.size.max_positions - self.size.pad_id - 1

    def positions(self, input_ids: jax.Array) -> jax.Array:
        real = (input_ids != self.size.pad_id).astype(jnp.int32)
        return jnp.cumsum(real, axis=1) * real + self.size.pad_id
