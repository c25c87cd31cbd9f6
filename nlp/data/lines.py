"""Tables of texts, line by line, with errors that say where."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from framework.core.errors import FormatError, InputError, nearest
from framework.text.lines import read_lines


def read_table(path: Path, separator: str) -> Iterator[tuple[str, list[str] | dict[str, object]]]:
    """(where, fields) of each line that is not blank: a list, or a dict where the file ends in .jsonl.

    Raises:
        FormatError: a line is not JSON.
    """
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}, line {number}"
        if not line.strip():
            continue
        if path.suffix != ".jsonl":
            yield where, line.split(separator)
            continue
        try:
            yield where, json.loads(line)
        except ValueError as error:
            raise FormatError("the line is not JSON", where=where, received=line[:80]) from error


def column(fields: object, name: int | str, where: str) -> object:
    """Raises: FormatError, where the line has no such column."""
    if isinstance(fields, dict) and name in fields:
        return fields[name]
    if isinstance(fields, list | str) and isinstance(name, int) and -len(fields) <= name < len(fields):
        return fields[name]
    count = len(fields) if isinstance(fields, list | str) else 0
    known = list(fields) if isinstance(fields, dict) else f"{count} columns, counted from 0"
    raise FormatError("a column is missing", where=where, received=f"column {name!r}", allowed=known)


def class_index(names: Sequence[str], name: str, where: str) -> int:
    """Raises: InputError, where there is no such class."""
    try:
        return names.index(name)
    except ValueError:
        close = nearest(name, names)
        raise InputError(
            "there is no such class",
            where=where,
            received=repr(name),
            allowed=", ".join(names[:20]) + (" …" if len(names) > 20 else ""),
            fix=f"did you mean {close!r}?" if close else "name it under `classes`",
        ) from None
