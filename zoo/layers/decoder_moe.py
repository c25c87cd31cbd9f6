"""Decoders whose feed-forward parts are experts: sizes, the router, and where such weights stand in files.

Papers: Mixtral: Jiang et al. 2024, https://arxiv.org/abs/2401.04088; shared experts, groups of experts:
    https://arxiv.org/abs/2401.06066 and https://arxiv.org/abs/2405.04434; scores with a correction bias:
    https://arxiv.org/abs/2412.19437; the loss that balances the load: https://arxiv.org/abs/2101.03961, equation 4
Reference: transformers 5 models/{mixtral,qwen2_moe,qwen3_moe,ernie4_5_moe,deepseek_v2,deepseek_v3}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import jax
import jax.numpy as jnp

from framework import nn
from framework.core.errors import ConfigError
from framework.nn import initializer as I
from framework.nn.moe import Experts
from zoo.layers.decoder import Decoder, DecoderBlock, GatedMLP, linear
from zoo.layers.decoder_config import SETTINGS, DecoderConfig, DecoderSize
from zoo.layers.pretrained_model import WeightSource

MixtureConfigT = TypeVar("MixtureConfigT", bound="MixtureConfig")


@dataclass(frozen=True)
class MixtureSize(DecoderSize):
    """What a variant with experts says besides.

    Attributes:
        num_experts, top_k: Experts of a layer, and how many of them compute a token.
        expert_size: Width inside an expert; 0: `intermediate_size`.
        shared_size: Width inside the expert that computes all tokens; 0: there is none.
        sparse: Of each layer, whether it has experts; (): all have.
        normalize: The weights of the selected experts sum to one.
        least_sum: By at least so much their sum divides.
        sigmoid: Scores are sigmoids of the router's logits in place of their softmax.
        corrected: A bias of each expert, that is no weight of its output, takes part in the selection.
        routed_scale: Of the experts' sum.
        groups, top_groups: Experts are selected in the best `top_groups` of so many groups.
        balance_weight: Of the loss that balances the load, in training.
    """

    num_experts: int = 8
    top_k: int = 2
    expert_size: int = 0
    shared_size: int = 0
    sparse: tuple[bool, ...] = ()
    normalize: bool = True
    least_sum: float = 0.0
    sigmoid: bool = False
    corrected: bool = False
    routed_scale: float = 1.0
    groups: int = 1
    top_groups: int = 1
    balance_weight: float = 0.001

    @property
    def expert_width(self) -> int:
        return self.expert_size or self.intermediate_size

    def is_sparse(self, layer: int) -> bool:
        return not self.sparse or self.sparse[layer]

    @property
    def sparse_layers(self) -> int:
        return sum(self.is_sparse(layer) for layer in range(self.num_layers))


MIXTURE_SETTINGS: Mapping[str, tuple[str, ...]] = {
    **SETTINGS,
    "num_experts": ("num_experts", "num_local_experts"),
    "top_k": ("num_experts_per_tok",),
    "expert_size": ("moe_intermediate_size",),
    "normalize": ("norm_topk_prob",),
    "balance_weight": ("router_aux_loss_coef",),
}


@dataclass(frozen=True)
class MixtureConfig(DecoderConfig):
    """See DecoderConfig and MixtureSize."""

    size_type = MixtureSize
    settings = MIXTURE_SETTINGS

    num_experts: int | None = None
    top_k: int | None = None
    expert_size: int | None = None
    shared_size: int | None = None
    sparse: tuple[bool, ...] | None = None
    normalize: bool | None = None
    least_sum: float | None = None
    sigmoid: bool | None = None
    corrected: bool | None = None
    routed_scale: float | None = None
    groups: int | None = None
    top_groups: int | None = None
    balance_weight: float | None = None
    capacity_factor: float | None = None
    """In training an expert takes at most `capacity_factor * tokens * top_k / num_experts` tokens of a device; None:
    all that come, for as many places as there are tokens"""

    def size(self) -> MixtureSize:
        """As DecoderConfig.size. Raises: ConfigError, also where the experts do not fit each other."""
        size = super().size()
        assert isinstance(size, MixtureSize)
        groups = size.num_experts // size.groups if size.groups > 0 else 0
        checks = {
            "num_experts": (size.num_experts > 0, "from 1"),
            "top_k": (0 < size.top_k <= size.num_experts, f"from 1 to num_experts, {size.num_experts}"),
            "groups": (groups > 0 and groups * size.groups == size.num_experts, "a divisor of num_experts"),
            "top_groups": (0 < size.top_groups <= size.groups, f"from 1 to groups, {size.groups}"),
            "sparse": (
                len(size.sparse) in (0, size.num_layers),
                f"a value for each of {size.num_layers} layers",
            ),
            "capacity_factor": (self.capacity_factor is None or self.capacity_factor > 0, "above 0, or null"),
        }
        for name, (fits, allowed) in checks.items():
            if not fits:
                raise ConfigError(
                    "the size of the decoder's experts is out of range",
                    where=f"{type(self).__name__}.{name}",
                    received=repr(getattr(size, name, getattr(self, name, None))),
                    allowed=allowed,
                )
        return size


def read_sparse(entries: dict[str, object], settings: Mapping[str, object]) -> dict[str, object]:
    """`entries` with the layers that `decoder_sparse_step` and `mlp_only_layers` of Qwen's config.json say."""
    step, dense, layers = (
        settings.get(k) for k in ("decoder_sparse_step", "mlp_only_layers", "num_hidden_layers")
    )
    step = step if isinstance(step, int) and step > 0 else 1
    dense = dense if isinstance(dense, list) else []
    if (step == 1 and not dense) or not isinstance(layers, int):
        return entries
    return {**entries, "sparse": tuple((i + 1) % step == 0 and i not in dense for i in range(layers))}


