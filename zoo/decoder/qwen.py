"""Qwen 2, 2.5 and 3, the dense ones: LLaMA with biases of queries, keys and values, and from 3 on with norms of each
head in their place.

Papers: Qwen2: https://arxiv.org/abs/2407.10671; Qwen2.5: https://arxiv.org/abs/2412.15115; Qwen3:
    https://arxiv.org/abs/2505.09388
Reference: transformers 5 models/qwen2/modeling_qwen2.py, models/qwen3/modeling_qwen3.py
Differs: nothing in the function computed.
Weights: Hugging Face's `Qwen2ForCausalLM` and `Qwen3ForCausalLM`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax

from framework import nn
from framework.config import register
from zoo.layers.decoder import Decoder, DecoderAttention, DecoderBlock
from zoo.layers.decoder_config import DecoderConfig, DecoderSize
from zoo.layers.rope import RopeOptions

_ROPE = RopeOptions(1e6)


def _qwen2(
    sizes: tuple[int, int, int, int, int], params: int, vocab_size: int = 152064, tied: bool = False
) -> DecoderSize:
    """`sizes`: width, layers, heads, heads of keys, width of the feed-forward part"""
    width, layers, heads, kv_heads, hidden = sizes
    return DecoderSize(
        *(vocab_size, width, layers, heads, hidden, kv_heads),
        max_positions=32768,
        tie_embeddings=tied,
        attention_bias=True,
        rope=_ROPE,
        bos_id=151643,
        eos_ids=(151643,),
        params=params,
    )


# Table 1 of Qwen2.5; counts follow from the shapes of the official files.
QWEN2: dict[str, DecoderSize] = {
    "qwen2.5-0.5b": _qwen2((896, 24, 14, 2, 4864), 494_032_768, 151936, tied=True),
    "qwen2.5-1.5b": _qwen2((1536, 28, 12, 2, 8960), 1_543_714_304, 151936, tied=True),
    "qwen2.5-3b": _qwen2((2048, 36, 16, 2, 11008), 3_085_938_688, 151936, tied=True),
    "qwen2.5-7b": _qwen2((3584, 28, 28, 4, 18944), 7_615_616_512),
    "qwen2.5-14b": _qwen2((5120, 48, 40, 8, 13824), 14_770_033_664),
    "qwen2.5-32b": _qwen2((5120, 64, 40, 8, 27648), 32_763_876_352),
    "qwen2.5-72b": _qwen2((8192, 80, 64, 8, 29568), 72_706_203_648),
}


def _qwen3(sizes: tuple[int, int, int, int, int], params: int, tied: bool = False) -> DecoderSize:
    row = _qwen2(sizes, params, 151936, tied)
    return dataclasses.replace(
        row, head_dim=128, attention_bias=False, max_positions=40960, eos_ids=(151645,)
    )


# Table 1 of Qwen3.
QWEN3: dict[str, DecoderSize] = {
    "qwen3-0.6b": _qwen3((1024, 28, 16, 8, 3072), 596_049_920, tied=True),
    "qwen3-1.7b": _qwen3((2048, 28, 16, 8, 6144), 1_720_574_976, tied=True),
    "qwen3-4b": _qwen3((2560, 36, 32, 8, 9728), 4_022_468_096, tied=True),
    "qwen3-8b": _qwen3((4096, 36, 32, 8, 12288), 8_190_735_360),
    "qwen3-14b": _qwen3((5120, 40, 40, 8, 17408), 14_768_307_200),
    "qwen3-32b": _qwen3((5120, 64, 64, 8, 25600), 32_762_123_264),
}


def read_windows(entries: dict[str, object], settings: Mapping[str, object]) -> dict[str, object]:
    """`entries` with the layers that `use_sliding_window`, `max_window_layers` and `layer_types` say."""
    layers = entries.get("num_layers", 0)
    kinds = settings.get("layer_types")
    if settings.get("use_sliding_window") is not True or not isinstance(layers, int):
        return {key: value for key, value in entries.items() if key != "window"}
    if isinstance(kinds, list) and len(kinds) == layers:
        return {**entries, "windowed": tuple(kind == "sliding_attention" for kind in kinds)}
    first = settings.get("max_window_layers", 28)
    first = first if isinstance(first, int) else 28
    return {**entries, "windowed": tuple(layer >= first for layer in range(layers))}


def write_windows(size: DecoderSize) -> dict[str, object]:
    """The reverse of `read_windows`."""
    if size.window is None:
        return {"use_sliding_window": False, "sliding_window": None}
    windowed = [size.window_of(layer) is not None for layer in range(size.num_layers)]
    kinds = ["sliding_attention" if one else "full_attention" for one in windowed]
    return {"use_sliding_window": True, "max_window_layers": windowed.index(True), "layer_types": kinds}


@dataclass(frozen=True)
class Qwen2Config(DecoderConfig):
    """See DecoderConfig."""

    variants = QWEN2
    model_types = ("qwen2",)
    architecture = "Qwen2ForCausalLM"
    defaults: ClassVar[Mapping[str, object]] = {"attention_bias": True}

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        return read_windows(super().read_entries(settings, where), settings)

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        return {**super().write_entries(size), **write_windows(size)}


@register("model", config=Qwen2Config)
class Qwen2(Decoder[Qwen2Config]):
    """See Decoder."""


@dataclass(frozen=True)
class Qwen3Config(Qwen2Config):
    """See DecoderConfig."""

    variants = QWEN3
    model_types = ("qwen3",)
    architecture = "Qwen3ForCausalLM"
    defaults: ClassVar[Mapping[str, object]] = {}

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        bias = settings.get("attention_bias") is True
        return {**super().read_entries(settings, where), "attention_bias": bias, "output_bias": bias}

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        return {**super().write_entries(size), "attention_bias": size.attention_bias}


class Qwen3Attention(DecoderAttention):
    """With an RMS norm of each head's queries and keys before the rotation."""

    def __init__(self, size: DecoderSize, layer: int, dropout: float = 0.0) -> None:
        super().__init__(size, layer, dropout)
        self.q_norm = nn.RMSNorm(self.depth, size.epsilon)
        self.k_norm = nn.RMSNorm(self.depth, size.epsilon)

    def normalize_query(self, q: jax.Array) -> jax.Array:
        return self.q_norm(q)

    def normalize_key(self, k: jax.Array) -> jax.Array:
        return self.k_norm(k)


class Qwen3Block(DecoderBlock):
    """A block with norms of heads."""

    attention_type = Qwen3Attention


@register("model", config=Qwen3Config)
class Qwen3(Decoder[Qwen3Config]):
    """See Decoder."""

    block_type = Qwen3Block
