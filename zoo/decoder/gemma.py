"""Gemma 2 and 3, the models of texts: norms before and behind each part, layers with a window between ones without, and
embeddings that are scaled.

Papers: Gemma 2: https://arxiv.org/abs/2408.00118; Gemma 3: https://arxiv.org/abs/2503.19786
Reference: transformers 5 models/gemma2/modeling_gemma2.py, models/gemma3/modeling_gemma3.py
Differs: nothing in the function computed.
Weights: Hugging Face's `Gemma2ForCausalLM` and `Gemma3ForCausalLM`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.core.types import PyTree
from zoo.layers.decoder import Decoder, DecoderAttention, DecoderBlock, DecoderStack, Positions
from zoo.layers.decoder_config import SETTINGS, DecoderConfig, DecoderSize
from zoo.layers.pretrained_model import ConfigT
from zoo.layers.rope import RopeOptions, read_rope, rotary_tables, write_rope


@dataclass(frozen=True)
class GemmaSize(DecoderSize):
    """What a variant says besides.

    Attributes:
        query_scale: Scores of the attention are divided by its root.
        attention_cap, final_cap: Scores s of the attention and of the vocabulary become cap * tanh(s / cap); 0: they
            stay.
        local_rope: The rotary embedding of layers with a window; None: that of all layers.
    """

    query_scale: float = 256.0
    attention_cap: float = 0.0
    final_cap: float = 0.0
    local_rope: RopeOptions | None = None

    @property
    def longest_text(self) -> int:
        """Gemma 3 counts its stretched positions in `max_positions`."""
        return super().longest_text if self.local_rope is None else self.max_positions


_TOKENS = {"bos_id": 2, "eos_ids": (1,), "pad_id": 0}
_COMMON = {"activation": "gelu_pytorch_tanh", "tie_embeddings": True, **_TOKENS}


def _gemma2(sizes: tuple[int, ...], params: int, query_scale: float = 256.0) -> GemmaSize:
    """`sizes`: width, layers, heads, width of the feed-forward part, heads of keys, width of a head"""
    return GemmaSize(
        *(256000, *sizes),
        max_positions=8192,
        window=4096,
        windowed=_alternate(sizes[1], 2),
        **_COMMON,  # type: ignore[arg-type]
        query_scale=query_scale,
        attention_cap=50.0,
        final_cap=30.0,
        params=params,
    )


def _gemma3(
    sizes: tuple[int, ...], params: int, window: int = 1024, vocab_size: int = 262208, positions: int = 131072,
    factor: float = 8.0, query_scale: float = 256.0,
) -> GemmaSize:  # fmt: skip
    return GemmaSize(
        *(vocab_size, *sizes),
        max_positions=positions,
        window=window,
        windowed=_alternate(sizes[1], 6),
        rope=RopeOptions(1e6, "linear", factor) if factor > 1 else RopeOptions(1e6),
        **_COMMON,  # type: ignore[arg-type]
        query_scale=query_scale,
        local_rope=RopeOptions(10000.0),
        params=params,
    )


def _alternate(layers: int, pattern: int) -> tuple[bool, ...]:
    """All layers but each `pattern`-th have a window."""
    return tuple(bool((layer + 1) % pattern) for layer in range(layers))


# Table 1 of Gemma 2; tables 1 and 2 of Gemma 3 without the tower of images.
GEMMA2: dict[str, GemmaSize] = {
    "gemma-2-2b": _gemma2((2304, 26, 8, 9216, 4, 256), 2_614_341_888),
    "gemma-2-9b": _gemma2((3584, 42, 16, 14336, 8, 256), 9_241_705_984),
    "gemma-2-27b": _gemma2((4608, 46, 32, 36864, 16, 128), 27_227_128_320, 144.0),
}
GEMMA3: dict[str, GemmaSize] = {
    "gemma-3-270m": _gemma3((640, 18, 4, 2048, 1, 256), 268_098_176, 512, 262144, 32768, 1.0),
    "gemma-3-1b": _gemma3((1152, 26, 4, 6912, 1, 256), 999_885_952, 512, 262144, 32768, 1.0),
    "gemma-3-4b": _gemma3((2560, 34, 8, 10240, 4, 256), 3_880_263_168),
    "gemma-3-12b": _gemma3((3840, 48, 16, 15360, 8, 256), 11_766_034_176),
    "gemma-3-27b": _gemma3((5376, 62, 32, 21504, 16, 128), 27_009_346_304, query_scale=168.0),
}


@dataclass(frozen=True)
class Gemma2Config(DecoderConfig):
    """See DecoderConfig and GemmaSize."""

    variants = GEMMA2
    model_types = ("gemma2",)
    architecture = "Gemma2ForCausalLM"
    size_type = GemmaSize
    settings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **SETTINGS,
        "activation": ("hidden_activation", "hidden_act"),
        "query_scale": ("query_pre_attn_scalar",),
    }
    defaults: ClassVar[Mapping[str, object]] = {
        **_COMMON,
        "vocab_size": 256000,
        "head_dim": 256,
        "num_kv_heads": 4,
        "max_positions": 8192,
        "window": 4096,
        "attention_cap": 50.0,
        "final_cap": 30.0,
    }
    pattern = 2
    """Of layers without a window, where config.json does not say it"""

    query_scale: float | None = None
    attention_cap: float | None = None
    final_cap: float | None = None
    local_rope: RopeOptions | None = None

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        if settings.get("use_bidirectional_attention"):
            raise ConfigError(
                "the decoder cannot do this",
                where=f"{where}: use_bidirectional_attention",
                received="true",
                allowed="false: a token sees those before it",
            )
        entries = super().read_entries(settings, where)
        bias = settings.get("attention_bias") is True
        entries |= {"attention_bias": bias, "output_bias": bias}
        for ours, key in (
            ("attention_cap", "attn_logit_softcapping"),
            ("final_cap", "final_logit_softcapping"),
        ):
            if key in settings:  # null says that there is none
                entries[ours] = settings[key] or 0.0
        layers = entries.get("num_layers", cls.size_type.num_layers)
        assert isinstance(layers, int)
        kinds, pattern = settings.get("layer_types"), settings.get("sliding_window_pattern", cls.pattern)
        if isinstance(kinds, list) and len(kinds) == layers:
            entries["windowed"] = tuple(kind == "sliding_attention" for kind in kinds)
        else:
            entries["windowed"] = _alternate(layers, pattern if isinstance(pattern, int) else cls.pattern)
        return entries

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        assert isinstance(size, GemmaSize)
        windowed = [size.window_of(layer) is not None for layer in range(size.num_layers)]
        return {
            **super().write_entries(size),
            "attention_bias": size.attention_bias,
            "attn_logit_softcapping": size.attention_cap or None,
            "final_logit_softcapping": size.final_cap or None,
            "layer_types": ["sliding_attention" if one else "full_attention" for one in windowed],
        }


@dataclass(frozen=True)
class Gemma3Config(Gemma2Config):
    """See DecoderConfig and GemmaSize."""

    variants = GEMMA3
    model_types = ("gemma3_text",)
    architecture = "Gemma3ForCausalLM"
    defaults: ClassVar[Mapping[str, object]] = {
        **_COMMON,
        "vocab_size": 262208,
        "head_dim": 256,
        "num_kv_heads": 4,
        "max_positions": 131072,
        "window": 4096,
        "rope": RopeOptions(1e6),
        "local_rope": RopeOptions(10000.0),
    }
    pattern = 6

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        entries = super().read_entries(
            {key: value for key, value in settings.items() if key != "rope_parameters"}, where
        )
        nested = settings.get("rope_parameters")
        if isinstance(nested, Mapping) and ("full_attention" in nested or "sliding_attention" in nested):
            full, near = nested.get("full_attention") or {}, nested.get("sliding_attention") or {}
            entries["rope"] = read_rope({"rope_parameters": full}, where, 1e6)
            entries["local_rope"] = read_rope({"rope_parameters": near}, where, 10000.0)
        else:
            local = settings.get("rope_local_base_freq")
            entries["rope"] = read_rope(settings, where, 1e6)
            entries["local_rope"] = read_rope({"rope_theta": 10000.0 if local is None else local}, where)
        return entries

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        assert isinstance(size, GemmaSize) and size.local_rope is not None
        both = {"full_attention": write_rope(size.rope), "sliding_attention": write_rope(size.local_rope)}
        return {**super().write_entries(size), "rope_parameters": both}


def _norm(size: DecoderSize, width: int) -> nn.RMSNorm:
    return nn.RMSNorm(width, size.epsilon, unit_offset=True)


class Gemma2Attention(DecoderAttention):
    """With a scale of its own and a soft cap of scores."""

    def __init__(self, size: GemmaSize, layer: int, dropout: float = 0.0) -> None:
        super().__init__(size, layer, dropout)
        self.scale, self.softcap = size.query_scale**-0.5, size.attention_cap or None


class Gemma3Attention(Gemma2Attention):
    """With a norm of each head's queries and keys, and rotations of their own in layers with a window."""

    def __init__(self, size: GemmaSize, layer: int, dropout: float = 0.0) -> None:
        super().__init__(size, layer, dropout)
        self.q_norm, self.k_norm = _norm(size, self.depth), _norm(size, self.depth)

    def normalize_query(self, q: jax.Array) -> jax.Array:
        return self.q_norm(q)

    def normalize_key(self, k: jax.Array) -> jax.Array:
        return self.k_norm(k)

    def rotate(self, x: jax.Array, at: Positions) -> jax.Array:
        if self.windowed and at.near_tables is not None:
            at = at._replace(cos=at.near_tables[0], sin=at.near_tables[1])
        return super().rotate(x, at)


