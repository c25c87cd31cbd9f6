"""MPNet: BERT's block with a bias for the distance between tokens, trained to fill masks in a permuted text.

Paper: Song et al. 2020, https://arxiv.org/abs/2004.09297
Reference: transformers 5 models/mpnet/modeling_mpnet.py (`MPNetModel`)
Differs: the buckets of distances are as many as the table has rows; transformers always counts 32.
Weights: Hugging Face's `mpnet-base`, and models on it such as all-mpnet-base-v2; ours are named as
    PaddleNLP names its encoders.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from zoo.layers.mlp import NARROW
from zoo.layers.relative_positions import relative_bucket
from zoo.layers.text_encoder import (
    CONFIG,
    DEFAULTS,
    HUGGING_FACE,
    SETTINGS,
    Blocks,
    HeadNames,
    TextEncoderConfig,
    TextSize,
)
from zoo.text.roberta import Roberta

_MAX_DISTANCE = 128
_ATTENTION = r"encoder\.layer\.(\d+)\.attention\."
_NAMES = (
    (_ATTENTION + r"attn\.(q|k|v)\.", r"encoder.layers.\1.self_attn.\2_proj."),
    (_ATTENTION + r"attn\.o\.", r"encoder.layers.\1.self_attn.out_proj."),
    (_ATTENTION + r"LayerNorm\.", r"encoder.layers.\1.norm1."),
)
# Section 3.1 of the paper; `params` as counted in transformers' MPNetModel
VARIANTS: dict[str, TextSize] = {
    "mpnet-base": TextSize(
        30527,
        max_positions=514,
        type_vocab_size=0,
        epsilon=1e-5,
        pad_id=1,
        position_buckets=32,
        params=109_486_464,
    ),
}


@dataclass(frozen=True)
class MPNetConfig(TextEncoderConfig):
    """See TextEncoderConfig.

    Attributes:
        position_buckets: Rows of the table of biases of distances.
    """

    variants = VARIANTS
    model_type = "mpnet"
    counts_padding = True
    settings: ClassVar[Mapping[str, str]] = {
        **{theirs: ours for theirs, ours in SETTINGS.items() if ours != "type_vocab_size"},
        "relative_attention_num_buckets": "position_buckets",
    }
    defaults: ClassVar[Mapping[str, int | float | str]] = {
        **DEFAULTS,
        "vocab_size": 30527,
        "pad_token_id": 1,
        "relative_attention_num_buckets": 32,
    }
    has_types = False

    variant: str = "mpnet-base"
    position_buckets: int | None = None

    @classmethod
    def from_pretrained_config(
        cls, settings: Mapping[str, object], where: str = CONFIG, paddle: bool = False
    ) -> Self:
        return dataclasses.replace(super().from_pretrained_config(settings, where, paddle), type_vocab_size=0)

    def checks(self, size: TextSize) -> dict[str, tuple[bool, str]]:
        buckets = size.position_buckets
        return {
            **super().checks(size),
            "position_buckets": (buckets >= 4 and buckets % 2 == 0, "even, from 4"),
        }


class BiasedBlocks(Blocks):
    """`layers`, whose scores have a bias for the distance of each pair of tokens, one a head."""

    def __init__(self, size: TextSize) -> None:
        super().__init__(size)
        self.relative_attention_bias = nn.Embedding(size.position_buckets, size.num_heads, weight_attr=NARROW)
        self.buckets = size.position_buckets

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        index = jnp.arange(x.shape[1])
        bucket = relative_bucket(index - index[:, None], True, self.buckets, _MAX_DISTANCE)
        bias = jnp.moveaxis(self.relative_attention_bias(bucket), -1, 0).astype(jnp.float32)
        return super().forward(x, jnp.where(mask, bias, -jnp.inf))


@register("backbone", config=MPNetConfig)
class MPNet(Roberta):
    """See TextEncoder. Positions count from `pad_id` + 1, and only tokens that are no padding; there are no types."""

    prefix = "mpnet"
    heads = HeadNames(
        "mpnet",
        answers="qa_outputs",
        masked_lm="lm_head",
        transform="dense",
        bias="lm_head.bias",
        pooler=False,
    )
    state_renames = ((r"^mpnet\.", ""), *_NAMES, *HUGGING_FACE)

    def build_blocks(self) -> BiasedBlocks:
        return BiasedBlocks(self.size)
