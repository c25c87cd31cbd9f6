"""Texts to predict from a file: its lines; or of a table, or of JSON, the column that its name says holds texts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from framework.core.errors import FormatError, InputError
from framework.text.json_entries import is_json, read_json_entries
from framework.text.lines import find_delimiter, read_lines, records, split_line

_TABLES = (".csv", ".tsv")
_ONE = (
    "text texts sentence sentences review reviews content comment comments message messages tweet body utterance query "
    "question document description title"
)
_TWO = (
    "text text_pair, text_a text_b, text1 text2, sentence1 sentence2, sentence_a sentence_b, question1 question2, "
    "premise hypothesis, context question, text question, query title, query passage, query document, query text, "
    "question answer, question sentence, anchor positive"
)
"""Pairs in the order in which models take them: a context stands before its question."""

log = logging.getLogger("oar")
Row = tuple[str, list[str] | None, list[str]]
"""(where it stands, the titles of its fields, where there are any, and the fields)"""


def read_table_texts(path: Path, pairs: bool) -> list[str] | list[tuple[str, str]] | None:
    """The texts of a .csv, .tsv, .json, .jsonl or .ndjson file, or their pairs; None of a file of plain lines.

    The column of the texts is that with a usual title, such as text or sentence, or the only one; of pairs there are
    two. A .tsv without such titles has plain lines.

    Raises:
        InputError: there is no such file, or no column that is known to hold texts.
        FormatError: it is not UTF-8, empty, or no JSON.
    """
    if is_json(path):
        rows = [_entry_row(where, entry) for where, entry in read_json_entries(path)]
        if not rows:
            raise FormatError("the file is empty", where=path, allowed='{"text": "…"} a line')
        return _select(path, rows, pairs)
    if path.suffix.lower() not in _TABLES:
        return None
    lines = read_lines(path)
    separator = "\t" if path.suffix.lower() == ".tsv" else find_delimiter(lines[0])
    table = [
        (f"{path}, line {index + 1}", split_line(record, separator, f"{path}, line {index + 1}"))
        for index, record in records(lines, separator)
    ]
    titles = [title.strip() for title in table[0][1]]
    if _find_columns(titles, pairs) is not None:
        # Within the table an empty line is an empty text, so that the others keep their places; at the end it is none.
        body = table[1:-1] if not any(table[-1][1]) else table[1:]
        return _select(path, [(where, titles, fields) for where, fields in body], pairs)
    if path.suffix.lower() == ".tsv":
        return None
    return _select(path, [(where, None, fields) for where, fields in table], pairs)


def _entry_row(where: str, entry: object) -> Row:
    """An entry of a JSON file: a text, a list of texts, or an object with texts by name. Raises: FormatError."""
    if isinstance(entry, str):
        return where, None, [entry]
    if isinstance(entry, list) and all(isinstance(one, str) for one in entry):
        return where, None, entry
    if isinstance(entry, dict):
        fields = {str(name): one for name, one in entry.items() if isinstance(one, str)}
        return where, list(fields), list(fields.values())
    raise FormatError(
        "the entry has no text",
        where=where,
        received=repr(entry)[:80],
        allowed='"a text", or {"text": "a text"}',
    )


def _find_columns(titles: Sequence[str], pairs: bool) -> list[int] | None:
    """The places of the texts among the titles: one, or two of a pair; None where no title says so."""
    lowered = [title.lower() for title in titles]
    options = _TWO.split(",") if pairs else _ONE.split()
    named = next((names.split() for names in options if set(names.split()) <= set(lowered)), None)
    return None if named is None else [lowered.index(name) for name in named]


def _select(path: Path, rows: Sequence[Row], pairs: bool) -> list[str] | list[tuple[str, str]]:
    texts: list[str] = []
    couples: list[tuple[str, str]] = []
    used: set[tuple[str, ...]] = set()
    for where, titles, fields in rows:
        columns = list(range(1 + pairs)) if titles is None else _find_columns(titles, pairs)
        if columns is None or (titles is None and len(fields) != 1 + pairs):
            raise InputError(
                "no columns are named as the two texts of a pair"
                if pairs
                else "no column is named as the texts",
                where=where if titles is None or is_json(path) else path,
                received=", ".join(fields if titles is None else titles)[:100] or "none with a text",
                allowed="text and text_pair, sentence1 and sentence2, context and question, query and title"
                if pairs
                else ", ".join(_ONE.split()[:8]),
                fix='call the columns "text" and "text_pair" in the first line'
                if pairs
                else 'call the column "text" in the first line, or write the texts into a .txt, one a line',
            )
        if titles is not None:
            used.add(tuple(titles[column] for column in columns))
        values = [fields[column] if column < len(fields) else "" for column in columns]
        if pairs:
            couples.append((values[0], values[1]))
        else:
            texts.append(values[0])
    for names in sorted(used):
        log.info(f"{path}: the texts are those of {' and '.join(names)}")
    return couples if pairs else texts
