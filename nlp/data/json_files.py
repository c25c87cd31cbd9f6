"""Entries of JSON files, whichever tool wrote them: one a line, or all in a list; and the rows of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from framework.core.errors import FormatError
from framework.text.json_entries import read_json_entries
from zoo.recommendation.data.formats import RowFormat


def is_parquet(path: Path) -> bool:
    """Whether a file holds a table of Parquet, by its ending."""
    return RowFormat().kind(path) == "parquet"


def read_entries(path: Path) -> Iterator[tuple[str, object]]:
    """The entries of `read_json_entries`; of a .parquet file a row, a group of them in memory.

    Raises:
        InputError: there is no such file. FormatError: it is no JSON, or not UTF-8, or no Parquet.
        MissingExtraError: pyarrow, which reads Parquet, is not installed.
    """
    if is_parquet(path):
        rows = RowFormat()
        for block in rows.blocks(path):
            yield from rows.read(block)
        return
    yield from read_json_entries(path)


def read_objects(path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The entries of a file, which are objects. Raises: as `read_entries`; FormatError, where one is none."""
    for where, entry in read_entries(path):
        if not isinstance(entry, dict):
            raise FormatError(
                "the entry is no object", where=where, received=repr(entry)[:80], allowed='{"messages": […]}'
            )
        yield where, entry


def present_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Those that are not null, at any depth: tables, and what is written from them, give each entry the fields of all,
    so that a tool would have the parameters of the others. Null stays where it stands in a list, and in JSON as text.

    Source: trl 1.16, remove_none_values
    """
    return {name: _present(value) for name, value in fields.items() if value is not None}


def _present(value: object) -> object:
    if isinstance(value, dict):
        return present_fields(value)
    return [_present(one) for one in value] if isinstance(value, list) else value
