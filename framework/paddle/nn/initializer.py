"""paddle.nn.initializer: how a parameter starts. The values come from the core's initializers."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import numpy as np

from framework.core import errors
from framework.core.process_state import state
from framework.core.rng import next_initializer_rng
from framework.nn import initializer as core
from framework.nn.initializer import calculate_gain as calculate_gain
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.constructors import Rowed, make_class, parameters
from framework.paddle._kernel.errors import AssertedError, ShapeError
from framework.paddle._kernel.modules import complete as _complete
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


class _Face(Rowed, Initializer):
    """Base of the initializers that `_face` makes."""

    _kind: ClassVar[type[core.Initializer]]

    def _begin(self, settings: dict[str, object]) -> None:
        settings.pop("name", None)
        self.core = self._make(settings)

    def _make(self, settings: dict[str, object]) -> core.Initializer:
        return self._kind(**settings)


class _Constant(_Face):
    core: core.Constant

    def values(self, shape: Shape) -> np.ndarray:
        return np.full(shape, self.core.value, np.float64)


class _Assign(_Face):
    """The parameter takes their shape."""

    core: core.Assign

    def _make(self, settings: dict[str, object]) -> core.Initializer:
        value = settings["value"]
        return core.Assign(value.numpy() if isinstance(value, Tensor) else np.array(value))

    def values(self, shape: Shape) -> np.ndarray:
        return np.asarray(self.core.value)


class _TruncatedNormal(_Face):
    """The bounds are two deviations away from the mean."""

    def _make(self, settings: dict[str, Any]) -> core.Initializer:
        mean, std = settings["mean"], settings["std"]
        return core.TruncatedNormal(mean, std, mean - 2 * abs(std), mean + 2 * abs(std))


class _Uniform(_Face):
    def _make(self, settings: dict[str, Any]) -> core.Initializer:
        low, high = settings["low"], settings["high"]
        if low >= high:
            raise ShapeError(
                "low is to be below high", where="nn.initializer.Uniform", received=f"low {low}, high {high}"
            )
        return core.Uniform(low, high)


class _Orthogonal(_Face):
    core: core.Orthogonal

    def values(self, shape: Shape) -> np.ndarray:
        with _asserted():
            return self.core.in_float64(next_initializer_rng(), shape)


class _Dirac(_Face):
    def values(self, shape: Shape) -> np.ndarray:
        with _asserted():
            return super().values(shape)


@contextlib.contextmanager
def _asserted() -> Iterator[None]:
    """Where an initializer does not fill a shape, raise Paddle's kind of error for it."""
    try:
        yield
    except errors.ShapeError as error:
        raise AssertedError(
            error.problem, where=error.where, received=error.received, allowed=error.allowed, fix=error.fix
        ) from error


class _Bilinear(_Face):
    """Of images, with a square kernel."""

    def values(self, shape: Shape) -> np.ndarray:
        core.check_fill("Bilinear", shape, len(shape) == 4 and shape[2] == shape[3], "[out, in, k, k]")
        return super().values(shape)


def _face(
    kind: type[core.Initializer], settings: str = "", base: type[_Face] = _Face, name: bool = True
) -> type[_Face]:
    """Paddle's initializer of the name of the core's: it takes these of its settings, and a name."""
    known = inspect.signature(kind).parameters
    takes = [
        *(known[setting] for setting in settings.split()),
        *(parameters(["name"], {"name": None}) if name else ()),
    ]
    doc = " ".join(text for text in (kind.__doc__, None if base is _Face else base.__doc__) if text)
    return make_class(kind.__name__, base, takes, __name__, doc, _kind=kind)


_FANS, _KAIMING = "fan_in fan_out", "fan_in negative_slope nonlinearity"
Constant = _face(core.Constant, "value", _Constant, name=False)
Assign = _face(core.Assign, "value", _Assign)
Normal = _face(core.Normal, "mean std")
TruncatedNormal = _face(core.TruncatedNormal, "mean std", _TruncatedNormal)
Uniform = _face(core.Uniform, "low high", _Uniform)
XavierUniform = _face(core.XavierUniform, _FANS)
XavierNormal = _face(core.XavierNormal, _FANS)
KaimingUniform = _face(core.KaimingUniform, _KAIMING, name=False)
KaimingNormal = MSRAInitializer = _face(core.KaimingNormal, _KAIMING, name=False)
Orthogonal = _face(core.Orthogonal, "gain", _Orthogonal)
Dirac = _face(core.Dirac, "groups", _Dirac)
Bilinear = _face(core.Bilinear, base=_Bilinear, name=False)


_global: dict[bool, Initializer | None] = {False: None, True: None}


def set_global_initializer(weight_init: Initializer | None, bias_init: Initializer | None = None) -> None:
    """How all parameters made from here on start, where their layer's `ParamAttr` does not say it; None: as usual."""
    for part in (weight_init, bias_init):
        if part is not None and not isinstance(part, Initializer):
            raise TypeError(f"set_global_initializer takes initializers or None, received {part!r}")
    _global.update({False: weight_init, True: bias_init})


def starting(attr_initializer: Initializer | None, is_bias: bool, default: Initializer | None) -> Initializer:
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


class LazyInitHelper:
    """Whether parameters are made without values now."""

    @property
    def _state(self) -> bool:
        return state.lazy_parameters


def lazy_init_helper() -> LazyInitHelper:
    """What says whether a LazyGuard is entered."""
    return LazyInitHelper()


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


_complete(__name__)
