"""What a startup program says of the first values of parameters: the operators that Paddle computes them with.

Here they are there as soon as the parameter is made, so that running these entries does nothing; a second run of the
startup program begins everything anew (`Beginning`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from framework.nn import initializer as core
from framework.paddle._kernel.errors import ArgumentTypeError
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.nn import initializer as face
from framework.paddle.static.variable import Op, Values

# Of which initializers Paddle casts the values: it draws them in float32.
_CAST = {
    "float16": {
        "Uniform",
        "TruncatedNormal",
        "XavierUniform",
        "XavierNormal",
        "KaimingUniform",
        "KaimingNormal",
    },
    "bfloat16": {"TruncatedNormal", "XavierNormal", "KaimingNormal"},
    "float64": set(),
}
_ALWAYS_CAST = {
    "float16": {"Assign", "Bilinear", "Dirac"},
    "bfloat16": {"Assign", "Bilinear", "Dirac"},
    "float64": {"Bilinear", "Dirac"},
}
_TYPES = {
    "Orthogonal": ("float32", "float64"),
    "Bilinear": ("float16", "bfloat16", "float32", "float64"),
    "Dirac": ("float16", "bfloat16", "float32", "float64"),
}
_ORTHOGONAL = (
    "gaussian_random",
    "qr",
    "diag_v2",
    "sign",
    "elementwise_mul",
    "transpose2",
    "reshape2",
    "scale",
)
_DIRAC = ("fill_constant", "reshape2", "assign_value", "assign_value", "scatter", "reshape2")


class InitialOp(Op):
    """An operator that gave a parameter its first values."""

    computes = False

    def __init__(self, op_type: str, parameter: Parameter, attrs: Mapping[str, object]) -> None:
        self.type, self._parameter, self._attrs = op_type, parameter, attrs

    @property
    def attrs(self) -> Mapping[str, object]:
        return self._attrs

    @property
    def output_slots(self) -> Mapping[str, list[Parameter]]:
        return {"Out": [self._parameter]}

    def replay(self, values: Values, for_test: bool) -> None:
        """Nothing: the parameter has its values."""


class Beginning:
    """How what lives between runs begins: a parameter, a statistic, an optimizer's state.

    It has its first values when it is made, so that the first run of the startup program finds it begun.
    """

    def __init__(self, start: Callable[[], object]) -> None:
        self._start, self._begun = start, False

    def run(self) -> None:
        """Nothing the first time; begin anew every later time."""
        if self._begun:
            self._start()
        self._begun = True


def restoring(tensor: Tensor) -> Beginning:
    """Give a Tensor the values that it has now."""
    first = tensor._value

    def start() -> None:
        tensor._value = first

    return Beginning(start)


def initial_operations(parameter: Parameter, initializer: object, seed: int) -> list[InitialOp]:
    """The entries for a parameter that an initializer began; none for an initializer of the user's own.

    Raises:
        ArgumentTypeError: the initializer has no values of this type.
    """
    kind = getattr(initializer, "core", None)
    if not isinstance(initializer, face.Initializer) or not isinstance(kind, core.Initializer):
        return []
    name, dtype = type(kind).__name__, parameter.dtype.name
    if dtype not in _TYPES.get(name, (dtype,)):
        raise ArgumentTypeError(
            f"{name} gives values of {', '.join(_TYPES[name])}", where=parameter.name, received=dtype
        )
    types, attrs = _described(kind, name, tuple(parameter.shape), seed)
    settings = {"dtype": int(parameter.dtype), "shape": list(parameter.shape), **attrs}
    operations = [InitialOp(one, parameter, settings if not index else {}) for index, one in enumerate(types)]
    if name in _CAST.get(dtype, ()) or name in _ALWAYS_CAST.get(dtype, ()):
        from framework import paddle

        operations.append(
            InitialOp("cast", parameter, {"in_dtype": paddle.float32, "out_dtype": parameter.dtype})
        )
    return operations


def _described(
    kind: core.Initializer, name: str, shape: tuple[int, ...], seed: int
) -> tuple[tuple[str, ...], dict[str, object]]:
    """The types of the operators, and the settings of the first."""
    if isinstance(kind, core.Constant):
        return ("fill_constant",), {"value": kind.value}
    if isinstance(kind, core.Assign | core.Bilinear):
        return ("assign_value",), {"fp32_values": kind(np.random.default_rng(0), shape).ravel().tolist()}
    if isinstance(kind, core.Uniform):
        return ("uniform_random",), {"min": kind.low, "max": kind.high, "seed": seed}
    if isinstance(kind, core.XavierUniform | core.KaimingUniform):
        limit = _deviation(kind, shape) * math.sqrt(3.0)
        return ("uniform_random",), {"min": -limit, "max": limit, "seed": seed}
    if isinstance(kind, core.Normal | core.TruncatedNormal):
        drawn = "truncated_gaussian_random" if name == "TruncatedNormal" else "gaussian_random"
        return (drawn,), {"mean": kind.mean, "std": kind.std, "seed": seed}
    if isinstance(kind, core.XavierNormal | core.KaimingNormal):
        return ("gaussian_random",), {"mean": 0.0, "std": _deviation(kind, shape), "seed": seed}
    if isinstance(kind, core.Orthogonal):
        wide = shape[0] < math.prod(shape[1:])
        types = _ORTHOGONAL if wide else tuple(one for one in _ORTHOGONAL if one != "transpose2")
        return types, {"mean": 0.0, "std": 1.0, "seed": seed}
    return (_DIRAC, {"value": 0.0}) if isinstance(kind, core.Dirac) else ((), {})


def _deviation(
    kind: core.XavierUniform | core.XavierNormal | core.KaimingNormal, shape: tuple[int, ...]
) -> float:
    """The standard deviation of what an initializer by fans draws."""
    if isinstance(kind, core.XavierUniform | core.XavierNormal):
        return kind.gain * math.sqrt(2.0 / kind.total(shape))
    return kind.std(shape)
