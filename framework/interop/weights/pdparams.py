"""Paddle's parameters: `.pdparams` and `.pdopt` pickles, and the combined stream `.pdiparams`.

Source: paddle/framework/io.py (pickles), paddle/fluid/framework/lod_tensor.cc and tensor_util.cc (stream), as
written by Paddle 2.6.2 and 3.2.2
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from framework.interop.programs.program import TensorSpec
from framework.interop.source import Source, bfloat16, float8_e4m3fn, float8_e5m2, read_source
from framework.interop.weights.pickled import CONTAINERS, NUMPY, NamedArray, to_plain
from framework.interop.weights.pickles import AllowList, PickleReader
from framework.interop.wire import Message

NAME_TABLE = "StructuredToParameterName@@"
SLICE_TABLE = "UnpackBigParamInfor@@"

# VarType.Type of framework.proto
DTYPES: dict[int, np.dtype] = {
    **{code: np.dtype(name) for code, name in enumerate(("bool", "i2", "i4", "i8", "f2", "f4", "f8"))},
    20: np.dtype("u1"),
    21: np.dtype("i1"),
    22: bfloat16,
    23: np.dtype("c8"),
    24: np.dtype("c16"),
    32: float8_e4m3fn,
    33: float8_e5m2,
}

_RESAVE = (
    "load it in the framework that wrote it and save only the state dict: paddle.save(model.state_dict(), path). "
    "If you did not make this file yourself, do not open it there either: it may have been made to run code"
)


class _NamedTensor:
    """`paddle.save` reduces a Tensor outside of a state dict to `tuple, ((variable name, array),)`."""

    def __init__(self, value: object) -> None:
        self.value = value

    def finish(self) -> object:
        if type(self.value) is tuple and len(self.value) == 2 and type(self.value[0]) is str:
            return NamedArray(self.value)
        return self.value


def _tuple(value: object) -> _NamedTensor:
    if type(value) is not tuple:
        raise TypeError("tuple() is called on something that is not a tuple")
    return _NamedTensor(value)


def _eval(expression: object, names: object) -> object:
    """A static-graph tensor is written as `eval('data', {'data': array})`. That one call is looked up here."""
    if expression != "data" or type(names) is not dict or list(names) != ["data"]:
        raise ValueError("eval is called on something other than 'data'; it was not run")
    return names["data"]


ALLOWED: AllowList = {
    **NUMPY,
    **CONTAINERS,
    **{(module, "tuple"): _tuple for module in ("builtins", "__builtin__")},
    **{(module, "eval"): _eval for module in ("builtins", "__builtin__")},
}


def read_pdparams(
    path: str | Path | Source, *, uint16_is_bfloat16: bool = True
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read a `.pdparams` or `.pdopt` file: (state, variable name of each structured name).

    Arrays are read-only. Paddle has no uint16 and stores bfloat16 under that name; with `uint16_is_bfloat16` such
    arrays come back as bfloat16, without it as they are stored. The second result is empty for a file without a name
    table (a `.pdopt`, a nested state dict, a static-graph save). An array that was cut into slices is whole again.

    Raises FormatError for a damaged file and for a pickle that holds anything but a dict of data.
    """
    source = read_source(path)
    state = without_names(read_pickle(source, uint16_is_bfloat16=uint16_is_bfloat16))
    if not isinstance(state, dict):
        raise source.error(
            "this pickle is not a state dict",
            received=f"a {type(state).__name__}",
            allowed="a dict",
            fix=_RESAVE,
        )
    names = state.pop(NAME_TABLE, {})
    if not isinstance(names, dict) or not all(isinstance(text, str) for text in [*names, *names.values()]):
        raise source.error(f"{NAME_TABLE} is not a table of names", fix=_RESAVE)
    return state, names


def read_pickle(source: Source, *, uint16_is_bfloat16: bool = True) -> Any:
    """What `paddle.save` wrote: plain data, with a `NamedArray` for each Tensor outside of a state dict.

    Raises FormatError for a damaged file and for a pickle that holds anything but data.
    """
    state, end = read_first_pickle(source, uint16_is_bfloat16=uint16_is_bfloat16)
    if end != len(source.data):
        raise source.error(
            "the file goes on behind its pickle", end, received=f"{len(source.data) - end} bytes"
        )
    return state


