"""Texts with entities as annotation tools write them: where each begins and ends, in characters.

Forms of an entry, told by their keys:
    doccano       {"text": "…", "label": [[0, 5, "PER"]]}, or {"text": "…", "entities": [{"start_offset": 0, …}]}
    Label Studio  {"data": {"text": "…"}, "annotations": [{"result": [{"value": {"start": 0, …, "labels": […]}}]}]},
                  and "JSON-MIN": {"text": "…", "label": [{"start": 0, "end": 5, "text": "…", "labels": ["PER"]}]}
    spaCy         ["…", {"entities": [[0, 5, "PER"]]}], also in a list under "annotations" as NER Annotator has it
    Prodigy       {"text": "…", "spans": [{"start": 0, "end": 5, "label": "PER"}]}
    Rasa          {"text": "…", "entities": [{"start": 0, "end": 5, "value": "…", "entity": "city"}]}
    DataTurks     {"content": "…", "annotation": [{"label": ["PER"], "points": [{"start": 0, "end": 4, "text": "…"}]}]}
    brat          a folder with a.txt and a.ann: T1<tab>PER 0 5<tab>…
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from framework.core.bounded import DATASET, decode, read_bytes
from framework.core.errors import FormatError, InputError
from nlp.data.json_files import read_entries

_TEXTS = ("text", "content", "sentence", "data")  # the last of doccano from 1.6 on
_ENTITIES = ("entities", "spans", "label", "labels", "annotation", "annotations", "ner")
_STARTS, _ENDS = ("start", "start_offset", "begin"), ("end", "end_offset")
_LABELS, _QUOTES = ("label", "labels", "entity", "tag", "type"), ("text", "value")
_BRAT = re.compile(r"T\d+\t(\S+) (\d+) (\d+)\t(.*)")


_T = TypeVar("_T", str, int)


@dataclass(frozen=True)
class Entity:
    """Characters `start` to the one before `end`; `quote` is the text that the file says stands there."""

    start: int
    end: int
    label: str
    quote: str | None = None


@dataclass(frozen=True)
class AnnotatedEntry:
    """A text with its entities, and what could not be read of them."""

    where: str
    text: str
    entities: tuple[Entity, ...]
    problems: tuple[str, ...] = ()


def read_annotations(path: Path) -> Iterator[AnnotatedEntry]:
    """The entries of a JSON file, or of a folder of brat.

    Raises:
        InputError: there is no such file. FormatError: it is no JSON, or an entry has no text.
    """
    if path.is_dir():
        yield from _read_brat(path)
        return
    for where, entry in _entries(path):
        text, annotations = _text_of(entry, where)
        entities, problems = [], []
        for annotation in annotations:
            stretches = _entities(annotation)
            entities += stretches
            if not stretches:
                problems.append(f"{where}: {repr(annotation)[:80]}")
        yield AnnotatedEntry(where, text, tuple(entities), tuple(problems))


def _entries(path: Path) -> Iterator[tuple[str, object]]:
    """Those of the file, and of the list that NER Annotator has, where a text that was passed over is null."""
    for where, entry in read_entries(path):
        inner = entry.get("annotations") if isinstance(entry, dict) and "classes" in entry else None
        if not isinstance(inner, list):
            yield where, entry
            continue
        for number, one in enumerate(inner, start=1):
            if one is not None:
                yield f"{path}, entry {number}", one


def _text_of(entry: object, where: str) -> tuple[str, list[object]]:
    """The text of an entry, and its annotations. Raises: FormatError."""
    if (
        isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], str)
        and isinstance(entry[1], dict)
    ):
        return entry[0], _first_list(entry[1])
    if isinstance(entry, dict):
        data = entry.get("data")
        if isinstance(data, dict):
            texts = [value for value in data.values() if isinstance(value, str)]
            text = _first(data, _TEXTS, str) or (texts[0] if len(texts) == 1 else None)
            if text is not None:
                return text, _results(entry)
        text = _first(entry, _TEXTS, str)
        if text is not None:
            return text, _first_list(entry)
    raise FormatError(
        "the entry has no text with entities",
        where=where,
        received=repr(entry)[:80],
        allowed='such as {"text": "…", "label": [[0, 5, "PER"]]}: docs/nlp.md lists the tools that are read',
    )


def _first(fields: Mapping[str, object], names: tuple[str, ...], kind: type[_T]) -> _T | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, kind) and not isinstance(value, bool):
            return value
    return None


def _first_list(fields: Mapping[str, object]) -> list[object]:
    """The annotations of an entry: under a name that tools give them, or of any other form than words are."""
    for name in _ENTITIES:
        value = fields.get(name)
        if isinstance(value, list):
            return value
    for value in fields.values():
        if isinstance(value, list) and value and all(_entities(item) for item in value):
            return value
    # Of no form that is read: each becomes a problem, so that the text is not learned as one without entities.
    objects = (value for value in fields.values() if isinstance(value, list) and value)
    return next((value for value in objects if all(isinstance(item, dict) for item in value)), [])


def _results(task: Mapping[str, object]) -> list[object]:
    """Of a task of Label Studio: what the first annotator who finished said of stretches of the text."""
    for key in ("annotations", "completions"):
        for annotation in _list(task.get(key)):
            if isinstance(annotation, dict) and not annotation.get("was_cancelled"):
                results = [one for one in _list(annotation.get("result")) if isinstance(one, dict)]
                return [
                    one["value"]
                    for one in results
                    if one.get("type", "labels") == "labels" and "value" in one
                ]
    return []


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _entities(annotation: object) -> list[Entity]:
    """Those of one annotation; none where it is of no form that is known."""
    if isinstance(annotation, list | tuple):
        if len(annotation) < 3:
            return []
        start, end, label, *rest = annotation
        quote = rest[0] if rest and isinstance(rest[0], str) else None
        return _entity(start, end, label, quote)
    if not isinstance(annotation, dict):
        return []
    labels = [value for name in _LABELS if (value := annotation.get(name)) is not None][:1]
    label_names = labels[0] if labels and isinstance(labels[0], list) else labels
    stretches, last = [annotation], 0
    if isinstance(annotation.get("points"), list):  # DataTurks names the last character
        stretches, last = [one for one in annotation["points"] if isinstance(one, dict)], 1
    entities: list[Entity] = []
    for one in stretches:
        start, end, quote = (_first(one, _STARTS, int), _first(one, _ENDS, int), _first(one, _QUOTES, str))
        end = end + last if isinstance(end, int) else end
        for label in label_names:
            entities += _entity(start, end, label, quote)
    return entities


def _entity(start: object, end: object, label: object, quote: object) -> list[Entity]:
    if (
        not isinstance(start, int)
        or not isinstance(end, int)
        or not isinstance(label, str)
        or not label.strip()
    ):
        return []
    return [Entity(start, end, label.strip(), quote if isinstance(quote, str) else None)]


def _read_brat(folder: Path) -> Iterator[AnnotatedEntry]:
    files = sorted(folder.rglob("*.ann"))
    if not files:
        raise InputError(
            "the folder has no annotations", where=folder, allowed="a.txt and a.ann, as brat has them"
        )
    for file in files:
        text = decode(read_bytes(file.with_suffix(".txt"), DATASET, "text", InputError), file, "text")
        entities, problems = [], []
        lines = decode(read_bytes(file, DATASET, "annotations", InputError), file, "annotations").split("\n")
        for number, line in enumerate(lines, start=1):
            if not line.startswith("T"):  # relations, events, notes
                continue
            if match := _BRAT.fullmatch(line.removesuffix("\r")):
                label, start, end, quote = match.groups()
                entities.append(Entity(int(start), int(end), label, quote))
            else:  # one of several stretches
                problems.append(f"{file}, line {number}: {line[:80]}")
        yield AnnotatedEntry(str(file.with_suffix(".txt")), text, tuple(entities), tuple(problems))
