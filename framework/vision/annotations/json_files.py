"""Folders with a JSON file of annotations a split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from framework.core.errors import InputError
from framework.vision.annotations.objects import AnnotatedSet, find_split, merge_splits
from framework.vision.dataset_files import JSON_LINES, abbreviate, read_annotations

SUFFIXES = (".json", *JSON_LINES)


def holds(file: Path, is_kind: Callable[[object], bool]) -> bool:
    """Whether a file is JSON of a kind; whoever reads it says what is wrong with it."""
    try:
        return is_kind(read_annotations(file))
    except Exception:
        return False


def list_json_files(folder: Path, is_kind: Callable[[object], bool]) -> Iterator[Path]:
    """The files of a kind in a folder and in `annotations` of it."""
    for location in (folder, folder / "annotations"):
        for path in (*sorted(location.glob("*.json")), *sorted(location.glob("*.ndjson"))):
            if holds(path, is_kind):
                yield path


def files_by_split(
    paths: Sequence[Path], folder: Path, what: str = "files of annotations"
) -> Mapping[str, Path]:
    """Files by split: a word of their name, "" where it tells none. Raises: InputError, where several are of one
    split; `what` names them there."""
    files: dict[str, Path] = {}
    for path in paths:
        split = find_split(path.stem)
        if split in files:
            raise InputError(
                f"several {what} are of one split",
                where=folder,
                received=f"{files[split].name}, {path.name}",
                fix="name one of the files in the place of the folder",
            )
        files[split] = path
    return files


def read_json_files(
    source: Path,
    images: Path | None,
    is_kind: Callable[[object], bool],
    read: Callable[[Path, Path], AnnotatedSet],
    tool: str,
) -> AnnotatedSet:
    """The objects of a file, or of the files of a folder, each of which is a split by its name. `read` takes a file and
    the folder that its images are searched in. Raises: InputError, where there is no file."""
    if source.is_file():
        return read(source, images or source.parent)
    return _read_splits(list_json_files(source, is_kind), source, images, read, tool)


def _read_splits(
    paths: Iterable[Path],
    source: Path,
    images: Path | None,
    read: Callable[[Path, Path], AnnotatedSet],
    tool: str,
) -> AnnotatedSet:
    files = files_by_split(list(paths), source)
    if not files:
        raise InputError(f"there are no annotations of {tool}", where=source, allowed="a .json file")
    sets = {split: read(path, images or source) for split, path in files.items()}
    if len(sets) == 1:
        split, one = next(iter(sets.items()))
        return replace(one, images=tuple(replace(image, split=image.split or split) for image in one.images))
    return merge_splits(sets)


def read_many_files(
    source: Path,
    images: Path | None,
    is_kind: Callable[[object], bool],
    read: Callable[[Path, Path], AnnotatedSet],
    tool: str,
) -> AnnotatedSet:
    """As `read_json_files`, of tools that also write a file an image, whose names tell no split then.

    Raises: InputError, where there is no file, or two have the same image."""
    if source.is_file():
        return read(source, images or source.parent)
    paths = list(list_json_files(source, is_kind))
    if len({find_split(path.stem) for path in paths}) == len(paths):
        return _read_splits(paths, source, images, read, tool)
    merged = merge_splits({str(path): read(path, images or source) for path in paths})
    counts = Counter(image.path for image in merged.images)
    if repeated := [str(path) for path, count in counts.items() if count > 1]:
        raise InputError(
            "several files of annotations have the same images",
            where=source,
            received=abbreviate(repeated),
            fix="name one of the files in the place of the folder",
        )
    return replace(merged, images=tuple(replace(image, split="") for image in merged.images))
