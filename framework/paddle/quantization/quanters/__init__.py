"""Quanters for training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.nn.initializer import Constant
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.param_attr import ParamAttr
from framework.paddle.nn.quant.format import to_units
from framework.paddle.quantization.base_quanter import BaseQuanter
from framework.paddle.quantization.factory import QuanterFactory
from framework.paddle.utils import unique_name

__all__ = ["FakeQuanterWithAbsMaxObserver"]


class FakeQuanterWithAbsMaxObserver(QuanterFactory):
    """Round to the integers of a moving average of the largest magnitude; gradients pass as they are.

    Args:
        moving_rate: Of the average; bit_length: of an integer; name: start of the names of its parameters.
    """

    def __init__(
        self, moving_rate: float = 0.9, bit_length: int = 8, dtype: str = "float32", name: str | None = None
    ) -> None:
        super().__init__(name=name, moving_rate=moving_rate, bit_length=bit_length, dtype=dtype)

    def _get_class(self) -> type[BaseQuanter]:
        return FakeQuanterWithAbsMaxObserverLayer


class FakeQuanterWithAbsMaxObserverLayer(BaseQuanter):
    """What `FakeQuanterWithAbsMaxObserver` makes: `_scale`, `_state` and `_accum` are saved with the model."""

    def __init__(
        self,
        layer: Layer,
        name: str | None = None,
        moving_rate: float = 0.9,
        bit_length: int = 8,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self._moving_rate, self._bit_length = moving_rate, bit_length
        self._scale = self._make(f"{name or 'quant_dequant'}.scale", 0.001, dtype)
        self._state = self._make(f"{name or 'quant_dequant'}.state", 1.0, dtype)
        self._accum = self._make(f"{name or 'quant_dequant'}.accum", 1.0, dtype)

    def _make(self, name: str, value: float, dtype: str) -> Parameter:
        attr = ParamAttr(name=unique_name.generate(name), initializer=Constant(value), trainable=False)
        parameter = self.create_parameter([1], attr, dtype)
        assert parameter is not None
        parameter.stop_gradient = True
        return parameter

    def forward(self, input: Tensor) -> Tensor:
        if self.training:
            moments = (self._state, self._accum)
            state, accum, scale = _average(input, *moments, float(self._moving_rate))
            for parameter, new in zip((*moments, self._scale), (state, accum, scale)):
                parameter._value = new._value
        return _round_to_scale(input, self._scale, int(self._bit_length))

    def bit_length(self) -> int:
        return self._bit_length

    def quant_axis(self) -> int:
        return -1

    def scales(self) -> Tensor:
        return self._scale

    def zero_points(self) -> None:
        return None


@operation(differentiable=False)
def _average(x: Array, state: Array, accum: Array, rate: float) -> tuple[Array, Array, Array]:
    state = rate * state + 1
    accum = rate * accum + jnp.abs(x).max().astype(accum.dtype)
    return state, accum, accum / state


@operation
def _round_to_scale(x: Array, scale: Array, bits: int) -> Array:
    """What the integers of x stand for, where halves go away from 0; the gradient is that of x."""
    units = to_units(x, scale, bits)
    integers = jnp.sign(units) * jnp.floor(jnp.abs(units) + 0.5)
    rounded = (integers * scale / (2 ** (bits - 1) - 1)).astype(x.dtype)
    return jax.lax.stop_gradient(rounded) + (x - jax.lax.stop_gradient(x))


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
