"""Paddle's `.pdparams`, written: what `paddle.save(layer.state_dict(), path)` writes, with protocol 4.

Source: paddle/framework/io.py
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from framework.core.disk import whole_file
from framework.core.errors import WeightError
from framework.interop.weights.pdparams import NAME_TABLE
from framework.interop.weights.pickle_writer import ALLOWED_TYPES, check_plain, write_plain


def write_pdparams(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as a Paddle state dict; the file appears whole or not at all.

    bfloat16 is stored as uint16, which Paddle takes for bfloat16; so uint16 itself is refused. The table of variable
    names, which Paddle does not use to load a Layer, has each name for itself.

    Raises:
        WeightError: an array is of a type that Paddle does not have. DiskError: the disk takes no file.
    """
    for name, array in arrays.items():
        if array.dtype == np.uint16:
            raise WeightError(
                f"{name!r} cannot be written to a .pdparams file",
                where=path,
                received=array.dtype,
                allowed=ALLOWED_TYPES,
                fix="Paddle would take it for bfloat16: convert the array first, or leave it out",
            )
    write_pickle(path, {**arrays, NAME_TABLE: {name: name for name in arrays}})


def write_pickle(path: str | Path, value: object) -> None:
    """Write plain data as `paddle.save` does; the file appears whole or not at all.

    Raises:
        WeightError: a value is of a type that such files do not have. DiskError: the disk takes no file.
    """
    needed = check_plain(value, path)
    with whole_file(path, needed, flush=True) as temporary, temporary.open("wb") as file:
        write_plain(file, value)
