"""The check of a file of texts before it is trained on: how its classes are balanced, and what is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from framework.core.errors import FormatError, InputError, OarError
from framework.io import data_check
from framework.io.data_check import Observe, format_table, validate_samples
from framework.io.dataset import Dataset
from framework.text.json_entries import is_json, parse_json
from framework.text.lines import quotes_fields, records
from framework.text.sample import TextSample
from nlp.data.annotated import AnnotatedText
from nlp.data.classification import TextClassification
from nlp.data.json_files import read_entries
from nlp.data.questions import QuestionAnswers
from nlp.data.tag_tables import read_tag_table
from nlp.data.tagged import TaggedText, read_sentences, table_lines
from nlp.data.texts import (
    ClassDataset,
    TextDataset,
    check_width,
    column,
    find_title,
    label_name,
    label_names,
    names_columns,
    parse_line,
)

Format = Literal["lines", "table", "tagged"]
_TAGGED = (".conllu", ".conll", ".bio", ".bmes")
_CLASSES, _WIDTH = 100, 40
_Row = tuple[int, str, str | tuple[str, ...] | None]
"""Number, text, and its class, its classes or the tags of its words."""


@dataclass(frozen=True)
class Columns:
    """Where things stand in a line: numbers counted from 0, names of the first line, or keys of JSON."""

    text: int | str = 0
    label: int | str = 1
    word: int | str = 0
    tag: int | str = -1
    separator: str = "\t"
    header: bool = False
    label_separator: str | None = None
    classes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Report(data_check.Report):
    """What `validate` found."""

    texts: int
    unit: Literal["characters", "words"]
    """What `lengths` counts."""
    lengths: tuple[int, int, int, int]
    """The shortest text, the median, what 95 of 100 stay below or reach, the longest."""
    classes: tuple[tuple[str, int], ...]
    """Name and number of texts, or of words, most common first."""
    duplicates: tuple[str, ...]
    """Lines with a text that stood in the file before, with the same class or tags."""
    contradictory: tuple[str, ...]
    """Lines with a text that stood in the file before with another class or other tags."""
    empty: tuple[str, ...]
    """Lines whose text is blank."""
    broken: tuple[str, ...]
    """Lines that cannot be read, and why."""
    misplaced: tuple[str, ...] = ()
    """Entities, and answers, that do not stand where the file says, or not at whole words, and why."""

    def summary(self) -> list[str]:
        total = sum(count for _, count in self.classes)
        largest = self.classes[:_CLASSES]
        shortest, median, most, longest = self.lengths
        lines = [
            f"{self.texts} texts of {shortest} to {longest} {self.unit}; half have up to {median}, 95% up to {most}"
        ]
        if self.classes:
            rows = [(name[:_WIDTH], str(count), f"{count / total:.1%}") for name, count in largest]
            lines += format_table({"count": 7, "share": 5}, rows)
            hidden = len(self.classes) - len(largest)
            lines += [f"... and {hidden} more classes"] if hidden else []
        return lines

    def faults(self) -> Mapping[str, Sequence[str]]:
        return {
            "lines that cannot be read": self.broken,
            "blank texts": self.empty,
            "texts that are there before": self.duplicates,
            "texts that are there before with another class": self.contradictory,
            "entities or answers that do not fit": self.misplaced,
        }


def validate(path: Path, form: Format | None = None, columns: Columns | None = None) -> Report:
    """Reads every line.

    Args:
        form: "lines" are texts without a class, "table" has a class in each line and "tagged" a word and its tag; None:
            by the file's ending, where .conllu, .conll, .bio and .bmes are tagged and the rest, but .txt, are tables.

    Raises:
        InputError: the file cannot be read.
    """
    columns = columns or Columns()
    if form is None:
        form = "tagged" if path.suffix in _TAGGED else "lines" if path.suffix == ".txt" else "table"
    broken: list[str] = []
    if form == "tagged":
        rows = _sentences(path, columns, broken)
    elif form == "table" and is_json(path):
        rows = _json_rows(path, columns, broken)
    else:
        rows = _rows(path, form, columns, broken)
    unit = "line" if path.suffix.lower() != ".json" else "entry"
    samples = ((f"{unit} {number}", text, labels) for number, text, labels in rows)
    return _report(samples, "words" if form == "tagged" else "characters", broken)


def validate_dataset(dataset: Dataset, observe: Observe | None = None) -> data_check.Report:
    """What is wrong with the texts of a data set. A file that has lines which cannot be read is checked line by line.

    Raises:
        OarError: it cannot be read, and not line by line either.
    """
    if not isinstance(dataset, TextDataset):
        return validate_samples(dataset, observe)
    try:
        samples = dataset.samples
    except OarError:
        if isinstance(dataset, TextClassification | TaggedText):
            return _validate_file(dataset)
        raise
    for sample in samples:
        if observe is not None:
            observe(sample)
    names = dataset.class_names if isinstance(dataset, ClassDataset) else ()
    report = _report(
        (_row(sample, names) for sample in samples),
        "words" if isinstance(dataset, TaggedText | AnnotatedText) else "characters",
        [],
    )
    if isinstance(dataset, AnnotatedText | QuestionAnswers):
        return replace(report, misplaced=dataset.problems)
    if isinstance(dataset, TextClassification | TaggedText):  # the data set leaves these out
        return replace(report, empty=_validate_file(dataset).empty)
    return report


def _validate_file(dataset: TextClassification | TaggedText) -> Report:
    if isinstance(dataset, TextClassification):
        columns = Columns(
            dataset.text,
            dataset.label,
            separator=dataset.separator,
            header=dataset.header,
            label_separator=dataset.label_separator,
            classes=dataset.classes,
        )
        report = validate(dataset.path, "table", columns)
    else:
        report = validate(
            dataset.path, "tagged", Columns(word=dataset.word, tag=dataset.tag, classes=dataset.classes)
        )
    if dataset.classes is None or (isinstance(dataset, TaggedText) and dataset.unit == "characters"):
        return report
    unknown = [f"{count} with {name!r}" for name, count in report.classes if name not in dataset.classes]
    return replace(report, broken=(*report.broken, *(f"{row}, which is not in `classes`" for row in unknown)))


def _row(sample: TextSample, names: Sequence[str]) -> tuple[str, str, str | tuple[str, ...] | None]:
    """Where a text is, it with all that belongs to it, and its class or tags."""
    texts = (sample.text, sample.pair, sample.target, sample.negative.pair if sample.negative else None)
    text = "\t".join(part for part in texts if part is not None)
    line = str(sample.id).rpartition(", line ")[2]
    where = f"line {line}" if line.isdecimal() else str(sample.id)
    if sample.tags is not None:
        return where, text, tuple(names[tag] for tag in sample.tags)
    if sample.labels is not None:
        return where, text, tuple(names[label] for label in sample.labels)
    return where, text, None if sample.label is None else names[sample.label]


def _report(
    rows: Iterable[tuple[str, str, str | tuple[str, ...] | None]],
    unit: Literal["characters", "words"],
    broken: list[str],
) -> Report:
    """Args: rows: where a text is, the text, and its class or the tags of its words."""
    first_of: dict[str, tuple[str | tuple[str, ...] | None, str]] = {}
    counts: Counter[str] = Counter()
    lengths, duplicates, contradictory, empty = [], [], [], []
    for where, text, row_labels in rows:
        labels = row_labels if isinstance(row_labels, tuple) else (row_labels,)
        counts.update(label for label in labels if label is not None)
        lengths.append(len(labels) if unit == "words" else len(text))
        if not text.strip():
            empty.append(where)
        elif text not in first_of:
            first_of[text] = (row_labels, where)
        else:
            before, first = first_of[text]
            (duplicates if before == row_labels else contradictory).append(
                f"{where}, as {first}: {text[:40]}"
            )
    quarters = np.quantile(lengths, (0, 0.5, 0.95, 1), method="lower") if lengths else np.zeros(4)
    shortest, median, most, longest = (int(value) for value in quarters)
    return Report(
        len(lengths),
        unit,
        (shortest, median, most, longest),
        tuple(sorted(counts.items(), key=lambda row: (-row[1], row[0]))),
        tuple(duplicates),
        tuple(contradictory),
        tuple(empty),
        tuple(broken),
    )


def _lines(path: Path, broken: list[str]) -> Iterator[tuple[int, str | None]]:
    """Number and text of each line; None of one that is not UTF-8."""
    try:
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise InputError("the text file cannot be read", where=path, received=error.strerror) from error
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n") if data else (), start=1):
        try:
            yield number, line.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError as error:
            broken.append(f"line {number}: byte 0x{line[error.start]:02x} is not UTF-8")
            yield number, None


def _records(path: Path, form: Format, columns: Columns, broken: list[str]) -> Iterator[tuple[int, str]]:
    """Number of the first line, and text, of each record: of each line where fields do not stand in quotes."""
    lines = [(number, line) for number, line in _lines(path, broken) if line is not None]
    if form == "lines" or not quotes_fields(path, columns.separator):
        yield from lines
        return
    for index, record in records([line for _, line in lines], columns.separator):
        yield lines[index][0], record


def _entries(path: Path, broken: list[str]) -> Iterator[tuple[int, str, object]]:
    """Number, place and entry of a JSON file; a line of it that is no JSON is broken, another file raises."""
    if path.suffix.lower() == ".json":
        for number, (where, entry) in enumerate(read_entries(path), start=1):
            yield number, where.rpartition(", ")[2], entry
        return
    for number, line in _lines(path, broken):
        if line is None or not line.strip():
            continue
        try:
            yield number, f"line {number}", parse_json(line, f"line {number}")
        except OarError as error:
            broken.append(f"line {number}: {_short(error)}")


def _rows(path: Path, form: Format, columns: Columns, broken: list[str]) -> Iterator[_Row]:
    requested: list[int | str] = [columns.text, columns.label]
    named = form == "table" and any(isinstance(name, str) for name in requested)
    header, first, first_fields = columns.header or named, True, None
    for number, line in _records(path, form, columns, broken):
        if form != "lines" and not line.strip():
            continue  # the data set passes over blank lines too
        if form == "lines":
            yield number, line, None
            continue
        where = f"line {number}"
        try:
            fields = parse_line(line, path, columns.separator, where)
            first_fields = first_fields or fields
            check_width(fields, first_fields, columns.separator, where)
            if header:
                header = False
                titles = [str(title).strip() for title in fields]
                requested = (
                    [find_title(titles, name, str(path)) for name in requested] if named else requested
                )
                continue
            is_first, first = first, False
            if is_first and not named and not columns.header and names_columns(fields, requested):
                continue
            yield number, *_text_and_label(fields, requested, columns, where)
        except OarError as error:
            if named and requested == [columns.text, columns.label]:
                raise  # no line can be read
            broken.append(f"{where}: {_short(error)}")


def _json_rows(path: Path, columns: Columns, broken: list[str]) -> Iterator[_Row]:
    for number, where, entry in _entries(path, broken):
        try:
            names = (columns.text, columns.label)
            yield number, *_text_and_label(entry, names, columns, where)
        except OarError as error:
            broken.append(f"{where}: {_short(error)}")


def _text_and_label(
    fields: object, names: Sequence[int | str], columns: Columns, where: str
) -> tuple[str, str | tuple[str, ...]]:
    """Raises: FormatError, where one is missing, or is of another kind."""
    text = column(fields, names[0], where)
    separator = columns.label_separator
    labels = label_names(column(fields, names[1], where), separator, where, columns.classes)
    label = labels[0] if separator is None else tuple(sorted(set(labels)))
    if text is None:  # the data set leaves these out
        text = ""
    if isinstance(text, list) and all(isinstance(word, str) for word in text):
        text = " ".join(text)
    if not isinstance(text, str):
        raise FormatError(f"{type(text).__name__} is no text", where=where)
    return text, label


def _sentences(path: Path, columns: Columns, broken: list[str]) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    if is_json(path):
        yield from _tagged_rows(path, columns, broken)
        return

    if (lines := table_lines(path)) is not None:
        try:
            for number, words, tags in read_tag_table(path, lines, columns.word, columns.tag):
                names = tuple(label_name(tag, f"line {number}", columns.classes) for tag in tags)
                yield number, " ".join(map(str, words)), names
        except OarError as error:
            broken.append(_short(error))
        return

    def refuse(error: OarError, number: int) -> None:
        broken.append(f"line {number}: {_short(error)}")

    lines = ((number, line) for number, line in _lines(path, broken) if line is not None)
    for number, words in read_sentences(path, lines, columns.word, columns.tag, refuse):
        yield number, " ".join(word for word, _ in words), tuple(tag for _, tag in words)


def _tagged_rows(
    path: Path, columns: Columns, broken: list[str]
) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    for number, where, fields in _entries(path, broken):
        try:
            words, tags = (column(fields, name, where) for name in (columns.word, columns.tag))
        except OarError as error:
            broken.append(f"{where}: {_short(error)}")
            continue
        if not isinstance(words, list) or not isinstance(tags, list) or len(words) != len(tags):
            broken.append(f"{where}: words and tags are two lists of one length")
            continue
        yield (
            number,
            " ".join(map(str, words)),
            tuple(label_name(tag, where, columns.classes) for tag in tags),
        )


def _short(error: OarError) -> str:
    return error.problem + (f": {error.received}" if error.received is not None else "")