class Gemma2Block(DecoderBlock):
    """x + norm(attention(norm(x))), then x + norm(mlp(norm(x))), on [N, T, hidden_size]."""

    attention_type = Gemma2Attention

    def __init__(self, config: DecoderConfig, size: DecoderSize, layer: int) -> None:
        super().__init__(config, size, layer)
        self.input_layernorm = _norm(size, size.hidden_size)
        self.post_attention_layernorm = _norm(size, size.hidden_size)
        self.pre_feedforward_layernorm = _norm(size, size.hidden_size)
        self.post_feedforward_layernorm = _norm(size, size.hidden_size)

    def _feed_forward(self, x: jax.Array) -> jax.Array:
        return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))

    def forward(self, x: jax.Array, at: Positions) -> jax.Array:
        y = self.self_attn(self.input_layernorm(x), at)
        return self._feed_forward(x + self.post_attention_layernorm(y))

    def decode(
        self, x: jax.Array, at: Positions, positions: jax.Array, cache: PyTree
    ) -> tuple[jax.Array, PyTree]:
        y, cache = self.self_attn.decode(self.input_layernorm(x), at, positions, cache)
        return self._feed_forward(x + self.post_attention_layernorm(y)), cache


class Gemma3Block(Gemma2Block):
    """With norms of heads in place of the soft cap."""

    attention_type = Gemma3Attention


