"""A folder in COCO's format, with a JSON file a split: as COCO itself, Datumaro, FiftyOne and Roboflow write it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from framework.core.errors import InputError
from framework.vision.annotations.coco import read_coco
from framework.vision.annotations.objects import (
    SUBSETS,
    AnnotatedSet,
    find_split,
    merge_splits,
    split_spellings,
)
from framework.vision.coco_ids import find_file_name
from framework.vision.dataset_files import abbreviate, image_path, is_file, read_annotations

_FOLDERS = ("", "annotations", "Annotations", "images", "Images")


def find_coco_files(folder: Path) -> Mapping[str, Sequence[Path]]:
    """The files of objects in a folder by split, "" of no split; empty where there are none.

    They are looked for in the folder, in `annotations`, `images` and the folders of splits. Of COCO's own names
    instances_*.json alone are taken. The split is a word of the file's name, or else its folder. Several files are of
    one split where each has images of its own, as of tools that write a file an image.

    Raises:
        InputError: several files are of one split and of the same images.
    """
    splits = [path for path in sorted(folder.iterdir()) if path.is_dir() and path.name.lower() in SUBSETS]
    folders = (*(folder / name for name in _FOLDERS), *splits)
    paths = [path for one in folders for path in sorted(one.glob("*.json"))]
    if named := [path for path in paths if path.stem.startswith("instances_")]:
        paths = named
    files: dict[str, list[Path]] = {}
    by_real_path = {path.resolve(): path for path in paths}  # file systems may not tell Images from images
    for path in by_real_path.values():
        if _has_objects(path):
            files.setdefault(_split_of(path, folder), []).append(path)
    for several in files.values():
        names = Counter(name for path in several for name in set(_image_names(path)))
        if len(several) > 1 and max(names.values(), default=0) > 1:
            raise InputError(
                "several files in COCO's format are of one split and of the same images",
                where=folder,
                received=abbreviate([path.name for path in several]),
                fix="name one of the files in the place of the folder",
            )
    return files


def _image_names(path: Path) -> list[str]:
    data = read_annotations(path)
    entries = data.get("images") if isinstance(data, dict) else None
    listed = entries if isinstance(entries, list) else []
    return [str(find_file_name(one)) for one in listed if isinstance(one, dict)]


def _has_objects(path: Path) -> bool:
    try:
        data = read_annotations(path)
    except Exception:  # no file of annotations, whatever it is
        return False
    if not isinstance(data, dict):
        return False
    lists = [data.get(name) for name in ("images", "annotations", "categories")]
    if not all(isinstance(one, list) for one in lists):
        return False
    first = next(iter(lists[1] or ()), None)
    return not (isinstance(first, dict) and "segments_info" in first)  # a panoptic file


def _split_of(path: Path, folder: Path) -> str:
    if split := find_split(path.stem):
        return split
    return SUBSETS.get(path.parent.name.lower(), "") if path.parent != folder else ""


def read_coco_folder(folder: Path, images: Path | None = None) -> AnnotatedSet:
    """The objects of all files that `find_coco_files` names. Classes are those of all files, in their order.

    Raises:
        InputError: there is no such file, or several of one split. Else as `read_coco`.
    """
    files = find_coco_files(folder)
    if not files:
        raise InputError("there is no file in COCO's format", where=folder, allowed="annotations/*.json")
    sets = {}
    for split, paths in files.items():
        by_file = {str(path): read_coco(path, images or _find_images(path, folder, split)) for path in paths}
        read = merge_splits(by_file)
        sets[split] = replace(read, images=tuple(replace(image, split=split) for image in read.images))
    return merge_splits(sets)


def _find_images(path: Path, folder: Path, split: str) -> Path:
    """The folder that has the first image of a file."""
    first = next(iter(_image_names(path)), "")
    subset = path.stem.removeprefix("instances_")
    spellings = dict.fromkeys((subset, *split_spellings(split)))
    candidates = [
        *(path.parent / name for name in ("", "images", "data")),
        *(base / name for name in spellings if name for base in (folder / "images", folder)),
        *(folder / name for name in ("images", "Images", "data", "")),
    ]
    return next((one for one in candidates if is_file(image_path(one, first))), folder / "images")
