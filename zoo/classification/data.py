"""Images in files with one class each: in folders by class, in a zip of such folders, or in a list.

Nothing is read before the first `len(dataset)` or `dataset[i]`; then all names are read and checked at once. A pickled
dataset carries its settings alone, and its copy reads the names anew. `dataset[i]` may be called from several threads.
"""

from __future__ import annotations

import logging
import lzma
import os
import struct
import threading
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from framework.config.registry import register
from framework.core.disk import is_hidden, walk_files
from framework.core.errors import ConfigError, InputError, nearest
from framework.io.dataset import LazyDataset
from framework.vision import image
from framework.vision.annotations.objects import split_spellings
from framework.vision.dataset_files import (
    abbreviate,
    find_missing,
    listed_name,
    read_image,
    read_lines,
    spell_names,
    split_quoted,
)
from framework.vision.deep_samples import ValueRange
from framework.vision.sample import Sample

# RuntimeError: a password is needed; NotImplementedError, ValueError, struct.error: damaged headers
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    ValueError,
    RuntimeError,
    OSError,
    EOFError,
)
_MS_DOS = 0  # the system that made an entry of a zip
_MAX_IMAGE_BYTES = 1 << 30  # unpacked; a zip of some megabytes can hold more than fits into memory
_GET_ZIP_AGAIN = "test the archive with a zip program, and copy or download it again"
_SPLITS = {"train", "val", "valid", "validation", "test"}
_log = logging.getLogger("oar")
_MAX_UNNAMED = 1_000_000  # classes without a file of names; a greater label is a slip


class _Index(NamedTuple):
    names: list[str]  # from the folder or in the archive
    labels: np.ndarray  # [N] int32
    class_names: tuple[str, ...]


class _ImageFiles(LazyDataset):
    """Images by name; what a data set adds is where they are."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes by index."""
        return self._index.class_names

    def __len__(self) -> int:
        return len(self._index.names)

    def read_labels(self) -> Sequence[np.ndarray]:
        """The class index [1] of each sample, without its image."""
        return list(self._index.labels[:, None])

    @cached_property
    @abstractmethod
    def _index(self) -> _Index: ...


