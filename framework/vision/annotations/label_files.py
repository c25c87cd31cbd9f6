"""Folders with a text file an image: which file belongs to which image, and to which split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from framework.core.disk import walk_files
from framework.core.errors import InputError
from framework.vision.annotations.objects import SUBSETS, AnnotatedImage, AnnotatedObject
from framework.vision.dataset_files import abbreviate, read_lines
from framework.vision.image import list_images, read_size

_LOOKED_AT = 20  # files, until one has a line


def has_lines(folder: Path, is_line: Callable[[str], bool]) -> bool:
    """Whether the first line in the first text files of a folder, and of those in it, is one of a format."""
    for number, path in enumerate(_list_texts(folder)):
        if number == _LOOKED_AT:
            return False
        try:
            lines = [line for line in read_lines(path, "annotation file") if line.strip()]
        except InputError:
            return False
        if lines:
            return any(map(is_line, lines[:3]))  # a format may have lines of other facts at its beginning
    return False


def find_folders(
    folder: Path, pairs: Sequence[tuple[str, str]], is_line: Callable[[str], bool] | None = None
) -> tuple[Path, Path] | None:
    """The folders of the images and of the text files, of the first pair that has lines of a format, or any: of one
    whose images are there, if there is such a pair."""
    matches = [
        (folder / images, folder / labels)
        for images, labels in pairs
        if (folder / labels).is_dir() and (is_line is None or has_lines(folder / labels, is_line))
    ]
    return next((pair for pair in matches if pair[0].is_dir()), matches[0] if matches else None)


def read_label_files(
    images: Path,
    labels: Path,
    read_line: Callable[[str], AnnotatedObject | None],
    problems: list[str],
) -> Iterator[AnnotatedImage]:
    """The images of the text files, with an object a line; lines that `read_line` has None for are none.

    Lines that it cannot read, by a ValueError, and images without a text file are told in `problems`. A first folder
    named train, val or test is a split.

    Raises:
        InputError: an image is not there, or a file is not UTF-8.
    """
    listed = list_images(images, recursive=True) if images.is_dir() else []
    by_stem = {path.relative_to(images).with_suffix(""): path for path in listed}
    by_name = {stem.name: path for stem, path in by_stem.items()}
    labelled: set[Path] = set()
    for file in _list_texts(labels):
        stem = file.relative_to(labels).with_suffix("")
        path = by_stem.get(stem) or by_name.get(stem.name)
        if path is None:
            raise InputError(
                "the image of an annotation is not there",
                where=file,
                received=stem.name,
                allowed=f"an image of this name in {images}",
                fix="name the folder of the images with --images",
            )
        labelled.add(path)
        objects = []
        for number, line in enumerate(read_lines(file, "annotation file"), start=1):
            try:
                one = read_line(line) if line.strip() else None
            except ValueError as error:
                problems.append(f"{file}, line {number}: {error}")
                continue
            if one is not None:
                objects.append(one)
        split = SUBSETS.get(stem.parts[0].lower(), "") if len(stem.parts) > 1 else ""
        yield AnnotatedImage(
            path, path.relative_to(images).as_posix(), read_size(path), tuple(objects), split
        )
    if missing := [str(path) for path in listed if path not in labelled]:
        problems.append(f"{len(missing)} images have no file of labels: {abbreviate(missing)}")


def to_numbers(words: Sequence[str]) -> list[float]:
    """Raises: ValueError, where one is no number."""
    return [float(word) for word in words]


def are_numbers(words: Sequence[str]) -> bool:
    """Whether all are numbers."""
    try:
        to_numbers(words)
    except ValueError:
        return False
    return True


def _list_texts(folder: Path) -> list[Path]:
    return sorted(Path(name) for name in walk_files(folder) if name.endswith(".txt"))
