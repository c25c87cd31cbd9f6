"""Text files as lines."""

from __future__ import annotations

from pathlib import Path

from framework.core.errors import FormatError, InputError


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file without their ends. A byte order mark is left out; only a line feed ends a line.

    Raises:
        InputError: there is no such file. FormatError: it is not UTF-8, or empty.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError("the text file cannot be read", where=path, received=error.strerror) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise FormatError(
            "the file is not UTF-8",
            where=f"{path}, line {line}",
            received=f"byte 0x{data[error.start]:02x}",
            fix="convert it: iconv -f GB18030 -t UTF-8, if it is Chinese",
        ) from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise FormatError("the file is empty", where=path, allowed="one text a line")
    return lines