@register("dataset")
@dataclass(frozen=True)
class ImageFolder(_ImageFiles):
    """Images at `<root>/<split>/<class>/.../x.jpg`; the folder's name is the class.

    `root` or `<root>/<split>.zip` may be a zip of class folders, which is read where it is; where there is no `val`,
    `valid` or `validation` is read, as Roboflow has it. Classes are numbered in
    the order of their sorted names, or as in `labels_file`: one class a line, of which some may have no folder here.
    Folders and files whose names begin with a dot are left out. `value_range` is black and white of images of more than
    8 bits, as `framework.vision.image.read` takes it.

    Attributes:
        classes: Some of them, in the order in which they are numbered; images of others are left out, and a line of the
            log counts them. A class may have no image here, as one of the evaluation's.

    Raises:
        ConfigError: an extension does not begin with a dot, `classes` is empty or names a class twice.
        InputError: at the first use, there is no such folder or archive, there is no class folder in it, some class
            folders hold no image, are not in `labels_file` or are called train, val or test. At an access, the
            image cannot be read.
    """

    root: Path
    split: str = ""
    labels_file: Path | None = None
    extensions: tuple[str, ...] = image.SUFFIXES
    classes: tuple[str, ...] | None = None
    value_range: ValueRange | None = None

    def __post_init__(self) -> None:
        if not self.extensions or any(not suffix.startswith(".") for suffix in self.extensions):
            raise ConfigError(
                "extensions must begin with a dot",
                where="ImageFolder.extensions",
                received=self.extensions,
                allowed='one or more, each with its dot: ".jpg"',
            )
        if self.classes is not None and (not self.classes or len(set(self.classes)) < len(self.classes)):
            raise ConfigError(
                "classes must be different names",
                where="ImageFolder.classes",
                received=self.classes,
                allowed="one or more different names, or null for all folders",
            )

    def __getitem__(self, index: int) -> Sample:
        name, label = self._index.names[index], self._index.labels[index]
        where = self._place / name
        source_image = read_image(
            where if self._archive is None else self._archive.read(name),
            where,
            otherwise="delete it",
            value_range=self.value_range,
        )
        return Sample(source_image, labels=np.asarray(label), id=str(where))

    @cached_property
    def _place(self) -> Path:
        """The folder of the class folders, or the archive."""
        root = Path(self.root)
        if root.is_file() and zipfile.is_zipfile(root):
            return root
        for name in split_spellings(self.split):
            if (folder := root / name).is_dir():
                return folder
            packed = Path(f"{folder}.zip")
            if name and packed.is_file() and zipfile.is_zipfile(packed):
                return packed
        raise InputError(
            "there is no such folder or zip archive",
            where=root / self.split,
            allowed="a folder of class folders, or a zip of them",
            fix=f"check root and split; the current folder is {Path.cwd()}",
        )

    @cached_property
    def _archive(self) -> _Archive | None:
        return None if self._place.is_dir() else _Archive(self._place)

    @cached_property
    def _index(self) -> _Index:
        if self._archive is None:
            found = _walk(self._place)
        else:
            inside = self._place == Path(self.root) and self.split.strip("/")
            prefixes = [f"{name}/" for name in split_spellings(inside)] if inside else [""]
            found = next(filter(None, map(self._archive.list_members, prefixes)), {})
        suffixes = tuple(suffix.lower() for suffix in self.extensions)
        images = {
            name: [file for file in found[name] if file.lower().endswith(suffixes)] for name in sorted(found)
        }
        if not images:
            raise InputError(
                "there are no class folders",
                where=self._place,
                allowed="<class>/<image>, one folder a class",
                fix="set split to the folder between root and the class folders"
                if self.split == ""
                else None,
            )
        names = self.classes or ()
        if self.labels_file is not None:
            names = read_class_names(self.labels_file)
        images = _rename(images, {one: name for name in names for one in spell_names(name)})
        if self.classes is not None:
            images = self._select(images, self.classes)
        empty = [name for name, files in images.items() if not files]
        declared = self.labels_file is not None or self.classes is not None
        if empty and (len(empty) == len(images) or (not declared and not self._is_class_beside(empty))):
            raise InputError(
                f"{len(empty)} of {len(images)} class folders hold no image",
                where=self._place,
                received=abbreviate(empty),
                allowed=f"files that end in {', '.join(self.extensions)}",
                fix="remove the folders, set extensions, or name the classes with `classes` or `labels_file`",
            )
        if set(images) <= _SPLITS:
            raise InputError(
                "the class folders have the names of parts of a data set",
                where=self._place,
                received=abbreviate(list(images)),
                allowed="<root>/<split>/<class>/<image>",
                fix=f"set split, for example to {next(iter(images))!r}",
            )
        class_names = tuple(images) if self.classes is None else self.classes
        if self.labels_file is not None:
            class_names = tuple(names)
            self._check_classes(class_names, images)
        number = {name: index for index, name in enumerate(class_names)}
        labels = np.repeat([number[name] for name in images], [len(files) for files in images.values()])
        files_of_all = [file for files in images.values() for file in files]
        return _Index(files_of_all, labels.astype(np.int32), class_names)

    def _select(self, images: dict[str, list[str]], names: Sequence[str]) -> dict[str, list[str]]:
        """The images of these classes, none of one that has no folder here."""
        left = {name: len(files) for name, files in images.items() if name not in names and files}
        for name in names:
            if not images.get(name) and (close := nearest(name, left)):
                raise InputError(
                    f"no image is of the class {name!r}",
                    where=self._place,
                    received=abbreviate(list(left)),
                    fix=f"did you mean {close!r}?",
                )
        if left:
            counts = abbreviate([f"{name} {count}" for name, count in left.items()])
            _log.warning(
                f"{self._place}: {sum(left.values())} images of other classes are left out: {counts}"
            )
        return {name: images.get(name, []) for name in names}

    def _is_class_beside(self, names: Iterable[str]) -> bool:
        """Whether these are class folders with images in another split, as a rare class of the evaluation's is."""
        root = Path(self.root)
        others = [path for path in root.iterdir() if path.is_dir()] if self.split and root.is_dir() else []
        suffixes = tuple(suffix.lower() for suffix in self.extensions)

        def has_image(folder: Path) -> bool:
            return any(file.lower().endswith(suffixes) for file in walk_files(folder))

        return all(any(has_image(other / name) for other in others if other != self._place) for name in names)

    def _check_classes(self, class_names: Sequence[str], folders: Iterable[str]) -> None:
        twice = sorted({name for name in class_names if class_names.count(name) > 1})
        unknown = [name for name in folders if name not in set(class_names)]
        if twice or unknown:
            raise InputError(
                "labels_file names a class twice" if twice else "there are folders of unknown classes",
                where=self.labels_file if twice else self._place,
                received=abbreviate(twice or unknown),
                allowed="one class a line, each once" if twice else f"the classes in {self.labels_file}",
            )


