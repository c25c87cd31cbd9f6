"""paddle.nn.initializer: how a parameter starts. The values come from the core's initializers."""

from __future__ import annotations

from typing import Any

import numpy as np

from framework.core.rng import next_initializer_rng
from framework.nn import initializer as core
from framework.paddle import dtypes as types
from framework.paddle.tensor import Tensor, as_array

Shape = tuple[int, ...]


class Initializer:
    """Base of all: `initializer(parameter)` gives a parameter its first values."""

    def values(self, shape: Shape) -> np.ndarray:
        """float32 values of this shape."""
        raise NotImplementedError

    def __call__(self, param: Tensor, block: object = None) -> Tensor:
        param._value = as_array(self.values(tuple(param.shape)), param.dtype)
        return param


class Constant(Initializer):
    """One value everywhere."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def values(self, shape: Shape) -> np.ndarray:
        return np.full(shape, self.value, np.float32 if isinstance(self.value, float) else np.float64)


class XavierUniform(Initializer):
    """Uniform with the variance 2 / (fan_in + fan_out)."""

    def __init__(
        self,
        fan_in: float | None = None,
        fan_out: float | None = None,
        gain: float = 1.0,
        name: str | None = None,
    ) -> None:
        self.core = core.XavierUniform(fan_in=fan_in, fan_out=fan_out, gain=gain)

    def values(self, shape: Shape) -> np.ndarray:
        return self.core(next_initializer_rng(), shape)


_global: dict[bool, Initializer | None] = {False: None, True: None}


def set_global_initializer(weight_init: Initializer | None, bias_init: Initializer | None = None) -> None:
    """How all parameters made from here on start, where their layer's `ParamAttr` does not say it; None: as usual."""
    for part in (weight_init, bias_init):
        if part is not None and not isinstance(part, Initializer):
            raise TypeError(f"set_global_initializer takes initializers or None, received {part!r}")
    _global.update({False: weight_init, True: bias_init})


def starting(attr_initializer: Any, is_bias: bool, default: Any) -> Any:
    """The initializer of a parameter: its own, the global one, its layer's default, Paddle's default."""
    if attr_initializer is not None:
        return attr_initializer
    usual = default or (Constant(0.0) if is_bias else XavierUniform())
    return _global[is_bias] or usual


def new_value(shape: Shape, dtype: object) -> object:
    """Zeros, to be replaced by an initializer."""
    return np.zeros(shape, types.to_numpy(dtype))
