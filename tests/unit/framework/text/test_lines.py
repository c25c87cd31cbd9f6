"""Records of tables whose fields stand in quotes."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from framework.text.lines import find_delimiter, quotes_fields, records, split_record

ROWS = [
    ["text", "label"],
    ["plain", "a"],
    ["two\nlines", "b"],
    ['a "word"\n\nin quotes', "a"],
    ["x,y;z", "b"],
    ["", "a"],
]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_the_csv_module_writes_is_read(separator: str, end: str) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator=end).writerows(ROWS)
    lines = [line.removesuffix("\r") for line in text.getvalue().split("\n")][:-1]
    found = list(records(lines, separator))
    assert [split_record(record, separator) for _, record in found] == ROWS
    assert [index for index, _ in found] == [0, 1, 2, 4, 7, 8]


def test_a_quote_that_nothing_closes_is_a_character_of_its_line() -> None:
    lines = ['"never closed,a', "next,b", 'one "word" within,c', 'inch 5",d']
    assert [record for _, record in records(lines, ",")] == lines
    assert split_record(lines[2], ",") == ['one "word" within', "c"]


def test_other_ends_of_lines_stand_in_a_field() -> None:
    (record,) = [record for _, record in records(['"a\u2028b\x0cc', 'd",x'], ",")]
    assert split_record(record, ",") == ["a\u2028b\x0cc\nd", "x"]


def test_which_tables_have_quotes() -> None:
    assert quotes_fields(Path("a.txt"), ",") and quotes_fields(Path("a.CSV"), "\t")
    assert not quotes_fields(Path("a.tsv"), "\t") and not quotes_fields(Path("a.csv"), ", ")
    assert [find_delimiter(line) for line in ("a,b;c,d", "a;b", "a\tb")] == [",", ";", "\t"]
