"""ERNIE 1.0 and 3.0: BERT's network, taught with whole words and entities, and from 3.0 on with several tasks.

Paper: ERNIE 1.0: Sun et al. 2019, https://arxiv.org/abs/1904.09223
    ERNIE 3.0: Sun et al. 2021, https://arxiv.org/abs/2107.02137; the small ones: https://arxiv.org/abs/2301.03416
Reference: PaddleNLP paddlenlp/transformers/ernie/modeling.py (`ErnieModel`)
Differs: nothing in the function computed.
Weights: PaddleNLP's `ernie-*`, and those of Hugging Face; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from framework.config import register
from zoo.layers.text_encoder import (
    CONFIG,
    DEFAULTS,
    HUGGING_FACE,
    HeadNames,
    TextEncoder,
    TextEncoderConfig,
    TextSize,
)

# width, depth, heads, width of the feed-forward part
_BASE, _MEDIUM = (768, 12, 12, 3072), (768, 6, 12, 3072)
_MINI, _MICRO, _NANO = (384, 6, 12, 1536), (384, 4, 12, 1536), (312, 4, 12, 1248)


def _zh(sizes: tuple[int, int, int, int], task_types: int, params: int) -> TextSize:
    return TextSize(40000, *sizes, 2048, 4, task_types=task_types, params=params)


# PaddleNLP's ernie/configuration.py; `params` of its classes (docs/model_zoo/transformers/ERNIE/contents.rst gives
# 296, 118, 75, 27, 23 and 18 million for 3.0).
VARIANTS: dict[str, TextSize] = {
    "ernie-1.0-base-zh": TextSize(18000, max_positions=513, activation="relu", params=99_866_112),
    "ernie-3.0-xbase-zh": _zh((1024, 20, 16, 4096), 16, 296_053_760),
    "ernie-3.0-base-zh": _zh(_BASE, 3, 117_944_832),
    "ernie-3.0-medium-zh": _zh(_MEDIUM, 16, 75_427_584),
    "ernie-3.0-mini-zh": _zh(_MINI, 16, 26_949_504),
    "ernie-3.0-micro-zh": _zh(_MICRO, 16, 23_400_576),
    "ernie-3.0-nano-zh": _zh(_NANO, 16, 17_912_232),
    "ernie-3.0-tiny-base-v2-zh": _zh(_BASE, 0, 117_942_528),
    "ernie-3.0-tiny-medium-v2-zh": _zh(_MEDIUM, 0, 75_415_296),
    "ernie-3.0-tiny-mini-v2-zh": _zh(_MINI, 0, 26_943_360),
    "ernie-3.0-tiny-micro-v2-zh": _zh(_MICRO, 0, 23_394_432),
    "ernie-3.0-tiny-nano-v2-zh": _zh(_NANO, 0, 17_907_240),
    "ernie-3.0-tiny-pico-v2-zh": _zh((128, 3, 2, 512), 0, 5_994_240),
}


@dataclass(frozen=True)
class ErnieConfig(TextEncoderConfig):
    """See TextEncoderConfig. `task_types`: rows of the task embedding; 0: there is none."""

    variants = VARIANTS
    model_type = "ernie"
    # PaddleNLP's number of types; Hugging Face's files always say it.
    defaults: ClassVar[Mapping[str, int | float | str]] = {**DEFAULTS, "type_vocab_size": 16}

    variant: str = "ernie-3.0-base-zh"
    task_types: int | None = None

    @classmethod
    def from_pretrained_config(
        cls, settings: Mapping[str, object], where: str = CONFIG, paddle: bool = False
    ) -> Self:
        found = super().from_pretrained_config(settings, where, paddle)
        types = settings.get("task_type_vocab_size", 3) if settings.get("use_task_id") else 0
        # PaddleNLP's ERNIE does not read `layer_norm_eps`.
        return dataclasses.replace(found, task_types=types, epsilon=1e-12 if paddle else found.epsilon)


@register("backbone", config=ErnieConfig)
class Ernie(TextEncoder):
    """See TextEncoder, and its `forward` for `task_type_ids`."""

    prefix = "ernie"
    heads = HeadNames("ernie")
    state_renames = ((r"^ernie\.", ""), *HUGGING_FACE)
