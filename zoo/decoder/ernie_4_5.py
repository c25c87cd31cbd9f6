"""ERNIE 4.5, the models of texts, dense and with experts: LLaMA with rotary embeddings of neighbouring channels.

Report: https://ernie.baidu.com/blog/publication/ERNIE_Technical_Report.pdf
Reference: transformers 5 models/ernie4_5/modeling_ernie4_5.py, models/ernie4_5_moe/modeling_ernie4_5_moe.py
Differs: the loss that balances the load is summed over layers, see MixtureMLP.
Weights: Baidu's `-PT` files, `Ernie4_5ForCausalLM` and `Ernie4_5_MoeForCausalLM` of Hugging Face, and Baidu's `-Paddle`
    files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax

from framework import nn
from framework.config import register
from framework.nn import initializer as I
from zoo.layers.decoder import Decoder, DecoderAttention, DecoderBlock
from zoo.layers.decoder_config import DecoderConfig, DecoderSize
from zoo.layers.decoder_moe import (
    MIXTURE_SETTINGS,
    MixtureBlock,
    MixtureConfig,
    MixtureDecoder,
    MixtureMLP,
    MixtureSize,
)
from zoo.layers.rope import RopeOptions

_ROPE = RopeOptions(500000.0)
_TOKENS = {"bos_id": 1, "eos_ids": (2,), "pad_id": 0}
_DEFAULTS: Mapping[str, object] = {
    "vocab_size": 103424,
    "epsilon": 1e-5,
    "max_positions": 131072,
    "tie_embeddings": True,
    "rope": _ROPE,
}

# The models' config.json.
DENSE: dict[str, DecoderSize] = {
    "ernie-4.5-0.3b": DecoderSize(
        *(103424, 1024, 18, 16, 3072, 2, 128, 131072, 1e-5),
        tie_embeddings=True,
        rope=_ROPE,
        **_TOKENS,  # type: ignore[arg-type]
        params=360_748_032,
    ),
}
MIXTURES: dict[str, MixtureSize] = {
    "ernie-4.5-21b-a3b": MixtureSize(
        *(103424, 2560, 28, 20, 12288, 4, 128, 131072, 1e-5),
        tie_embeddings=True,
        rope=_ROPE,
        **_TOKENS,  # type: ignore[arg-type]
        num_experts=64,
        top_k=6,
        expert_size=1536,
        shared_size=3072,
        sparse=(False, *[True] * 27),
        least_sum=1e-12,
        corrected=True,
        params=21_825_437_888,
    ),
    "ernie-4.5-300b-a47b": MixtureSize(
        *(103424, 8192, 54, 64, 28672, 8, 128, 131072, 1e-5),
        rope=_ROPE,
        **_TOKENS,  # type: ignore[arg-type]
        num_experts=64,
        top_k=8,
        expert_size=3584,
        sparse=(*[False] * 3, *[True] * 51),
        least_sum=1e-12,
        corrected=True,
        params=299_484_163_264,
    ),
}


def _biases(settings: Mapping[str, object]) -> dict[str, object]:
    return dict.fromkeys(("attention_bias", "output_bias", "mlp_bias"), settings.get("use_bias") is True)


class Ernie45Attention(DecoderAttention):
    """Whose rotation pairs neighbouring channels."""

    interleaved = True


class Ernie45Block(DecoderBlock):
    """A block with this rotation."""

    attention_type = Ernie45Attention


@dataclass(frozen=True)
class Ernie45Config(DecoderConfig):
    """See DecoderConfig."""

    variants = DENSE
    model_types = ("ernie4_5",)
    architecture = "Ernie4_5ForCausalLM"
    defaults: ClassVar[Mapping[str, object]] = {**_DEFAULTS, "head_dim": 128}

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        return {**super().read_entries(settings, where), **_biases(settings)}

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        return {**super().write_entries(size), "use_bias": size.attention_bias}


@register("model", config=Ernie45Config)
class Ernie45(Decoder[Ernie45Config]):
    """See Decoder."""

    block_type = Ernie45Block


@dataclass(frozen=True)
class Ernie45MoeConfig(MixtureConfig):
    """See MixtureConfig."""

    variants = MIXTURES
    model_types = ("ernie4_5_moe",)
    architecture = "Ernie4_5_MoeForCausalLM"
    settings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **{ours: names for ours, names in MIXTURE_SETTINGS.items() if ours != "normalize"},
        "num_experts": ("moe_num_experts", "num_experts"),
        "top_k": ("moe_k", "num_experts_per_tok"),
        "least_sum": ("moe_norm_min",),
    }
    defaults: ClassVar[Mapping[str, object]] = {
        **_DEFAULTS,
        "num_experts": 64,
        "top_k": 6,
        "expert_size": 1536,
        "least_sum": 1e-12,
        "corrected": True,
    }

    @classmethod
    def read_entries(cls, settings: Mapping[str, object], where: str) -> dict[str, object]:
        # Files for Paddle have a pair for texts and images where these have one number.
        single = {key: value[0] if isinstance(value, list) and value else value for key, value in settings.items()
                  if key.startswith("moe_")}  # fmt: skip
        entries = super().read_entries({**settings, **single}, where)

        def number(key: str, default: int) -> int:
            value = single.get(key)
            return value if isinstance(value, int) else default

        layers = entries.get("num_layers", MixtureSize.num_layers)
        expert = entries.get("expert_size", cls.defaults["expert_size"])
        assert isinstance(layers, int) and isinstance(expert, int)
        first, last = number("moe_layer_start_index", 1), number("moe_layer_end_index", -1)
        last = layers - 1 if last == -1 else last
        step = max(number("moe_layer_interval", 1), 1)
        sparse = tuple((i + 1) % step == 0 and first <= i <= last for i in range(layers))
        shared = number("moe_num_shared_experts", 2) * expert
        return {**entries, **_biases(settings), "sparse": sparse, "shared_size": shared}

    @classmethod
    def write_entries(cls, size: DecoderSize) -> dict[str, object]:
        assert isinstance(size, MixtureSize)
        sparse = [layer for layer in range(size.num_layers) if size.is_sparse(layer)] or [size.num_layers]
        step = sparse[1] - sparse[0] if len(sparse) > 1 else 1
        return {
            **super().write_entries(size),
            "moe_intermediate_size": size.expert_width,
            "moe_num_shared_experts": size.shared_size // size.expert_width,
            "moe_layer_start_index": sparse[0],
            "moe_layer_end_index": sparse[-1],
            "moe_layer_interval": step,
            "use_bias": size.attention_bias,
        }


class _Statics(nn.Layer):
    """What is known of the load of the experts, by upstream's name."""

    def __init__(self, experts: int) -> None:
        super().__init__()
        zeros = nn.ParamAttr(initializer=I.Constant(0.0), trainable=False)
        self.e_score_correction_bias = self.create_parameter((1, experts), zeros)


class Ernie45MoeMLP(MixtureMLP):
    """With the bias of the selection where upstream has it."""

    def make_correction(self) -> None:
        self.moe_statics = _Statics(self.size.num_experts)

    def correction(self) -> jax.Array | None:
        return self.moe_statics.e_score_correction_bias if self.size.corrected else None


class Ernie45MoeBlock(MixtureBlock):
    """A block whose feed-forward part may be of experts."""

    attention_type = Ernie45Attention
    mixture_type = Ernie45MoeMLP


@register("model", config=Ernie45MoeConfig)
class Ernie45Moe(MixtureDecoder[Ernie45MoeConfig]):
    """See MixtureDecoder."""

    block_type = Ernie45MoeBlock
