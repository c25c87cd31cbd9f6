"""Files of rows: CSV and TSV, Criteo's, MovieLens', slot text, MultiSlot lines, RecBole's .inter, JSON lines, Parquet.

A file is a list of blocks that can be read alone: byte ranges of a text file, whose rows are lines, or row groups of
Parquet. So a file larger than memory is read in any order of its blocks. A text file packed by gzip is one block.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, cast

from framework.core.bounded import check_file
from framework.core.errors import FormatError, InputError
from framework.io.parquet_file import ParquetFile, open_parquet, report_damage
from zoo.recommendation.sample import Value

Format = Literal["auto", "csv", "criteo", "slot", "multislot", "inter", "jsonl", "parquet"]
Row = Mapping[str, Value]
CRITEO = ("label", *(f"I{n}" for n in range(1, 14)), *(f"C{n}" for n in range(1, 27)))
BLOCK = 16 << 20  # bytes of a text file that are read one after another
_UNDECODED = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as surrogateescape reads them
_RANGE = re.compile(r"(.*?)(\d+)\.\.\1?(\d+)$")
_SUFFIXES: dict[str, Format] = {
    ".inter": "inter",
    ".item": "inter",
    ".user": "inter",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def expand_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns, where C1..C26 stands for C1, C2, …, C26."""
    expanded: list[str] = []
    for name in names:
        match = _RANGE.match(name)
        if match is None:
            expanded.append(name)
        else:
            expanded += (f"{match[1]}{number}" for number in range(int(match[2]), int(match[3]) + 1))
    return tuple(expanded)


class Block(NamedTuple):
    """Rows of a file that are read together: its bytes from `start` to `stop`, or that row group of Parquet."""

    path: Path
    start: int
    stop: int


@dataclass(frozen=True)
class RowFormat:
    """How the lines of files become rows.

    Attributes:
        format: auto goes by the ending of the name; what is none of the others is a table with separators.
        columns: Names of the columns of a table without a header, of the slots of MultiSlot lines, or of what stands
            before the pairs of slot text; x1..x9 stands for nine of them.
        separator: Between columns, or the pairs of slot text, a blank by default; of tables by default that of comma,
            semicolon, tab and | which the first line of a .csv has most of, "::" where the first line of another file
            has one, else a tab.
    """

    format: Format = "auto"
    columns: tuple[str, ...] | None = None
    separator: str | None = None

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return expand_names(self.columns or ())

    def kind(self, path: Path) -> Format:
        """The format of a file; JSON lines and Parquet say themselves what they are."""
        by_name = _SUFFIXES.get(_suffix(path), "csv")
        return by_name if self.format == "auto" or by_name in ("jsonl", "parquet") else self.format

    def has_all_columns(self, path: Path) -> bool:
        """Whether each row of a file has every column of it; slots and keys of JSON may be left out of a row."""
        return self.kind(path) not in ("slot", "jsonl")

    def blocks(self, path: Path, size: int = BLOCK) -> list[Block]:
        """The parts of a file that can be read alone. Raises: InputError, where there is no such file."""
        check_file(path, "file of rows", InputError)
        if self.kind(path) == "parquet":
            return [
                Block(path, group, group + 1) for group in range(_open_parquet(path).metadata.num_row_groups)
            ]
        if _is_packed(path):
            return [Block(path, 0, sys.maxsize)]
        total = path.stat().st_size
        return [Block(path, start, min(start + size, total)) for start in range(0, total, size)]

    def count(self, path: Path) -> int:
        """The rows of a file."""
        if self.kind(path) == "parquet":
            return _open_parquet(path).metadata.num_rows
        lines = sum(1 for block in self.blocks(path) for _ in _lines(block))
        return lines - (self._columns(path)[1] if lines else 0)

    def read(self, block: Block) -> Iterator[tuple[str, Row]]:
        """(place, row) of each row of a block. Raises: FormatError, where a line is none."""
        return _raise_errors(self._read_attempts(block))

    def _read_attempts(self, block: Block) -> Iterator[tuple[str, Row | FormatError]]:
        kind = self.kind(block.path)
        if kind == "parquet":
            yield from _read_parquet(block)
            return
        columns, has_header = self._columns(block.path)
        separator = self._separator(block.path) if kind == "csv" else self.separator
        for offset, line in _lines(block):
            if has_header and offset == 0:
                continue
            where = f"{block.path}, byte {offset}"
            try:
                text = _decode(line, where).lstrip("\ufeff" if offset == 0 else "")
                yield where, _row(kind, text, columns, separator, where)
            except FormatError as error:
                yield where, error

    def read_file(self, path: Path) -> Iterator[tuple[str, Row]]:
        """(place, row) of each row of a file, with the number of its line; fields in quotes may hold line breaks.

        Raises: FormatError, where a line is no row.
        """
        return _raise_errors(self.read_attempts(path))

    def read_attempts(self, path: Path) -> Iterator[tuple[str, Row | FormatError]]:
        """As `read_file`; in the place of a line that is no row stands the error, and the others follow.

        Raises: FormatError, where the file is none of rows.
        """
        kind = self.kind(path)
        check_file(path, "file of rows", InputError)
        if kind == "parquet" or (kind == "csv" and len(self._separator(path)) > 1) or kind != "csv":
            for number, (_, row) in enumerate(
                (pair for block in self.blocks(path) for pair in self._read_attempts(block)), start=1
            ):
                yield f"{path}, row {number}", row
            return
        columns, has_header = self._columns(path)
        with (
            _open(path) as binary,
            io.TextIOWrapper(binary, "utf-8-sig", "surrogateescape", newline="") as file,
        ):
            yield from _table_attempts(file, self._separator(path), columns, has_header, str(path))

    def _separator(self, path: Path) -> str:
        if self.separator is not None:
            return self.separator
        if _suffix(path) == ".csv":
            counts = Counter(re.sub(r'"[^"]*"', "", _first_line(path)))
            return max(",;\t|", key=lambda one: counts[one])  # of equal counts the first
        return "::" if "::" in _first_line(path) else "\t"

    def _columns(self, path: Path) -> tuple[tuple[str, ...], bool]:
        """The names of the columns, and whether the first line has them."""
        kind, columns = self.kind(path), self._names
        if kind == "criteo":
            return columns or CRITEO, False
        if kind == "inter":
            return tuple(name.strip() for name in _first_line(path).split("\t")), True
        if kind == "multislot" and not columns:
            raise FormatError(
                "lines of MultiSlot do not name their slots",
                where=path,
                allowed="`columns` with the names of the slots, in order",
            )
        if kind != "csv" or columns:
            return columns, False
        line, separator = _first_line(path), self._separator(path)
        cells = line.split(separator) if len(separator) > 1 else _cells(line, separator, str(path))
        names = [name.strip() for name in cells]
        if len(set(names)) < len(names) or any(_is_number(name) for name in names):
            raise FormatError(
                "the first line does not name the columns",
                where=path,
                received=", ".join(names[:6]),
                allowed="a header of different names",
                fix="`columns` with the names, where the file has no header",
            )
        return tuple(names), True


