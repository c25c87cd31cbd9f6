"""What the datasets of texts share: their base classes, and tables line by line, with errors that say where."""

from __future__ import annotations

import abc
import ast
import csv
import dataclasses
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from framework.core.errors import FormatError, InputError, did_you_mean, nearest
from framework.io.dataset import LazyDataset
from framework.text.json_entries import is_json
from framework.text.lines import (
    COLUMN_TITLES,
    find_delimiter,
    quotes_fields,
    read_lines,
    records,
    split_record,
)
from framework.text.sample import TextSample
from nlp.data.json_files import read_entries

Column = int | str
_log = logging.getLogger("oar")
_MOST_SHOWN = 5  # problems of a file in the log


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

    def read_labels(self) -> Sequence[np.ndarray]:
        """The class indices of each sample: one of a text, or one a word."""
        return [np.array(_classes_of(sample), np.int32) for sample in self.samples]

    def infer_classes(self) -> Self:
        """The same data with the classes that the files have, whatever `classes` says."""
        return dataclasses.replace(self, classes=None)


def _classes_of(sample: TextSample) -> Sequence[int]:
    if sample.labels is not None:
        return sample.labels
    return sample.tags or () if sample.label is None else [sample.label]


def read_table(path: Path, separator: str) -> Iterator[tuple[str, list[str] | dict[str, object]]]:
    """(where, fields) of each line that is not blank, or of each entry of a JSON file: a list or a dict.

    A field of a .csv, or between commas or semicolons, may stand in double quotes and hold line breaks then.

    Raises:
        FormatError: an entry is not JSON, or no object or list of it.
    """
    if is_json(path):
        for where, entry in read_entries(path):
            yield where, check_entry(entry, where)
        return
    lines = read_lines(path)
    for index, record in records(lines, separator) if quotes_fields(path, separator) else enumerate(lines):
        where = f"{path}, line {index + 1}"
        if record.strip():
            yield where, parse_line(record, path, separator, where)


def parse_line(line: str, path: Path, separator: str, where: str) -> list[str]:
    """The fields of one line, or record, of a table. Raises: FormatError."""
    if not quotes_fields(path, separator):
        return line.split(separator)
    try:
        return split_record(line, separator)
    except csv.Error as error:
        mark = "commas" if separator == "," else "separators"
        raise FormatError(f"the line cannot be divided at its {mark}", where=where, received=error) from error


def check_entry(entry: object, where: str) -> list[str] | dict[str, object]:
    """An entry of a JSON file, if it has fields. Raises: FormatError."""
    if not isinstance(entry, dict | list):
        raise FormatError(
            "the entry is no JSON object",
            where=where,
            received=repr(entry)[:80],
            allowed='{"text": ..., "label": ...}',
        )
    return entry


def read_columns(
    path: Path, separator: str, header: bool, names: Sequence[Column]
) -> list[tuple[str, list[object]]]:
    """(where, the fields of these columns) of each line that is not blank.

    A column of a table is a number, counted from 0, or a name in its first line, which is read as a header where a
    column is asked for by name; of JSON lines it is a key. With `header` the first line is left out in any case, and
    without it where it names the columns (`names_columns`), which one line of the log says.

    Raises:
        FormatError: a line is not JSON, a column is missing, or a line has more of them than the first one.
    """
    rows = list(read_table(path, separator))
    for where, fields in () if is_json(path) else rows:
        check_width(fields, rows[0][1], separator, where)
    if rows and not is_json(path) and any(isinstance(name, str) for name in names):
        where, first = rows[0]
        titles = [str(title).strip() for title in first]
        names, header = [find_title(titles, name, where) for name in names], True
    elif rows and not header and not is_json(path) and names_columns(rows[0][1], names):
        _log.warning(f"{rows[0][0]}: it is left out as a header: {', '.join(map(str, rows[0][1]))}")
        header = True
    return [(where, [column(fields, name, where) for name in names]) for where, fields in rows[int(header) :]]


def names_columns(fields: object, names: Sequence[Column]) -> bool:
    """Whether all of these columns, two at least, hold usual titles in the first line of a table."""
    if not isinstance(fields, list) or len(names) < 2:
        return False
    titles = COLUMN_TITLES
    numbers = [name for name in names if isinstance(name, int) and -len(fields) <= name < len(fields)]
    return len(numbers) == len(names) and all(
        str(fields[number]).strip().lower() in titles for number in numbers
    )


def check_width(fields: object, first: object, separator: str, where: str) -> None:
    """Refuses a line of a table with more columns than its first line, which the text itself was taken for where it has
    a separator and no quotes. Empty columns at the end, as spreadsheets write them, are none. Raises: FormatError."""
    if not isinstance(fields, list) or not isinstance(first, list) or len(fields) <= len(first):
        return
    if any(str(field).strip() for field in fields[len(first) :]):
        raise FormatError(
            "the line has more columns than the first one",
            where=where,
            received=f"{len(fields)}: {separator.join(map(str, fields))[:80]}",
            allowed=len(first),
            fix=f'put double quotes around a text that has {separator!r} in it, as "a{separator} b", and "" for a quote'
            if separator in ",;"
            else f"take {separator!r} out of the text, or write JSON lines",
        )


def find_title(titles: Sequence[str], name: Column, where: str) -> int:
    """The number of a column that is asked for by its name. Raises: FormatError, where the header has no such name."""
    if isinstance(name, int) or name in titles:
        return name if isinstance(name, int) else titles.index(name)
    raise FormatError(
        "the header has no such column",
        where=where,
        received=repr(name),
        allowed=", ".join(titles),
        fix=_other_separator(titles)
        or did_you_mean(name, titles)
        or "the first line names the columns; without names give numbers from 0",
    )


