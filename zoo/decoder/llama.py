"""LLaMA 1 to 3: the decoder whose parts most others took over.

Papers: LLaMA: Touvron et al. 2023, https://arxiv.org/abs/2302.13971; Llama 2: https://arxiv.org/abs/2307.09288;
    Llama 3: https://arxiv.org/abs/2407.21783
Reference: transformers 5 models/llama/modeling_llama.py
Differs: nothing in the function computed.
Weights: Hugging Face's `LlamaForCausalLM`; also Mistral's, Yi's, DeepSeek-Coder's and others of the same form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from framework.config import register
from zoo.layers.decoder import Decoder
from zoo.layers.decoder_config import DecoderConfig, DecoderSize
from zoo.layers.rope import RopeOptions

_ROPE3 = RopeOptions(500000.0)
_ROPE31 = RopeOptions(500000.0, "llama3", 8.0, 8192)
_ROPE32 = dataclasses.replace(_ROPE31, factor=32.0)
_V1 = DecoderSize(32000, 4096, 32, 32, 11008, bos_id=1, eos_ids=(2,))
_V2 = dataclasses.replace(_V1, max_positions=4096, epsilon=1e-5)
_V3 = DecoderSize(
    128256,
    4096,
    32,
    32,
    14336,
    8,
    max_positions=8192,
    epsilon=1e-5,
    rope=_ROPE3,
    bos_id=128000,
    eos_ids=(128001,),
)
_V31 = dataclasses.replace(_V3, max_positions=131072, rope=_ROPE31)
_SEVENTY = {
    "hidden_size": 8192,
    "num_layers": 80,
    "num_heads": 64,
    "intermediate_size": 28672,
    "num_kv_heads": 8,
}


def _of(row: DecoderSize, **changes: object) -> DecoderSize:
    return dataclasses.replace(row, **changes)  # type: ignore[arg-type]


# Table 2 of LLaMA, table 1 of Llama 2, table 3 of Llama 3; counts follow from the shapes of the official files.
VARIANTS: dict[str, DecoderSize] = {
    "llama-7b": _of(_V1, params=6_738_415_616),
    "llama-2-7b": _of(_V2, params=6_738_415_616),
    "llama-2-13b": _of(
        _V2, hidden_size=5120, num_layers=40, num_heads=40, intermediate_size=13824, params=13_015_864_320
    ),
    "llama-2-70b": _of(_V2, **_SEVENTY, params=68_976_648_192),
    "llama-3-8b": _of(_V3, params=8_030_261_248),
    "llama-3-70b": _of(_V3, **_SEVENTY, params=70_553_706_496),
    "llama-3.1-8b": _of(_V31, params=8_030_261_248),
    "llama-3.1-70b": _of(_V31, **_SEVENTY, params=70_553_706_496),
    "llama-3.2-1b": _of(
        _V31,
        hidden_size=2048,
        num_layers=16,
        intermediate_size=8192,
        head_dim=64,
        tie_embeddings=True,
        rope=_ROPE32,
        params=1_235_814_400,
    ),
    "llama-3.2-3b": _of(
        _V31,
        hidden_size=3072,
        num_layers=28,
        num_heads=24,
        intermediate_size=8192,
        head_dim=128,
        tie_embeddings=True,
        rope=_ROPE32,
        params=3_212_749_824,
    ),
    "mistral-7b-v0.1": _of(
        _V1,
        intermediate_size=14336,
        num_kv_heads=8,
        max_positions=32768,
        epsilon=1e-5,
        window=4096,
        params=7_241_732_096,
    ),
}


@dataclass(frozen=True)
class LlamaConfig(DecoderConfig):
    """See DecoderConfig."""

    variants = VARIANTS
    model_types = ("llama", "mistral")
    architecture = "LlamaForCausalLM"

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        entries = super().read_entries(settings, where)
        bias = settings.get("attention_bias", False) is True
        if settings.get("model_type") != "mistral":
            entries.pop("window", None)
        return {
            **entries,
            "attention_bias": bias,
            "output_bias": bias,
            "mlp_bias": settings.get("mlp_bias") is True,
        }

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        return {
            **super().write_entries(size),
            "attention_bias": size.attention_bias,
            "mlp_bias": size.mlp_bias,
        }

    def to_pretrained_config(self, dtype: str = "float32") -> dict[str, object]:
        result = super().to_pretrained_config(dtype)
        if self.size().window is not None:  # Mistral is LLaMA with a window
            return {**result, "model_type": "mistral", "architectures": ["MistralForCausalLM"]}
        del result["sliding_window"]
        return result


@register("model", config=LlamaConfig)
class Llama(Decoder[LlamaConfig]):
    """See Decoder."""
