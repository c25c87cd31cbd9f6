"""ModernBERT: an encoder of long texts with rotary positions, gated feed-forward parts, norms before the residual, and
attention that sees near tokens alone in all layers but every third.

Paper: Warner et al. 2024, https://arxiv.org/abs/2412.13663
Reference: transformers 5 models/modernbert/modeling_modernbert.py (`ModernBertModel`)
Differs: embeddings and feed-forward parts have one dropout. Layers have no biases, as in all published models.
Weights: Hugging Face's `ModernBERT-*`, and models on it such as modernbert-embed and gte-modernbert; names are those of
    Hugging Face, but for the layers that all encoders have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from zoo.contracts import Contract
from zoo.layers.attention import AttentionBase
from zoo.layers.hidden_activations import ACTIVATIONS
from zoo.layers.mlp import NARROW, narrow_linear
from zoo.layers.rope import RopeOptions, rotary_tables
from zoo.layers.text_encoder import (
    CONFIG,
    NO_PADDING,
    REQUIRED,
    HeadNames,
    TextEncoder,
    TextEncoderConfig,
    TextSize,
)

_FULL, _NEAR = "full_attention", "sliding_attention"
_MODERN = {
    "type_vocab_size": 0,
    "epsilon": 1e-5,
    "pad_id": 50283,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "window": 128,
    "global_every": 3,
    "global_theta": 160_000.0,
    "local_theta": 10_000.0,
}
# Table 4 of the paper; `params` as counted in transformers' ModernBertModel (149 and 395 million with the head there)
VARIANTS: dict[str, TextSize] = {
    "modernbert-base": TextSize(50368, 768, 22, 12, 1152, 8192, **_MODERN, params=149_014_272),
    "modernbert-large": TextSize(50368, 1024, 28, 16, 2624, 8192, **_MODERN, params=394_781_696),
}


@dataclass(frozen=True)
class ModernBertConfig(TextEncoderConfig):
    """See TextEncoderConfig.

    Attributes:
        window: Tokens that a token of a layer of near attention sees, half of them on each side, and itself.
        global_every: Layers 0, `global_every` and so on see the whole text.
        global_theta, local_theta: The base of the rotary wavelengths of either kind of layer.
        classifier_pooling: What the class of a text follows from: "cls", its first token, or "mean" of all.
    """

    variants = VARIANTS
    model_type = "modernbert"
    settings: ClassVar[Mapping[str, str]] = {
        "vocab_size": "vocab_size",
        "hidden_size": "hidden_size",
        "num_hidden_layers": "num_layers",
        "num_attention_heads": "num_heads",
        "intermediate_size": "intermediate_size",
        "max_position_embeddings": "max_positions",
        "hidden_activation": "activation",
        "norm_eps": "epsilon",
        "pad_token_id": "pad_id",
        "mlp_dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "local_attention": "window",
        "global_attn_every_n_layers": "global_every",
        "global_rope_theta": "global_theta",
        "local_rope_theta": "local_theta",
        "classifier_pooling": "classifier_pooling",
    }
    defaults: ClassVar[Mapping[str, int | float | str]] = {
        theirs: getattr(VARIANTS["modernbert-base"], ours) for theirs, ours in settings.items()
    }
    required: ClassVar[Mapping[str, object]] = {
        **REQUIRED,
        **dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"), False),
        "decoder_bias": True,
        "classifier_activation": "gelu",
    }
    has_types = False

    variant: str = "modernbert-base"
    window: int | None = None
    global_every: int | None = None
    global_theta: float | None = None
    local_theta: float | None = None
    classifier_pooling: str | None = None

    @classmethod
    def from_pretrained_config(
        cls, settings: Mapping[str, object], where: str = CONFIG, paddle: bool = False
    ) -> Self:
        settings = {**settings, **_layer_kinds(settings, where), **_thetas(settings, where)}
        return dataclasses.replace(super().from_pretrained_config(settings, where, paddle), type_vocab_size=0)

    def checks(self, size: TextSize) -> dict[str, tuple[bool, str]]:
        pairs = size.num_heads > 0 and size.hidden_size // size.num_heads % 2 == 0
        checks = super().checks(size)
        return {
            **checks,
            "num_heads": (
                checks["num_heads"][0] and pairs,
                "a divisor of hidden_size, with heads of even width",
            ),
            "window": (size.window >= 0, "from 0"),
            "global_every": (size.global_every > 0, "from 1"),
            "global_theta": (size.global_theta > 0, "above 0"),
            "local_theta": (size.local_theta > 0, "above 0"),
            "classifier_pooling": (size.classifier_pooling in ("cls", "mean"), "cls, mean"),
        }


def _layer_kinds(settings: Mapping[str, object], where: str) -> dict[str, object]:
    """`global_attn_every_n_layers` of the list that transformers 5 writes. Raises: ConfigError, of another pattern."""
    kinds = settings.get("layer_types")
    if kinds is None:
        return {}
    count = len(kinds) if isinstance(kinds, list) else 0
    for every in range(1, count + 1):
        if kinds == [_NEAR if layer % every else _FULL for layer in range(count)]:
            return {"global_attn_every_n_layers": every}
    raise ConfigError(
        "the layers of the encoder do not follow the pattern",
        where=f"{where}: layer_types",
        received=repr(kinds)[:120],
        allowed=f"{_FULL} in the first layer and every n-th, {_NEAR} in the others",
    )


def _thetas(settings: Mapping[str, object], where: str) -> dict[str, object]:
    """`global_rope_theta` and `local_rope_theta` of what transformers 5 writes. Raises: ConfigError, of stretched
    positions."""
    nested = settings.get("rope_parameters") or {}
    result: dict[str, object] = {}
    for kind, key in ((_FULL, "global_rope_theta"), (_NEAR, "local_rope_theta")):
        entry = nested.get(kind) if isinstance(nested, Mapping) else None
        for one in (entry or {}, settings.get("rope_scaling") or {}):
            if not isinstance(one, Mapping) or one.get("rope_type", one.get("type", "default")) != "default":
                raise ConfigError(
                    "the encoder has no such rotary positions",
                    where=f"{where}: rope_parameters.{kind}",
                    received=repr(one)[:120],
                    allowed="rope_type: default",
                )
        if isinstance(entry, Mapping) and "rope_theta" in entry:
            result[key] = entry["rope_theta"]
    return result


class Embeddings(nn.Layer):
    """Vectors of words, normalised: [N, T] -> [N, T, hidden_size]."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        pad = None if size.pad_id == NO_PADDING else size.pad_id
        self.word_embeddings = nn.Embedding(size.vocab_size, size.hidden_size, pad, weight_attr=NARROW)
        self.layer_norm = _norm(size)
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, input_ids: jax.Array, *others: jax.Array | None) -> jax.Array:
        """`others`, types and positions, are not read."""
        return self.dropout(self.layer_norm(self.word_embeddings(input_ids)))


