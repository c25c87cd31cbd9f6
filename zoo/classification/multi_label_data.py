"""Lists of images with several classes each. Imports no jax: processes of the loader read them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, InputError
from framework.io.dataset import LazyDataset
from framework.vision.dataset_files import abbreviate, find_missing, listed_name, read_image, read_lines
from framework.vision.deep_samples import ValueRange
from framework.vision.sample import Sample
from zoo.classification.data import read_class_names

_FLAGS = {"0": False, "1": True, "0.0": False, "1.0": True, "false": False, "true": True}


class _Index(NamedTuple):
    names: list[str]
    labels: list[np.ndarray]
    class_names: tuple[str, ...]


@register("dataset")
@dataclass(frozen=True)
class MultiLabelList(LazyDataset):
    """Images named in a table, a line each, with any number of classes:

    * `a.jpg,cat;dog`: names with `label_separator` between them, or nothing for an image of no class;
    * `a.jpg,1,0,1` below a first line with the names of the columns, as Roboflow's `_classes.csv`, or with
      True and False, as pandas; with one column, `labels_file` names the class;
    * `a.jpg<tab>1,0,1`, as PaddleClas' lists: with `separator` a tab and `label_separator` a comma, names in
      `labels_file`, or numbers.

    Paths are relative to `root`, that of the list to it or to the current folder. Without `labels_file` (one name a
    line) the classes are the names of the columns, or the sorted names in the list. `value_range` is that of
    ImageFolder.

    Raises:
        ConfigError: a separator is empty.
        InputError: at the first use, the list cannot be read, has lines with other columns or unknown names, or images
            are not there. At an access, the image cannot be read.
    """

    root: Path
    list_file: Path
    labels_file: Path | None = None
    separator: str = ","
    label_separator: str = ";"
    header: bool = False
    value_range: ValueRange | None = None

    def __post_init__(self) -> None:
        if not self.separator or not self.label_separator:
            raise ConfigError("a separator is empty", where="MultiLabelList", allowed="a comma, a tab, …")

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes by index."""
        return self._index.class_names

    def __len__(self) -> int:
        return len(self._index.names)

    def read_labels(self) -> Sequence[np.ndarray]:
        """The class indices [K] of each sample, without its image."""
        return self._index.labels

    def __getitem__(self, index: int) -> Sample:
        where = Path(self.root) / self._index.names[index]
        pixels = read_image(
            where, where, otherwise=f"take it out of {self.list_file}", value_range=self.value_range
        )
        return Sample(pixels, labels=self._index.labels[index].copy(), id=str(where))

    @cached_property
    def _index(self) -> _Index:
        inside = Path(self.root) / self.list_file
        file = inside if inside.is_file() else Path(self.list_file)
        lines = [line for line in read_lines(file, "list of images") if line.strip()]
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=self.separator)]
        head, rows = (rows[:1], rows[1:]) if self.header else ([], rows)
        if not rows:
            raise InputError("the list names no image", where=self.list_file, allowed="a line an image")
        stated = None if self.labels_file is None else read_class_names(self.labels_file)
        columns = tuple(head[0][1:]) if head else ()
        cells = [
            [label.strip() for label in (row[1:] or [""])[0].split(self.label_separator)] for row in rows
        ]
        is_one_class = stated is not None and len(stated) == 1
        if (len(columns) > 1 or is_one_class) and all(_are_flags(row[1:]) for row in rows):
            flags, class_names = [row[1:] for row in rows], stated or columns
        elif len(cells[0]) > 1 and all(_are_flags(one) and len(one) == len(cells[0]) for one in cells):
            flags, class_names = cells, stated or tuple(map(str, range(len(cells[0]))))
        elif stated is None and all(_are_flags(one) for one in cells):
            raise InputError(
                "each line has one 0 or 1, which can be whether a class is there, or the name of a class",
                where=self.list_file,
                received=abbreviate([f"{row[0]}{self.separator}{one[0]}" for row, one in zip(rows, cells)]),
                fix="set labels_file: a file with one line, the name of the class; or with the lines 0 and 1",
            )
        else:
            return self._named(rows, cells, stated)
        wrong = [row[0] for row, one in zip(rows, flags) if len(one) != len(class_names)]
        if wrong:
            raise self._misfit(
                wrong, f"{len(class_names)} columns of 0 or 1: {abbreviate(list(class_names))}"
            )
        labels = [np.flatnonzero([_FLAGS[flag.lower()] for flag in one]).astype(np.int32) for one in flags]
        return self._checked([row[0] for row in rows], labels, class_names)

    def _named(self, rows: list[list[str]], cells: list[list[str]], stated: tuple[str, ...] | None) -> _Index:
        names = [[label for label in one if label] for one in cells]
        class_names = stated or tuple(sorted({label for one in names for label in one}))
        number = {name: index for index, name in enumerate(class_names)}
        wrong = [
            f"{row[0]}: {', '.join(label for label in one if label not in number) or 'more columns'}"
            for row, one in zip(rows, names)
            if len(row) > 2 or any(label not in number for label in one)
        ]
        if wrong or not class_names:
            raise self._misfit(wrong, f"path, and names of {abbreviate(list(class_names)) or 'classes'}")
        labels = [np.array(sorted({number[label] for label in one}), np.int32) for one in names]
        return self._checked([row[0] for row in rows], labels, class_names)

    def _checked(self, names: list[str], labels: list[np.ndarray], class_names: tuple[str, ...]) -> _Index:
        names = [listed_name(Path(self.root), name) for name in names]
        if missing := find_missing(Path(self.root) / name for name in names):
            raise InputError(
                f"{len(missing)} of the {len(names)} images in {self.list_file} are not there",
                where=self.root,
                received=abbreviate([names[number] for number in missing]),
                fix="check root, or set header where the first line names the columns",
            )
        return _Index(names, labels, class_names)

    def _misfit(self, lines: list[str], allowed: str) -> InputError:
        return InputError(
            f"{len(lines)} lines of the list cannot be used",
            where=self.list_file,
            received=abbreviate(lines, "; "),
            allowed=allowed,
            fix="set header, separator and label_separator as the list has them",
        )


def _are_flags(cells: Sequence[str]) -> bool:
    return len(cells) > 0 and all(cell.lower() in _FLAGS for cell in cells)