@register("dataset")
@dataclass(frozen=True)
class ListFile(_ImageFiles):
    """Images named in a text file, a line each: `path label`, as PaddleClas' train_list.txt.

    Paths are relative to `root`. What follows the last `separator` of a line is the label, so paths may hold blanks;
    where it is a blank, a tab in a line goes before, so labels may hold blanks too; either may stand in double quotes,
    as in tables. Labels are either class indices
    from 0, or names of classes. `labels_file` has the name of class i on its line i, with or without the number in
    front; without the file the classes are called "0", "1", ... up to the greatest label, or are the sorted names in
    the list. `header` leaves out the first line. `value_range` is that of ImageFolder.

    Raises:
        ConfigError: the separator is empty.
        InputError: at the first use, the list cannot be read, is empty, has lines that are no `path label`, labels
            outside the classes, or images that are not there. At an access, the image cannot be read.
    """

    root: Path
    list_file: Path
    labels_file: Path | None = None
    separator: str = " "
    header: bool = False
    value_range: ValueRange | None = None

    def __post_init__(self) -> None:
        if not self.separator:
            raise ConfigError(
                "the separator is empty", where="ListFile.separator", allowed="a blank, a tab, ..."
            )

    def __getitem__(self, index: int) -> Sample:
        where = Path(self.root) / self._index.names[index]
        source_image = read_image(
            where, where, otherwise=f"take it out of {self.list_file}", value_range=self.value_range
        )
        return Sample(source_image, labels=np.asarray(self._index.labels[index]), id=str(where))

    @cached_property
    def _index(self) -> _Index:
        rows, bad = self._rows()
        class_names = None if self.labels_file is None else read_class_names(self.labels_file)
        if class_names is None and rows and not any(text.isdecimal() for _, _, text in rows):
            class_names = tuple(sorted({text for _, _, text in rows}))
        number = {name: index for index, name in enumerate(class_names or ())}
        limit = _MAX_UNNAMED if class_names is None else len(class_names)
        names, labels = [], []
        for line, name, text in rows:
            # a number of thousands of digits is one that Python does not read
            label = number.get(text) if not text.isdecimal() else int(text) if len(text) < 20 else None
            if label is None or label >= limit:
                what = (
                    f"label {text[:40]}"
                    if text.isdecimal()
                    else f"{f'{name}{self.separator}{text}'[:80]!r} is no path and class index"
                )
                bad.append((line, what))
            else:
                names.append(listed_name(Path(self.root), name))
                labels.append(label)
        if bad:
            lines = [f"{self.list_file}:{line}: {what}" for line, what in sorted(bad)]
            raise InputError(
                f"{len(bad)} lines of the list cannot be used",
                received=abbreviate(lines, "\n    "),
                allowed=f"path, {self.separator!r}, label 0 to {limit - 1}"
                + (
                    f" or name (the classes in {self.labels_file})"
                    if self.labels_file
                    else ", or names alone"
                ),
                fix="set separator if the columns are separated by something else, header: true if the first line "
                "names the columns, or correct the lines",
            )
        if not names:
            raise InputError("the list names no image", where=self.list_file, allowed="a line an image")
        if missing := find_missing(os.path.join(self.root, name) for name in names):
            raise InputError(
                f"{len(missing)} of the {len(names)} images in {self.list_file} are not there",
                where=self.root,
                received=abbreviate([names[number] for number in missing]),
                fix="check root, unpack the images, or take the lines out of the list",
            )
        if class_names is None:
            class_names = tuple(str(index) for index in range(max(labels) + 1))
        return _Index(names, np.array(labels, np.int32), class_names)

    def _rows(self) -> tuple[list[tuple[int, str, str]], list[tuple[int, str]]]:
        """(line, path, label) of each entry, and (line, what is wrong) of lines that are none."""
        rows, bad = [], []
        for number, line in enumerate(read_lines(self.list_file, "list of images"), start=1):
            if not line.strip() or (self.header and number == 1):
                continue
            is_tab = self.separator == " " and "\t" in line.strip()
            separator = "\t" if is_tab else self.separator
            name, delimiter, text = line.strip().rpartition(separator)
            if quoted := split_quoted(line.strip(), separator):
                name, text = quoted
            if delimiter and name.strip() and text.strip():
                rows.append((number, name.strip(), text.strip()))
            else:
                bad.append((number, f"{line.strip()[:80]!r} is no path and class index"))
        return rows, bad