def _norm(size: TextSize) -> nn.LayerNorm:
    return nn.LayerNorm(size.hidden_size, size.epsilon, bias_attr=False)


def _linear(inputs: int, outputs: int) -> nn.Linear:
    return narrow_linear(inputs, outputs, bias=False)


class Sight(NamedTuple):
    """What the layers of one kind share: cosines and sines [1, T, D / 2], and `mask`, which broadcasts to [N, H, T, T]
    bool: the tokens that each sees."""

    cos: jax.Array
    sin: jax.Array
    mask: jax.Array


class Attention(AttentionBase):
    """Attention of [N, T, hidden_size] with rotary positions."""

    def __init__(self, size: TextSize) -> None:
        super().__init__(size.hidden_size, size.num_heads, ("Wqkv", "Wo"), _linear, size.attention_dropout)

    def forward(self, x: jax.Array, at: Sight) -> jax.Array:
        q, k, v = self.project(x)
        q, k = (F.apply_rotary(one, at.cos, at.sin) for one in (q, k))
        mixed = F.scaled_dot_product_attention(q, k, v, at.mask, self.dropout_p, training=self.training)
        return self.Wo(mixed.reshape(x.shape))


class GatedMLP(nn.Layer):
    """Wo(activation(a) * b) of Wi(x) = [a, b], on [..., hidden_size]."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        self.Wi = _linear(size.hidden_size, 2 * size.intermediate_size)
        self.Wo = _linear(size.intermediate_size, size.hidden_size)
        self.dropout, self.activation = nn.Dropout(size.dropout), ACTIVATIONS[size.activation]

    def forward(self, x: jax.Array) -> jax.Array:
        x, gate = jnp.split(self.Wi(x), 2, axis=-1)
        return self.Wo(self.dropout(self.activation(x) * gate))


class Block(nn.Layer):
    """x + attention(norm(x)), then x + mlp(norm(x)), on [N, T, hidden_size]. The first one's input is normalised."""

    def __init__(self, size: TextSize, layer: int) -> None:
        super().__init__()
        self.is_near = layer % size.global_every > 0
        self.attn_norm = _norm(size) if layer else None
        self.attn, self.mlp_norm, self.mlp = Attention(size), _norm(size), GatedMLP(size)

    def forward(self, x: jax.Array, full: Sight, near: Sight) -> jax.Array:
        normalized = x if self.attn_norm is None else self.attn_norm(x)
        x = x + self.attn(normalized, near if self.is_near else full)
        return x + self.mlp(self.mlp_norm(x))