def write_sparse(size: MixtureSize) -> dict[str, object]:
    """The reverse of `read_sparse`."""
    dense = [layer for layer in range(size.num_layers) if not size.is_sparse(layer)]
    return {"decoder_sparse_step": 1, "mlp_only_layers": dense}


def select_experts(
    logits: jax.Array, size: MixtureSize, bias: jax.Array | None = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Weights and numbers of the experts of each token, [..., top_k] both, and the scores [..., E] of all.

    Args:
        logits: [..., E] float32.
        bias: [E], added to the scores where experts are selected, and not to their weights.
    """
    scores = jax.nn.sigmoid(logits) if size.sigmoid else jax.nn.softmax(logits, -1)
    choice = scores if bias is None else scores + bias.reshape(-1)
    if size.groups > 1:
        grouped = choice.reshape(*choice.shape[:-1], size.groups, -1)
        # DeepSeek-V3 ranks groups by their two best experts, V2 by the best one.
        best = jax.lax.top_k(grouped, min(2, grouped.shape[-1]) if size.corrected else 1)[0].sum(-1)
        chosen = jax.nn.one_hot(jax.lax.top_k(best, size.top_groups)[1], size.groups, dtype=bool).any(-2)
        choice = jnp.where(chosen[..., None], grouped, -jnp.inf).reshape(choice.shape)
    selected = jax.lax.top_k(choice, size.top_k)[1]
    weights = jnp.take_along_axis(scores, selected, axis=-1)
    if size.normalize:
        weights = weights / jnp.maximum(weights.sum(-1, keepdims=True), size.least_sum or 1e-20)
    return weights * size.routed_scale, selected, scores


class DecoderExperts(Experts):
    """Experts that drop no token outside of training."""

    def capacity(self, tokens: int, top_k: int) -> int:
        return super().capacity(tokens, top_k) if self.training else tokens


class MixtureMLP(nn.Layer):
    """The experts that a router selects for each token of [N, T, hidden_size], and one that computes all.

    In training `auxiliary_loss` is num_experts * sum over experts of (share of tokens) * (mean score), which is `top_k`
    where the load is balanced, by `balance_weight` over the number of such layers: so the layers' sum has upstream's
    size. Upstream takes the share and the mean over all layers together.
    """

    shared_name: ClassVar[str] = "shared_experts"
    """The attribute of the expert that computes all tokens"""

    def __init__(self, size: MixtureSize, capacity_factor: float | None = None) -> None:
        super().__init__()
        self.size = size
        self.gate = linear(size, size.hidden_size, size.num_experts, False)
        self.experts = DecoderExperts(
            *(size.num_experts, size.hidden_size, size.expert_width, size.activation, True, capacity_factor),
            weight_attr=I.Normal(0.0, size.init_std),
        )
        if size.shared_size:
            setattr(self, self.shared_name, GatedMLP(size, size.shared_size))
        if size.corrected:
            self.make_correction()
        self.register_buffer("auxiliary_loss", jnp.zeros((), jnp.float32), persistable=False)

    def make_correction(self) -> None:
        """Where the file has the bias of the selection, [num_experts]."""
        self.gate.register_buffer("e_score_correction_bias", jnp.zeros(self.size.num_experts, jnp.float32))

    def correction(self) -> jax.Array | None:
        return self.gate.e_score_correction_bias if self.size.corrected else None

    def shared(self, x: jax.Array) -> jax.Array:
        """What the expert of all tokens adds."""
        return getattr(self, self.shared_name)(x)

    def forward(self, x: jax.Array) -> jax.Array:
        # The router decides in float32: in 16 bits near experts change places.
        logits = x.astype(jnp.float32) @ self.gate.weight.astype(jnp.float32)
        weights, selected, scores = select_experts(logits, self.size, self.correction())
        out, _ = self.experts(x, selected, weights)
        if self.training:
            share = jax.nn.one_hot(selected, self.size.num_experts, dtype=jnp.float32).sum(-2).mean((0, 1))
            balance = self.size.num_experts * (share * scores.mean((0, 1))).sum()
            self.auxiliary_loss = self.size.balance_weight / self.size.sparse_layers * balance
        out = out.astype(x.dtype)
        return out + self.shared(x) if self.size.shared_size else out


class MixtureBlock(DecoderBlock):
    """With experts in the layers that `sparse` says."""

    mixture_type: ClassVar[type[MixtureMLP]] = MixtureMLP

    def make_mlp(self, config: DecoderConfig, size: DecoderSize, layer: int) -> nn.Layer:
        assert isinstance(size, MixtureSize) and isinstance(config, MixtureConfig)
        if size.is_sparse(layer):
            return self.mixture_type(size, config.capacity_factor)
        return GatedMLP(size)


_STACKED = re.compile(r"(.*\.experts)\.(gate|up|down)_proj")


class MixtureDecoder(Decoder[MixtureConfigT]):
    """A decoder with experts, which stand one by one in files: `…mlp.experts.{e}.{gate,up,down}_proj.weight`."""

    block_type = MixtureBlock

    def expert_name(self, path: str, expert: int, matrix: str) -> str:
        """In files, of `gate`, `up` or `down`; `path` is that of the layer's experts here."""
        return f"{path}.{expert}.{matrix}_proj.weight"

    def weight_sources(self) -> dict[str, WeightSource]:
        sources = super().weight_sources()
        for name in sources:
            if (stacked := _STACKED.fullmatch(name)) is not None:
                path, matrix = stacked.groups()
                count = self.config.size().num_experts
                names = tuple(self.expert_name(path, expert, matrix) for expert in range(count))
                sources[name] = WeightSource(names, True, True)
        return sources
