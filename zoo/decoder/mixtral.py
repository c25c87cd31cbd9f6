"""Mixtral: Mistral with eight experts in each layer, of which two compute a token.

Paper: Jiang et al. 2024, https://arxiv.org/abs/2401.04088
Reference: transformers 5 models/mixtral/modeling_mixtral.py
Differs: the loss that balances the load is summed over layers, see MixtureMLP.
Weights: Hugging Face's `MixtralForCausalLM`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from framework.config import register
from zoo.layers.decoder_config import DecoderSize
from zoo.layers.decoder_moe import MIXTURE_SETTINGS, MixtureConfig, MixtureDecoder, MixtureSize
from zoo.layers.pretrained_model import WeightSource
from zoo.layers.rope import RopeOptions

_SMALL = {"max_positions": 32768, "epsilon": 1e-5, "rope": RopeOptions(1e6), "bos_id": 1, "eos_ids": (2,)}

# Table 1 of the paper; the larger one by its config.json.
VARIANTS: dict[str, MixtureSize] = {
    "mixtral-8x7b": MixtureSize(32000, 4096, 32, 32, 14336, 8, **_SMALL, params=46_702_792_704),  # type: ignore[arg-type]
    "mixtral-8x22b": MixtureSize(
        *(32768, 6144, 56, 48, 16384, 8),
        **{**_SMALL, "max_positions": 65536},  # type: ignore[arg-type]
        params=140_630_071_296,
    ),
}
_MATRICES = {"gate": "w1", "up": "w3", "down": "w2"}


@dataclass(frozen=True)
class MixtralConfig(MixtureConfig):
    """See MixtureConfig."""

    variants = VARIANTS
    model_types = ("mixtral",)
    architecture = "MixtralForCausalLM"
    settings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **{
            ours: names
            for ours, names in MIXTURE_SETTINGS.items()
            if ours not in ("expert_size", "normalize")
        },
        "num_experts": ("num_local_experts", "num_experts"),
    }
    defaults: ClassVar[Mapping[str, object]] = {"epsilon": 1e-5, "rope": RopeOptions(1e6)}

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        said = super().write_entries(size)
        return {**said, "sliding_window": size.window}


@register("model", config=MixtralConfig)
class Mixtral(MixtureDecoder[MixtralConfig]):
    """See MixtureDecoder."""

    def expert_name(self, path: str, expert: int, matrix: str) -> str:
        path = path.replace(".mlp.", ".block_sparse_moe.")
        return f"{path}.{expert}.{_MATRICES[matrix]}.weight"

    def weight_sources(self) -> dict[str, WeightSource]:
        sources: Mapping[str, WeightSource] = super().weight_sources()
        return {
            name: source._replace(
                names=tuple(re.sub(r"\.mlp\.gate\.", ".block_sparse_moe.gate.", n) for n in source.names)
            )
            for name, source in sources.items()
        }