class Blocks(nn.BlockChain):
    """`layers`, one after the other, and a norm."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        self.size = size
        self.layers = nn.LayerList([Block(size, layer) for layer in range(size.num_layers)])
        self.final_norm = _norm(size)

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        index = jnp.arange(x.shape[1])
        near = jnp.abs(index - index[:, None]) <= self.size.window // 2
        full, near = (
            Sight(*self._angles(theta, index), seen)
            for theta, seen in ((self.size.global_theta, mask), (self.size.local_theta, mask & near))
        )
        return self.final_norm(nn.run_blocks(self.blocks(), x, full, near))

    def _angles(self, theta: float, index: jax.Array) -> tuple[jax.Array, jax.Array]:
        size = self.size
        width = size.hidden_size // size.num_heads
        return rotary_tables(RopeOptions(theta=theta), width, size.max_positions, index[None])


class PredictionHead(nn.Layer):
    """A layer, its activation and a norm, between the states and whatever is said of them: [..., hidden_size]."""

    def __init__(self, size: TextSize) -> None:
        super().__init__()
        self.dense, self.norm = _linear(size.hidden_size, size.hidden_size), _norm(size)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.norm(F.gelu(self.dense(x)))


@register("backbone", config=ModernBertConfig)
class ModernBert(TextEncoder):
    """See TextEncoder. It has no pooler, no types, and no limit of positions but the one that the config says."""

    prefix = "model"
    heads = HeadNames(
        "model",
        answers="classifier",
        masked_lm="head",
        transform="dense",
        bias="decoder.bias",
        pooler=False,
        renames=((r"^decoder\.weight$", "model.embeddings.word_embeddings.weight"),),
    )
    names = ("embeddings.", "layers.", "final_norm.")
    contract = Contract(small={"pad_id": 3})
    state_renames = (
        (r"^model\.", ""),
        (r"^embeddings\.tok_embeddings\.", "embeddings.word_embeddings."),
        (r"^embeddings\.norm\.", "embeddings.layer_norm."),
        (r"^(layers|final_norm)\.", r"encoder.\1."),
    )

    def build_embeddings(self) -> Embeddings:
        return Embeddings(self.size)

    def build_blocks(self) -> Blocks:
        return Blocks(self.size)

    def build_pooler(self, width: int) -> None:
        return None

    def build_prediction_head(self) -> PredictionHead:
        return PredictionHead(self.size)