def read_class_names(path: Path) -> tuple[str, ...]:
    """The names in a text file, one a line: `cat`, or `0 cat` where every line begins with its own number.

    Raises:
        InputError: the file cannot be read, is empty, or has an empty line between others.
    """
    names = [line.strip() for line in read_lines(path, "list of classes")]
    while names and not names[-1]:
        names.pop()
    if not names or not all(names):
        raise InputError(
            "a class has no name" if names else "the list of classes is empty",
            where=f"{path}:{names.index('') + 1}" if names else path,
            allowed="one name a line",
        )
    columns = [name.split(maxsplit=1) for name in names]
    if all(len(column) == 2 and column[0] == str(index) for index, column in enumerate(columns)):
        return tuple(name for _, name in columns)
    return tuple(names)


class _Archive:
    """A zip of images: one open file, read by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        try:
            self._file = zipfile.ZipFile(path)
            # .NET, and PowerShell before 7, write Windows' separators, which belong to no name there
            self._names = {
                entry.filename.replace("\\", "/")
                if entry.create_system == _MS_DOS
                else entry.filename: entry.filename
                for entry in self._file.infolist()
            }
        except _ZIP_ERRORS as error:
            raise InputError(
                "the archive is damaged", where=path, received=error, fix=_GET_ZIP_AGAIN
            ) from error

    def list_members(self, prefix: str) -> dict[str, list[str]]:
        """The files below `prefix` by their class folder."""
        found: dict[str, list[str]] = {}
        for entry in sorted(self._names):
            parts = PurePosixPath(entry[len(prefix) :]).parts
            hidden = any(map(is_hidden, parts))
            if not entry.startswith(prefix) or hidden or not parts or (len(parts) == 1 and entry[-1] != "/"):
                continue
            files = found.setdefault(parts[0], [])
            if entry[-1] != "/":
                files.append(entry)
        return found

    def read(self, name: str) -> bytes:
        try:
            name = self._names.get(name, name)
            if (size := self._file.getinfo(name).file_size) > _MAX_IMAGE_BYTES:
                raise ValueError(f"{size:,} bytes once it is unpacked, more than {_MAX_IMAGE_BYTES:,}")
            with self._lock:
                return self._file.read(name)
        except _ZIP_ERRORS as error:
            raise InputError(
                "an image cannot be taken out of the archive",
                where=self._path / name,
                received=error,
                fix=_GET_ZIP_AGAIN,
            ) from error


def _rename(images: Mapping[str, list[str]], names: Mapping[str, str]) -> dict[str, list[str]]:
    """The images by the name of their class as it is declared, where no folder has just that name."""
    free = {folder: name for folder in images if (name := names.get(folder, folder)) not in images}
    return {free.get(folder, folder): files for folder, files in images.items()}


def _walk(root: Path) -> dict[str, list[str]]:
    """All files below each folder in `root`, as paths from `root`, sorted. Raises: InputError, where one is closed."""
    found: dict[str, list[str]] = {}
    try:
        with os.scandir(root) as entries:
            classes = sorted(entry.name for entry in entries if entry.is_dir() and not is_hidden(entry.name))
        top = len(os.path.join(root, ""))
        for name in classes:
            found[name] = [file[top:] for file in walk_files(os.path.join(root, name), _raise)]
    except OSError as error:
        raise InputError(
            "a folder of the data set cannot be read",
            where=error.filename or root,
            received=error.strerror or error,
        ) from error
    return found


def _raise(error: OSError) -> None:
    """`os.walk` leaves out what it cannot read, unless it is told otherwise."""
    raise error
