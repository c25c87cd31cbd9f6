"""Stand-ins for numpy's classes while a pickle is read, and their conversion to plain data.

Source: numpy's `ndarray.__reduce__` and `dtype.__reduce__`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np

from framework.core.errors import FormatError
from framework.interop.source import Source, view_array
from framework.interop.weights.pickles import AllowList, Global, check_key

_MAX_DEPTH = 64
_MAX_COPIES = 1_000_000  # values beyond those that the file has, where containers are shared
_CODES = frozenset(("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"))


@runtime_checkable
class StandIn(Protocol):
    """An object built by a pickle that becomes plain data when the pickle is complete. May raise ValueError."""

    def finish(self) -> object: ...


class NamedArray(tuple[str, np.ndarray]):
    """A Tensor with its variable's name, as `paddle.save` writes one outside of a state dict."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self[0]

    @property
    def array(self) -> np.ndarray:
        return self[1]


class _Dtype:
    def __init__(self, code: object, *_: object) -> None:
        if type(code) is not str or code not in _CODES:
            received = code if type(code) is str else type(code).__name__
            raise ValueError(f"the dtype {received[:40]!r} is not a plain number type")
        self.value = np.dtype(code)

    def build(self, state: object) -> None:
        if type(state) is not tuple:
            raise TypeError("the state of a dtype is not a tuple")
        order = state[1]
        if type(order) is not str or order not in ("<", ">", "|", "=") or any(state[2:5]):
            raise ValueError("the state of a dtype is not that of a plain number type")
        self.value = self.value.newbyteorder(order)


class _Array:
    """Stands for an ndarray between its creation and its BUILD."""

    value: np.ndarray | None = None

    def build(self, state: object) -> None:
        _, shape, dtype, fortran, data = state if type(state) is tuple else (None,) * 5
        if type(data) is str:  # of Python 2, as CIFAR's
            data = memoryview(data.encode("latin-1"))
        if type(dtype) is not _Dtype or type(data) is not memoryview or not is_shape(shape):
            raise TypeError("the state of an array is not (version, shape, dtype, order, bytes)")
        array = to_native(view_array(data, dtype.value, shape[::-1] if fortran else shape))
        self.value = array.T if fortran else array

    def finish(self) -> np.ndarray:
        if self.value is None:
            raise ValueError("an array is created and never filled")
        return self.value


def is_shape(shape: object) -> TypeGuard[tuple[int, ...]]:
    """Whether a pickled object is a tuple of whole numbers."""
    return type(shape) is tuple and all(type(size) is int for size in shape)


def to_native(array: np.ndarray) -> np.ndarray:
    """The array in this machine's byte order, read-only; a copy only when it has the other order."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
        array.flags.writeable = False
    return array


def _reconstruct(kind: object, *_: object) -> _Array:
    if not isinstance(kind, Global) or kind.name != "ndarray":
        raise TypeError("something other than a plain ndarray is built")
    return _Array()


def _scalar(dtype: object, data: object) -> int | float | complex | bool:
    if type(dtype) is not _Dtype or type(data) is not memoryview:
        raise TypeError("a number is not given as (dtype, bytes)")
    return to_native(view_array(data, dtype.value, ())).item()


def _encode(text: object, encoding: object) -> memoryview:
    if type(text) is not str or encoding != "latin1":
        raise ValueError("bytes are written as text of another encoding than latin1")
    return memoryview(text.encode("latin-1"))


def _no_bytes() -> memoryview:
    return memoryview(b"")


NUMPY: AllowList = {
    **{(f"{core}.multiarray", "_reconstruct"): _reconstruct for core in ("numpy.core", "numpy._core")},
    **{(f"{core}.multiarray", "scalar"): _scalar for core in ("numpy.core", "numpy._core")},
    ("numpy", "ndarray"): None,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
    ("builtins", "bytes"): _no_bytes,
    ("__builtin__", "bytes"): _no_bytes,
}


def _ordered_dict(
    items: Iterable[tuple[object, object]] = (),
) -> dict[str | bytes | int | float | None, object]:
    return {check_key(key): value for key, value in items}


def _set(items: Iterable[object] = ()) -> set[str | bytes | int | float | None]:
    return {check_key(item) for item in items}


CONTAINERS: AllowList = {
    ("collections", "OrderedDict"): _ordered_dict,
    ("builtins", "set"): _set,
    ("__builtin__", "set"): _set,
}


def to_plain(
    source: Source, value: object, convert: Callable[[np.ndarray], np.ndarray] = lambda array: array
) -> object:
    """A pickled object with every stand-in replaced by its data; `convert` sees each array once.

    Raises FormatError for an array that was never filled and for containers nested more than 64 deep, which is also
    what a container inside itself looks like. So for shared containers that stand for a million values more than the
    file has: whoever walks through the result meets them once for each way that leads there.
    """
    # The first of each triple keeps the id from being reused, the last one counts the values in it.
    done: dict[int, tuple[object, object, int]] = {}
    met = walked = 0

    def walk(value: object, depth: int) -> object:
        nonlocal met, walked
        met += 1
        if isinstance(value, (str, int, float, complex, type(None))):
            walked += 1
            return value
        if id(value) in done:
            _, result, size = done[id(value)]
            met += size - 1
            if met - walked > _MAX_COPIES:
                raise source.error(
                    "the pickle refers to the same containers over and over",
                    received=f"{walked:,} values that stand for more than {met:,}",
                    allowed=f"at most {_MAX_COPIES:,} more than there are",
                )
            return result
        walked, before = walked + 1, met - 1
        if depth > _MAX_DEPTH:
            raise source.error("containers are nested too deeply", allowed=f"at most {_MAX_DEPTH} levels")
        if isinstance(value, dict):
            result = {key: walk(item, depth + 1) for key, item in value.items()}
        elif isinstance(value, (list, tuple)):
            result = type(value)([walk(item, depth + 1) for item in value])
        elif isinstance(value, memoryview):
            result = bytes(value)
        elif isinstance(value, StandIn):
            result = walk(value.finish(), depth + 1)
        elif isinstance(value, np.ndarray):
            result = convert(value)
        else:
            result = value if isinstance(value, set) else str(value)
        done[id(value)] = (value, result, met - before)
        return result

    try:
        return walk(value, 0)
    except FormatError:
        raise
    except ValueError as error:
        raise source.error(f"the pickle is incomplete: {error}") from None
