"""GPT-2: blocks with layer normalisation before each part, and learned positions.

Paper: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"
Reference: transformers 5 models/gpt2/modeling_gpt2.py
Differs: dropout is that of the attention's weights alone.
Weights: Hugging Face's `GPT2LMHeadModel`; matrices are [in, out] there, too. Files of the first years have no prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.core.types import PyTree
from framework.nn import initializer as I
from zoo.layers.decoder import (
    Decoder,
    DecoderAttention,
    DecoderBlock,
    DecoderStack,
    Positions,
    linear,
)
from zoo.layers.decoder_config import SETTINGS, DecoderConfig, DecoderSize
from zoo.layers.hidden_activations import ACTIVATIONS
from zoo.layers.pretrained_model import WeightSource


def _gpt2(width: int, layers: int, heads: int, params: int) -> DecoderSize:
    return DecoderSize(
        *(50257, width, layers, heads, 4 * width),
        max_positions=1024,
        epsilon=1e-5,
        activation="gelu_new",
        tie_embeddings=True,
        bos_id=50256,
        eos_ids=(50256,),
        params=params,
    )


# Table 2 of the paper; counts are those of the official files.
VARIANTS: dict[str, DecoderSize] = {
    "gpt2": _gpt2(768, 12, 12, 124_439_808),
    "gpt2-medium": _gpt2(1024, 24, 16, 354_823_168),
    "gpt2-large": _gpt2(1280, 36, 20, 774_030_080),
    "gpt2-xl": _gpt2(1600, 48, 25, 1_557_611_200),
}
_REQUIRED = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}
_UNWRITTEN = ("num_kv_heads", "head_dim", "window")


@dataclass(frozen=True)
class GPT2Config(DecoderConfig):
    """See DecoderConfig."""

    variants = VARIANTS
    model_types = ("gpt2",)
    architecture = "GPT2LMHeadModel"
    settings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **{ours: names for ours, names in SETTINGS.items() if ours not in _UNWRITTEN},
        "hidden_size": ("n_embd", "hidden_size"),
        "num_layers": ("n_layer", "num_hidden_layers"),
        "num_heads": ("n_head", "num_attention_heads"),
        "intermediate_size": ("n_inner", "intermediate_size"),
        "max_positions": ("n_positions", "n_ctx", "max_position_embeddings"),
        "epsilon": ("layer_norm_epsilon",),
        "activation": ("activation_function",),
    }
    defaults: ClassVar[Mapping[str, object]] = {
        "vocab_size": 50257,
        "hidden_size": 768,
        "num_layers": 12,
        "num_heads": 12,
        "max_positions": 1024,
        "epsilon": 1e-5,
        "activation": "gelu_new",
        "tie_embeddings": True,
    }

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        for key, allowed in _REQUIRED.items():
            if settings.get(key, allowed) != allowed:
                raise ConfigError(
                    "the decoder cannot do this",
                    where=f"{where}: {key}",
                    received=repr(settings[key]),
                    allowed=repr(allowed),
                )
        entries = super().read_entries(settings, where)
        width = entries.get("hidden_size", cls.defaults["hidden_size"])
        assert isinstance(width, int)
        return {"intermediate_size": 4 * width, **entries}

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        result = super().write_entries(size)
        for key in ("num_key_value_heads", "head_dim", "rope_parameters"):
            result.pop(key)
        return result


class GPT2Attention(DecoderAttention):
    """Attention on [N, T, hidden_size] to the tokens up to each one, by one matrix for queries, keys and values."""

    def __init__(self, size: DecoderSize, layer: int, dropout: float = 0.0) -> None:
        nn.Layer.__init__(self)
        width = size.hidden_size
        self.heads = self.kv_heads = size.num_heads
        self.depth, self.dropout, self.windowed = size.head_width, dropout, False
        self.scale = self.softcap = None
        self.c_attn = linear(size, width, 3 * width, True)
        self.c_proj = linear(size, width, width, True)

    def project(self, x: jax.Array, at: Positions) -> tuple[jax.Array, jax.Array, jax.Array]:
        q, k, v = jnp.split(self.c_attn(x).reshape(*x.shape[:2], 3 * self.heads, self.depth), 3, axis=2)
        return q, k, v

    def output(self, x: jax.Array) -> jax.Array:
        return self.c_proj(x)


class GPT2MLP(nn.Layer):
    """c_proj(activation(c_fc(x))) on [..., hidden_size]."""

    def __init__(self, size: DecoderSize) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[size.activation]
        self.c_fc = linear(size, size.hidden_size, size.intermediate_size, True)
        self.c_proj = linear(size, size.intermediate_size, size.hidden_size, True)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.c_proj(self.activation(self.c_fc(x)))


class GPT2Block(DecoderBlock):
    """x + attn(norm(x)), then x + mlp(norm(x)), on [N, T, hidden_size]."""

    def __init__(self, config: DecoderConfig, size: DecoderSize, layer: int) -> None:
        nn.Layer.__init__(self)
        self.ln_1 = nn.LayerNorm(size.hidden_size, size.epsilon)
        self.attn = GPT2Attention(size, layer, config.dropout)
        self.ln_2 = nn.LayerNorm(size.hidden_size, size.epsilon)
        self.mlp = GPT2MLP(size)

    def forward(self, x: jax.Array, at: Positions) -> jax.Array:
        x = x + self.attn(self.ln_1(x), at)
        return x + self.mlp(self.ln_2(x))

    def decode(
        self, x: jax.Array, at: Positions, positions: jax.Array, cache: PyTree
    ) -> tuple[jax.Array, PyTree]:
        y, cache = self.attn.decode(self.ln_1(x), at, positions, cache)
        x = x + y
        return x + self.mlp(self.ln_2(x)), cache

    def new_cache(self, batch: int, length: int, dtype: DTypeLike) -> PyTree:
        return self.attn.new_cache(batch, length, dtype)


class GPT2Stack(DecoderStack):
    """Embeddings of words and positions, blocks and the last norm: `transformer.` in the names of Hugging Face."""

    embedding_name = "wte"

    def __init__(self, config: DecoderConfig, size: DecoderSize, block: type[DecoderBlock]) -> None:
        nn.BlockChain.__init__(self)
        start = I.Normal(0.0, size.init_std)
        self.wte = nn.Embedding(size.vocab_size, size.hidden_size, weight_attr=start)
        self.wpe = nn.Embedding(size.max_positions, size.hidden_size, weight_attr=start)
        self.h = nn.LayerList([block(config, size, layer) for layer in range(size.num_layers)])
        self.ln_f = nn.LayerNorm(size.hidden_size, size.epsilon)

    def blocks(self) -> list[nn.Layer]:
        return list(self.h)

    def embed(self, ids: jax.Array, positions: jax.Array) -> jax.Array:
        return self.wte(ids) + self.wpe(positions)

    def normalize(self, x: jax.Array) -> jax.Array:
        return self.ln_f(x)


@register("model", config=GPT2Config)
class GPT2(Decoder[GPT2Config]):
    """See Decoder."""

    block_type = GPT2Block
    stack_type = GPT2Stack
    stack_name = "transformer"
    file_renames = ((r"^(?=(wte|wpe|h|ln_f)\.)", "transformer."),)

    def weight_sources(self) -> dict[str, WeightSource]:
        """Matrices are not transposed, but that of words that are not tied."""
        sources = super().weight_sources()
        return {
            name: source._replace(transposed=source.transposed and name == "lm_head.weight")
            for name, source in sources.items()
        }

    def tables(
        self, positions: jax.Array, valid: jax.Array | None = None, lengths: jax.Array | None = None
    ) -> tuple[jax.Array, jax.Array]:
        """None turn: positions are learned."""
        empty = jnp.zeros((*positions.shape, 0), jnp.float32)
        return empty, empty
