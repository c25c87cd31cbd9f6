"""Layers with weights of 8 or 4 bits in the place of `nn.Linear` and `nn.Embedding`: for inference, and as the frozen
base of adapters.

    nn.quantize_linears(model, "int8")

Weights are rounded to the nearest step; `framework.compress.calibrated` chooses better ones from examples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from framework.core.errors import ConfigError, did_you_mean
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.common import Embedding, Linear
from framework.nn.functional.quantized import LEVELS, linear_int4, linear_int8
from framework.nn.layer import Layer, ParamAttr

_FROZEN = ParamAttr(trainable=False, initializer=I.Constant(0.0))
_LEAST_GROUP = 16  # inputs; of smaller groups the scales would take as much as they save
_MAX_LEVEL = 15


@dataclass(frozen=True)
class WeightScheme:
    """How weights are rounded.

    Attributes:
        bits: 8: a scale for each row. 4: a scale and a zero point for each group of inputs of each row.
        group: Inputs of a group of 4 bits, where it divides them; else the largest divisor that both have.
        symmetric: 4 bits: the zero point is 8 everywhere.
    """

    bits: Literal[8, 4] = 8
    group: int = 128
    symmetric: bool = False

    def __post_init__(self) -> None:
        if self.bits not in (8, 4) or self.group < _LEAST_GROUP or self.group % 2:
            raise ConfigError(
                "weights cannot be rounded like this",
                where="WeightScheme",
                received=f"bits {self.bits}, group {self.group}",
                allowed=f"bits 8 or 4, groups of an even number from {_LEAST_GROUP}",
            )

    def group_of(self, inputs: int) -> int | None:
        """Inputs of a group of a matrix with so many; None: they have no divisor that is large enough."""
        size = math.gcd(inputs, self.group)
        return size if size >= _LEAST_GROUP and size % 2 == 0 else None


SCHEMES = {"int8": WeightScheme(8), "int4": WeightScheme(4)}


def weight_scheme(name: str | WeightScheme) -> WeightScheme:
    """A scheme by its name. Raises: ConfigError, where it is unknown."""
    if isinstance(name, WeightScheme):
        return name
    if name not in SCHEMES:
        raise ConfigError(
            "weights are not kept in this form",
            where="weights",
            received=repr(name),
            allowed=", ".join(SCHEMES),
            fix=did_you_mean(str(name), SCHEMES),
        )
    return SCHEMES[name]


def round_int8(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(int8 [out, in], float32 scale [out]) of a matrix [out, in]: the largest magnitude of a row is 127 steps."""
    wide = np.asarray(weight, np.float32)
    scale = np.abs(wide).max(1, initial=0) / LEVELS
    return np.rint(wide / np.where(scale > 0, scale, 1)[:, None]).astype(np.int8), scale


def _half(scale: np.ndarray) -> np.ndarray:
    """Rounded to float16, in float32; what is larger than any float16 stays."""
    with np.errstate(over="ignore"):
        rounded = scale.astype(np.float16).astype(np.float32)
    return np.where(np.isfinite(rounded), rounded, scale).astype(np.float32)


def group_steps(grouped: np.ndarray, symmetric: bool) -> tuple[np.ndarray, np.ndarray]:
    """(scale, zero) [...] float32 of groups [..., size]: 15 steps from the least number, or 0, to the largest. Scales
    have the digits of float16, which files keep them in."""
    if symmetric:
        scale = _half(np.abs(grouped).max(-1) / 7.5)
        return scale, np.full(scale.shape, 8, np.float32)
    low, high = np.minimum(grouped.min(-1), 0), np.maximum(grouped.max(-1), 0)
    scale = _half((high - low) / _MAX_LEVEL)
    return scale, np.clip(np.rint(-low / np.where(scale > 0, scale, 1)), 0, _MAX_LEVEL).astype(np.float32)


