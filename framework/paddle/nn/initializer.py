"""paddle.nn.initializer: how a parameter starts. The values come from the core's initializers."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from framework.core.errors import ShapeError
from framework.core.process_state import state
from framework.core.rng import next_initializer_rng
from framework.nn import initializer as core
from framework.nn.initializer import calculate_gain as calculate_gain
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.tensor import Tensor, as_array

Shape = tuple[int, ...]


class Initializer:
    """Base of all: `initializer(parameter)` gives a parameter its first values. A class of one's own defines
    `forward(var, block)`, or `values(shape)`."""

    core: core.Initializer

    def values(self, shape: Shape) -> np.ndarray:
        """Values of this shape; the parameter casts them."""
        return self.core(next_initializer_rng(), shape)

    def forward(self, var: Tensor, block: object = None) -> Tensor:
        var._value = as_array(self.values(tuple(var.shape)), var.dtype)
        return var

    def __call__(self, param: Tensor, block: object = None) -> Tensor:
        self.forward(param, block)
        return param


class Constant(Initializer):
    """One value everywhere."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def values(self, shape: Shape) -> np.ndarray:
        return np.full(shape, self.value, np.float32 if isinstance(self.value, float) else np.float64)


class Assign(Initializer):
    """These values: an array, a list or a Tensor. The parameter takes their shape."""

    def __init__(self, value: Any, name: str | None = None) -> None:
        self.value = value.numpy() if isinstance(value, Tensor) else np.array(value)

    def values(self, shape: Shape) -> np.ndarray:
        return self.value


class Normal(Initializer):
    """Normal values."""

    def __init__(self, mean: float = 0.0, std: float = 1.0, name: str | None = None) -> None:
        self.core = core.Normal(mean, std)


class TruncatedNormal(Initializer):
    """Normal values, drawn again where they are more than two deviations away from the mean."""

    def __init__(self, mean: float = 0.0, std: float = 1.0, name: str | None = None) -> None:
        self.core = core.TruncatedNormal(mean, std, mean - 2 * abs(std), mean + 2 * abs(std))


class Uniform(Initializer):
    """Values evenly from `low` up to `high`."""

    def __init__(self, low: float = -1.0, high: float = 1.0, name: str | None = None) -> None:
        if low >= high:
            raise ShapeError(
                "low is to be below high", where="nn.initializer.Uniform", received=f"low {low}, high {high}"
            )
        self.core = core.Uniform(low, high)


class XavierUniform(Initializer):
    """Uniform with the variance 2 / (fan_in + fan_out)."""

    def __init__(
        self, fan_in: float | None = None, fan_out: float | None = None, name: str | None = None
    ) -> None:
        self.core = core.XavierUniform(fan_in=fan_in, fan_out=fan_out)


class XavierNormal(Initializer):
    """Normal with the variance 2 / (fan_in + fan_out)."""

    def __init__(
        self, fan_in: float | None = None, fan_out: float | None = None, name: str | None = None
    ) -> None:
        self.core = core.XavierNormal(fan_in=fan_in, fan_out=fan_out)


class KaimingUniform(Initializer):
    """Uniform with the variance gain² / fan_in."""

    def __init__(
        self, fan_in: float | None = None, negative_slope: float = 0.0, nonlinearity: str = "relu"
    ) -> None:
        self.core = core.KaimingUniform(fan_in, negative_slope, nonlinearity)


class KaimingNormal(Initializer):
    """Normal with the variance gain² / fan_in."""

    def __init__(
        self, fan_in: float | None = None, negative_slope: float = 0.0, nonlinearity: str = "relu"
    ) -> None:
        self.core = core.KaimingNormal(fan_in, negative_slope, nonlinearity)


MSRAInitializer = KaimingNormal


class Orthogonal(Initializer):
    """Orthonormal rows (or columns, whichever are fewer) times `gain`; two dimensions or more."""

    def __init__(self, gain: float = 1.0, name: str | None = None) -> None:
        self.core = core.Orthogonal(gain)

    def values(self, shape: Shape) -> np.ndarray:
        _check_rank("Orthogonal", shape, len(shape) >= 2, "two dimensions or more")
        return super().values(shape)


class Dirac(Initializer):
    """A convolution that passes its input through, per group; three to five dimensions."""

    def __init__(self, groups: int = 1, name: str | None = None) -> None:
        if not isinstance(groups, int) or groups < 1:
            raise ShapeError("groups is a positive number", where="nn.initializer.Dirac", received=groups)
        self.groups, self.core = groups, core.Dirac(groups)

    def values(self, shape: Shape) -> np.ndarray:
        _check_rank("Dirac", shape, 3 <= len(shape) <= 5, "the weight of a convolution")
        if shape[0] % self.groups:
            raise ShapeError(
                "the output channels do not divide into the groups",
                where="nn.initializer.Dirac",
                received=f"{shape[0]} channels, {self.groups} groups",
            )
        return super().values(shape)


class Bilinear(Initializer):
    """A transposed convolution that interpolates bilinearly; four dimensions, a square kernel."""

    def __init__(self) -> None:
        self.core = core.Bilinear()

    def values(self, shape: Shape) -> np.ndarray:
        _check_rank("Bilinear", shape, len(shape) == 4 and shape[2] == shape[3], "[out, in, k, k]")
        return super().values(shape)


def _check_rank(name: str, shape: Shape, good: bool, allowed: str) -> None:
    if not good:
        raise ShapeError(
            "the parameter has a shape that this initializer does not fill",
            where=f"nn.initializer.{name}",
            received=list(shape),
            allowed=allowed,
        )


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


class LazyGuard:
    """Parameters made in this block have a shape and a type, but no values (and take no memory) until
    `parameter.initialize()` or a loaded state gives them some."""

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> LazyGuard:
        self._before.append(state.lazy_parameters)
        state.lazy_parameters = True
        return self

    def __exit__(self, *error: object) -> None:
        state.lazy_parameters = self._before.pop()


def begin(param: Any, initializer: Any) -> None:
    """Give a new parameter its first values, or in a LazyGuard the means to get them later."""
    if not state.lazy_parameters:
        initializer(param)
        return
    shape, kind = tuple(param.shape), param.dtype.numpy

    def fill() -> None:
        param._value = as_array(np.zeros(shape, kind))
        initializer(param)

    param._value = jax.ShapeDtypeStruct(shape, kind)
    param._begin = fill
