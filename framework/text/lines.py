"""Text files as lines."""

from __future__ import annotations

from pathlib import Path

from framework.core.bounded import DATASET, decode, read_bytes
from framework.core.errors import FormatError, InputError


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file without their ends. A byte order mark is left out; only a line feed ends a line.

    Raises:
        InputError: there is no such file. FormatError: it is not UTF-8, or empty.
    """
    text = decode(read_bytes(path, DATASET, "text file", InputError), path, "text file")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise FormatError("the file is empty", where=path, allowed="one text a line")
    return lines
