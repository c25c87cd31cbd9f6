"""What the datasets of texts share: their base classes, and tables line by line, with errors that say where."""

from __future__ import annotations

import abc
import dataclasses
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from framework.core.errors import FormatError, InputError, nearest
from framework.io.dataset import LazyDataset
from framework.text.lines import read_lines
from framework.text.sample import TextSample


class TextDataset(LazyDataset):
    """A LazyDataset whose files are read as a whole, at the first use."""

    @property
    @abc.abstractmethod
    def samples(self) -> Sequence[TextSample]:
        """All of them; a subclass keeps what it has read."""

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> TextSample:
        return self.samples[index]


@dataclasses.dataclass(frozen=True)
class ClassDataset(TextDataset):
    """Texts, or words, with a class each, whose names are `classes`, or else those in the files."""

    @abc.abstractmethod
    def read_classes(self) -> tuple[tuple[str, ...], list[TextSample]]:
        """The names of the classes by index, and the samples."""

    @cached_property
    def _read(self) -> tuple[tuple[str, ...], list[TextSample]]:
        return self.read_classes()

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes by index."""
        return self._read[0]

    @property
    def samples(self) -> list[TextSample]:
        return self._read[1]

    def infer_classes(self) -> Self:
        """The same data with the classes that the files have, whatever `classes` says."""
        return dataclasses.replace(self, classes=None)


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
