"""T5, with its versions 1.1 and Flan: an encoder and a decoder with biases of relative positions in place of positions.

Papers: Raffel et al. 2020, https://arxiv.org/abs/1910.10683; gated feed-forward parts: https://arxiv.org/abs/2002.05202;
    Flan: https://arxiv.org/abs/2210.11416
Reference: transformers 5 models/t5/modeling_t5.py
Differs: dropout is that of the attention's weights alone.
Weights: Hugging Face's `T5ForConditionalGeneration`; version 1.0 scales what it scores the vocabulary by, 1.1 has a
    matrix for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import initializer as I
from framework.nn.functional.attention import additive_mask
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
from zoo.layers.relative_positions import relative_bucket


@dataclass(frozen=True)
class T5Size(EncoderDecoderSize):
    """What a variant says besides.

    Attributes:
        gated: The feed-forward part is wo(activation(wi_0(x)) * wi_1(x)) in place of wo(activation(wi(x))).
        buckets, max_distance: How many biases a head has, and the distance from which on all share one.
    """

    gated: bool = False
    buckets: int = 32
    max_distance: int = 128


_TOKENS = {"eos_ids": (1,), "pad_id": 0}


def _t5(
    width: int, layers: int, heads: int, hidden: int, params: int, depth: int = 64, first: bool = True
) -> T5Size:
    return T5Size(
        *(32128, width, layers, heads, hidden),
        head_dim=depth,
        max_positions=512,
        activation="relu" if first else "gelu_new",
        tie_embeddings=first,
        **_TOKENS,  # type: ignore[arg-type]
        gated=not first,
        params=params,
    )


def _v11(width: int, layers: int, heads: int, hidden: int, params: int) -> T5Size:
    return _t5(width, layers, heads, hidden, params, first=False)


# Section 3.7 of the paper; google-research/text-to-text-transfer-transformer, released_checkpoints.md, for 1.1.
VARIANTS: dict[str, T5Size] = {
    "t5-small": _t5(512, 6, 8, 2048, 60_506_624),
    "t5-base": _t5(768, 12, 12, 3072, 222_903_552),
    "t5-large": _t5(1024, 24, 16, 4096, 737_668_096),
    "t5-3b": _t5(1024, 24, 32, 16384, 2_851_598_336, 128),
    "t5-11b": _t5(1024, 24, 128, 65536, 11_307_321_344, 128),
    "t5-v1.1-small": _v11(512, 8, 6, 1024, 76_961_152),
    "t5-v1.1-base": _v11(768, 12, 12, 2048, 247_577_856),
    "t5-v1.1-large": _v11(1024, 24, 16, 2816, 783_150_080),
    "t5-v1.1-xl": _v11(2048, 24, 32, 5120, 2_849_757_184),
    "t5-v1.1-xxl": _v11(4096, 24, 64, 10240, 11_135_332_352),
}
_UNWRITTEN = ("num_kv_heads", "window", "activation", "max_positions", "init_std")


@dataclass(frozen=True)
class T5Config(EncoderDecoderConfig):
    """See DecoderConfig and T5Size."""

    variants = VARIANTS
    model_types = ("t5",)
    architecture = "T5ForConditionalGeneration"
    size_type = T5Size
    settings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **{ours: names for ours, names in SETTINGS.items() if ours not in _UNWRITTEN},
        "hidden_size": ("d_model",),
        "num_layers": ("num_layers",),
        "num_heads": ("num_heads",),
        "head_dim": ("d_kv",),
        "intermediate_size": ("d_ff",),
        "epsilon": ("layer_norm_epsilon",),
        "decoder_layers": ("num_decoder_layers",),
        "start_id": ("decoder_start_token_id",),
        "buckets": ("relative_attention_num_buckets",),
        "max_distance": ("relative_attention_max_distance",),
    }
    defaults: ClassVar[Mapping[str, object]] = {
        "vocab_size": 32128,
        "hidden_size": 512,
        "num_layers": 6,
        "num_heads": 8,
        "head_dim": 64,
        "intermediate_size": 2048,
        "max_positions": 512,
        "activation": "relu",
        "tie_embeddings": True,
        **_TOKENS,
    }

    gated: bool | None = None
    buckets: int | None = None
    max_distance: int | None = None

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        entries = super().read_entries(settings, where)
        gate, _, activation = str(settings.get("feed_forward_proj", "relu")).rpartition("-")
        if gate not in ("", "gated"):
            raise ConfigError(
                "unknown kind of feed-forward part",
                where=f"{where}: feed_forward_proj",
                received=repr(settings["feed_forward_proj"]),
                allowed="the name of an activation, or gated- and such a name",
            )
        # "gated-gelu" has always meant the approximation.
        entries |= {
            "gated": gate == "gated",
            "activation": "gelu_new" if gate and activation == "gelu" else activation,
        }
        # transformers 5 says of version 1.1 that its outputs are not scaled, and no longer that they are not tied.
        scaled = settings.get("scale_decoder_outputs", settings.get("tie_word_embeddings", True))
        return {**entries, "tie_embeddings": scaled is not False}

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        assert isinstance(size, T5Size)
        result = super().write_entries(size)
        for key in ("num_key_value_heads", "head_dim", "rope_parameters", "bos_token_id"):
            result.pop(key, None)
        activation = "gelu" if size.gated and size.activation == "gelu_new" else size.activation
        return {
            **result,
            "num_decoder_layers": size.decoder_layers or size.num_layers,
            "feed_forward_proj": f"gated-{activation}" if size.gated else activation,
            "is_encoder_decoder": True,
        }


class T5Attention(AttentionProjections):
    """Without a scale: it is in the initial weights. Biases of relative positions where `biases` is not 0."""

    def __init__(self, size: T5Size, dropout: float, biases: int = 0) -> None:
        width, inner = size.hidden_size, size.num_heads * size.head_width
        layers = [linear(size, width, inner, False) for _ in range(3)] + [linear(size, inner, width, False)]
        super().__init__(("q", "k", "v", "o"), layers, size.num_heads, dropout, 1.0)
        if biases:
            start = I.Normal(0.0, size.init_std)
            self.relative_attention_bias = nn.Embedding(biases, size.num_heads, weight_attr=start)


class T5DenseActDense(nn.Layer):
    """On [..., hidden_size], see T5Size.gated."""

    def __init__(self, size: T5Size) -> None:
        super().__init__()
        self.activation, self.gated = ACTIVATIONS[size.activation], size.gated
        for name in ("wi_0", "wi_1") if size.gated else ("wi",):
            setattr(self, name, linear(size, size.hidden_size, size.intermediate_size, False))
        self.wo = linear(size, size.intermediate_size, size.hidden_size, False)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.wo(
            self.activation(self.wi_0(x)) * self.wi_1(x) if self.gated else self.activation(self.wi(x))
        )


class T5Part(nn.Layer):
    """An attention or a feed-forward part under upstream's name, and the norm before it."""

    def __init__(self, size: T5Size, name: str, layer: nn.Layer) -> None:
        super().__init__()
        self.name = name
        setattr(self, name, layer)
        self.layer_norm = nn.RMSNorm(size.hidden_size, size.epsilon)

    @property
    def inner(self) -> nn.Layer:
        return getattr(self, self.name)


