"""Divide data into a part to train on and one to evaluate."""

from __future__ import annotations

import csv
import hashlib
import json
import logging
import shutil
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from framework.core import bounded
from framework.core.disk import is_hidden, walk_files, write_file
from framework.core.errors import ConfigError, FormatError, InputError
from framework.core.fields import read_list
from framework.core.types import JSON
from framework.text.lines import COLUMN_TITLES, find_delimiter, read_lines, records
from framework.vision import raw_images
from framework.vision.annotations.voc import read_voc
from framework.vision.annotations.yolo import find_names
from framework.vision.coco_ids import find_file_name
from framework.vision.dataset_files import abbreviate, read_annotations
from framework.workflow.data.choose import GroupRule, choose
from framework.workflow.data.outputs import check_new, write_whole

log = logging.getLogger("oar")

_SPLITS = ("train", "val")
_NAMES = "data.yaml"  # of YOLO's format
_IMAGES = ("images", "image", "JPEGImages", "img")
_LABELS = ("masks", "mask", "labels", "label", "annotations", "Annotations", "SegmentationClass")
_ANNOTATIONS = (".xml", ".txt", ".json")  # of which images without objects may have none
_TABLES = (".tsv", ".csv", ".txt", ".jsonl")


class SplitReport(NamedTuple):
    """What `split_data` wrote."""

    paths: tuple[Path, Path]
    """Of the part to train on, and of the one to evaluate."""
    counts: tuple[int, int]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{path}: {count} samples" for path, count in zip(self.paths, self.counts)]
        return "\n".join([*lines, *self.notes])


class _Rules(NamedTuple):
    """How samples are chosen."""

    share: float
    seed: int
    header: bool
    group_by: str | None
    stratify: bool
    label: str | None

    def choose(
        self,
        contents: Sequence[Hashable],
        names: Sequence[str],
        where: Path,
        classes: Sequence[Iterable[str]] | None = None,
    ) -> list[int]:
        """0 or 1 for each sample, by what it holds, its path, and its classes, where they are to be divided alike."""
        groups = [] if self.group_by is None else GroupRule(self.group_by).groups(names, where)
        keys = zip(contents, groups) if groups else ((content,) for content in contents)
        marked = [tuple((number, key) for number, key in enumerate(of_sample)) for of_sample in keys]
        return choose(marked, self.share, self.seed, where, classes if self.stratify else None)


def split_data(
    source: str | Path,
    output: str | Path,
    share: float = 0.2,
    seed: int = 0,
    header: bool = False,
    *,
    group_by: str | None = None,
    stratify: bool = False,
    label: str | None = None,
) -> SplitReport:
    """Divide data that are in one piece into a part to train on and one to evaluate, `share` of all.

    * Of a folder with images in one folder (`images`, `image`, `JPEGImages`) and what belongs to them in another
      (`masks`, `labels`, `annotations`, ...), pairs of the same name up to the suffix are copied to
      `<output>/train/<images>`, `<output>/train/<masks>` and the same of `val`. Images without a file of labels (.xml,
      .txt, .json) go with the others; without a mask they are an error. With labels of YOLO a data.yaml is written.
    * A folder of class folders is copied to `<output>/train/<class>` and `<output>/val/<class>`, each class divided
      alike.
    * The images of a COCO file go to `<output>/train.json` and `<output>/val.json`, with their annotations and all
      categories; the images stay where they are.
    * The lines of a .tsv, .csv, .txt or .jsonl go to files of that ending; with `header`, or where it has two usual
      titles such as text and label, the first one stands in both. A record of a .csv stays whole where a field in
      quotes has line breaks.

    Files or lines of the same content go into the same part. One seed gives one division.

    Args:
        group_by: What belongs together goes into one part, such as the images of one patient or video: "folder", or a
            regular expression whose parentheses have the group, searched in the path of an image up to its suffix. Of a
            table the column, by its name or its number from 1. `share` counts samples, not groups.
        stratify: The samples of each class are divided by the share: classes of objects, or of the column `label` (by
            default the last one). Class folders are divided so anyway.

    Raises:
        InputError: there is no such data, the output is there already, or a part would be empty.
        DiskError: the disk takes no more; nothing of the output stays.
        ConfigError: `share` is not between 0 and 1, `seed` is below 0, or `group_by` is no regular expression.
    """
    source, output = Path(source), Path(output)
    if not 0 < share < 1:
        raise ConfigError("the share to evaluate is out of range", received=share, allowed="0 < share < 1")
    if seed < 0:
        raise ConfigError("the seed is out of range", received=seed, allowed="0 or more")
    rules = _Rules(share, seed, header, group_by, stratify, label)
    if source.is_dir():
        return _split_folder(source, output, rules)
    if source.suffix == ".json":
        return _split_coco(source, output, rules)
    if source.suffix in _TABLES:
        return _split_lines(source, output, rules)
    raise InputError(
        "this cannot be split",
        where=source,
        allowed=f"a folder of class folders, a COCO file (.json), or a file of lines ({', '.join(_TABLES)})",
        fix=f"the current folder is {Path.cwd()}",
    )