def _raise_errors(attempts: Iterator[tuple[str, Row | FormatError]]) -> Iterator[tuple[str, Row]]:
    for where, attempt in attempts:
        if isinstance(attempt, FormatError):
            raise attempt
        yield where, attempt


class _Lines(Iterator[str]):
    """Lines that can be put back: `row` has those since it was cleared, `number` counts them all from 1, `is_cut` tells
    whether more were asked for than there are."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self._again = lines, deque[str]()
        self.row: list[str] = []
        self.number, self.is_cut = 0, False

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines, None)
        self.is_cut = line is None
        if line is None:
            raise StopIteration
        self.row.append(line)
        self.number += 1
        return line

    def put_back(self) -> None:
        """Put back all lines of the row but its first."""
        self._again.extendleft(reversed(self.row[1:]))
        self.number -= len(self.row) - 1


def _table_attempts(
    file: Iterator[str], separator: str, columns: Sequence[str], has_header: bool, path: str
) -> Iterator[tuple[str, Row | FormatError]]:
    """The rows of a table, or their errors. A quote that is never closed takes in the lines below it; where that makes
    no row, they are read again without it."""
    lines = _Lines(file)
    reader = csv.reader(lines, delimiter=separator)
    while True:
        lines.row.clear()
        is_header, problem = has_header and lines.number == 0, None
        try:
            cells = next(reader, None)
        except csv.Error as error:
            cells, problem = [], error
        if cells is None:
            return
        is_row = problem is None and len(cells) == len(columns) and not lines.is_cut
        where = f"{path}, line {lines.number}"
        if (len(lines.row) > 1 or lines.is_cut) and (is_header or not is_row):
            lines.put_back()
            where, problem = f"{path}, line {lines.number}", "a quote is not closed"
        if is_header or not (cells or problem):
            continue
        line = lines.row[0].strip()[:60]
        if _UNDECODED.search("".join(lines.row)):
            yield where, FormatError("this is not UTF-8", where=where, received=ascii(line))
        elif problem is not None:
            yield where, FormatError(f"this is no line of a table: {problem}", where=where, received=line)
        else:
            yield where, _row_or_error(cells, columns, where)


def _row_or_error(cells: Sequence[str], columns: Sequence[str], where: str) -> Row | FormatError:
    try:
        return _table_row(cells, columns, where)
    except FormatError as error:
        return error


def _row(kind: Format, line: str, columns: tuple[str, ...], separator: str | None, where: str) -> Row:
    if kind == "slot":
        return _slot_row(line, columns, separator, where)
    if kind == "multislot":
        return _multislot_row(line, columns, where)
    if kind == "jsonl":
        return _json_row(line, where)
    if kind == "inter":
        return _atomic_row(line.split("\t"), columns, where)
    if kind == "criteo" or separator is None:
        if line.count("\t") == len(columns) - 2:
            columns = columns[1:]  # the rows of its test have no label
        return _table_row(line.split("\t"), columns, where)
    cells = line.split(separator) if len(separator) > 1 else _cells(line, separator, where)
    return _table_row(cells, columns, where)


def _cells(line: str, separator: str, where: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error as error:
        raise FormatError("this is no line of a table", where=where, received=error) from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _suffix(path: Path) -> str:
    """The ending of the name in small letters, below that of a packed file."""
    return (Path(path.stem) if _is_packed(path) else path).suffix.lower()


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


@contextmanager
def _open(path: Path) -> Iterator[gzip.GzipFile | io.BufferedReader]:
    """The bytes of a file, unpacked. Raises: FormatError, where a packed one is damaged."""
    try:
        with gzip.open(path, "rb") if _is_packed(path) else path.open("rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError("this is no file of gzip, or a cut one", where=path, received=error) from None


def _first_line(path: Path) -> str:
    with _open(path) as file:
        return _decode(file.readline(1 << 20), f"{path}, line 1").lstrip("\ufeff")


def _decode(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise FormatError("this is not UTF-8", where=where, received=error.reason) from None


def _lines(block: Block) -> Iterator[tuple[int, bytes]]:
    """(offset, line) of the lines that begin in a block and are not blank."""
    with _open(block.path) as file:
        offset = block.start
        if offset:
            file.seek(offset - 1)
            offset += len(file.readline()) - 1
        while offset < block.stop:
            line = file.readline()
            if not line:
                return
            if line.strip():
                yield offset, line
            offset += len(line)


def _table_row(cells: Sequence[str], columns: Sequence[str], where: str) -> Row:
    if len(cells) != len(columns):
        raise FormatError(
            "a line has another number of columns",
            where=where,
            received=f"{len(cells)}: {', '.join(cells[:5])}",
            allowed=f"{len(columns)}: {', '.join(columns[:5])}{', …' if len(columns) > 5 else ''}",
        )
    return dict(zip(columns, cells))


def _atomic_row(cells: Sequence[str], columns: Sequence[str], where: str) -> Row:
    """A line of RecBole, whose header has name:type; of token_seq and float_seq blanks separate the values."""
    row: dict[str, Value] = {}
    for column, cell in _table_row(cells, columns, where).items():
        name, _, kind = column.partition(":")
        row[name] = str(cell).split(" ") if kind.endswith("_seq") else cell
    return row


def _slot_row(line: str, columns: Sequence[str], separator: str | None, where: str) -> Row:
    """What `columns` name, then slot:value pairs; a slot that stands several times has a list of values."""
    cells = line.split(separator)
    row: dict[str, list[Value]] = {name: [cell] for name, cell in zip(columns, cells)}
    for pair in cells[len(columns) :]:
        slot, colon, value = pair.strip().partition(":")
        if not colon or not slot:
            raise FormatError("this is no slot", where=where, received=pair[:40], allowed="slot:value")
        row.setdefault(slot, []).append(value)
    return {slot: values[0] if len(values) == 1 else values for slot, values in row.items()}


def _multislot_row(line: str, columns: Sequence[str], where: str) -> Row:
    """For each slot the number of its values, then the values."""
    words, row, offset = line.split(), {}, 0
    for name in columns:
        count = int(words[offset]) if offset < len(words) and words[offset].isdecimal() else 0
        values = words[offset + 1 : offset + 1 + count]
        if count == 0 or len(values) < count:
            raise FormatError(
                "a slot has not as many values as it says",
                where=f"{where}, slot {name}",
                received=" ".join(words[offset : offset + 4]),
                allowed="a number from 1, and so many values",
            )
        row[name] = values[0] if count == 1 else values
        offset += 1 + count
    if offset < len(words):
        raise FormatError(
            "a line has more slots than names", where=where, received=" ".join(words[offset : offset + 4])
        )
    return row


def _json_row(line: str, where: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise FormatError("this is no JSON", where=where, received=error) from None
    if not isinstance(row, dict):
        raise FormatError("a line is no row", where=where, received=line[:60], allowed='{"column": value, …}')
    return row


def _read_parquet(block: Block) -> Iterator[tuple[str, Row]]:
    file = _open_parquet(block.path)
    for group in range(block.start, block.stop):
        with report_damage(block.path):
            rows = cast(list[Row], file.read_row_group(group).to_pylist())
        for number, row in enumerate(rows):
            yield f"{block.path}, row {number} of group {group}", row


def _open_parquet(path: Path) -> ParquetFile:
    return open_parquet(path, "recommendation")
