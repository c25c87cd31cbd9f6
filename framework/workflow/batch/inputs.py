"""What a batch is about: files, folders, lists of paths and tables, as references that any worker can read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from framework.core.errors import InputError, OarError
from framework.text.lines import read_lines
from framework.vision.image_formats import SUFFIXES as IMAGE_SUFFIXES
from framework.workflow.batch.rows import BatchSource
from framework.workflow.batch.tables import Table
from framework.workflow.files.sources import STDIN, open_sources

LIST, TABLE = ".txt", ".parquet"
SUFFIXES = (*IMAGE_SUFFIXES, ".pdf", TABLE)


@dataclass(frozen=True)
class SourceRef:
    """Where a source is.

    Attributes:
        name: The absolute path of a file; of what a table holds the path of the table, `#`, the number of the row.
        path: The file or the table.
        row: Of a table, from 0; None: the file itself.
    """

    name: str
    path: str
    row: int | None = None


@dataclass(frozen=True)
class Inputs:
    """All references, each name once, and what is to be said of what is left out."""

    references: tuple[SourceRef, ...]
    notes: tuple[str, ...] = ()


def list_inputs(names: Sequence[str], output_dir: Path, column: str | None = None) -> Inputs:
    """The sources of files, folders with their subfolders, patterns, lists of paths (.txt, a path a line) and tables
    (.parquet). A path of a list or a table that is not absolute is looked for beside the list too.

    Raises: InputError, FormatError: one names nothing, or a table has no column of files.
    """
    for name in names:
        if name == STDIN or "://" in name:
            raise InputError(
                "a batch is about files that its workers can read, now and when it goes on later",
                received=name,
                allowed="files, folders, patterns, lists of paths (.txt), tables (.parquet)",
                fix="download it, or mount the storage where the workers run",
            )
    references: dict[str, SourceRef] = {}
    repeated = 0
    with open_sources(names, SUFFIXES, output_dir=output_dir) as sources:
        for file in sources.files:
            for one in _references(file.path, column):
                repeated += one.name in references
                references.setdefault(one.name, one)
        notes = list(sources.notes)
    if repeated:
        notes.append(
            f"{repeated} {'source is' if repeated == 1 else 'sources are'} named more than once, and read once"
        )
    return Inputs(tuple(references.values()), tuple(notes))


def _references(path: Path, column: str | None) -> Iterator[SourceRef]:
    suffix = path.suffix.lower()
    if suffix == LIST:
        paths = (line.strip() for line in read_lines(path))
        yield from (_file(one, path.parent) for one in paths if one)
    elif suffix == TABLE:
        table = Table(path, column)
        whole = os.path.abspath(path)
        if not table.holds_paths:
            yield from (SourceRef(f"{whole}#{row}", whole, row) for row in range(len(table)))
            return
        for row, content in enumerate(table.read()):
            if isinstance(content, str) and content.strip():
                yield _file(content, path.parent)
            else:
                yield SourceRef(f"{whole}#{row}", whole, row)
    else:
        yield _file(str(path), None)


def _file(text: str, folder: Path | None) -> SourceRef:
    path = Path(text).expanduser()
    if folder is not None and not path.is_absolute() and not path.exists():
        path = folder / path
    whole = os.path.abspath(path)
    return SourceRef(os.fsencode(whole).decode("utf-8", "backslashreplace"), whole)


def read_sources(references: Iterable[SourceRef], column: str | None = None) -> Iterator[BatchSource]:
    """The sources of references, of which those of one table stand together with rising rows."""
    for (path, is_file), group in groupby(references, key=lambda one: (one.path, one.row is None)):
        if is_file:
            yield from (BatchSource(one.name, Path(one.path)) for one in group)
        else:
            yield from _read_rows(path, list(group), column)


def _read_rows(path: str, references: Sequence[SourceRef], column: str | None) -> Iterator[BatchSource]:
    count = 0
    try:
        table = Table(path, column)
        for one, content in zip(references, table.read([one.row or 0 for one in references])):
            count += 1
            if content is None:
                yield BatchSource(one.name, problem=f"the row has nothing in its column {table.column}")
            elif isinstance(content, str) and table.column in ("bytes", "image"):
                yield BatchSource(one.name, Path(_file(content, Path(path).parent).path))
            else:
                yield BatchSource(one.name, content)
    except (OarError, OSError, ValueError) as error:  # the table has gone, or a group of it is damaged
        yield from (BatchSource(one.name, problem=f"{path}: {error}") for one in references[count:])
