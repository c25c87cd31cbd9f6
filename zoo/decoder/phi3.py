"""Phi-3 and Phi-4 of Microsoft: LLaMA with one matrix for queries, keys and values, and one for both halves of the
feed-forward part.

Paper: Abdin et al. 2024, https://arxiv.org/abs/2404.14219
Reference: transformers 5 models/phi3/modeling_phi3.py
Differs: nothing in the function computed.
Weights: Hugging Face's `Phi3ForCausalLM`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from zoo.layers.decoder import Decoder, DecoderAttention, DecoderBlock, Positions, linear
from zoo.layers.decoder_config import DecoderConfig, DecoderSize
from zoo.layers.hidden_activations import ACTIVATIONS
from zoo.layers.rope import RopeOptions

# Section 2 of the paper; the larger one by its config.json.
VARIANTS: dict[str, DecoderSize] = {
    "phi-3-mini-4k": DecoderSize(
        *(32064, 3072, 32, 32, 8192, 32),
        max_positions=4096,
        epsilon=1e-5,
        window=2047,
        bos_id=1,
        eos_ids=(32000,),
        pad_id=32000,
        params=3_821_079_552,
    ),
    "phi-4": DecoderSize(
        *(100352, 5120, 40, 40, 17920, 10),
        max_positions=16384,
        epsilon=1e-5,
        rope=RopeOptions(250000.0),
        bos_id=100257,
        eos_ids=(100265,),
        pad_id=100349,
        params=14_659_507_200,
    ),
}


@dataclass(frozen=True)
class Phi3Config(DecoderConfig):
    """See DecoderConfig."""

    variants = VARIANTS
    model_types = ("phi3",)
    architecture = "Phi3ForCausalLM"
    defaults: ClassVar[Mapping[str, object]] = {"epsilon": 1e-5, "vocab_size": 32064, "max_positions": 4096}

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        # Upstream makes longrope of "yarn" here, as the first files called it.
        nested = settings.get("rope_scaling") or settings.get("rope_parameters")
        if isinstance(nested, Mapping) and nested.get("type", nested.get("rope_type")) == "yarn":
            settings = {
                **settings,
                "rope_scaling": None,
                "rope_parameters": {**nested, "rope_type": "longrope"},
            }
        return super().read_entries(settings, where)

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        result = super().write_entries(size)
        if size.rope.kind == "longrope":
            result["original_max_position_embeddings"] = size.rope.original_positions or size.max_positions
        return result


class Phi3Attention(DecoderAttention):
    """With queries, keys and values of one matrix."""

    def __init__(self, size: DecoderSize, layer: int, dropout: float = 0.0) -> None:
        nn.Layer.__init__(self)
        self.heads, self.kv_heads, self.depth, self.dropout = (
            size.num_heads,
            size.kv_heads,
            size.head_width,
            dropout,
        )
        self.windowed = size.window_of(layer) is not None
        self.scale = self.softcap = None
        channels = (self.heads + 2 * self.kv_heads) * self.depth
        self.qkv_proj = linear(size, size.hidden_size, channels, False)
        self.o_proj = linear(size, self.heads * self.depth, size.hidden_size, False)

    def project(self, x: jax.Array, at: Positions) -> tuple[jax.Array, jax.Array, jax.Array]:
        heads = self.qkv_proj(x).reshape(*x.shape[:2], self.heads + 2 * self.kv_heads, self.depth)
        q, k, v = jnp.split(heads, (self.heads, self.heads + self.kv_heads), axis=2)
        return self.rotate(q, at), self.rotate(k, at), v


class Phi3MLP(nn.Layer):
    """down(activation(gate) * up) of both in one product, on [..., hidden_size]."""

    def __init__(self, size: DecoderSize) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[size.activation]
        self.gate_up_proj = linear(size, size.hidden_size, 2 * size.intermediate_size, False)
        self.down_proj = linear(size, size.intermediate_size, size.hidden_size, False)

    def forward(self, x: jax.Array) -> jax.Array:
        gate, up = jnp.split(self.gate_up_proj(x), 2, axis=-1)
        return self.down_proj(self.activation(gate) * up)


class Phi3Block(DecoderBlock):
    """A block whose joined matrices are those of the files."""

    attention_type = Phi3Attention

    def make_mlp(self, config: DecoderConfig, size: DecoderSize, layer: int) -> nn.Layer:
        return Phi3MLP(size)


@register("model", config=Phi3Config)
class Phi3(Decoder[Phi3Config]):
    """See Decoder."""

    block_type = Phi3Block