class T5EncoderBlock(nn.Layer):
    """x + attention(norm(x)), then x + mlp(norm(x)), on [N, T, hidden_size]."""

    def __init__(self, size: T5Size, dropout: float, biases: int) -> None:
        super().__init__()
        attention = T5Part(size, "SelfAttention", T5Attention(size, dropout, biases))
        self.layer = nn.LayerList([attention, T5Part(size, "DenseReluDense", T5DenseActDense(size))])

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        attention, mlp = self.layer
        y = attention.layer_norm(x)
        x = x + attention.inner(y, y, mask)
        return x + mlp.inner(mlp.layer_norm(x))


class T5DecoderBlock(TargetBlock):
    """As T5EncoderBlock, with attention to the source between its parts."""

    def __init__(self, size: T5Size, dropout: float, biases: int) -> None:
        super().__init__()
        entries = [
            T5Part(size, "SelfAttention", T5Attention(size, dropout, biases)),
            T5Part(size, "EncDecAttention", T5Attention(size, dropout)),
            T5Part(size, "DenseReluDense", T5DenseActDense(size)),
        ]
        self.layer = nn.LayerList(entries)

    @property
    def target(self) -> AttentionProjections:
        return self.layer[0].inner

    @property
    def source(self) -> AttentionProjections:
        return self.layer[1].inner

    def run(self, x: jax.Array, target: Attend, source: Attend) -> jax.Array:
        x = x + target(self.layer[0].layer_norm(x))
        x = x + source(self.layer[1].layer_norm(x))
        return x + self.layer[2].inner(self.layer[2].layer_norm(x))


