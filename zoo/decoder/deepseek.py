"""DeepSeek V2 and V3: attention whose keys and values are made of one small latent vector a token, which is all that
the cache keeps, and many small experts beside shared ones.

Papers: DeepSeek-V2: https://arxiv.org/abs/2405.04434; DeepSeek-V3: https://arxiv.org/abs/2412.19437
Reference: transformers 5 models/deepseek_v2/modeling_deepseek_v2.py, models/deepseek_v3/modeling_deepseek_v3.py
Differs: `norm_topk_prob` holds in V2, too (transformers leaves it out; official files say false). The layers that
    predict further tokens are not read.
Weights: Hugging Face's `DeepseekV2ForCausalLM` and `DeepseekV3ForCausalLM`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from framework import nn
from framework.config import register
from framework.core.types import PyTree
from framework.nn import functional as F
from zoo.layers.decoder import DecoderAttention, Positions, linear, write_cache
from zoo.layers.decoder_config import DecoderSize
from zoo.layers.decoder_moe import (
    MIXTURE_SETTINGS,
    MixtureBlock,
    MixtureConfig,
    MixtureConfigT,
    MixtureDecoder,
    MixtureSize,
)
from zoo.layers.rope import RopeOptions


@dataclass(frozen=True)
class DeepseekSize(MixtureSize):
    """What a variant says besides.

    Attributes:
        query_rank: Width of the latent vector of queries; 0: they are made of the hidden state.
        latent_rank: Width of that of keys and values.
        plain_dim, rotary_dim, value_dim: Channels of a head: of queries and keys without and with rotary positions, and
            of values.
        interleaved: Neighbouring channels turn together.
    """

    query_rank: int = 0
    latent_rank: int = 512
    plain_dim: int = 128
    rotary_dim: int = 64
    value_dim: int = 128
    interleaved: bool = True


def _yarn(original: int = 4096, mscale: float = 0.707, factor: float = 40.0) -> RopeOptions:
    return RopeOptions(10000.0, "yarn", factor, original, mscale=mscale, mscale_all_dim=mscale)


# The models' config.json.
V2: dict[str, DeepseekSize] = {
    "deepseek-v2-lite": DeepseekSize(
        *(102400, 2048, 27, 16, 10944, 16),
        max_positions=163840,
        rope=_yarn(),
        bos_id=100000,
        eos_ids=(100001,),
        num_experts=64,
        top_k=6,
        expert_size=1408,
        shared_size=2816,
        sparse=(False, *[True] * 26),
        normalize=False,
        balance_weight=0.001,
        params=15_706_484_224,
    ),
    "deepseek-v2": DeepseekSize(
        *(102400, 5120, 60, 128, 12288, 128),
        max_positions=163840,
        rope=_yarn(),
        bos_id=100000,
        eos_ids=(100001,),
        num_experts=160,
        top_k=6,
        expert_size=1536,
        shared_size=3072,
        sparse=(False, *[True] * 59),
        normalize=False,
        routed_scale=16.0,
        groups=8,
        top_groups=3,
        query_rank=1536,
        balance_weight=0.001,
        params=235_741_434_880,
    ),
}
V3: dict[str, DeepseekSize] = {
    "deepseek-v3": DeepseekSize(
        *(129280, 7168, 61, 128, 18432, 128),
        max_positions=163840,
        rope=_yarn(mscale=1.0),
        bos_id=0,
        eos_ids=(1,),
        num_experts=256,
        top_k=8,
        expert_size=2048,
        shared_size=2048,
        sparse=(*[False] * 3, *[True] * 58),
        sigmoid=True,
        corrected=True,
        routed_scale=2.5,
        groups=8,
        top_groups=4,
        query_rank=1536,
        balance_weight=0.0,
        params=671_026_404_352,
    ),
}


_UNWRITTEN = ("head_dim", "balance_weight")


@dataclass(frozen=True)
class DeepseekV2Config(MixtureConfig):
    """See MixtureConfig and DeepseekSize."""

    variants = V2
    model_types = ("deepseek_v2",)
    architecture = "DeepseekV2ForCausalLM"
    size_type = DeepseekSize
    settings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **{ours: names for ours, names in MIXTURE_SETTINGS.items() if ours not in _UNWRITTEN},
        "num_experts": ("n_routed_experts",),
        "routed_scale": ("routed_scaling_factor",),
        "balance_weight": ("aux_loss_alpha",),
        "query_rank": ("q_lora_rank",),
        "latent_rank": ("kv_lora_rank",),
        "plain_dim": ("qk_nope_head_dim",),
        "rotary_dim": ("qk_rope_head_dim",),
        "value_dim": ("v_head_dim",),
        "groups": ("n_group",),
        "top_groups": ("topk_group",),
    }
    defaults: ClassVar[Mapping[str, object]] = {
        "vocab_size": 102400,
        "num_experts": 64,
        "top_k": 6,
        "expert_size": 1407,
        "normalize": False,
        "query_rank": 1536,
    }
    counts: ClassVar[Mapping[str, int]] = {
        "first_k_dense_replace": 0,
        "n_shared_experts": 2,
        "moe_layer_freq": 1,
    }
    """Entries of config.json that are turned into others here, and what upstream takes where it says nothing"""

    query_rank: int | None = None
    latent_rank: int | None = None
    plain_dim: int | None = None
    rotary_dim: int | None = None
    value_dim: int | None = None
    interleaved: bool | None = None

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        entries = super().read_entries(settings, where)
        if "q_lora_rank" in settings and settings["q_lora_rank"] is None:
            entries["query_rank"] = 0
        if settings.get("topk_method") == "greedy":
            entries |= {"groups": 1, "top_groups": 1}
        layers = entries.get("num_layers", cls.size_type.num_layers)
        expert = entries.get("expert_size", cls.defaults["expert_size"])
        result = {key: settings.get(key) for key in cls.counts}
        count = {key: value if isinstance(value, int) else cls.counts[key] for key, value in result.items()}
        assert isinstance(layers, int) and isinstance(expert, int)
        dense, step = count["first_k_dense_replace"], max(count["moe_layer_freq"], 1)
        bias = settings.get("attention_bias") is True
        return {
            **entries,
            "sparse": tuple(layer >= dense and layer % step == 0 for layer in range(layers)),
            "shared_size": count["n_shared_experts"] * expert,
            "attention_bias": bias,
            "output_bias": bias,
        }

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        assert isinstance(size, DeepseekSize)
        sparse = [layer for layer in range(size.num_layers) if size.is_sparse(layer)] or [size.num_layers]
        result = super().write_entries(size)
        del result["head_dim"]  # there it is that of the rotary channels
        return {
            **result,
            "attention_bias": size.attention_bias,
            "first_k_dense_replace": sparse[0],
            "moe_layer_freq": sparse[1] - sparse[0] if len(sparse) > 1 else 1,
            "n_shared_experts": size.shared_size // size.expert_width,
            "moe_intermediate_size": size.expert_width,
            "q_lora_rank": size.query_rank or None,
            "topk_method": "group_limited_greedy" if size.groups > 1 else "greedy",
        }


@dataclass(frozen=True)
class DeepseekV3Config(DeepseekV2Config):
    """See MixtureConfig and DeepseekSize."""

    variants = V3
    model_types = ("deepseek_v3",)
    architecture = "DeepseekV3ForCausalLM"
    defaults: ClassVar[Mapping[str, object]] = {
        "vocab_size": 129280,
        "num_experts": 256,
        "top_k": 8,
        "expert_size": 2048,
        "groups": 8,
        "top_groups": 4,
        "routed_scale": 2.5,
        "query_rank": 1536,
        "sigmoid": True,
        "corrected": True,
        "balance_weight": 0.0,
    }
    counts: ClassVar[Mapping[str, int]] = {
        "first_k_dense_replace": 3,
        "n_shared_experts": 1,
        "moe_layer_freq": 1,
    }

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        interleaved = settings.get("rope_interleave", True) is not False
        return {**super().read_entries(settings, where), "interleaved": interleaved}

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        assert isinstance(size, DeepseekSize)
        extra = {"topk_method": "noaux_tc", "scoring_func": "sigmoid", "rope_interleave": size.interleaved}
        return {**super().write_entries(size), **extra}


class LatentCache(NamedTuple):
    """What keys and values are made of, of the tokens so far."""

    latent: jax.Array
    """[N, S, latent_rank], normalised"""
    key: jax.Array
    """[N, S, rotary_dim]: the channels of keys with positions, which all heads share, after their rotation"""


class LatentAttention(DecoderAttention):
    """Multi-head latent attention on [N, T, hidden_size]. Source: DeepSeek-V2, section 2.1.

    With a cache the matrix that makes keys of latent vectors is applied to queries instead, and that of values to what
    the attention gives: so heads are never made of the tokens before (the paper's appendix B says "absorbed").
    """

    def __init__(self, size: DecoderSize, layer: int, dropout: float = 0.0) -> None:
        nn.Layer.__init__(self)
        assert isinstance(size, DeepseekSize)
        self.heads, self.dropout = size.num_heads, dropout
        self.plain, self.rotary, self.values = size.plain_dim, size.rotary_dim, size.value_dim
        self.rank, self.interleaved = size.latent_rank, size.interleaved
        self.windowed, self.softcap = size.window_of(layer) is not None, None
        width, channels = size.hidden_size, self.plain + self.rotary
        if size.query_rank:
            self.q_a_proj = linear(size, width, size.query_rank, size.attention_bias)
            self.q_a_layernorm = nn.RMSNorm(size.query_rank, 1e-6)  # upstream's, whatever rms_norm_eps says
            self.q_b_proj = linear(size, size.query_rank, self.heads * channels, False)
        else:
            self.q_proj = linear(size, width, self.heads * channels, False)
        self.kv_a_proj_with_mqa = linear(size, width, self.rank + self.rotary, size.attention_bias)
        self.kv_a_layernorm = nn.RMSNorm(self.rank, 1e-6)
        self.kv_b_proj = linear(size, self.rank, self.heads * (self.plain + self.values), False)
        self.o_proj = linear(size, self.heads * self.values, width, size.output_bias)
        scale = channels**-0.5
        stretch = size.rope.stretch(size.max_positions)
        if size.rope.kind != "default" and size.rope.mscale_all_dim and stretch > 1:
            scale *= (0.1 * size.rope.mscale_all_dim * math.log(stretch) + 1) ** 2
        self.scale = scale

    def _queries(self, x: jax.Array, at: Positions) -> tuple[jax.Array, jax.Array]:
        """[N, T, H, plain_dim] and [N, T, H, rotary_dim], rotated."""
        q = (
            self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x)))
            if hasattr(self, "q_a_proj")
            else self.q_proj(x)
        )
        q = q.reshape(*x.shape[:2], self.heads, self.plain + self.rotary)
        return q[..., : self.plain], self.rotate(q[..., self.plain :], at)

    def _latents(self, x: jax.Array, at: Positions) -> tuple[jax.Array, jax.Array]:
        """[N, T, latent_rank] and [N, T, 1, rotary_dim], rotated."""
        values = self.kv_a_proj_with_mqa(x)
        return self.kv_a_layernorm(values[..., : self.rank]), self.rotate(values[..., None, self.rank :], at)

    def forward(self, x: jax.Array, at: Positions) -> jax.Array:
        plain, rotary = self._queries(x, at)
        latent, shared = self._latents(x, at)
        both = self.kv_b_proj(latent).reshape(*x.shape[:2], self.heads, self.plain + self.values)
        shared = jnp.broadcast_to(shared, (*both.shape[:3], self.rotary))
        k = jnp.concatenate([both[..., : self.plain], shared], -1)
        return self.attend(jnp.concatenate([plain, rotary], -1), k, both[..., self.plain :], self.mask_of(at))

    def new_cache(self, batch: int, length: int, dtype: DTypeLike) -> LatentCache:
        shape = (batch, length)
        return LatentCache(jnp.zeros((*shape, self.rank), dtype), jnp.zeros((*shape, self.rotary), dtype))

    def decode(
        self, x: jax.Array, at: Positions, positions: jax.Array, cache: PyTree
    ) -> tuple[jax.Array, PyTree]:
        plain, rotary = self._queries(x, at)
        latent, shared = self._latents(x, at)
        cache = LatentCache(
            write_cache(cache.latent, latent, positions), write_cache(cache.key, shared[:, :, 0], positions)
        )
        matrix = self.kv_b_proj.weight.reshape(self.rank, self.heads, self.plain + self.values).astype(
            x.dtype
        )
        q = jnp.einsum("nthd,rhd->nthr", plain, matrix[..., : self.plain])
        latent = cache.latent.astype(x.dtype)[:, :, None]  # one head of keys and values for all
        k = jnp.concatenate([latent, cache.key.astype(x.dtype)[:, :, None]], -1)
        q = jnp.concatenate([q, rotary], -1)
        values = F.scaled_dot_product_attention(
            q, k, latent, self.mask_of(at), training=False, scale=self.scale
        )
        values = jnp.einsum("nthr,rhd->nthd", values, matrix[..., self.plain :])
        return self.o_proj(values.reshape(*x.shape[:2], -1)), cache


class DeepseekBlock(MixtureBlock):
    """With latent attention, and experts behind the first layers."""

    attention_type = LatentAttention


class _Deepseek(MixtureDecoder[MixtureConfigT]):
    block_type = DeepseekBlock

    @property
    def rotary_width(self) -> int:
        assert isinstance(self.size, DeepseekSize)
        return self.size.rotary_dim

    def is_unused(self, name: str) -> bool:
        """Also the weights of layers that predict further tokens, which stand behind those of the model."""
        layer = re.match(r"model\.layers\.(\d+)\.", name)
        return super().is_unused(name) or (layer is not None and int(layer[1]) >= self.size.num_layers)


@register("model", config=DeepseekV2Config)
class DeepseekV2(_Deepseek[DeepseekV2Config]):
    """See MixtureDecoder."""


@register("model", config=DeepseekV3Config)
class DeepseekV3(_Deepseek[DeepseekV3Config]):
    """See MixtureDecoder."""
