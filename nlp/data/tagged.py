"""Texts whose words, or characters, have tags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError, OarError
from framework.text.json_entries import is_json
from framework.text.lines import find_delimiter, read_lines
from framework.text.sample import TextSample
from nlp.data.tag_tables import read_tag_table
from nlp.data.texts import (
    ClassDataset,
    Column,
    class_index,
    column,
    label_name,
    leave_out_blank,
    number_classes,
    read_table,
)

DOCUMENT = "-DOCSTART-"  # of CoNLL 2003, between documents
_HEADER = ["text_a", "label"]  # of PaddleNLP's and PALM's files with a sentence a line
_PADDLE_MARK = "\x02"  # between the words of these, and between their tags
_COMMENT = re.compile(r"#\s*(id\s+\S+\s+domain=|[\w.:-]+\s+=(\s|$))")  # of MultiCoNER; of CoNLL-U Plus
_Words = list[tuple[str, str]]  # each with its tag


@register("dataset")
@dataclass(frozen=True)
class TaggedText(ClassDataset):
    """Sentences of words with a tag each.

    Files: CoNLL-U (.conllu), JSON (.jsonl, .json) with lists of words and tags, .csv with such lists or a word a row
    (`Sentence #,Word,Tag`), otherwise a word and its tag a line, the last column, with a blank line between sentences
    and comments before them (`# id = 3`); or a sentence a line as in PaddleNLP: words and tags are two columns with as
    many parts, between the character 2 or spaces. Sentences without words are left out, and counted in the log. Without
    `classes` the classes are the sorted tags in the file; a number in JSON or .csv that is no name of theirs counts in
    `classes` from 0.

    With `unit` "characters" each character is a word of its own, and a letter before the word's tag says where it
    stands in the word: B- at the beginning, E- at the end, M- between them, and S- where the word is one character. So
    one tagger divides a text into words and tags them.

    Attributes:
        word, tag: Columns, counted from 0, of CoNLL-U (whose words are column 1, and column 3 their parts of speech) or
            of a table; keys of JSON lines.
        joint: What stands between the words of the text: "" in Chinese.

    Raises:
        InputError: at the first use, the file is missing, or a tag is unknown.
        FormatError: it is not UTF-8, a column is missing, or words and tags differ in number.
    """

    path: Path
    word: Column = 0
    tag: Column = -1
    unit: Literal["words", "characters"] = "words"
    joint: str = " "
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.classes is not None and (not self.classes or len(set(self.classes)) < len(self.classes)):
            raise ConfigError(
                "classes must be different names of tags",
                where="TaggedText.classes",
                received=self.classes,
                allowed="one or more different names, or null for those in the file",
            )

    def read_classes(self) -> tuple[tuple[str, ...], list[TextSample]]:
        sentences = [(where, self._units(words)) for where, words in self._sentences()]
        if not sentences:
            raise FormatError("there is no sentence in the file", where=self.path)
        all_tags = {tag for _, words in sentences for _, tag in words}
        names = tuple(sorted(all_tags)) if self.classes is None else self.classes
        samples, indices = [], number_classes(names)
        for where, words in sentences:
            tags = tuple(class_index(indices, tag, where) for _, tag in words)
            text = ("" if self.unit == "characters" else self.joint).join(word for word, _ in words)
            samples.append(TextSample(text, words=tuple(word for word, _ in words), tags=tags, id=where))
        return names, leave_out_blank(samples, self.path)

    def _units(self, words: _Words) -> _Words:
        if self.unit == "words":
            return words
        letters = ("S" if len(word) == 1 else f"B{'M' * (len(word) - 2)}E" for word, _ in words)
        return [
            (character, f"{letter}-{tag}")
            for (word, tag), letters in zip(words, letters)
            for character, letter in zip(word, letters)
        ]

    def _sentences(self) -> Iterator[tuple[str, _Words]]:
        if is_json(self.path):
            for where, fields in read_table(self.path, "\t"):
                texts, tags = column(fields, self.word, where), column(fields, self.tag, where)
                if not isinstance(texts, list) or not isinstance(tags, list) or len(texts) != len(tags):
                    raise FormatError(
                        "words and tags are two lists of one length",
                        where=where,
                        received=f"{texts!r} and {tags!r}"[:120],
                    )
                yield (
                    where,
                    [(str(word), label_name(tag, where, self.classes)) for word, tag in zip(texts, tags)],
                )
            return

        if (lines := table_lines(self.path)) is not None:
            for number, words, tags in read_tag_table(self.path, lines, self.word, self.tag):
                where = f"{self.path}, line {number}"
                names = (label_name(tag, where, self.classes) for tag in tags)
                yield where, list(zip(map(str, words), names))
            return

        def refuse(error: OarError, number: int) -> None:
            raise error

        lines = enumerate(read_lines(self.path), start=1)
        for number, words in read_sentences(self.path, lines, self.word, self.tag, refuse):
            yield f"{self.path}, line {number}", words


def read_sentences(
    path: Path,
    lines: Iterable[tuple[int, str]],
    word: Column,
    tag: Column,
    refuse: Callable[[OarError, int], None],
) -> Iterator[tuple[int, _Words]]:
    """(number of its first line, words with their tags) of each sentence of a file that is no JSON.

    Args:
        lines: With their numbers.
        word, tag: As those of `TaggedText`.
        refuse: Is told of each line that cannot be read, and its number; what returns passes over it.
    """
    lines = list(lines)
    conllu = path.suffix == ".conllu"
    mark = None if conllu else _sentence_mark([line for _, line in lines])
    if mark is not None:
        for number, line in lines:
            fields = line.split("\t")
            if not line.strip() or fields == _HEADER:
                continue
            try:
                yield number, _split_sentence(fields, word, tag, mark, f"{path}, line {number}")
            except OarError as error:
                refuse(error, number)
        return
    if conllu and word == 0:  # a column of numbers
        word, tag = 1, 3 if tag == -1 else tag
    counts = Counter(len(_fields(line, conllu)) for _, line in lines if line.strip())
    usual = counts.most_common(1)[0][0] if counts else 0
    words: _Words = []
    first = 1
    for number, line in [*lines, (0, "")]:
        if not line.strip() or line.startswith(DOCUMENT):
            if words:
                yield first, words
            words, first = [], number + 1
            continue
        fields = _fields(line, conllu)
        if line.startswith("#") and (conllu or (not words and _is_comment(line, len(fields), usual))):
            continue
        # Lines of whole spans (3-4) and of what was left out (5.1) are no words of the sentence.
        if conllu and not fields[0].isdigit():
            continue
        where = f"{path}, line {number}"
        try:
            if len(fields) < 2:
                raise FormatError("a word has no tag", where=where, received=repr(line[:80]))
            if "\t" not in line and len(fields) > usual:
                raise FormatError(
                    "a line has more columns than the others",
                    where=where,
                    received=repr(line[:80]),
                    allowed=f"{usual}, as most lines have",
                    fix="a word with a space in it stands before a tab",
                )
            words.append((str(column(fields, word, where)), str(column(fields, tag, where))))
        except OarError as error:
            refuse(error, number)


def _fields(line: str, conllu: bool) -> list[str]:
    """Those between tabs, else between blanks: other spaces stand in words, as in 10 000."""
    return line.split("\t") if conllu or "\t" in line else re.split(" +", line.strip(" "))


def _is_comment(line: str, count: int, usual: int) -> bool:
    """Whether a line before a sentence that begins with # is none of its words: it has a name and a value, or is no
    row of the table."""
    return bool(_COMMENT.match(line)) or (line.startswith("# ") and count != usual)


def table_lines(path: Path) -> list[str] | None:
    """The lines of a .csv whose columns commas, or what stands for them, separate: others have tabs or blanks."""
    if path.suffix.lower() != ".csv":
        return None
    lines = read_lines(path)
    separator = find_delimiter(lines[0])
    is_table = separator != "\t" and separator in lines[0] and _sentence_mark(lines) is None
    return lines if is_table else None


def _sentence_mark(lines: Sequence[str]) -> str | None:
    """What stands between the words of a file with a sentence a line; None where a word is a line."""
    rows = [line.split("\t") for line in lines if line.strip() and line.split("\t") != _HEADER]
    if any(_PADDLE_MARK in field for fields in rows for field in fields):
        return _PADDLE_MARK
    counts = [(len(fields[0].split()), len(fields[-1].split())) for fields in rows if len(fields) > 1]
    sentences = sum(words == tags > 1 for words, tags in counts)
    return " " if sentences > len(rows) / 2 else None


def _split_sentence(fields: list[str], word: Column, tag: Column, mark: str, where: str) -> _Words:
    """The words of a line that is a sentence, with their tags. Raises: FormatError."""
    words, tags = (str(column(fields, name, where)).strip(" \r\n").split(mark) for name in (word, tag))
    if len(words) != len(tags):
        raise FormatError(
            "words and tags differ in number",
            where=where,
            received=f"{len(words)} words and {len(tags)} tags",
        )
    return list(zip(words, tags))
