"""Low-rank adapters: small matrices beside the weights of linear layers, which alone are trained.

Papers: LoRA: Hu et al. 2021, https://arxiv.org/abs/2106.09685; rank-stabilised scale: Kalajdzievski 2023,
    https://arxiv.org/abs/2312.03732; DoRA: Liu et al. 2024, https://arxiv.org/abs/2402.09353; QLoRA: Dettmers et al.
    2023, https://arxiv.org/abs/2305.14314
Reference: peft 0.21 tuners/lora, for names of settings and where a scale or a dropout stands
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import ConfigError, WeightError
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.common import Linear
from framework.nn.layer import Layer, ParamAttr, Parameter
from framework.nn.quantized import Int4Linear, Int8Linear, WeightScheme, linears, replace_layer, weight_scheme

_without = contextvars.ContextVar("without adapters", default=False)


@dataclass(frozen=True)
class LoRA:
    """What `add_adapters` puts into a model: x W + scale (x A) B for each chosen linear layer.

    Attributes:
        rank: The width between A [in, rank] and B [rank, out].
        alpha: The scale is alpha / rank, with `rslora` alpha / sqrt(rank).
        dropout: Of what goes into A, in training.
        targets: A regular expression that the whole last component of a layer's name has, or several components with
            their dots, such as "(q|v)_proj" or "mlp\\.(up|down)_proj"; "all" are all linear layers but `lm_head`,
            "" is none, where `modules_to_save` says what is trained.
        dora: A magnitude for each output is trained as well: m (W + scale A B) / |W + scale A B|, whose length counts
            as a constant in the gradient.
        modules_to_save: Layers, named as by `targets`, all of whose own parameters are trained besides, such as
            ("embed_tokens",).
        bias: Which biases of the model are trained besides: none, those of adapted layers, or all.
        rank_pattern, alpha_pattern: Other ranks and alphas for layers whose names end so.
        weights: How many bits the linear layers below the adapters, but `lm_head`, are kept in (QLoRA): they are
            rounded when they are loaded. None: floats.

    Raises:
        ConfigError: an entry is out of range, or `targets` is no regular expression.
    """

    rank: int = 8
    alpha: float = 16.0
    dropout: float = 0.0
    targets: str = "(q|v)_proj"
    rslora: bool = False
    dora: bool = False
    modules_to_save: tuple[str, ...] = ()
    bias: Literal["none", "lora_only", "all"] = "none"
    rank_pattern: dict[str, int] = field(default_factory=dict)
    alpha_pattern: dict[str, float] = field(default_factory=dict)
    weights: Literal["int8", "int4"] | None = None

    def __post_init__(self) -> None:
        patterns = (self.targets, *self.modules_to_save, *self.rank_pattern, *self.alpha_pattern)
        for name, is_right, received, allowed in (
            ("rank", min([self.rank, *self.rank_pattern.values()]) >= 1, self.rank, "1 or more"),
            ("dropout", 0 <= self.dropout < 1, self.dropout, "from 0, below 1"),
            ("targets", all(map(_is_pattern, patterns)), patterns, "regular expressions"),
        ):
            if not is_right:
                raise ConfigError(
                    "a setting of the adapter is out of range",
                    where=f"adapter.{name}",
                    received=received,
                    allowed=allowed,
                )

    def is_target(self, name: str) -> bool:
        """Whether a linear layer of this dotted name gets an adapter."""
        if not self.targets:
            return False
        return not name.endswith("lm_head") if self.targets == "all" else ends_with(name, self.targets)

    def rank_of(self, name: str) -> int:
        return next((rank for end, rank in self.rank_pattern.items() if ends_with(name, end)), self.rank)

    def scale_of(self, name: str) -> float:
        alpha = next((alpha for end, alpha in self.alpha_pattern.items() if ends_with(name, end)), self.alpha)
        rank = self.rank_of(name)
        return alpha / (math.sqrt(rank) if self.rslora else rank)


def ends_with(name: str, pattern: str) -> bool:
    """Whether the last components of a dotted name are of this pattern."""
    return re.search(rf"(?:^|\.)(?:{pattern})$", name) is not None


def _is_pattern(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


@contextlib.contextmanager
def without_adapters() -> Iterator[None]:
    """Within it, what is traced or computed is the model without its adapters: the reference of a preference."""
    token = _without.set(True)
    try:
        yield
    finally:
        _without.reset(token)


class _ColumnLengths(I.Initializer):
    """The lengths of the columns of a weight as it is when they are first asked for."""

    def __init__(self, weight: Parameter) -> None:
        self.weight = weight

    def __call__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return column_lengths(np.asarray(self.weight.value))


def column_lengths(weight: np.ndarray) -> np.ndarray:
    """[out] float32 of a weight [in, out]."""
    return np.linalg.norm(weight.astype(np.float32), axis=0)


class LowRank(Layer):
    """What an adapted linear layer has before its own class: see `LoRA`."""

    plain: type[Layer]
    """The class without the adapter"""

    def forward(self, x: jax.Array) -> jax.Array:
        y = super().forward(x)
        if _without.get():
            return y
        inner = F.dropout(x, self.adapter_dropout, training=self.training) if self.adapter_dropout else x
        low = F.matmul(F.matmul(inner, self.lora_A), self.lora_B) * self.adapter_scale
        if "lora_magnitude" not in self._parameters:
            return y + low
        weight = jax.lax.stop_gradient(self.adapted_weight())
        factor = self.lora_magnitude.astype(jnp.float32) / jnp.linalg.norm(weight, axis=0)
        factor = factor.astype(y.dtype)
        bias = getattr(self, "bias", None)
        if bias is None:
            return (y + low) * factor
        return (y - bias + low) * factor + bias

    def adapted_weight(self) -> jax.Array:
        """W + scale A B, [in, out] float32."""
        a, b = self.lora_A.astype(jnp.float32), self.lora_B.astype(jnp.float32)
        return self.weight.astype(jnp.float32) + jnp.matmul(a, b, precision="highest") * self.adapter_scale


@functools.cache
def _low_rank_class(cls: type[Layer]) -> type[Layer]:
    return type(f"LowRank{cls.__name__}", (LowRank, cls), {"plain": cls, "__module__": __name__})


def add_adapters(model: Layer, adapter: LoRA) -> list[str]:
    """Give linear layers of `model` adapters, and let nothing else be trained; returns the names of these layers.

    A freshly adapted model computes what it did before. Parameters keep their names; new ones are `<layer>.lora_A`,
    `<layer>.lora_B` and, with DoRA, `<layer>.lora_magnitude`.

    Raises:
        ConfigError: no linear layer has such a name; a name of `modules_to_save` is no layer with parameters.
    """
    if adapter.weights is not None:
        _make_room(model, weight_scheme(adapter.weights))
    linear = {name: layer for name, layer in model.named_sublayers() if _is_linear(layer)}
    adapted = {name: layer for name, layer in linear.items() if adapter.is_target(name)}
    if not adapted and (adapter.targets or not adapter.modules_to_save):
        ends = sorted({name.rpartition(".")[2] for name in linear})
        raise ConfigError(
            "no linear layer of the model gets an adapter",
            where="adapter.targets",
            received=repr(adapter.targets),
            allowed=f"a regular expression for names that end in {', '.join(ends)}",
        )
    _check_targets(model, adapter, linear)
    for parameter in model.parameters():
        parameter.trainable = False
    for pattern in adapter.modules_to_save:
        _train_whole(model, pattern)
    for name, layer in adapted.items():
        _adapt(layer, adapter, name)
    for name, parameter in model.named_parameters():
        owner, _, leaf = name.rpartition(".")
        if leaf == "bias" and (adapter.bias == "all" or (adapter.bias == "lora_only" and owner in adapted)):
            parameter.trainable = True
    return list(adapted)


def _make_room(model: Layer, scheme: WeightScheme) -> None:
    """Put layers of few bits, without values, in the place of linear ones."""
    for owner, name, _ in list(linears(model, ("lm_head",))):
        layer = owner._sub_layers[name]
        inputs, outputs, bias = (
            layer.in_features,
            layer.out_features,
            layer._parameters.get("bias") is not None,
        )
        group = scheme.group_of(inputs) if scheme.bits == 4 else None
        small = (
            Int8Linear(inputs, outputs, bias) if group is None else Int4Linear(inputs, outputs, group, bias)
        )
        replace_layer(owner, name, small)


def _check_targets(model: Layer, adapter: LoRA, linear: Mapping[str, Layer]) -> None:
    """Raises: ConfigError, where a layer that is named gets no adapter: one that is not linear, or one that there is
    not, such as the lm_head of tied embeddings."""
    if adapter.targets in ("all", ""):
        return
    is_list = re.fullmatch(r"[\w.\\|]+", adapter.targets) is not None
    for pattern in adapter.targets.split("|") if is_list else [adapter.targets]:
        others = [
            name
            for name, layer in model.named_sublayers()
            if ends_with(name, pattern) and name not in linear and layer._parameters
        ]
        if others or not any(ends_with(name, pattern) for name in linear):
            raise ConfigError(
                "adapters are of linear layers of the model",
                where="adapter.targets",
                received=f"{pattern!r}, "
                + (f"which is {others[0]}" if others else "which no layer is called"),
                allowed="names of linear layers",
                fix="a word embedding is trained whole: adapter.modules_to_save=[embed_tokens]; a tied one is "
                "the lm_head as well",
            )


def _is_linear(layer: Layer) -> bool:
    """A Linear, or what stands in its place with weights of fewer bits."""
    sizes = (getattr(layer, "in_features", None), getattr(layer, "out_features", None))
    return isinstance(layer, Linear) or (layer.has_forward() and all(isinstance(one, int) for one in sizes))


def _train_whole(model: Layer, pattern: str) -> None:
    is_trained = False
    for name, layer in model.named_sublayers():
        if ends_with(name, pattern):
            for parameter in layer.parameters():
                parameter.trainable = is_trained = True
    if not is_trained:
        ends = sorted(
            {name.rpartition(".")[2] for name, layer in model.named_sublayers() if layer._parameters}
        )
        raise ConfigError(
            "no layer with parameters has this name",
            where="adapter.modules_to_save",
            received=repr(pattern),
            allowed=f"such as {', '.join(ends[:12])}",
            fix="where word embeddings are tied there is no lm_head: embed_tokens is both"
            if "head" in pattern
            else None,
        )


def _adapt(layer: Layer, adapter: LoRA, name: str) -> None:
    inputs, outputs, rank = layer.in_features, layer.out_features, adapter.rank_of(name)
    if adapter.dora and not isinstance(layer, Linear):
        raise ConfigError(
            "DoRA needs the weights of a layer",
            where=f"adapter.dora, {name}",
            received=type(layer).__name__,
            allowed="layers whose weights are not quantised",
            fix="adapter.dora=false",
        )
    layer.adapter_scale, layer.adapter_dropout = adapter.scale_of(name), adapter.dropout
    bound = 1 / math.sqrt(inputs)  # torch's kaiming_uniform with a = sqrt(5)
    layer.lora_A = layer.create_parameter((inputs, rank), I.Uniform(-bound, bound))
    layer.lora_B = layer.create_parameter((rank, outputs), I.Constant(0.0))
    if adapter.dora:
        lengths = _ColumnLengths(layer._parameters["weight"])
        layer.lora_magnitude = layer.create_parameter((outputs,), ParamAttr(initializer=lengths))
    object.__setattr__(layer, "__class__", _low_rank_class(type(layer)))


ADAPTER_LEAVES = ("lora_A", "lora_B", "lora_magnitude")


def adapted_layers(model: Layer) -> dict[str, LowRank]:
    """The layers with adapters, by name."""
    return {name: layer for name, layer in model.named_sublayers() if isinstance(layer, LowRank)}


def merge_adapters(model: Layer) -> list[str]:
    """Put the adapters into the weights, in float32, and take them away; returns the names of the layers.

    Layers with weights of few bits are linear ones in floats afterwards, for a sum of the two would not stay in few
    bits; those without an adapter too. All parameters are trainable again.

    Raises:
        WeightError: the model has none.
    """
    layers = adapted_layers(model)
    if not layers and all(parameter.trainable for parameter in model.parameters()):
        raise WeightError("the model has no adapters", where="merge_adapters", received=type(model).__name__)
    for layer in layers.values():
        weight = _merged_weight(layer)
        for leaf in ADAPTER_LEAVES:
            layer._forget(leaf)
        for setting in ("adapter_scale", "adapter_dropout"):
            del layer.__dict__[setting]
        object.__setattr__(layer, "__class__", layer.plain)
        if isinstance(layer, Linear):
            parameter = layer._parameters["weight"]
            parameter.set_value(weight.astype(parameter.dtype))
        else:
            layer.__dict__["merged_weight"] = weight
    for owner in model.sublayers(include_self=True):
        for name, layer in list(owner.named_children()):
            if isinstance(layer, (Int8Linear, Int4Linear)):
                weight = layer.__dict__.pop("merged_weight", None)
                replace_layer(
                    owner, name, _in_floats(layer, layer.dequantize().T if weight is None else weight)
                )
    for parameter in model.parameters():
        parameter.trainable = True
    return list(layers)


def _merged_weight(layer: LowRank) -> np.ndarray:
    """[in, out] float32"""
    if not isinstance(layer, Linear):
        low = np.asarray(layer.lora_A, np.float32) @ np.asarray(layer.lora_B, np.float32)
        return layer.dequantize().T + low * layer.adapter_scale
    weight = np.asarray(layer.adapted_weight())
    if "lora_magnitude" in layer._parameters:
        weight = weight * (np.asarray(layer.lora_magnitude, np.float32) / column_lengths(weight))
    return weight


def _in_floats(layer: Int8Linear | Int4Linear, weight: np.ndarray) -> Linear:
    linear = Linear(
        layer.in_features, layer.out_features, bias_attr=None if layer.bias is not None else False
    )
    linear.weight = weight
    if layer.bias is not None:
        linear.bias = np.asarray(layer.bias, np.float32)
    return linear


def adapter_state(model: Layer) -> dict[str, np.ndarray]:
    """What is trained of a model with adapters, by name: adapters, and whole layers beside them."""
    trained = {name for name, parameter in model.named_parameters() if parameter.trainable}
    return {name: np.asarray(value) for name, value in model.state_dict().items() if name in trained}
