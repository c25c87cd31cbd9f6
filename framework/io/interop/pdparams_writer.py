"""Paddle's `.pdparams`, written: what `paddle.save(layer.state_dict(), path)` writes, with protocol 4.

Opcodes are written one by one, as `pickle` would name numpy's private modules as they are called in this process: numpy
1 cannot read what numpy 2 pickles. `numpy.core.multiarray` is known to both. Arrays go to the file without a copy.

Source: the opcode list in CPython's Lib/pickletools.py; numpy's `ndarray.__reduce__`; paddle/framework/io.py
"""

from __future__ import annotations

import pickle as op  # the names of the opcodes alone
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from framework.core.disk import whole_file
from framework.core.errors import WeightError
from framework.io.interop.paddle import NAME_TABLE
from framework.io.interop.source import bfloat16

_CODES = ("b1", "i1", "u1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16")
_RECONSTRUCT = op.GLOBAL + b"numpy.core.multiarray\n_reconstruct\n" + op.GLOBAL + b"numpy\nndarray\n"
_EMPTY_ARRAY = (
    _RECONSTRUCT + op.BININT1 + b"\0" + op.TUPLE1 + op.SHORT_BINBYTES + b"\1b" + op.TUPLE3 + op.REDUCE
)


def write_pdparams(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as a Paddle state dict; the file appears whole or not at all.

    bfloat16 is stored as uint16, which Paddle takes for bfloat16. There is no limit to an array's size: slices are for
    protocols 2 and 3. The table of variable names, which Paddle does not use to load a Layer, has each name for itself.

    Raises:
        WeightError: an array is of a type that Paddle does not have. DiskError: the disk takes no file.
    """
    path = Path(path)
    ready = {name: _prepare(name, value, path) for name, value in arrays.items()}
    needed = sum(array.nbytes for array in ready.values())
    with whole_file(path, needed, flush=True) as temporary, temporary.open("wb") as file:
        file.write(op.PROTO + b"\4" + op.EMPTY_DICT + op.MARK)
        for name, array in ready.items():
            file.write(_text(name))
            _write_array(file, array)
        file.write(_text(NAME_TABLE) + op.EMPTY_DICT + op.MARK)
        for name in ready:
            file.write(2 * _text(name))
        file.write(op.SETITEMS + op.SETITEMS + op.STOP)


def _prepare(name: str, value: np.ndarray, path: Path) -> np.ndarray:
    """The array in C order and little-endian, of a type that has a code."""
    array = np.ascontiguousarray(value).reshape(np.shape(value))  # it makes a 0-d array 1-d
    if array.dtype == bfloat16:
        return array.view(np.uint16)
    code = f"{array.dtype.kind}{array.dtype.itemsize}"
    if code not in _CODES:
        raise WeightError(
            f"{name!r} cannot be written to a .pdparams file",
            where=path,
            received=array.dtype,
            allowed=", ".join(sorted({np.dtype(known).name for known in _CODES} | {"bfloat16"})),
            fix="convert the array first, or leave it out",
        )
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _write_array(file: BinaryIO, array: np.ndarray) -> None:
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
    return op.LONG1 + b"\x09" + value.to_bytes(9, "little", signed=True)


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return op.BINUNICODE + len(data).to_bytes(4, "little") + data
