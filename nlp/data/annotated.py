"""Texts whose entities were marked in characters, as tags of their words."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError
from framework.text.sample import TextSample
from framework.text.words import pieces, split_characters, split_words
from nlp.data.entity_files import AnnotatedEntry, Entity, read_annotations
from nlp.data.texts import ClassDataset, class_index, number_classes, warn_of_problems


@register("dataset")
@dataclass(frozen=True)
class AnnotatedText(ClassDataset):
    """Entities as doccano, Label Studio, spaCy, Prodigy, Rasa, DataTurks and brat write them, for a tagger.

    The words are those that a predictor makes of a text, and a word that an entity touches belongs to it; B- is at the
    first word of an entity, I- at the others, O outside. Without `classes` the classes are O and the tags of the labels
    in the file. An entity that does not stand where the file says is looked for by its text; one that is not there,
    that is blank or overlaps a longer one is left out. The log counts these, and `oar check` lists them.

    Attributes:
        path: A JSON file, or a folder of brat.
        unit: "characters" makes each a word of its own, as in Chinese.
        block: A text is divided behind its sentences into pieces of at most so many characters; None: it stays whole,
            and what is longer than `max_length` of the transform is cut.

    Raises:
        ConfigError: `block` is below 1.
        InputError: at the first use, the file is missing, or a tag is unknown.
        FormatError: it is no such file, or has no entity.
    """

    path: Path
    unit: Literal["words", "characters"] = "words"
    block: int | None = None
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.block is not None and self.block < 1:
            raise ConfigError(
                "no text fits", where="AnnotatedText.block", received=self.block, allowed="from 1"
            )

    @property
    def problems(self) -> tuple[str, ...]:
        """Where entities were left out, moved or widened, and why."""
        return self._tagged[2]

    def read_classes(self) -> tuple[tuple[str, ...], list[TextSample]]:
        names, samples, problems = self._tagged
        warn_of_problems(self.path, problems, "entities are left out, moved or widened to whole words")
        return names, samples

    @cached_property
    def _tagged(self) -> tuple[tuple[str, ...], list[TextSample], tuple[str, ...]]:
        texts, problems = [], []
        for entry in read_annotations(self.path):
            if not entry.text.strip():
                continue
            words, spans, tags, faults = _tag_words(entry, self.unit)
            problems += [*entry.problems, *faults]
            texts += _split_entry(entry, words, spans, tags, self.block)
        labels = sorted({tag[2:] for _, _, tags, _ in texts for tag in tags if tag != "O"})
        if not labels:
            raise FormatError(
                "there is no entity in the file",
                where=self.path,
                received=f"{len(texts)} texts" + (f"; {problems[0]}" if problems else ""),
                allowed="docs/nlp.md lists the tools that are read",
            )
        names = self.classes or ("O", *(f"{letter}-{label}" for label in labels for letter in "BI"))
        samples, indices = [], number_classes(names)
        for text, words, tags, where in texts:
            numbers = tuple(class_index(indices, tag, where) for tag in tags)
            samples.append(TextSample(text, words=words, tags=numbers, id=where))
        return names, samples, tuple(problems)


def _split_entry(
    entry: AnnotatedEntry, words: tuple[str, ...], spans: np.ndarray, tags: list[str], block: int | None
) -> list[tuple[str, tuple[str, ...], tuple[str, ...], str]]:
    """(text, its words, their tags, where) of the pieces of an entry; no piece ends within an entity."""
    if block is None or len(entry.text) <= block:
        return [(entry.text, words, tuple(tags), entry.where)] if words else []
    divided: list[tuple[str, tuple[str, ...], tuple[str, ...], str]] = []
    word_starts = spans[:, 0].tolist()
    ends = [start + len(piece) for start, piece in pieces(entry.text, block)]
    first, start = 0, 0
    for end in ends:
        behind = max(first, bisect.bisect_left(word_starts, end))
        while behind < len(words) and tags[behind].startswith("I-"):
            behind += 1
        end = len(entry.text) if behind == len(words) else int(spans[behind, 0])
        if behind > first:
            where = f"{entry.where}, character {start}"
            divided.append((entry.text[start:end], words[first:behind], tuple(tags[first:behind]), where))
        first, start = behind, max(start, end)
    return divided


def _tag_words(
    entry: AnnotatedEntry, unit: Literal["words", "characters"]
) -> tuple[tuple[str, ...], np.ndarray, list[str], list[str]]:
    """The words of a text, where they stand [W, 2], the tag of each, and what is wrong with its entities."""
    words, spans = (split_words if unit == "words" else split_characters)(entry.text)
    starts, ends = spans[:, 0].tolist(), spans[:, 1].tolist()
    tags, problems = ["O"] * len(words), []
    located = [(entity, _locate(entry.text, entity)) for entity in dict.fromkeys(entry.entities)]
    # Of entities that overlap the longest stays.
    for entity, span in sorted(
        located, key=lambda one: (one[1][0] - one[1][1], one[1][0]) if one[1] else (0, 0)
    ):
        about = f"{entry.where}: {entity.label} {entity.start}-{entity.end}"
        if span is None:
            problems.append(f"{about} is not in the text")
            continue
        first, behind = bisect.bisect_right(ends, span[0]), bisect.bisect_left(starts, span[1])
        if first >= behind:
            problems.append(f"{about} has no word")
        elif any(tag != "O" for tag in tags[first:behind]):
            problems.append(f"{about} overlaps another")
        else:
            tags[first:behind] = [f"B-{entity.label}", *[f"I-{entity.label}"] * (behind - first - 1)]
            if (starts[first], ends[behind - 1]) != span:
                widened = entry.text[starts[first] : ends[behind - 1]]
                problems.append(f"{about} is widened to {widened[:80]!r}")
            elif entity.quote is not None and _plain(entry.text[entity.start : entity.end]) != _plain(
                entity.quote
            ):
                problems.append(f"{about} is moved to {span[0]}-{span[1]}")
    return words, spans, tags, problems


def _locate(text: str, entity: Entity) -> tuple[int, int] | None:
    """Where an entity stands, without the spaces at its ends: where the file says, as the file counts in units of
    UTF-16 (JavaScript), or where its text stands next to that."""
    candidates = [(entity.start, entity.end), _from_utf16(text, entity.start, entity.end)]
    for start, end in candidates:
        if 0 <= start < end <= len(text) and (
            entity.quote is None or _plain(text[start:end]) == _plain(entity.quote)
        ):
            return _trim(text, start, end)
    if not entity.quote or not entity.quote.strip():
        return None
    quote = r"\s+".join(map(re.escape, entity.quote.split()))
    matches = [match.span() for match in re.finditer(quote, text)]
    return min(matches, key=lambda span: abs(span[0] - entity.start), default=None)


def _from_utf16(text: str, start: int, end: int) -> tuple[int, int]:
    """Places in characters of places in units of UTF-16, of which characters beyond U+FFFF take two."""
    data = text.encode("utf-16-le", "surrogatepass")
    if not 0 <= start <= end <= len(data) // 2 or len(data) == 2 * len(text):
        return start, end
    before = len(data[: 2 * start].decode("utf-16-le", "replace"))
    return before, before + len(data[2 * start : 2 * end].decode("utf-16-le", "replace"))


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    end -= len(inside) - len(inside.rstrip())
    return (start, end) if start < end else None


def _plain(text: str) -> str:
    """A text of which spaces do not count: tools show several, and breaks of lines, as one."""
    return "".join(text.split())
