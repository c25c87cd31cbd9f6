"""Plain data as a pickle of protocol 4 that Paddle reads: containers, text, numbers and arrays.

Opcodes are written one by one, as `pickle` would name numpy's private modules as they are called in this process: numpy
1 cannot read what numpy 2 pickles. `numpy.core.multiarray` is known to both. Arrays go to the file without a copy.

Source: the opcode list in CPython's Lib/pickletools.py; numpy's `ndarray.__reduce__`; paddle/framework/io.py
"""

from __future__ import annotations

import copyreg
import io
import pickle as op  # the names of the opcodes, and what writes objects of other classes
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import BinaryIO

import numpy as np

from framework.core.errors import WeightError
from framework.interop.source import bfloat16
from framework.interop.weights.pickled import NamedArray

_CODES = ("b1", "i1", "u1", "i2", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16")
ALLOWED_TYPES = (
    f"arrays of {', '.join(sorted({np.dtype(code).name for code in _CODES if code != 'u2'} | {'bfloat16'}))}; text, "
    "numbers, None; dicts, lists, tuples and sets of them"
)
_RECONSTRUCT = op.GLOBAL + b"numpy.core.multiarray\n_reconstruct\n" + op.GLOBAL + b"numpy\nndarray\n"
_EMPTY_ARRAY = (
    _RECONSTRUCT + op.BININT1 + b"\0" + op.TUPLE1 + op.SHORT_BINBYTES + b"\1b" + op.TUPLE3 + op.REDUCE
)
_TUPLE = op.GLOBAL + b"builtins\ntuple\n"


class PickledObject:
    """An object of another class, as pickle writes it: by the name of its class, with what it holds.

    Args:
        reducers: for classes within it, what stands for an object of them: (function, arguments).

    Raises:
        WeightError: pickle cannot write it, such as a function within another one.
    """

    def __init__(
        self,
        value: object,
        reducers: Mapping[type, Callable[..., tuple[Callable[..., object], tuple[object, ...]]]],
    ) -> None:
        stream = io.BytesIO()
        # Protocol 3 refers to what it remembers by numbers of its own, so its opcodes stay right within another file.
        pickler = op.Pickler(stream, 3)
        pickler.dispatch_table = {**copyreg.dispatch_table, **reducers}
        try:
            pickler.dump(value)
        except (op.PicklingError, TypeError, AttributeError, RecursionError) as error:
            raise WeightError(
                "this object cannot be pickled", received=str(error)[:200], fix="save what it holds"
            ) from error
        self.opcodes = stream.getvalue()[2:-1]  # without PROTO and STOP


def write_plain(file: BinaryIO, value: object) -> None:
    """Write one value. bfloat16 is stored as uint16, which Paddle takes for bfloat16; a `NamedArray` as Paddle stores a
    Tensor. There is no limit to an array's size: slices are for protocols 2 and 3.

    Raises:
        WeightError: a value is of a type that such files do not have; `check_plain` says so before a byte is written.
    """
    file.write(op.PROTO + b"\4")
    _write(file, value)
    file.write(op.STOP)


def check_plain(value: object, where: object, path: str = "") -> int:
    """The bytes that the arrays in a value take. Raises: WeightError naming what cannot be written."""
    if isinstance(value, dict):
        items: Iterable[tuple[object, object]] = value.items()
        inside = "{path}[{key!r}]" if path else "{key!r}"
        return sum(check_plain(part, where, inside.format(path=path, key=key)) for key, part in items)
    if isinstance(value, PickledObject):
        return len(value.opcodes)
    if isinstance(value, NamedArray):
        value = value.array
    if isinstance(value, list | tuple | set):
        return sum(check_plain(part, where, f"{path}[{i}]") for i, part in enumerate(value))
    if isinstance(value, np.ndarray):
        code = f"{value.dtype.kind}{value.dtype.itemsize}"
        if code in _CODES or value.dtype == bfloat16:
            return value.nbytes
        received: object = value.dtype
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return 0
    else:
        received = type(value).__name__
    raise WeightError(
        f"{path or 'this'} cannot be written to a file of weights",
        where=where,
        received=received,
        allowed=ALLOWED_TYPES,
        fix="convert it first, or leave it out",
    )


def _write(file: BinaryIO, value: object) -> None:
    match value:
        case None:
            file.write(op.NONE)
        case bool() | np.bool_():
            file.write(op.NEWTRUE if value else op.NEWFALSE)
        case int() | np.integer():
            file.write(_number(int(value)))
        case float() | np.floating():
            file.write(op.BINFLOAT + struct.pack(">d", float(value)))
        case complex() | np.complexfloating():
            file.write(op.GLOBAL + b"builtins\ncomplex\n" + op.MARK)
            _items(file, (value.real, value.imag))
            file.write(op.TUPLE + op.REDUCE)
        case str():
            file.write(_text(value))
        case bytes():
            file.write(op.BINBYTES8 + len(value).to_bytes(8, "little") + value)
        case PickledObject():
            file.write(value.opcodes)
        case NamedArray():
            file.write(_TUPLE + _text(value.name))
            _array(file, value.array)
            file.write(op.TUPLE2 + op.TUPLE1 + op.REDUCE)
        case np.ndarray():
            _array(file, value)
        case dict():
            ordered = isinstance(value, OrderedDict)
            empty = op.GLOBAL + b"collections\nOrderedDict\n" + op.EMPTY_TUPLE + op.REDUCE
            file.write((empty if ordered else op.EMPTY_DICT) + op.MARK)
            for key, item in value.items():
                _items(file, (key, item))
            file.write(op.SETITEMS)
        case list():
            file.write(op.EMPTY_LIST + op.MARK)
            _items(file, value)
            file.write(op.APPENDS)
        case tuple():
            file.write(op.MARK)
            _items(file, value)
            file.write(op.TUPLE)
        case set():
            file.write(op.EMPTY_SET + op.MARK)
            _items(file, value)
            file.write(op.ADDITEMS)
        case _:
            check_plain(value, None)


def _items(file: BinaryIO, values: Iterable[object]) -> None:
    for value in values:
        _write(file, value)


def _array(file: BinaryIO, value: np.ndarray) -> None:
    """The array in C order and little-endian."""
    array = np.ascontiguousarray(value).reshape(value.shape)  # it makes a 0-d array 1-d
    array = array.view(np.uint16) if array.dtype == bfloat16 else array
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    dtype = array.dtype
    order = _text("<" if dtype.itemsize > 1 else "|")
    file.write(_EMPTY_ARRAY + op.MARK + op.BININT1 + b"\1")
    file.write(op.MARK + b"".join(map(_number, array.shape)) + op.TUPLE)
    file.write(op.GLOBAL + b"numpy\ndtype\n" + _text(f"{dtype.kind}{dtype.itemsize}"))
    file.write(op.NEWFALSE + op.NEWTRUE + op.TUPLE3 + op.REDUCE)
    file.write(
        op.MARK + _number(3) + order + 3 * op.NONE + 2 * _number(-1) + _number(0) + op.TUPLE + op.BUILD
    )
    file.write(op.NEWFALSE)  # not in Fortran's order
    file.write(op.BINBYTES8 + array.nbytes.to_bytes(8, "little"))
    file.write(array.reshape(-1).view(np.uint8).data)
    file.write(op.TUPLE + op.BUILD)


def _number(value: int) -> bytes:
    if -(2**31) <= value < 2**31:
        return op.BININT + value.to_bytes(4, "little", signed=True)
    size = value.bit_length() // 8 + 1
    return op.LONG1 + bytes([size]) + value.to_bytes(size, "little", signed=True)


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return op.BINUNICODE + len(data).to_bytes(4, "little") + data