def _split_folder(source: Path, output: Path, rules: _Rules) -> SplitReport:
    classes = sorted(path for path in source.iterdir() if path.is_dir() and not is_hidden(path.name))
    images, labels = ([path for path in classes if path.name in names] for names in (_IMAGES, _LABELS))
    if len(images) == len(labels) == 1:
        return _split_pairs(source, images[0], labels[0], output, rules)
    if not classes:
        raise InputError(
            "there are no class folders", where=source, allowed="<class>/<image>, one folder a class"
        )
    targets = tuple(output / part for part in _SPLITS)
    check_new(targets)
    counts = [0, 0]
    files = {folder: _list_files(folder) for folder in classes}
    if rules.group_by is None:
        held_out = [
            number
            for folder, paths in files.items()
            for number in rules.choose([_hash_file(path) for path in paths], [], folder)
        ]
    else:  # a group may have images of several classes
        every = [path for paths in files.values() for path in paths]
        held_out = rules._replace(stratify=True).choose(
            [_hash_file(path) for path in every],
            [
                path.relative_to(path_of_class).as_posix()
                for path_of_class, ps in files.items()
                for path in ps
            ],
            source,
            [(folder.name,) for folder, paths in files.items() for _ in paths],
        )
    with write_whole(output, _SPLITS) as folder:
        for path, number in zip((path for paths in files.values() for path in paths), held_out):
            _copy(path, folder / _SPLITS[number] / path.relative_to(source))
            counts[number] += 1
    return SplitReport((targets[0], targets[1]), (counts[0], counts[1]))


def _split_pairs(source: Path, images: Path, labels: Path, output: Path, rules: _Rules) -> SplitReport:
    targets = tuple(output / part for part in _SPLITS)
    check_new((*targets, output / _NAMES))
    of_name = {path.relative_to(labels).with_suffix("").as_posix(): path for path in _list_files(labels)}
    paths = _list_files(images)
    names = [path.relative_to(images).with_suffix("").as_posix() for path in paths]
    missing = [str(path) for path, name in zip(paths, names) if name not in of_name]
    kinds = {path.suffix.lower() for path in of_name.values()}
    if missing and not kinds <= set(_ANNOTATIONS):
        raise InputError(
            f"{len(missing)} of {len(paths)} images have no file of their name in {labels.name}",
            where=labels,
            received=abbreviate(missing),
            fix="add them, or take the images out",
        )
    notes = [f"{len(missing)} images have no file of labels: {abbreviate(missing)}"] if missing else []
    classes = [_classes_of(of_name.get(name)) for name in names] if rules.stratify else None
    relative = [path.relative_to(images).as_posix() for path in paths]
    held_out = rules.choose([_hash_file(path) for path in paths], relative, images, classes)
    counts = [0, 0]
    with write_whole(output, (*_SPLITS, _NAMES)) as folder:
        for path, name, number in zip(paths, names, held_out):
            for one in (path, of_name.get(name)):
                if one is not None:
                    _copy(one, folder / _SPLITS[number] / one.relative_to(source))
            counts[number] += 1
        if kinds & {".txt"} and (class_names := find_names(source)):
            folders = {part: f"{part}/{images.name}" for part in _SPLITS}
            content = {**folders, "nc": len(class_names), "names": dict(enumerate(class_names))}
            text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
            write_file(folder / _NAMES, text.encode("utf-8"))
    return SplitReport((targets[0], targets[1]), (counts[0], counts[1]), tuple(notes))


def _classes_of(labels: Path | None) -> set[str]:
    """The classes that a file of labels names: of VOC, YOLO or labelme, or the values of a mask."""
    if labels is None:
        return set()
    suffix = labels.suffix.lower()
    if suffix == ".xml":
        return {one.name for one in read_voc(labels).objects}
    if suffix == ".txt":
        return {line.split()[0] for line in read_lines(labels) if line.strip()}
    if suffix == ".json":
        data = read_annotations(labels)
        shapes = data.get("shapes") if isinstance(data, dict) else None
        entries = shapes if isinstance(shapes, list) else []
        return {str(one.get("label")) for one in entries if isinstance(one, dict)}
    return {str(value) for value in np.unique(raw_images.read_labels(labels)).tolist()}


def _list_files(folder: Path) -> list[Path]:
    return sorted(path for path in map(Path, walk_files(folder)) if path.is_file())


def _hash_file(path: Path) -> bytes:
    return hashlib.blake2b(path.read_bytes()).digest()


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)


def _objects(entries: list[JSON], source: Path) -> list[dict[str, JSON]]:
    """Raises: FormatError, where one of them is something else."""
    objects = [one for one in entries if isinstance(one, dict)]
    if len(objects) != len(entries):
        wrong = next(one for one in entries if not isinstance(one, dict))
        raise FormatError("an entry is no JSON object", where=source, received=repr(wrong)[:80])
    return objects


