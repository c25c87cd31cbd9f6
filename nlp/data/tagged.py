"""Texts whose words, or characters, have tags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError
from framework.text.lines import read_lines
from framework.text.sample import TextSample
from nlp.data.json_files import is_json
from nlp.data.texts import ClassDataset, Column, class_index, column, number_classes, read_table

DOCUMENT = "-DOCSTART-"  # of CoNLL 2003, between documents
_Words = list[tuple[str, str]]  # each with its tag


@register("dataset")
@dataclass(frozen=True)
class TaggedText(ClassDataset):
    """Sentences of words with a tag each.

    Files: CoNLL-U (.conllu), JSON (.jsonl, .json) with lists of words and tags, otherwise a word and its tag a line,
    the last column, with a blank line between sentences. Without `classes` the classes are the sorted tags in the file.

    With `unit` "characters" each character is a word of its own, and a letter before the word's tag says where it
    stands in the word: B- at the beginning, E- at the end, M- between them, and S- where the word is one character. So
    one tagger divides a text into words and tags them.

    Attributes:
        word, tag: Columns, counted from 0, of CoNLL-U or of a table; keys of JSON lines.
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
        return names, samples

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
                yield where, [(str(word), str(tag)) for word, tag in zip(texts, tags)]
            return
        conllu = self.path.suffix == ".conllu"
        word, tag = (1, 3) if conllu and (self.word, self.tag) == (0, -1) else (self.word, self.tag)
        words: _Words = []
        first = 1
        for number, line in enumerate([*read_lines(self.path), ""], start=1):
            if not line.strip() or line.startswith(DOCUMENT):
                if words:
                    yield f"{self.path}, line {first}", words
                words, first = [], number + 1
                continue
            if conllu and line.startswith("#"):
                continue
            fields = line.split("\t") if conllu or "\t" in line else line.split()
            # Lines of whole spans (3-4) and of what was left out (5.1) are no words of the sentence.
            if conllu and not fields[0].isdigit():
                continue
            where = f"{self.path}, line {number}"
            if len(fields) < 2:
                raise FormatError("a word has no tag", where=where, received=repr(line[:80]))
            words.append((str(column(fields, word, where)), str(column(fields, tag, where))))