def column(fields: object, name: Column, where: str) -> object:
    """Raises: FormatError, where the line has no such column."""
    if isinstance(fields, dict) and name in fields:
        return fields[name]
    if isinstance(fields, list) and isinstance(name, int) and -len(fields) <= name < len(fields):
        return fields[name]
    count = len(fields) if isinstance(fields, list) else 0
    available = list(fields) if isinstance(fields, dict) else f"{count} columns, counted from 0"
    raise FormatError(
        "a column is missing",
        where=where,
        received=f"column {name!r}",
        allowed=available,
        fix=_other_separator(fields) if isinstance(fields, list) else None,
    )


def _other_separator(fields: Sequence[object]) -> str | None:
    """What to do where a line was not divided as it stands between other marks."""
    if len(fields) != 1 or not isinstance(line := fields[0], str):
        return None
    mark = find_delimiter(line)
    return f'set separator: "{mark}"' if mark in line else None


def label_name(value: object, where: str, classes: Sequence[str] | None = None) -> str:
    """The name of a class in a column, without spaces around it. A number in JSON that is the name of no class is its
    place in `classes`; a whole one has no point, since tables that lack a class elsewhere have floats for all.

    Raises:
        FormatError: there is none. NaN and -100, which losses of torch ignore, are none.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if classes is not None and type(value) is int and str(value) not in classes and 0 <= value < len(classes):
        return classes[value]
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    if (is_number and value != -100) or (isinstance(value, str) and value.strip()):
        name = str(value)
        return name if classes is not None and name in classes else name.strip()
    raise FormatError(
        "the line has no class",
        where=where,
        received=repr(value)[:80],
        allowed="a text or a number",
        fix="set label_separator where a text may have several classes" if isinstance(value, list) else None,
    )


def label_names(
    value: object, separator: str | None, where: str, classes: Sequence[str] | None = None
) -> list[str]:
    """The names of the classes in a column: one, or those between separators or in a list, also one that pandas wrote
    into a table ("['a', 'b']"); there may be none then.

    Raises:
        FormatError: there is no class where there must be one, or it is no name.
    """
    if separator is None:
        return [label_name(value, where, classes)]
    values = (written_list(value) or value.split(separator)) if isinstance(value, str) else value
    if values is None or not isinstance(values, list):
        values = [] if values is None else [values]
    return [
        label_name(one, where, classes) for one in values if not (isinstance(one, str) and not one.strip())
    ]


_ENTRY = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s,'"\[\](){}]+""")
_FLAT_LIST = re.compile(rf"\[\s*(?:(?:{_ENTRY.pattern})(?:\s*,\s*|\s+|(?=\])))*\]")


def written_list(text: str) -> list[object] | None:
    """The entries of a list in the notation of Python, JSON or numpy, which has no commas; None of another text."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    # Python takes two strings side by side for one, so a flat list is divided first.
    entries = _ENTRY.findall(text[1:-1]) if _FLAT_LIST.fullmatch(text) else None
    try:
        values = ast.literal_eval(text) if entries is None else [ast.literal_eval(one) for one in entries]
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return None if ... in values else values or [""]


def leave_out_blank(samples: list[TextSample], path: Path) -> list[TextSample]:
    """The samples whose texts all have a character that is no space; one line of the log counts the others.

    Raises:
        FormatError: none is left.
    """
    filled = [sample for sample in samples if not is_blank(sample)]
    if not filled:
        raise FormatError("there is no text in the file", where=path, received=f"{len(samples)} lines")
    if len(filled) < len(samples):
        lines = [str(sample.id).rpartition("line ")[2] for sample in samples if is_blank(sample)]
        first_lines = ", ".join(lines[:10]) + (", ..." if len(lines) > 10 else "")
        _log.warning(f"{path}: {len(lines)} lines without a text are left out: {first_lines}")
    return filled


def warn_of_problems(path: Path, problems: Sequence[str], what: str) -> None:
    """One line of the log that counts what was wrong in a file, and shows the first ones. None where there is none."""
    if problems:
        more = "; ..." if len(problems) > _MOST_SHOWN else ""
        _log.warning(f"{path}: {len(problems)} {what}: {'; '.join(problems[:_MOST_SHOWN])}{more}")


def is_blank(sample: TextSample) -> bool:
    """Whether one of its texts is empty or spaces alone."""
    texts = [sample.text, sample.pair, sample.target, sample.negative.pair if sample.negative else None]
    return any(text is not None and not text.strip() for text in texts)


def sort_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names of classes in order: of numbers, where all are whole ones of few digits, since correlations and lists
    of weights count in it and 10 follows 9; else of texts."""
    texts = sorted(names)
    is_number = all(
        name.isascii() and name.removeprefix("-").isdecimal() and len(name) < 10 for name in texts
    )
    return tuple(sorted(texts, key=int) if is_number else texts)


def number_classes(names: Sequence[str]) -> dict[str, int]:
    """The index of each class, for `class_index`: thousands of classes would be searched for each sample."""
    return {name: index for index, name in reversed(list(enumerate(names)))}


def class_index(indices: Mapping[str, int], name: str, where: str) -> int:
    """Raises: InputError, where there is no such class."""
    index = indices.get(name)
    if index is None:
        names = sorted(indices, key=indices.__getitem__)
        close = nearest(name, names)
        raise InputError(
            "unknown class",
            where=where,
            received=repr(name),
            allowed=", ".join(names[:20]) + (" …" if len(names) > 20 else ""),
            fix=f"did you mean {close!r}?" if close else "name it under `classes`",
        )
    return index
