"""Text files as lines, and tables as records: a field in quotes may hold line breaks."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from framework.core.bounded import DATASET, decode, read_bytes
from framework.core.errors import FormatError, InputError


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file without their ends. A byte order mark is left out; only a line feed ends a line, or
    a carriage return where the file has no line feed, as of Excel for Macintosh.

    Raises:
        InputError: there is no such file. FormatError: it is not UTF-8, or empty.
    """
    text = decode(read_bytes(path, DATASET, "text file", InputError), path, "text file")
    lines = [line.removesuffix("\r") for line in text.split("\n" if "\n" in text else "\r")]
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise FormatError("the file is empty", where=path, allowed="one text a line")
    return lines


_TITLES = (
    "text texts text_a text_b sentence sentence1 sentence2 review content title comment message query question answer "
    "utterance document label labels label_id class category target intent sentiment polarity score anchor positive "
    "negative premise hypothesis"
)
COLUMN_TITLES = frozenset(_TITLES.split())
"""What columns of texts and classes are called, in a first line that no one has asked to leave out."""

_DELIMITERS = (",", ";", "\t", "|")


def quotes_fields(path: Path, separator: str) -> bool:
    """Whether a field of this table may stand in double quotes: of a .csv, and wherever commas or semicolons separate.
    Between tabs of other files a quote is a character as any other."""
    return len(separator) == 1 and (separator in ",;" or path.suffix.lower() == ".csv")


def find_delimiter(line: str) -> str:
    """What separates the columns of a table, by its first line."""
    return max(_DELIMITERS, key=line.count)


def records(lines: Sequence[str], separator: str) -> Iterator[tuple[int, str]]:
    """(index of its first line, text) of each record of a table whose fields may stand in quotes, with the breaks of
    its lines. A quote that nothing closes is a character of its line."""
    index = 0
    while index < len(lines):
        count = 1 if '"' not in lines[index] else _count_lines(lines, index, separator)
        yield index, "\n".join(lines[index : index + count])
        index += count


def _count_lines(lines: Sequence[str], first: int, separator: str) -> int:
    """How many lines the record has that begins with this one."""
    reader = csv.reader((f"{lines[at]}\n" for at in range(first, len(lines))), delimiter=separator)
    try:
        next(reader)
    except csv.Error:  # a field beyond the limit of the library
        return 1
    count = reader.line_num
    if count > 1:
        record = "\n".join(lines[first : first + count])
        try:  # a quote that closes a field stands before a separator or an end
            next(csv.reader(_with_breaks(record), delimiter=separator, strict=True))
        except csv.Error:
            return 1
    return count


def split_record(record: str, separator: str) -> list[str]:
    """The fields of a record, without the quotes around them. Raises: csv.Error."""
    if '"' not in record:
        return record.split(separator)
    return next(csv.reader(_with_breaks(record), delimiter=separator))


def split_line(record: str, separator: str, where: str) -> list[str]:
    """`split_record` of a user's file. Raises: FormatError."""
    try:
        return split_record(record, separator)
    except csv.Error as error:
        raise FormatError("the line cannot be divided into columns", where=where, received=error) from error


def _with_breaks(record: str) -> list[str]:
    """Its lines with their ends; str.splitlines would end them at other characters too."""
    *lines, last = record.split("\n")
    return [*(f"{line}\n" for line in lines), last]