def _split_coco(source: Path, output: Path, rules: _Rules) -> SplitReport:
    data = read_annotations(source)
    if not isinstance(data, dict):
        raise FormatError("the file is not in COCO's format", where=source, allowed='{"images": [...], ...}')
    targets = tuple(output / f"{part}.json" for part in _SPLITS)
    check_new(targets)
    images = _objects(read_list(data, "images", source), source)
    annotations = _objects(read_list(data, "annotations", source, []), source)
    names = [str(find_file_name(one)) for one in images]
    by_image: dict[str, set[str]] = {}
    for one in annotations:
        by_image.setdefault(repr(one.get("image_id")), set()).add(repr(one.get("category_id")))
    classes = [by_image.get(repr(one.get("id")), set()) for one in images]
    held_out = rules.choose([name.encode() for name in names], names, source, classes)
    counts, texts = [], []
    for number in range(len(targets)):
        selected = [one for one, chosen in zip(images, held_out) if chosen == number]
        ids_seen = {repr(one.get("id")) for one in selected}
        rows = [one for one in annotations if repr(one.get("image_id")) in ids_seen]
        texts.append(json.dumps({**data, "images": selected, "annotations": rows}, ensure_ascii=False))
        counts.append(len(selected))
    _write_texts(targets, texts)
    return SplitReport((targets[0], targets[1]), (counts[0], counts[1]))


def _split_lines(source: Path, output: Path, rules: _Rules) -> SplitReport:
    lines = read_lines(source)
    delimiter = find_delimiter(lines[0])
    if source.suffix.lower() == ".csv":
        lines = [record for _, record in records(lines, delimiter)]
    has_titles = rules.header or _names_columns(source, lines[0], delimiter)
    head, lines = (lines[:1], lines[1:]) if has_titles else ([], lines)
    lines = [line for line in lines if line.strip()]
    targets = tuple(output / f"{part}{source.suffix}" for part in _SPLITS)
    check_new(targets)
    table = _Table(head, lines, source, delimiter)
    classes = [(value,) for value in table.column(rules.label or "-1")] if rules.stratify else None
    groups = [] if rules.group_by is None else [table.column(rules.group_by)]
    contents = [line.encode("utf-8", "surrogatepass") for line in lines]
    keys = [tuple(enumerate(of_line)) for of_line in zip(contents, *groups)]
    held_out = choose(keys, rules.share, rules.seed, source, classes)
    counts, texts = [], []
    for number in range(len(targets)):
        selected = [line for line, chosen in zip(lines, held_out) if chosen == number]
        texts.append("\n".join([*head, *selected]) + "\n")
        counts.append(len(selected))
    _write_texts(targets, texts)
    return SplitReport((targets[0], targets[1]), (counts[0], counts[1]))


def _names_columns(source: Path, line: str, delimiter: str) -> bool:
    """Whether the first line of a table has usual titles, two at least; the log says so."""
    if source.suffix.lower() not in (".csv", ".tsv"):
        return False
    cells = [cell.strip().lower() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    if len(COLUMN_TITLES & set(cells)) < 2:
        return False
    log.info(f"{source}: the first line names the columns and stands in both parts: {line}")
    return True


class _Table(NamedTuple):
    """The lines of a file, and where their columns are."""

    head: list[str]
    lines: list[str]
    source: Path
    delimiter: str

    def column(self, name: str) -> list[str]:
        """The values of a column, by its name in the first line, its number from 1, or -1 for the last one; of .jsonl
        those of a key. Raises: InputError, where there is no such column."""
        if self.source.suffix.lower() == ".jsonl":
            rows = [bounded.parse_json(line.encode("utf-8"), self.source, "line") for line in self.lines]
            values = [row.get(name) if isinstance(row, dict) else None for row in rows]
            if None in values:
                raise self._misfit(name, "a key of every line")
            return list(map(str, values))
        names = self._cells(self.head[0]) if self.head else []
        if name in names:
            number = names.index(name)
        elif name.removeprefix("-").isdecimal() and name != "0":
            number = int(name) - 1 if not name.startswith("-") else int(name)
        else:
            raise self._misfit(
                name, ", ".join(names) or "a number from 1; with --header a name of the first line"
            )
        rows = [self._cells(line) for line in self.lines]
        if any(not -len(row) <= number < len(row) for row in rows):
            raise self._misfit(name, "a column that every line has")
        return [row[number] for row in rows]

    def _cells(self, line: str) -> list[str]:
        return next(csv.reader([line], delimiter=self.delimiter), [])

    def _misfit(self, name: str, allowed: str) -> InputError:
        return InputError("there is no such column", where=self.source, received=name, allowed=allowed)


def _write_texts(targets: Sequence[Path], texts: Sequence[str]) -> None:
    names = [target.name for target in targets]
    with write_whole(targets[0].parent, names) as folder:
        for name, text in zip(names, texts):
            write_file(folder / name, text.encode("utf-8"))
