"""Parquet: tables that name files or hold them, and tables of results."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from framework.core.errors import InputError
from framework.io.parquet_file import ArrowTable, import_parquet, open_parquet, report_damage
from framework.workflow.batch.cluster import EXTRA
from framework.workflow.batch.rows import ResultRow

PATH, BYTES, IMAGE, TEXT, PAIR = "path", "bytes", "image", "text", "pair"
COLUMNS = (BYTES, IMAGE, PATH, TEXT)
"""Names of the column that is read, the first that is there: the bytes of files; a struct of `bytes` and `path`, as the
datasets of Hugging Face have it, or one of these; paths; texts, with a column `pair` pairs of them."""
Content = bytes | str | tuple[str, str] | None


class Table:
    """A Parquet file whose rows are read group by group.

    Args:
        column: Of what is read; None: the first of `COLUMNS` that is there.

    Raises:
        FormatError: no Parquet. InputError: there is no such column.
    """

    def __init__(self, path: str | Path, column: str | None = None) -> None:
        self._path = path
        self._file = open_parquet(path, EXTRA)
        names = self._file.schema_arrow.names
        match = next((name for name in ((column,) if column else COLUMNS) if name in names), None)
        if match is None:
            raise InputError(
                "the table has no column of files or texts"
                if column is None
                else "the table has no such column",
                where=path,
                received=f"columns {', '.join(names)}" if column is None else column,
                allowed=", ".join(COLUMNS if column is None else names),
                fix="name the column with --column" if column is None else None,
            )
        self.column = match
        self._pair = PAIR if match == TEXT and PAIR in names else None

    def __len__(self) -> int:
        return self._file.metadata.num_rows

    @property
    def holds_paths(self) -> bool:
        """Whether the column has paths of files; other texts are texts to predict."""
        return self.column not in (BYTES, IMAGE, TEXT) and self._is_text

    @property
    def _is_text(self) -> bool:
        return str(self._file.schema_arrow.field(self.column).type) in (
            "string",
            "large_string",
            "string_view",
        )

    def read(self, rows: Sequence[int] | None = None) -> Iterator[Content]:
        """What these rows hold, in their order, which is rising; of all rows by default. A path is a text here.

        Raises: FormatError, where a group of rows is damaged.
        """
        start = 0
        columns = [self.column, *([self._pair] if self._pair else [])]
        for group in range(self._file.metadata.num_row_groups):
            count = self._file.metadata.row_group(group).num_rows
            inside = None if rows is None else [row - start for row in rows if start <= row < start + count]
            start += count
            if inside == []:
                continue
            with report_damage(self._path):
                table = self._file.read_row_group(group, columns=columns)
            for number in range(count) if inside is None else inside:
                with report_damage(self._path):
                    content, *pair = (table.column(name)[number].as_py() for name in columns)
                yield self._content(content, pair[0] if pair else None)

    def _content(self, value: object, pair: object) -> Content:
        if isinstance(value, dict):
            value = value.get("bytes") or value.get("path")
        if self._pair is not None:
            return (value, pair) if isinstance(value, str) and isinstance(pair, str) else None
        return value if isinstance(value, bytes | str) else None


def write_rows(path: Path, rows: Iterable[ResultRow]) -> None:
    """A table with the columns source, result (JSON as text), error, warnings.

    The types are the same in every file, whatever its results are, so that all files together are one data set.
    """
    pyarrow, listed = importlib.import_module("pyarrow"), list(rows)
    text = pyarrow.string()
    results = [None if row.result is None else json.dumps(row.result, ensure_ascii=False) for row in listed]
    columns = {
        "source": pyarrow.array([_text(row.source) for row in listed], text),
        "result": pyarrow.array([None if one is None else _text(one) for one in results], text),
        "error": pyarrow.array([None if row.error is None else _text(row.error) for row in listed], text),
        "warnings": pyarrow.array([list(map(_text, row.warnings)) for row in listed], pyarrow.list_(text)),
    }
    write_table(path, pyarrow.table(columns))


def write_table(path: Path, table: object) -> None:
    """A table of pyarrow."""
    import_parquet(EXTRA).write_table(table, path)


def read_table(path: Path) -> ArrowTable:
    """A table that `write_rows` wrote."""
    return import_parquet(EXTRA).read_table(path)


def read_sources(path: Path) -> list[str]:
    """The sources of a table that `write_rows` wrote."""
    return import_parquet(EXTRA).read_table(path, columns=["source"]).column("source").to_pylist()


def read_errors(path: Path) -> list[tuple[str, str]]:
    """The sources of a table that `write_rows` wrote whose rows are errors, and these."""
    table = import_parquet(EXTRA).read_table(path, columns=["source", "error"])
    rows = zip(table.column("source").to_pylist(), table.column("error").to_pylist(), strict=True)
    return [(source, error) for source, error in rows if error is not None]


def _text(text: str) -> str:
    """A file's name may hold bytes that are no text, which a table cannot."""
    return text.encode("utf-8", "backslashreplace").decode()
