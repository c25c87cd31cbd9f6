"""BART: an encoder and a decoder that normalise behind each residual, with learned positions.

Paper: Lewis et al. 2019, https://arxiv.org/abs/1910.13461
Reference: transformers 5 models/bart/modeling_bart.py
Differs: dropout is that of the attention's weights alone.
Weights: Hugging Face's `BartForConditionalGeneration`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import initializer as I
from zoo.layers.decoder import linear
from zoo.layers.decoder_config import SETTINGS, DecoderSize
from zoo.layers.encoder_decoder import (
    Attend,
    AttentionProjections,
    EncoderDecoder,
    EncoderDecoderConfig,
    EncoderDecoderSize,
    TargetBlock,
)
from zoo.layers.hidden_activations import ACTIVATIONS

_OFFSET = 2
"""Rows of the table of positions before that of the first one"""


@dataclass(frozen=True)
class BartSize(EncoderDecoderSize):
    """What a variant says besides.

    Attributes:
        scale_embedding: Words are multiplied by the root of their width.
    """

    scale_embedding: bool = False


def _bart(width: int, layers: int, heads: int, params: int, vocab_size: int = 50265) -> BartSize:
    return BartSize(
        *(vocab_size, width, layers, heads, 4 * width),
        max_positions=1024,
        epsilon=1e-5,
        activation="gelu",
        tie_embeddings=True,
        bos_id=0,
        eos_ids=(2,),
        pad_id=1,
        start_id=2,
        forced_end_id=2,
        params=params,
    )


# Section 4 of the paper; counts are those of the official files.
VARIANTS: dict[str, BartSize] = {
    "bart-base": _bart(768, 6, 12, 139_420_416),
    "bart-large": _bart(1024, 12, 16, 406_291_456),
    "bart-large-cnn": _bart(1024, 12, 16, 406_290_432, 50264),
}
_UNWRITTEN = ("num_kv_heads", "head_dim", "window", "epsilon")


@dataclass(frozen=True)
class BartConfig(EncoderDecoderConfig):
    """See DecoderConfig and BartSize."""

    variants = VARIANTS
    model_types = ("bart",)
    architecture = "BartForConditionalGeneration"
    size_type = BartSize
    settings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **{ours: names for ours, names in SETTINGS.items() if ours not in _UNWRITTEN},
        "hidden_size": ("d_model",),
        "num_layers": ("encoder_layers",),
        "num_heads": ("encoder_attention_heads",),
        "intermediate_size": ("encoder_ffn_dim",),
        "activation": ("activation_function",),
        "init_std": ("init_std",),
        "decoder_layers": ("decoder_layers",),
        "decoder_heads": ("decoder_attention_heads",),
        "decoder_intermediate": ("decoder_ffn_dim",),
        "start_id": ("decoder_start_token_id",),
        "forced_end_id": ("forced_eos_token_id",),
        "scale_embedding": ("scale_embedding",),
    }
    defaults: ClassVar[Mapping[str, object]] = {
        "vocab_size": 50265,
        "hidden_size": 1024,
        "num_layers": 12,
        "num_heads": 16,
        "intermediate_size": 4096,
        "max_positions": 1024,
        "epsilon": 1e-5,
        "activation": "gelu",
        "tie_embeddings": True,
        "start_id": 2,
        "bos_id": 0,
        "eos_ids": (2,),
        "pad_id": 1,
    }

    scale_embedding: bool | None = None

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        assert isinstance(size, BartSize)
        result = super().write_entries(size)
        for key in ("num_key_value_heads", "head_dim", "rope_parameters"):
            result.pop(key, None)
        return {
            **result,
            "decoder_layers": size.decoder_layers or size.num_layers,
            "decoder_attention_heads": size.decoder_heads or size.num_heads,
            "decoder_ffn_dim": size.decoder_intermediate or size.intermediate_size,
            "forced_eos_token_id": None if size.forced_end_id < 0 else size.forced_end_id,
            "is_encoder_decoder": True,
        }


def _attention(size: BartSize, heads: int, dropout: float) -> AttentionProjections:
    layers = [linear(size, size.hidden_size, size.hidden_size, True) for _ in range(4)]
    return AttentionProjections(("q_proj", "k_proj", "v_proj", "out_proj"), layers, heads, dropout)


class BartEncoderBlock(nn.Layer):
    """norm(x + attention(x)), then norm(x + mlp(x)), on [N, T, hidden_size]."""

    def __init__(self, size: BartSize, dropout: float) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[size.activation]
        self.self_attn = _attention(size, size.num_heads, dropout)
        self.self_attn_layer_norm = nn.LayerNorm(size.hidden_size, size.epsilon)
        self.fc1 = linear(size, size.hidden_size, size.intermediate_size, True)
        self.fc2 = linear(size, size.intermediate_size, size.hidden_size, True)
        self.final_layer_norm = nn.LayerNorm(size.hidden_size, size.epsilon)

    def forward(self, x: jax.Array, mask: jax.Array | None) -> jax.Array:
        x = self.self_attn_layer_norm(x + self.self_attn(x, x, mask))
        return self.final_layer_norm(x + self.fc2(self.activation(self.fc1(x))))


class BartDecoderBlock(TargetBlock):
    """As BartEncoderBlock, with attention to the source between its parts."""

    def __init__(self, size: BartSize, dropout: float) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[size.activation]
        heads = size.decoder_heads or size.num_heads
        hidden = size.decoder_intermediate or size.intermediate_size
        self.self_attn = _attention(size, heads, dropout)
        self.self_attn_layer_norm = nn.LayerNorm(size.hidden_size, size.epsilon)
        self.encoder_attn = _attention(size, heads, dropout)
        self.encoder_attn_layer_norm = nn.LayerNorm(size.hidden_size, size.epsilon)
        self.fc1 = linear(size, size.hidden_size, hidden, True)
        self.fc2 = linear(size, hidden, size.hidden_size, True)
        self.final_layer_norm = nn.LayerNorm(size.hidden_size, size.epsilon)

    @property
    def target(self) -> AttentionProjections:
        return self.self_attn

    @property
    def source(self) -> AttentionProjections:
        return self.encoder_attn

    def run(self, x: jax.Array, target: Attend, source: Attend) -> jax.Array:
        x = self.self_attn_layer_norm(x + target(x))
        x = self.encoder_attn_layer_norm(x + source(x))
        return self.final_layer_norm(x + self.fc2(self.activation(self.fc1(x))))


class BartStack(nn.BlockChain):
    """Positions, the norm behind the embedding, and blocks of one kind."""

    def __init__(
        self,
        size: BartSize,
        block: type[BartEncoderBlock] | type[BartDecoderBlock],
        layers: int,
        dropout: float,
    ) -> None:
        super().__init__()
        start = I.Normal(0.0, size.init_std)
        rows = size.max_positions + _OFFSET
        self.embed_positions = nn.Embedding(rows, size.hidden_size, weight_attr=start)
        self.layernorm_embedding = nn.LayerNorm(size.hidden_size, size.epsilon)
        self.layers = nn.LayerList([block(size, dropout) for _ in range(layers)])

    def embed(self, words: jax.Array, positions: jax.Array) -> jax.Array:
        """Words [N, T, hidden_size] at positions [N or 1, T], normalised."""
        return self.layernorm_embedding(words + self.embed_positions(positions + _OFFSET))


class BartStacks(nn.Layer):
    """Words, encoder and decoder: `model.` in the names of Hugging Face."""

    def __init__(self, size: BartSize, dropout: float) -> None:
        super().__init__()
        self.factor = math.sqrt(size.hidden_size) if size.scale_embedding else 1.0
        start = I.Normal(0.0, size.init_std)
        self.shared = nn.Embedding(size.vocab_size, size.hidden_size, weight_attr=start)
        self.encoder = BartStack(size, BartEncoderBlock, size.num_layers, dropout)
        layers = size.decoder_layers or size.num_layers
        self.decoder = BartStack(size, BartDecoderBlock, layers, dropout)

    def words(self, ids: jax.Array) -> jax.Array:
        """[N, T] -> [N, T, hidden_size]"""
        return self.shared(ids) * self.factor


@register("model", config=BartConfig)
class Bart(EncoderDecoder[BartConfig]):
    """See EncoderDecoder."""

    unused_weights = (r"^model\.(encoder|decoder)\.version$",)
    optional_weights = (r"^final_logits_bias$",)
    file_renames = ((r"^(?=(?:shared|encoder|decoder)\.)", "model."),)

    def __init__(self, config: BartConfig) -> None:
        super().__init__(config)
        size = config.size()
        assert isinstance(size, BartSize)
        self.model = BartStacks(size, config.dropout)
        if not size.tie_embeddings:
            self.lm_head = linear(size, size.hidden_size, size.vocab_size, False)
        self.register_buffer("final_logits_bias", jnp.zeros((1, size.vocab_size), jnp.float32))

    @property
    def embedding_name(self) -> str:
        return "model.shared.weight"

    def encode(self, ids: jax.Array, mask: jax.Array | None = None) -> jax.Array:
        encoder = self.model.encoder
        x = encoder.embed(self.model.words(ids), jnp.arange(ids.shape[1])[None])
        return nn.run_blocks(encoder.blocks(), x, None if mask is None else mask[:, None, None])

    def target_blocks(self) -> Sequence[TargetBlock]:
        return [block for block in self.model.decoder.layers if isinstance(block, TargetBlock)]

    def embed_target(self, ids: jax.Array, positions: jax.Array) -> jax.Array:
        return self.model.decoder.embed(self.model.words(ids), positions)

    def logits(self, hidden: jax.Array) -> jax.Array:
        return super().logits(hidden) + self.final_logits_bias[0].astype(jnp.float32)

    def file_aliases(self) -> Mapping[str, str]:
        """The embedding stands under several names."""
        names = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
        aliases = dict.fromkeys(names, self.embedding_name)
        return {**super().file_aliases(), **aliases}