def read_first_pickle(source: Source, *, uint16_is_bfloat16: bool = True) -> tuple[object, int]:
    """`read_pickle` of a stream that may hold more: the data and the position behind it."""
    value, end = PickleReader(source, ALLOWED, fix=_RESAVE).run()
    state = to_plain(source, value, _to_bfloat16 if uint16_is_bfloat16 else lambda array: array)
    if isinstance(state, dict):
        _join_slices(source, state)
    return state, end


def without_names(value: object) -> object:
    """Plain data with the arrays alone where they have names."""
    if isinstance(value, NamedArray):
        return value.array
    if isinstance(value, dict):
        return {key: without_names(part) for key, part in value.items()}
    return type(value)([without_names(part) for part in value]) if isinstance(value, list | tuple) else value


def _to_bfloat16(array: np.ndarray) -> np.ndarray:
    return array.view(bfloat16) if array.dtype == np.uint16 else array


def _join_slices(source: Source, state: dict[str, Any]) -> None:
    try:
        for key, info in state.pop(SLICE_TABLE, {}).items():
            slices = [np.ravel(state.pop(name)) for name in info["slices"]]
            state[key] = np.concatenate(slices).reshape(tuple(info["OriginShape"]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise source.error(f"the slices of a large array do not fit together: {error}") from None


def read_pdiparams(path: str | Path | Source, specs: Mapping[str, TensorSpec]) -> dict[str, np.ndarray]:
    """Read a combined parameter file (`.pdiparams`, `__params__`) whose program declares `specs`.

    The stream holds no names: its tensors lie in the order of the names' bytes. Arrays are read-only views of the
    file. Raises FormatError when a tensor's dtype or shape is not the declared one, or when the stream does not end
    with the last of them.
    """
    source = read_source(path)
    arrays: dict[str, np.ndarray] = {}
    at = 0
    wrong_pair = "take the program and the parameters from the same export"
    for name in sorted(specs, key=lambda name: name.encode("utf-8", "surrogatepass")):
        if at == len(source.data):
            raise source.error(
                "the parameter file ends before the program's last parameter",
                at,
                received=f"{len(arrays)} tensors",
                allowed=f"{len(specs)} tensors, the next one is {name!r}",
                fix=wrong_pair,
            )
        array, after = read_tensor(source, at)
        spec = specs[name]
        if array.shape != spec.shape or array.dtype.name != spec.dtype:
            raise source.error(
                f"the tensor in the place of {name!r} is not the one that the program declares",
                at,
                received=f"{array.dtype.name} {list(array.shape)}",
                allowed=f"{spec.dtype} {list(spec.shape)}",
                fix=wrong_pair,
            )
        arrays[name] = array
        at = after
    if at != len(source.data):
        raise source.error(
            "the parameter file goes on behind the program's last parameter",
            at,
            received=f"{len(source.data) - at} bytes behind {len(arrays)} tensors",
            fix=wrong_pair,
        )
    return arrays


def read_tensor(source: Source, at: int) -> tuple[np.ndarray, int]:
    """One record of the stream: the array and the position after it."""

    def number(size: int) -> int:
        nonlocal at
        at += size
        return int.from_bytes(source.view(at - size, size, "a tensor record"), "little")

    start = at
    if version := number(4):
        raise source.error("unknown version of a tensor record", start, received=version, allowed=0)
    for _ in range(_check_levels(source, start, number(8))):
        levels = number(8)
        source.view(at, levels, "the offsets of a sequence")
        at += levels
    if version := number(4):
        raise source.error("unknown version of a tensor", at - 4, received=version, allowed=0)
    size = number(4)
    source.view(at, size, "the description of a tensor")
    description = Message(source, "TensorDesc", at, at + size)
    at += size
    code = description.integer(1, -1)
    if code not in DTYPES:
        raise source.error("unknown data type of a tensor", start, received=code, allowed=sorted(DTYPES))
    dtype, shape = DTYPES[code], description.integers(2)
    size = dtype.itemsize
    for length in shape:
        size *= max(length, 0)
    return source.array(
        start, source.view(at, size, "the values of a tensor"), dtype, shape, "a tensor"
    ), at + size


def _check_levels(source: Source, at: int, levels: int) -> int:
    if levels > 8:
        raise source.error(
            "a tensor declares too many sequence levels", at, received=levels, allowed="at most 8"
        )
    return levels
