"""A file of weights that is mapped into memory and not read: its pages come when an array of it is used."""

from __future__ import annotations

import mmap
from pathlib import Path

from framework.core.bounded import check_file
from framework.core.errors import FormatError
from framework.interop.source import FETCH_AGAIN, Source


def map_source(path: str | Path, what: str = "file of weights") -> Source:
    """The bytes of a file as a `Source`, mapped read-only. Raises: FormatError, where it is missing or empty."""
    path = check_file(path, what)
    if path.stat().st_size == 0:
        raise FormatError("the file is empty", where=path, received="0 bytes", fix=FETCH_AGAIN)
    with path.open("rb") as file:
        return Source(str(path), memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
