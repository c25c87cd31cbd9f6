"""Texts, or pairs of them, with a class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError
from framework.text.sample import TextSample
from nlp.data.texts import (
    ClassDataset,
    Column,
    class_index,
    label_names,
    leave_out_blank,
    number_classes,
    read_columns,
    sort_names,
)


@register("dataset")
@dataclass(frozen=True)
class TextClassification(ClassDataset):
    """One text a line, in columns between separators, or in JSON lines (.jsonl).

    A column is a number, counted from 0, a name in the first line, or a key of JSON. A text that is a list of words in
    JSON is joined by spaces, and the words are kept. Lines without a text (in JSON also null) are left out, and counted
    in the log. Without `classes` the classes are the sorted names in the file; a number in JSON that is no name of
    theirs counts in `classes` from 0, as labels of Hugging Face's data sets do. Names that are all whole numbers are
    sorted as numbers.

    Attributes:
        header: Leave out the first line, also where columns are numbers. One that names the columns is left out anyway.
        label_separator: A text may have any number of classes, and this stands between their names; in JSON they may be
            a list. For a task with `independent: true`.

    Raises:
        ConfigError: `label_separator` is empty.
        InputError: at the first use, the file is missing, or a class is unknown.
        FormatError: it is not UTF-8, a column is missing, or a text is neither a text nor a list of words.
    """

    path: Path
    text: Column = 0
    label: Column = 1
    pair: Column | None = None
    separator: str = "\t"
    header: bool = False
    classes: tuple[str, ...] | None = None
    label_separator: str | None = None

    def __post_init__(self) -> None:
        if self.label_separator == "":
            raise ConfigError(
                "a separator is empty",
                where="TextClassification.label_separator",
                allowed="a comma, a space, …",
            )

    def read_classes(self) -> tuple[tuple[str, ...], list[TextSample]]:
        columns = [self.text, self.label, *(() if self.pair is None else (self.pair,))]
        rows = read_columns(self.path, self.separator, self.header, columns)
        labels = [self._labels(fields[1], where) for where, fields in rows]
        names = sort_names(set().union(*labels)) if self.classes is None else self.classes
        samples, indices = [], number_classes(names)
        for (where, fields), label in zip(rows, labels):
            text, words = _text(fields[0], where)
            pair = None if self.pair is None else _text(fields[2], where)[0]
            kinds = tuple(sorted({class_index(indices, name, where) for name in label}))
            sample = TextSample(text, pair=pair, words=words, id=where)
            one = self.label_separator is None
            samples.append(sample.replace(label=kinds[0]) if one else sample.replace(labels=kinds))
        return names, leave_out_blank(samples, self.path)

    def _labels(self, value: object, where: str) -> list[str]:
        return label_names(value, self.label_separator, where, self.classes)


def _text(value: object, where: str) -> tuple[str, tuple[str, ...] | None]:
    if value is None or isinstance(value, str):
        return value or "", None
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return " ".join(value), tuple(value)
    raise FormatError(
        "an entry must be a text",
        where=where,
        received=repr(value)[:80],
        allowed="a text, or a list of words",
    )
