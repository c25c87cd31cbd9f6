"""Tagged words in a .csv: a sentence a row, as lists, or a word a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from framework.core.errors import FormatError
from framework.text.lines import find_delimiter, records, split_line
from nlp.data.texts import Column, column, written_list

_WORDS = ("tokens", "words", "token", "word")
_TAGS = ("ner_tags", "pos_tags", "tags", "tag", "labels", "label", "ner", "pos")
_SENTENCES = ("sentence #", "sentence_id", "sentence id", "sentence", "sent_id")


def read_tag_table(
    path: Path, lines: Sequence[str], word: Column, tag: Column
) -> Iterator[tuple[int, list[object], list[object]]]:
    """(number of its first line, words, tags) of each sentence in the lines of a file.

    A row is a sentence where its words and tags are lists, as pandas and datasets write them. Else it is a word; a
    sentence ends at a blank line, and where the column `sentence #` or `sentence_id`, if there is one, has another
    value that is not blank.

    Args:
        word, tag: Columns, by number or by the names of the first line; 0 and -1 stand for those with usual names, such
            as tokens and ner_tags, if there are such.

    Raises:
        FormatError: a column is missing, or words and tags differ in number.
    """
    separator = find_delimiter(lines[0])
    rows = [
        (index + 1, split_line(record, separator, f"{path}, line {index + 1}"))
        for index, record in records(lines, separator)
    ]
    titles = [title.strip().lower() for title in rows[0][1]]
    usual = _first_of(_WORDS, titles), _first_of(_TAGS, titles)
    if (word, tag) == (0, -1) and None not in usual:
        word, tag = (titles[place] for place in usual if place is not None)
    has_titles = isinstance(word, str) or isinstance(tag, str)
    if has_titles:
        word, tag = (_find_column(rows[0][1], name, f"{path}, line 1") for name in (word, tag))
    mark = _first_of(_SENTENCES, titles) if has_titles else None
    words: list[object] = []
    tags: list[object] = []
    begin, sentence = 0, ""
    for number, fields in [*rows[int(has_titles) :], (0, [])]:
        is_blank = not any(field.strip() for field in fields)
        name = "" if is_blank or mark is None or mark >= len(fields) else fields[mark].strip()
        if words and (is_blank or (name and name != sentence)):
            yield begin, words, tags
            words, tags = [], []
        sentence = name or sentence
        if is_blank:
            continue
        where = f"{path}, line {number}"
        one, its_tag = str(column(fields, word, where)), str(column(fields, tag, where))
        listed = written_list(one), written_list(its_tag)
        if listed[0] is not None and listed[1] is not None:
            if len(listed[0]) != len(listed[1]):
                raise FormatError(
                    "words and tags are two lists of one length",
                    where=where,
                    received=f"{len(listed[0])} words and {len(listed[1])} tags",
                )
            yield number, listed[0], listed[1]
            continue
        begin = begin if words else number
        words.append(one)
        tags.append(its_tag)


def _first_of(names: Sequence[str], titles: Sequence[str]) -> int | None:
    return next((titles.index(name) for name in names if name in titles), None)


def _find_column(titles: Sequence[str], name: Column, where: str) -> int:
    """Raises: FormatError, where no column has this name."""
    lowered = [title.strip().lower() for title in titles]
    if isinstance(name, int) or name.lower() in lowered:
        return name if isinstance(name, int) else lowered.index(name.lower())
    raise FormatError(
        "a column is missing", where=where, received=f"column {name!r}", allowed=", ".join(titles)
    )
