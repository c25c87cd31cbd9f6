"""Parquet files, which pyarrow reads: one that is damaged is a FormatError, wherever the damage is found."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Protocol

from framework.core.errors import FormatError, MissingExtraError


def import_parquet(extra: str) -> ModuleType:
    """pyarrow.parquet. `extra` is what brings it. Raises: MissingExtraError."""
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError("pyarrow", extra, "reading and writing Parquet") from error


class ArrowField(Protocol):
    """A column of pyarrow's schema."""

    name: str
    type: object


class ArrowSchema(Protocol):
    """pyarrow's Schema."""

    metadata: Mapping[bytes, bytes] | None
    names: list[str]

    def __iter__(self) -> Iterator[ArrowField]: ...
    def field(self, name: str) -> ArrowField:
        """The column of this name."""
        ...


class ArrowRows(Protocol):
    """pyarrow's RecordBatch."""

    def to_pylist(self) -> list[dict[str, object]]:
        """A dict a row."""
        ...


class RowGroup(Protocol):
    """What a Parquet file says of itself, or of a group of its rows."""

    num_rows: int


class FileFacts(RowGroup, Protocol):
    """pyarrow's FileMetaData."""

    num_row_groups: int

    def row_group(self, number: int) -> RowGroup:
        """What is said of a group."""
        ...


class ParquetFile(Protocol):
    """pyarrow's ParquetFile."""

    schema_arrow: ArrowSchema
    metadata: FileFacts

    def iter_batches(self, *, batch_size: int, columns: list[str]) -> Iterator[ArrowRows]:
        """Its rows, so many at a time, with these columns."""
        ...

    def read_row_group(self, number: int, columns: list[str] | None = None) -> ArrowTable:
        """The rows of a group, with all columns by default."""
        ...


class ArrowScalar(Protocol):
    """A cell of pyarrow."""

    def as_py(self) -> object:
        """Its value as Python has it."""
        ...


class ArrowColumn(Protocol):
    """A column of pyarrow."""

    def __getitem__(self, row: int) -> ArrowScalar: ...

    def is_null(self) -> object:
        """Which of its rows are null."""
        ...


class ArrowTable(Protocol):
    """A table of pyarrow."""

    def __len__(self) -> int: ...
    def column(self, name: str) -> ArrowColumn:
        """The column of this name."""
        ...

    def to_pylist(self) -> list[dict[str, object]]:
        """A dict a row."""
        ...

    def filter(self, mask: object) -> ArrowTable:
        """The rows of a mask."""
        ...


def open_parquet(path: str | Path, extra: str) -> ParquetFile:
    """A Parquet file. `extra` is what brings pyarrow. Raises: FormatError, where it is none, MissingExtraError."""
    parquet = import_parquet(extra)
    with report_damage(path):
        return parquet.ParquetFile(path)


@contextmanager
def report_damage(path: str | Path) -> Iterator[None]:
    """Within the block pyarrow's errors are a FormatError: pages of rows are read, and checked, long after the file
    was opened, and what it makes of them is of several kinds that have nothing in common."""
    pyarrow_error = getattr(sys.modules.get("pyarrow"), "ArrowException", ValueError)
    try:
        yield
    except (OSError, ValueError, OverflowError, pyarrow_error) as error:
        raise FormatError(
            "the table cannot be read", where=path, received=str(error)[:300], allowed="a Parquet file"
        ) from error
