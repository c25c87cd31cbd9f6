"""A weight file in memory: the bytes, the name that errors give them, and views of tensors in them.

Every reader of this package works on a `Source`. Tensors are read-only numpy views of its bytes, so reading a file
costs its size once, and a size that a header declares is compared with the bytes present before anything is built.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import ml_dtypes
import numpy as np

from framework.core.bounded import read_bytes
from framework.core.errors import FormatError

FETCH_AGAIN = "copy or download the file again and compare its size and checksum with the published ones"
_PROGRAM_FILES = ("inference.pdmodel", "model.pdmodel", "__model__", "inference.json", "model.json")
MAX_RANK = 32
_MAX_BYTES = 1 << 40  # no weights of one machine are larger; a sparse file may say so

bfloat16 = np.dtype(ml_dtypes.bfloat16)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = np.dtype(ml_dtypes.float8_e8m0fnu)
float4_e2m1fn = np.dtype(ml_dtypes.float4_e2m1fn)
int4, uint4 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)
int2, uint2 = np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.uint2)


@dataclass(frozen=True)
class Source:
    """Bytes of one file, all of a `bytes`, and the file's name, so that every reader reports errors alike."""

    name: str
    data: memoryview

    def error(
        self,
        problem: str,
        at: int | None = None,
        *,
        received: object = None,
        allowed: object = None,
        fix: str = FETCH_AGAIN,
    ) -> FormatError:
        where = self.name if at is None else f"{self.name}, byte {at}"
        return FormatError(problem, where=where, received=received, allowed=allowed, fix=fix)

    def stream(self) -> io.BytesIO:
        """The bytes as a file, which shares them."""
        return io.BytesIO(cast(bytes, self.data.obj))

    def view(self, start: int, size: int, what: str) -> memoryview:
        """`size` bytes from `start`, or FormatError when the file ends before."""
        if size < 0 or start < 0 or start + size > len(self.data):
            raise self.error(
                f"the file ends inside {what}",
                start,
                received=f"{max(0, len(self.data) - start)} bytes to the end of the file",
                allowed=f"{size} bytes" if size >= 0 else "a size that is not negative",
            )
        return self.data[start : start + size]

    def array(
        self, at: int | None, view: memoryview, dtype: np.dtype, shape: Sequence[int], what: str
    ) -> np.ndarray:
        """`view_array` whose errors are FormatErrors about `what`."""
        try:
            return view_array(view, dtype, shape)
        except ValueError as error:
            raise self.error(f"{what}: {error}", at) from None


def view_array(view: memoryview, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
    """`view` as a read-only array without a copy. Raises ValueError when the shape needs other than its bytes."""
    shape = tuple(shape)
    extent = math.prod(max(size, 1) for size in shape) * dtype.itemsize  # numpy counts empty dimensions so
    if len(shape) > MAX_RANK or min(shape, default=0) < 0 or extent >= 2**62:
        raise ValueError(f"the shape is impossible: {len(shape)} dimensions, {str(shape)[:80]}")
    count = math.prod(shape)
    if count * dtype.itemsize != len(view):
        raise ValueError(
            f"the shape {list(shape)} of {dtype} takes {count * dtype.itemsize} bytes, {len(view)} are there"
        )
    array = np.frombuffer(view, dtype).reshape(shape) if count else np.empty(shape, dtype)
    array.flags.writeable = False
    return array


def read_source(path: str | Path | Source) -> Source:
    """Read a whole file; one that was read is given back. Raises FormatError when it is missing, a folder or empty."""
    if isinstance(path, Source):
        return path
    path = Path(path)
    if path.is_dir():
        raise FormatError(
            "this is a folder, not a file of weights",
            where=path,
            fix="name the file inside it, for example inference.pdiparams, model.onnx or model.safetensors",
        )
    data = read_bytes(path, _MAX_BYTES, "file of weights")
    if not data:
        raise FormatError("the file is empty", where=path, received="0 bytes", fix=FETCH_AGAIN)
    return Source(str(path), memoryview(data))


def find_paddle_program(folder: Path) -> Path | None:
    """The program in a folder that Paddle or its toolkits exported to; None: there is none of their names."""
    return next((folder / name for name in _PROGRAM_FILES if (folder / name).is_file()), None)
