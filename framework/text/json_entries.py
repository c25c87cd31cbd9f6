"""Entries of JSON files, whichever tool wrote them: one a line, or all in a list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from framework.core.bounded import DATASET, check_file, decode, read_bytes
from framework.core.errors import FormatError, InputError

_SUFFIXES = (".json", ".jsonl", ".ndjson")
_LISTS = ("data", "examples", "common_examples", "samples", "items", "rows", "entries", "documents", "texts")
"""Keys under which an object that is a whole file has its entries."""


def is_json(path: Path) -> bool:
    """Whether a file holds JSON, by its ending."""
    return path.suffix.lower() in _SUFFIXES


def read_json_entries(path: Path) -> Iterator[tuple[str, object]]:
    """(where it stands, entry) of a file with an entry a line; of a .json file also of a list, or of an object that has
    one, as {"version": "1", "data": […]}. Blank lines are passed over.

    Raises:
        InputError: there is no such file. FormatError: it is no JSON, or not UTF-8.
    """
    if path.suffix.lower() == ".json":
        text = decode(read_bytes(path, DATASET, "file of texts", InputError), path, "file of texts")
        if _is_whole(text):
            for number, entry in enumerate(_entries_of(parse_json(text, str(path))), start=1):
                yield f"{path}, entry {number}", entry
            return
    for number, line in read_json_lines(path):
        where = f"{path}, line {number}"
        yield where, parse_json(line, where)


def read_json_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not blank. Raises: InputError, FormatError, where it is not UTF-8."""
    check_file(path, "file of texts", InputError)
    with open(path, encoding="utf-8-sig", newline="\n") as file:
        try:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
        except UnicodeDecodeError as error:
            raise FormatError("the file is not UTF-8", where=path, received=str(error)[:100]) from error


def parse_json(text: str, where: str) -> object:
    """Raises: FormatError, where the text is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        line = text.strip()
        raise FormatError(
            "this is no JSON",
            where=where,
            received=str(error)[:100] if "\n" in line else line[:80],
            allowed="an object a line, or a list of them in a .json file",
        ) from None


def _is_whole(text: str) -> bool:
    """Whether a file is one value, rather than one a line: a list, or an object that its first line does not end."""
    start = text.lstrip()
    if start[:1] != "{":
        return start[:1] == "["
    first, _, rest = start.partition("\n")
    if not rest.strip():
        return True
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return True
    return False


def _entries_of(value: object) -> list[object]:
    """Those of a whole file: of a list, of a list under one of `_LISTS`, the rows of a table that pandas wrote, or the
    value itself."""
    if isinstance(value, list):
        return value
    assert isinstance(value, dict)
    if rows := _rows_of_pandas(value):
        return rows
    for name in _LISTS:
        if isinstance(value.get(name), list):
            return value[name]
    inner = next(iter(value.values())) if len(value) == 1 else None
    return _entries_of(inner) if isinstance(inner, dict) else [value]


def _rows_of_pandas(value: Mapping[str, object]) -> list[object]:
    """The rows of a file of `DataFrame.to_json`, by its columns (the default: {"text": {"0": …}}) or split
    ({"columns": […], "data": [[…]]}); none of another file."""
    titles, rows = value.get("columns"), value.get("data")
    if isinstance(titles, list) and isinstance(rows, list):
        is_table = all(isinstance(row, list) and len(row) == len(titles) for row in rows)
        return [dict(zip(titles, row)) for row in rows] if is_table else []
    columns = {name: column for name, column in value.items() if isinstance(column, dict)}
    numbers = list(next(iter(columns.values()), ()))
    if len(columns) < max(1, len(value)) or not numbers or not all(number.isdecimal() for number in numbers):
        return []
    if any(list(column) != numbers for column in columns.values()):
        return []
    return [{name: column[number] for name, column in columns.items()} for number in numbers]
