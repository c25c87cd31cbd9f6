"""Paddle's data types: `paddle.float32` and its kin, and the default type of new floating-point Tensors."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.errors import ArgumentTypeError, OperandError, ShapeError
from framework.paddle._kernel.mode import mode


class dtype:
    """A data type as `Tensor.dtype` gives it. Equal to its own name, to numpy's type and to `paddle.<name>`."""

    __slots__ = ("itemsize", "name", "numpy")

    def __new__(cls, name: str | int | dtype, numpy: np.dtype | None = None) -> dtype:
        """The type of this name or number, which is one object; `numpy` is given for a new one."""
        if numpy is None:
            return _named(_NAMES.get(name, "") if isinstance(name, int) else name)
        return object.__new__(cls)

    def __init__(self, name: str | int | dtype, numpy: np.dtype | None = None) -> None:
        if numpy is None:
            return
        self.name, self.numpy, self.itemsize = str(name), numpy, numpy.itemsize

    def __repr__(self) -> str:
        return f"paddle.{self.name}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dtype):
            return self is other
        try:
            return _named(other) is self
        except (ArgumentTypeError, ShapeError):
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __int__(self) -> int:
        """Paddle's number of the type, as attributes of its operators carry it."""
        return _NUMBERS[self.name]

    def __reduce__(self) -> str | tuple[object, ...]:
        return (_named, (self.name,))


bool_ = dtype("bool", np.dtype(np.bool_))
uint8 = dtype("uint8", np.dtype(np.uint8))
int8 = dtype("int8", np.dtype(np.int8))
int16 = dtype("int16", np.dtype(np.int16))
int32 = dtype("int32", np.dtype(np.int32))
int64 = dtype("int64", np.dtype(np.int64))
float16 = dtype("float16", np.dtype(np.float16))
bfloat16 = dtype("bfloat16", np.dtype(jnp.bfloat16))
float32 = dtype("float32", np.dtype(np.float32))
float64 = dtype("float64", np.dtype(np.float64))
complex64 = dtype("complex64", np.dtype(np.complex64))
complex128 = dtype("complex128", np.dtype(np.complex128))

_NUMBERS = {"bool": 0, "int16": 1, "int32": 2, "int64": 3, "float16": 4, "float32": 5, "float64": 6} | {
    "uint8": 20,
    "int8": 21,
    "bfloat16": 22,
    "complex64": 23,
    "complex128": 24,
}
_NAMES = {number: name for name, number in _NUMBERS.items()}
ALL = (
    *(bool_, uint8, int8, int16, int32, int64),
    *(float16, bfloat16, float32, float64, complex64, complex128),
)
_BY_NAME = {kind.name: kind for kind in ALL}
_ALIASES = {"uint16": bfloat16}  # Paddle keeps bfloat16 in numpy's uint16 and takes either name
_BY_NUMPY = {kind.numpy: kind for kind in ALL}
_BY_PYTHON = {bool: bool_, int: int64, float: float32, complex: complex64}
INEXACT = frozenset(kind.numpy for kind in ALL[6:])
FLOATING = frozenset(kind.numpy for kind in ALL[6:10])


def of_numpy(kind: np.dtype) -> dtype:
    """Paddle's type of a numpy type.

    Raises:
        ShapeError: Paddle has no such type (uint32, strings, objects).
    """
    found = _BY_NUMPY.get(np.dtype(kind)) or _ALIASES.get(np.dtype(kind).name)
    if found is None:
        raise ShapeError("Paddle has no such data type", **_unknown(kind))
    return found


def _named(kind: object) -> dtype:
    if isinstance(kind, dtype):
        return kind
    if isinstance(kind, str):
        name = kind.removeprefix("paddle.")
        if found := _BY_NAME.get(name) or _ALIASES.get(name):
            return found
    if isinstance(kind, type) and (found := _BY_PYTHON.get(kind)):
        return found
    try:
        return of_numpy(np.dtype(kind))  # type: ignore[call-overload]
    except TypeError:
        raise ArgumentTypeError("unknown data type", **_unknown(kind)) from None


def _unknown(kind: object) -> dict[str, str]:
    return {"where": "paddle", "received": repr(kind), "allowed": ", ".join(_BY_NAME)}


def to_numpy(kind: object) -> np.dtype:
    """numpy's type of anything that Paddle takes as `dtype`: a paddle.dtype, a name, a numpy or Python type."""
    return _named(kind).numpy


def to_numpy_or(kind: object, default: np.dtype) -> np.dtype:
    """`to_numpy`, or the default for None."""
    return default if kind is None else to_numpy(kind)


def default_numpy() -> np.dtype:
    """numpy's type of new floating-point Tensors: float32 unless `set_default_dtype` said otherwise."""
    return _BY_NAME[mode.default_dtype].numpy


def get_default_dtype() -> str:
    """The name of the type of new floating-point Tensors."""
    return mode.default_dtype


def set_default_dtype(d: object) -> None:
    """Make new floating-point Tensors float16, bfloat16, float32 or float64."""
    kind = _named(d)
    if kind.numpy not in INEXACT or kind.name.startswith("complex"):
        raise OperandError(
            "the default data type is a floating-point one",
            where="paddle.set_default_dtype",
            received=repr(d),
            allowed="float16, bfloat16, float32, float64",
        )
    mode.default_dtype = kind.name