class T5Stack(nn.BlockChain):
    """Blocks of one kind, of which the first has the biases for all, and the last norm."""

    def __init__(
        self, size: T5Size, block: type[T5EncoderBlock] | type[T5DecoderBlock], layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.size, self.both = size, block is T5EncoderBlock
        self.block = nn.LayerList(
            [block(size, dropout, size.buckets * (number == 0)) for number in range(layers)]
        )
        self.final_layer_norm = nn.RMSNorm(size.hidden_size, size.epsilon)

    def blocks(self) -> Sequence[nn.Layer]:
        return list(self.block)

    def bias(self, positions: jax.Array, length: int) -> jax.Array:
        """[N or 1, H, T, length] for tokens at positions [N or 1, T]."""
        distance = jnp.arange(length) - positions[..., None]
        bucket = relative_bucket(distance, self.both, self.size.buckets, self.size.max_distance)
        return jnp.moveaxis(self.block[0].layer[0].SelfAttention.relative_attention_bias(bucket), -1, 1)


@register("model", config=T5Config)
class T5(EncoderDecoder[T5Config]):
    """See EncoderDecoder."""

    unused_weights = (r"^decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight$",)
    file_renames = ()

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        size = config.size()
        assert isinstance(size, T5Size)
        start = I.Normal(0.0, 1.0)
        self.shared = nn.Embedding(size.vocab_size, size.hidden_size, weight_attr=start)
        self.encoder = T5Stack(size, T5EncoderBlock, size.num_layers, config.dropout)
        self.decoder = T5Stack(size, T5DecoderBlock, size.decoder_layers or size.num_layers, config.dropout)
        if not size.tie_embeddings:
            self.lm_head = linear(size, size.hidden_size, size.vocab_size, False)

    @property
    def embedding_name(self) -> str:
        return "shared.weight"

    def encode(self, ids: jax.Array, mask: jax.Array | None = None) -> jax.Array:
        length = ids.shape[1]
        bias = self.encoder.bias(jnp.arange(length)[None], length)
        if mask is not None:
            bias = bias + additive_mask(mask[:, None, None])
        return self.encoder.final_layer_norm(nn.run_blocks(self.encoder.blocks(), self.shared(ids), bias))

    def target_blocks(self) -> Sequence[TargetBlock]:
        return [block for block in self.decoder.block if isinstance(block, TargetBlock)]

    def embed_target(self, ids: jax.Array, positions: jax.Array) -> jax.Array:
        return self.shared(ids)

    def target_bias(self, positions: jax.Array, length: int) -> jax.Array:
        return self.decoder.bias(positions, length)

    def normalize_target(self, x: jax.Array) -> jax.Array:
        return self.decoder.final_layer_norm(x)

    def logits(self, hidden: jax.Array) -> jax.Array:
        if self.size.tie_embeddings:
            hidden = hidden * self.size.hidden_size**-0.5
        return super().logits(hidden)

    def file_aliases(self) -> Mapping[str, str]:
        """The embedding stands under several names; files of transformers 5 may have it in place of the last matrix."""
        aliases = {f"{name}.embed_tokens.weight": self.embedding_name for name in ("encoder", "decoder")}
        if self.size.tie_embeddings:
            return {**aliases, "lm_head.weight": self.embedding_name}
        return {**aliases, "shared.weight": "lm_head.weight"}
