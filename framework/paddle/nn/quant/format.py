"""Layers that hold integers and scales, as converted models have them and `paddle.jit.save` writes them."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import jax.numpy as jnp

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.initializer import Constant
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.param_attr import ParamAttr
from framework.paddle.ops.creation import to_tensor
from framework.paddle.utils import unique_name

Scaled = TypeVar("Scaled", bound="_Scales")


class Quanter(Protocol):
    """What says the scales of integers: `paddle.quantization.BaseQuanter`."""

    def scales(self) -> object: ...
    def zero_points(self) -> object: ...
    def quant_axis(self) -> int | None: ...
    def bit_length(self) -> int: ...


class QuanterFactory(Protocol):
    """What makes the quanter of a layer: `paddle.quantization.factory.QuanterFactory`."""

    def _instance(self, layer: Layer) -> Layer: ...


class QuanterConfig(Protocol):
    """The factories of a layer's quanters; None: it has none."""

    @property
    def activation(self) -> QuanterFactory | None: ...
    @property
    def weight(self) -> QuanterFactory | None: ...


def to_units(x: Array, scale: Array, bits: int) -> Array:
    """Values of magnitude `scale` at most, the rest cut there, in units of integers of `bits` bits."""
    return jnp.clip(x, -scale, scale) * ((2 ** (bits - 1) - 1) / jnp.maximum(scale, 1e-30))


def _along(scale: Array, axis: int, group: int, ndim: int) -> Array:
    """Scales so that they broadcast: [rows / group, columns] of groups, [channels] along an axis, or one."""
    if scale.ndim > 1:
        return jnp.repeat(scale, group, 0)
    if axis < 0 or scale.size == 1:
        return scale.reshape(())
    return scale.reshape([-1 if dim == axis else 1 for dim in range(ndim)])


@operation(differentiable=False)
def _quantize(x: Array, scale: Array, axis: int, bits: int, group: int) -> Array:
    """All integers of these bits are used: what lies below -scale may become the one below its code."""
    largest = 2 ** (bits - 1) - 1
    units = x.astype(jnp.float32) * (largest / jnp.maximum(_along(scale, axis, group, x.ndim), 1e-30))
    return jnp.clip(jnp.round(units), -largest - 1, largest).astype(x.dtype)


@operation(differentiable=False)
def _dequantize(x: Array, scale: Array, axis: int, bits: int, group: int) -> Array:
    largest = 2 ** (bits - 1) - 1
    return (x.astype(jnp.float32) * _along(scale, axis, group, x.ndim) / largest).astype(x.dtype)


class _Scales(Layer):
    """Scales and how they lie.

    Args:
        scales: One, [channels] or [groups, columns].
        zero_point: None or zeros: integers are symmetric.
        quant_axis: The axis of the channels; -1 or None: one scale.
        bit_length: Bits of an integer; group_size: rows of a group.
    """

    def __init__(
        self,
        scales: object,
        zero_point: object = None,
        quant_axis: int | None = None,
        bit_length: int = 8,
        group_size: int = 128,
    ) -> None:
        super().__init__()
        values = to_tensor(scales, dtype="float32")
        name = unique_name.generate("quant_dequant.scale")
        attr = ParamAttr(name=name, initializer=Constant(1.0), trainable=False)
        parameter = self.create_parameter(values.shape, attr, "float32")
        assert parameter is not None
        parameter.set_value(values)
        self._scales = parameter
        self._zero_point = to_tensor([0.0] if zero_point is None else zero_point, dtype="float32")
        self._quant_axis = -1 if quant_axis is None else quant_axis
        self._bit_length, self._group_size = bit_length, group_size

    @classmethod
    def from_quanter(cls: type[Scaled], quanter: Quanter) -> Scaled:
        """With what a quanter or an observer found."""
        axis, bits = quanter.quant_axis(), quanter.bit_length()
        group = getattr(quanter, "group_size", 128)
        return cls(quanter.scales(), quanter.zero_points(), axis, bits, group)

    def _arguments(self) -> tuple[Tensor, int, int, int]:
        return self._scales, self._quant_axis, self._bit_length, self._group_size


class LinearQuanter(_Scales):
    """Floats to integers, which are kept in floats."""

    def forward(self, input: Tensor) -> Tensor:
        return _quantize(input, *self._arguments())


class LinearDequanter(_Scales):
    """Integers back to floats."""

    def forward(self, input: Tensor) -> Tensor:
        return _dequantize(input, *self._arguments())


class LinearQuanterDequanter(Layer):
    """Both in a row; either may be None."""

    def __init__(self, quanter: Layer | None, dequanter: Layer | None) -> None:
        super().__init__()
        self._quanter, self._dequanter = quanter, dequanter

    def forward(self, input: Tensor) -> Tensor:
        out = input if self._quanter is None else self._quanter(input)
        return out if self._dequanter is None else self._dequanter(out)

    @staticmethod
    def from_quanter(quanter: Quanter) -> LinearQuanterDequanter:
        """With what a quanter or an observer found."""
        return LinearQuanterDequanter(
            LinearQuanter.from_quanter(quanter), LinearDequanter.from_quanter(quanter)
        )


class ConvertibleQuantedLayer(Layer, metaclass=abc.ABCMeta):
    """A layer whose quanters can be made to what `paddle.jit.save` writes."""

    def __init__(self) -> None:
        super().__init__()
        self.converted = False

    @abc.abstractmethod
    def weights_to_quanters(self) -> list[tuple[str, str]]:
        """The names of weights, each with that of its quanter."""

    @abc.abstractmethod
    def activation_quanters(self) -> list[str]:
        """The names of the quanters of inputs."""

    def _convert(self, remain_weight: bool = False) -> None:
        """Put integers for weights, and scales for quanters. Raises: AssertionError: it was done before."""
        if self.converted:
            raise AssertionError("The model should be converted only once.")
        for weight_name, quanter_name in self.weights_to_quanters():
            pair = self._replace(quanter_name)
            if pair is not None and not remain_weight:
                weight = cast(Tensor, getattr(self, weight_name))
                weight.set_value(cast(Layer, pair._quanter)(weight))
                pair._quanter = None
        for quanter_name in self.activation_quanters():
            self._replace(quanter_name)
        self.converted = True

    def _replace(self, quanter_name: str) -> LinearQuanterDequanter | None:
        quanter = getattr(self, quanter_name)
        if quanter is None:
            return None
        pair = LinearQuanterDequanter.from_quanter(quanter)
        setattr(self, quanter_name, pair)
        return pair


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
