"""ERNIE 1.0 and 3.0: BERT's network, taught with whole words and entities, and from 3.0 on with several tasks.

Paper: ERNIE 1.0: Sun et al. 2019, https://arxiv.org/abs/1904.09223
    ERNIE 3.0: Sun et al. 2021, https://arxiv.org/abs/2107.02137; the small ones: https://arxiv.org/abs/2301.03416
Reference: PaddleNLP paddlenlp/transformers/ernie/modeling.py (`ErnieModel`)
Differs: nothing in the function computed.
Weights: PaddleNLP's `ernie-*`, and those of Hugging Face; `state_dict()` has PaddleNLP's names.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.config import register
from zoo.layers.text_encoder import HUGGING_FACE, PostNormEncoder, TextEncoderConfig, TextSize

_ZH = {"vocab_size": 40000, "max_positions": 2048, "type_vocab_size": 4}
_SIZES = {  # width, depth, heads, width of the feed-forward part
    "base": (768, 12, 12, 3072),
    "medium": (768, 6, 12, 3072),
    "mini": (384, 6, 12, 1536),
    "micro": (384, 4, 12, 1536),
    "nano": (312, 4, 12, 1248),
}
_NAMES = ("hidden_size", "num_layers", "num_heads", "intermediate_size")


def _zh(sizes: tuple[int, int, int, int], task_types: int) -> TextSize:
    return TextSize(**_ZH, **dict(zip(_NAMES, sizes)), task_types=task_types)


# PaddleNLP's ernie/configuration.py
VARIANTS: dict[str, TextSize] = {
    "ernie-1.0-base-zh": TextSize(18000, max_positions=513, activation="relu"),
    "ernie-3.0-xbase-zh": _zh((1024, 20, 16, 4096), 16),
    **{f"ernie-3.0-{name}-zh": _zh(sizes, 3 if name == "base" else 16) for name, sizes in _SIZES.items()},
    **{f"ernie-3.0-tiny-{name}-v2-zh": _zh(sizes, 0) for name, sizes in _SIZES.items()},
    "ernie-3.0-tiny-pico-v2-zh": _zh((128, 3, 2, 512), 0),
}
SMALL = "ernie-3.0-tiny-pico-v2-zh"


@dataclass(frozen=True)
class ErnieConfig(TextEncoderConfig):
    """See TextEncoderConfig. `task_types`: rows of the task embedding; 0: there is none."""

    variant: str = "ernie-3.0-base-zh"
    task_types: int | None = None


@register("backbone", config=ErnieConfig)
class Ernie(PostNormEncoder):
    """TextEncoder of zoo/contracts.py; see PostNormEncoder.forward for `task_type_ids`."""

    prefix = "ernie"
    pads = True
    state_renames = ((r"^ernie\.", ""), *HUGGING_FACE)

    def __init__(self, config: ErnieConfig) -> None:
        super().__init__(config, config.size(VARIANTS))
