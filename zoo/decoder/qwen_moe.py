"""Qwen 2 and 3 with experts.

Papers: Qwen2: https://arxiv.org/abs/2407.10671, section 2.2.2; Qwen3: https://arxiv.org/abs/2505.09388
Reference: transformers 5 models/qwen2_moe/modeling_qwen2_moe.py, models/qwen3_moe/modeling_qwen3_moe.py
Differs: the loss that balances the load is summed over layers, see MixtureMLP.
Weights: Hugging Face's `Qwen2MoeForCausalLM` and `Qwen3MoeForCausalLM`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax

from framework.config import register
from framework.nn import functional as F
from zoo.decoder.qwen import Qwen3Attention, read_windows, write_windows
from zoo.layers.decoder import linear
from zoo.layers.decoder_config import DecoderSize
from zoo.layers.decoder_moe import (
    MIXTURE_SETTINGS,
    MixtureBlock,
    MixtureConfig,
    MixtureDecoder,
    MixtureMLP,
    MixtureSize,
    read_sparse,
    write_sparse,
)
from zoo.layers.rope import RopeOptions

_ROPE = RopeOptions(1e6)

# The models' config.json.
QWEN2: dict[str, MixtureSize] = {
    "qwen1.5-moe-a2.7b": MixtureSize(
        *(151936, 2048, 24, 16, 5632, 16),
        max_positions=8192,
        attention_bias=True,
        rope=_ROPE,
        eos_ids=(151643,),
        num_experts=60,
        top_k=4,
        expert_size=1408,
        shared_size=5632,
        normalize=False,
        params=14_315_784_192,
    ),
    "qwen2-57b-a14b": MixtureSize(
        *(151936, 3584, 28, 28, 18944, 4),
        max_positions=32768,
        attention_bias=True,
        rope=_ROPE,
        eos_ids=(151643,),
        num_experts=64,
        top_k=8,
        expert_size=2560,
        shared_size=20480,
        normalize=False,
        params=57_408_658_944,
    ),
}


def _qwen3(width: int, layers: int, heads: int, hidden: int, expert: int, params: int) -> MixtureSize:
    return MixtureSize(
        *(151936, width, layers, heads, hidden, 4, 128),
        max_positions=40960,
        rope=_ROPE,
        eos_ids=(151645,),
        num_experts=128,
        top_k=8,
        expert_size=expert,
        params=params,
    )


# Table 2 of Qwen3.
QWEN3: dict[str, MixtureSize] = {
    "qwen3-30b-a3b": _qwen3(2048, 48, 32, 6144, 768, 30_532_122_624),
    "qwen3-235b-a22b": _qwen3(4096, 94, 64, 12288, 1536, 235_093_634_560),
}


@dataclass(frozen=True)
class Qwen2MoeConfig(MixtureConfig):
    """See MixtureConfig."""

    variants = QWEN2
    model_types = ("qwen2_moe",)
    architecture = "Qwen2MoeForCausalLM"
    settings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **MIXTURE_SETTINGS,
        "shared_size": ("shared_expert_intermediate_size",),
        "attention_bias": ("qkv_bias",),
    }
    defaults: ClassVar[Mapping[str, object]] = {
        "attention_bias": True,
        "num_experts": 60,
        "top_k": 4,
        "expert_size": 1408,
        "shared_size": 5632,
        "normalize": False,
    }

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        return read_sparse(read_windows(super().read_entries(settings, where), settings), settings)

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        assert isinstance(size, MixtureSize)
        return {**super().write_entries(size), **write_windows(size), **write_sparse(size)}


class Qwen2MoeMLP(MixtureMLP):
    """With an expert of all tokens, by a gate of its own."""

    shared_name = "shared_expert"

    def __init__(self, size: MixtureSize, capacity_factor: float | None = None) -> None:
        super().__init__(size, capacity_factor)
        if size.shared_size:
            self.shared_expert_gate = linear(size, size.hidden_size, 1, False)

    def shared(self, x: jax.Array) -> jax.Array:
        return F.sigmoid(self.shared_expert_gate(x)) * self.shared_expert(x)


class Qwen2MoeBlock(MixtureBlock):
    """A block with experts, one of which all tokens share."""

    mixture_type = Qwen2MoeMLP


@register("model", config=Qwen2MoeConfig)
class Qwen2Moe(MixtureDecoder[Qwen2MoeConfig]):
    """See MixtureDecoder."""

    block_type = Qwen2MoeBlock


@dataclass(frozen=True)
class Qwen3MoeConfig(MixtureConfig):
    """See MixtureConfig."""

    variants = QWEN3
    model_types = ("qwen3_moe",)
    architecture = "Qwen3MoeForCausalLM"
    defaults: ClassVar[Mapping[str, object]] = {
        "num_experts": 128,
        "top_k": 8,
        "expert_size": 768,
        "normalize": False,
    }

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        bias = settings.get("attention_bias") is True
        entries = super().read_entries(settings, where)
        if settings.get("use_sliding_window") is not True:
            entries.pop("window", None)
        return {**read_sparse(entries, settings), "attention_bias": bias, "output_bias": bias}

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        assert isinstance(size, MixtureSize)
        result = {**super().write_entries(size), **write_sparse(size), "attention_bias": size.attention_bias}
        return {**result, "use_sliding_window": size.window is not None, "sliding_window": size.window}


class Qwen3MoeBlock(MixtureBlock):
    """A block with experts and norms of heads."""

    attention_type = Qwen3Attention


@register("model", config=Qwen3MoeConfig)
class Qwen3Moe(MixtureDecoder[Qwen3MoeConfig]):
    """See MixtureDecoder."""

    block_type = Qwen3MoeBlock
