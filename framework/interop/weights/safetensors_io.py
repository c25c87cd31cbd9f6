"""safetensors: the one format of weights that we write.

Source: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np
import safetensors
import safetensors.numpy

from framework.core.disk import whole_file
from framework.core.errors import WeightError
from framework.interop import source as src
from framework.interop.source import Source, read_source

DTYPES = {
    "BOOL": np.dtype("?"),
    **{f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}".lower()) for kind in "IU" for bits in (8, 16, 32, 64)},
    **{f"F{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
    "BF16": src.bfloat16,
    "F8_E4M3": src.float8_e4m3fn,
    "F8_E5M2": src.float8_e5m2,
    "C64": np.dtype("c8"),
}
_WRITABLE = frozenset(DTYPES.values())
DTYPES["F8_E8M0"] = src.float8_e8m0fnu  # scales of quantised matrices, which we do not write


def read_safetensors(path: str | Path | Source) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file, read-only. Raises FormatError for a damaged file or an unknown dtype."""
    source = read_source(path)
    try:
        entries = safetensors.deserialize(cast(bytes, source.data.obj))
    except safetensors.SafetensorError as error:
        raise source.error(f"not a complete safetensors file: {error}") from None
    arrays = {}
    for name, entry in entries:
        dtype = DTYPES.get(entry["dtype"])
        if dtype is None:
            raise source.error(
                f"the tensor {name!r} is of a type that numpy cannot hold",
                received=entry["dtype"],
                allowed=", ".join(DTYPES),
                fix="convert the weights to float32, float16 or bfloat16",
            )
        what = f"the tensor {name!r}"
        arrays[name] = source.array(None, memoryview(entry["data"]), dtype, entry["shape"], what)
    return arrays


def read_safetensors_metadata(path: str | Path | Source) -> dict[str, str]:
    """The text metadata in the header of a safetensors file. Raises FormatError, where there is no such header."""
    source = read_source(path)
    size = int.from_bytes(source.view(0, 8, "the length of the header"), "little")
    try:
        header = json.loads(bytes(source.view(8, size, "the header")))
        return {str(key): str(value) for key, value in header.get("__metadata__", {}).items()}
    except (ValueError, RecursionError, AttributeError) as error:
        raise source.error(f"not a complete safetensors file: {error}") from None


def write_safetensors(
    path: str | Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays (C order, any layout in memory, bfloat16 too) and text metadata.

    The file appears whole or not at all: it is written beside its place under a temporary name, flushed to the disk
    and renamed. Raises WeightError for an array that safetensors cannot hold, DiskError where the disk takes no file.
    """
    path = Path(path)
    ready = {}
    for name, value in arrays.items():
        array = np.ascontiguousarray(value).reshape(np.shape(value))  # it makes a 0-d array 1-d
        if array.dtype.newbyteorder("=") not in _WRITABLE:
            raise WeightError(
                f"{name!r} cannot be written to a safetensors file",
                where=path,
                received=array.dtype,
                allowed=", ".join(sorted(dtype.name for dtype in _WRITABLE)),
                fix="convert the array first, or leave it out",
            )
        ready[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    with whole_file(path, sum(array.nbytes for array in ready.values()), flush=True) as temporary:
        temporary.touch()
        # As for any file that the user makes; the library's are for the owner alone.
        mode = temporary.stat().st_mode
        safetensors.numpy.save_file(ready, temporary, dict(metadata) if metadata else None)
        temporary.chmod(mode)