def round_int4(
    weight: np.ndarray, group: int, symmetric: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(levels [out, in] uint8 from 0 to 15, scale and zero [out, groups] float32) of a matrix [out, in]."""
    grouped = np.asarray(weight, np.float32).reshape(len(weight), -1, group)
    scale, zero = group_steps(grouped, symmetric)
    steps = np.rint(grouped / np.where(scale > 0, scale, 1)[..., None]) + zero[..., None]
    return np.clip(steps, 0, _MAX_LEVEL).astype(np.uint8).reshape(weight.shape), scale, zero


class Int8Linear(Layer):
    """x [..., in_features] times weight [out_features, in_features] int8 and scale [out_features], plus bias. See
    `functional.linear_int8`."""

    float32_parameters = True

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = self.create_parameter((out_features, in_features), _FROZEN, "int8")
        self.scale = self.create_parameter((out_features,), _FROZEN)
        self.bias = self.create_parameter((out_features,), None if bias else False, is_bias=True)

    @classmethod
    def from_weight(cls, weight: np.ndarray, bias: jax.Array | None = None) -> Self:
        """Of a matrix [out, in] of floats, rounded to the nearest step."""
        return cls.from_levels(*round_int8(weight), bias)

    @classmethod
    def from_levels(cls, levels: np.ndarray, scale: np.ndarray, bias: jax.Array | None = None) -> Self:
        """Of whole numbers [out, in] and their scales [out]."""
        layer = cls(levels.shape[1], levels.shape[0], bias is not None)
        _set(layer, weight=levels, scale=np.asarray(scale, np.float32), bias=bias)
        return layer

    def dequantize(self) -> np.ndarray:
        """The matrix [out, in], float32."""
        return np.asarray(self.weight, np.float32) * np.asarray(self.scale)[:, None]

    def forward(self, x: jax.Array) -> jax.Array:
        return linear_int8(x, self.weight, self.scale, self.bias)


class Int4Linear(Layer):
    """x [..., in_features] times a matrix of 4 bits with a scale and a zero point for each group of inputs, plus bias.
    See `functional.linear_int4`.

    With `ordered`, the inputs of a group are not neighbours: `order` [in_features] says which input stands where, as in
    files of GPTQ with `desc_act`.
    """

    float32_parameters = True

    def __init__(
        self, in_features: int, out_features: int, group: int = 128, bias: bool = True, ordered: bool = False
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.group = in_features, out_features, group
        groups = in_features // group
        self.weight = self.create_parameter((groups, out_features, group // 2), _FROZEN, "uint8")
        self.scale = self.create_parameter((groups, out_features), _FROZEN)
        self.zero = self.create_parameter((groups, out_features), _FROZEN, "uint8")
        if ordered:
            self.order = self.create_parameter((in_features,), _FROZEN, "int32")
        self.ordered = ordered
        self.bias = self.create_parameter((out_features,), None if bias else False, is_bias=True)

    @classmethod
    def from_weight(
        cls, weight: np.ndarray, group: int = 128, bias: jax.Array | None = None, symmetric: bool = False
    ) -> Self:
        """Of a matrix [out, in] of floats, rounded to the nearest step."""
        return cls.from_levels(*round_int4(weight, group, symmetric), bias)

    @classmethod
    def from_levels(
        cls,
        levels: np.ndarray,
        scale: np.ndarray,
        zero: np.ndarray,
        bias: jax.Array | None = None,
        order: np.ndarray | None = None,
    ) -> Self:
        """Of whole numbers [out, in] from 0 to 15, and scales and zero points [out, groups].

        Args:
            order: [in]: the inputs of the first group, of the second and so on; None: they stand in order.
        """
        outputs, inputs = levels.shape
        group = inputs // scale.shape[1]
        layer = cls(inputs, outputs, group, bias is not None, order is not None)
        levels = levels if order is None else levels[:, order]
        halves = levels.reshape(outputs, -1, 2, group // 2).transpose(1, 2, 0, 3)
        _set(
            layer,
            weight=(halves[:, 0] | halves[:, 1] << 4).astype(np.uint8),
            scale=np.asarray(scale, np.float32).T,
            zero=np.asarray(zero).astype(np.uint8).T,
            bias=bias,
            order=order if order is None else np.asarray(order, np.int32),
        )
        return layer

    def groups(self) -> np.ndarray:
        """The group of each input, [in] int32."""
        groups = np.arange(self.in_features, dtype=np.int32) // self.group
        return groups[np.argsort(np.asarray(self.order))] if self.ordered else groups

    def levels(self) -> np.ndarray:
        """The whole numbers [out, in] uint8, in the order of the inputs."""
        packed = np.asarray(self.weight)
        levels = np.stack([packed & 15, packed >> 4], 2).transpose(1, 0, 2, 3).reshape(self.out_features, -1)
        return levels[:, np.argsort(np.asarray(self.order))] if self.ordered else levels

    def dequantize(self) -> np.ndarray:
        """The matrix [out, in], float32."""
        zero, scale = (np.asarray(array, np.float32).T[:, self.groups()] for array in (self.zero, self.scale))
        return (self.levels().astype(np.float32) - zero) * scale

    def forward(self, x: jax.Array) -> jax.Array:
        x = jnp.take(x, self.order, -1) if self.ordered else x
        return linear_int4(x, self.weight, self.scale, self.zero, self.bias)


class Int8Embedding(Layer):
    """Rows of weight [num_embeddings, embedding_dim] int8 times their scales, in `dtype`; `attend` scores rows."""

    float32_parameters = True

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: DTypeLike = "float32") -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.dtype = np.dtype(dtype).name
        self.weight = self.create_parameter((num_embeddings, embedding_dim), _FROZEN, "int8")
        self.scale = self.create_parameter((num_embeddings,), _FROZEN)

    @classmethod
    def from_weight(cls, weight: np.ndarray, dtype: DTypeLike = "float32") -> Self:
        """Of a table [num_embeddings, embedding_dim] of floats."""
        layer = cls(weight.shape[0], weight.shape[1], dtype)
        levels, scale = round_int8(weight)
        _set(layer, weight=levels, scale=scale)
        return layer

    def table(self) -> jax.Array:
        """[num_embeddings, embedding_dim]"""
        return (self.weight.astype(jnp.float32) * self.scale[:, None]).astype(self.dtype)

    def dequantize(self) -> np.ndarray:
        """The table, float32."""
        return np.asarray(self.weight, np.float32) * np.asarray(self.scale)[:, None]

    def forward(self, x: jax.Array) -> jax.Array:
        rows = F.embedding(x, self.weight).astype(jnp.float32)
        return (rows * F.embedding(x, self.scale[:, None])).astype(self.dtype)

    def attend(self, x: jax.Array) -> jax.Array:
        """x [..., embedding_dim] times the rows: [..., num_embeddings]."""
        return linear_int8(x, self.weight, self.scale)


QUANTIZED = (Int8Linear, Int4Linear, Int8Embedding)
"""Layers with weights of few bits."""


def _set(layer: Layer, **arrays: np.ndarray | jax.Array | None) -> None:
    for name, array in arrays.items():
        if array is not None:
            parameter = layer._parameters[name]
            if name == "bias":
                parameter.dtype = np.dtype(array.dtype)
            parameter.set_value(jnp.asarray(array))


def quantize_layer(layer: Layer, scheme: WeightScheme, dtype: DTypeLike = "float32") -> Layer | None:
    """The layer in few bits that stands for a Linear or an Embedding; None: it stays as it is. An Embedding gets 8 bits
    in every scheme, and rows of `dtype`; a Linear whose inputs cannot be grouped too."""
    if type(layer) is Embedding:
        return Int8Embedding.from_weight(np.asarray(layer.weight, np.float32), dtype)
    if type(layer) is not Linear:
        return None
    weight = np.asarray(layer.weight, np.float32).T
    group = scheme.group_of(layer.in_features) if scheme.bits == 4 else None
    if group is None:
        return Int8Linear.from_weight(weight, layer.bias)
    return Int4Linear.from_weight(weight, group, layer.bias, scheme.symmetric)


def linears(
    model: Layer, skip: Sequence[str] = (), embeddings: Sequence[str] = ()
) -> Iterator[tuple[Layer, str, str]]:
    """(owner, attribute, dotted name) of the Linears below `model` and of the Embeddings with these names, but those
    whose name, or the last part of it, is in `skip`."""
    for path, owner in model.named_sublayers(include_self=True):
        for name, layer in owner.named_children():
            full = f"{path}.{name}" if path else name
            kind = Linear if full not in embeddings else Embedding
            if type(layer) is kind and name not in skip and full not in skip:
                yield owner, name, full


def quantize_linears(
    model: Layer,
    scheme: str | WeightScheme,
    skip: Sequence[str] = ("lm_head",),
    embeddings: Sequence[str] = (),
    dtype: DTypeLike = "float32",
) -> list[str]:
    """Put layers in few bits in the place of all `nn.Linear` below a model, one after the other, so that the memory of
    each float matrix is free before the next is rounded. Returns the names of the layers that were replaced.

    Classes derived from Linear stay, and so do matrices that are no Linear, such as stacked experts.

    Args:
        scheme: "int8", "int4" or a WeightScheme.
        skip: Names of layers that stay, in full or without what stands above them.
        embeddings: Full names of embeddings that are kept in 8 bits too: tied ones, which score the next token.
        dtype: Of the rows of these.

    Raises:
        ConfigError: an unknown scheme.
    """
    scheme = weight_scheme(scheme)
    names = []
    for owner, name, full in list(linears(model, skip, embeddings)):
        replace_layer(owner, name, quantize_layer(owner._sub_layers[name], scheme, dtype))
        names.append(full)
    return names


def replace_layer(owner: Layer, name: str, layer: Layer | None) -> None:
    """Put a layer in the place of another one, in its mode and at its position; None changes nothing."""
    if layer is not None:
        layer.train(owner._sub_layers[name].training)
        owner._sub_layers[name] = layer  # the order of sublayers is that of the state dict