class GemmaStack(DecoderStack):
    """With embeddings times the root of their width."""

    def __init__(self, config: DecoderConfig, size: DecoderSize, block: type[DecoderBlock]) -> None:
        super().__init__(config, size, block)
        self.norm = _norm(size, size.hidden_size)
        self.factor = math.sqrt(size.hidden_size)

    def embed(self, ids: jax.Array, positions: jax.Array) -> jax.Array:
        x = self.embed_tokens(ids)
        return x * jnp.asarray(self.factor, x.dtype)


class _Gemma(Decoder[ConfigT]):
    stack_type = GemmaStack

    def logits(self, hidden: jax.Array) -> jax.Array:
        assert isinstance(self.size, GemmaSize)
        logits, cap = super().logits(hidden), self.size.final_cap
        return logits if not cap else jnp.tanh(logits / cap) * cap


@register("model", config=Gemma2Config)
class Gemma2(_Gemma[Gemma2Config]):
    """See Decoder."""

    block_type = Gemma2Block


@register("model", config=Gemma3Config)
class Gemma3(_Gemma[Gemma3Config]):
    """See Decoder."""

    block_type = Gemma3Block

    def near_tables(
        self, positions: jax.Array, valid: jax.Array | None = None
    ) -> tuple[jax.Array, jax.Array] | None:
        assert isinstance(self.size, GemmaSize)
        if self.size.local_rope is None:
            return None
        return rotary_tables(
            self.size.local_rope, self.size.head_width, self.size.max_positions, positions, valid
        )
