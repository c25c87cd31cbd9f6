"""COCO's panoptic format: a JSON file of segments, and a PNG file an image whose colours are their numbers.

Source: https://cocodataset.org/#format-data
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from framework.core.errors import FormatError, InputError
from framework.core.fields import read_flag, read_list, read_text
from framework.core.types import JSON
from framework.vision import image as image_files
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import read_json_files
from framework.vision.annotations.objects import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotatedSet,
    from_full_mask,
)
from framework.vision.coco_ids import distinct_categories, entries_by_id, read_id
from framework.vision.dataset_files import is_file, read_annotations

_COLOURS = 256**3
_LISTS = ("images", "annotations", "categories")


def is_panoptic(data: object) -> bool:
    """Whether what a JSON file holds is of this format."""
    if not isinstance(data, dict) or not all(isinstance(data.get(name), list) for name in _LISTS):
        return False
    first = next(iter(data["annotations"]), None)
    return isinstance(first, dict) and "segments_info" in first


def read_panoptic(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The segments of a file, or of the files of a folder or its `annotations`, each a split by its name: things and
    stuff alike, as masks.

    The PNG files lie in the folder of the JSON file's name, such as panoptic_val, beside it; the images are searched in
    `images`, or in the folder. Segments without a pixel, without a category, or of a PNG of another size are left out
    and told in `problems`; crowds have `is_valid` False.

    Raises:
        FormatError: a file is not of this format. InputError: an image or a PNG file is not there.
    """
    return read_json_files(source, images, is_panoptic, _read_file, "COCO's panoptic format")


def _read_file(file: Path, folder: Path) -> AnnotatedSet:
    data = read_annotations(file)
    if not isinstance(data, dict) or not is_panoptic(data):
        raise FormatError("the file is not of COCO's panoptic format", where=file, allowed="segments_info")
    lists = {name: _entries(data, name, file) for name in _LISTS}
    categories, problems = distinct_categories(lists, file)
    names = {key: read_text(one, "name", f"{file}, category {key}") for key, one in categories.items()}
    stuff = {key for key, one in categories.items() if one.get("isthing") == 0}
    entries = entries_by_id(lists["images"], "image", file)
    if folder == file.parent and folder.name.lower() == "annotations":
        folder = folder.parent  # with the images beside it
    index = _Images(folder, file.with_suffix(""))
    objects: dict[int | str, list[AnnotatedObject]] = {key: [] for key in entries}
    for number, one in enumerate(lists["annotations"], start=1):
        where = f"annotation number {number}"
        key = read_id(one.get("image_id"), entries)
        if key is None:
            problems.append(f"{where}: there is no such image")
            continue
        png = file.with_suffix("") / read_text(one, "file_name", f"{file}, {where}")
        objects[key] += _read_segments(png, one, names, f"{file}, {where}", problems)
    read = []
    for key, one in entries.items():
        path = index.find(read_text(one, "file_name", f"{file}, image {key}"), str(file))
        read.append(AnnotatedImage(path, path.name, image_files.read_size(path), tuple(objects[key])))
    both = stuff and len(stuff) < len(categories)
    notes = (
        [f"{len(stuff)} of {len(categories)} classes are stuff: their segments are read too"] if both else []
    )
    return AnnotatedSet(tuple(read), tuple(names.values()), tuple(problems), tuple(notes))


class _Images:
    """The images of a folder, but for the PNG files of the segments, which have the same names."""

    def __init__(self, folder: Path, segments: Path) -> None:
        candidates = (folder / "images", folder / "Images", folder)
        self._index = ImageIndex(next(one for one in candidates if one.is_dir() or one == folder))
        self._subset = segments.name.removeprefix("panoptic_")

    def find(self, name: str, where: str) -> Path:
        folder = self._index.folder
        spellings = (folder / self._subset / name, folder / name, folder / f"{self._subset}2017" / name)
        return next((one for one in spellings if is_file(one)), None) or self._index.find(name, where)


def _entries(data: Mapping[str, JSON], name: str, file: Path) -> list[Mapping[str, JSON]]:
    listed = read_list(data, name, file)
    entries: list[Mapping[str, JSON]] = [one for one in listed if isinstance(one, dict)]
    if len(entries) < len(listed):
        raise FormatError(
            "the file is not of COCO's panoptic format", where=file, received=f"{name} of others"
        )
    return entries


def _read_segments(
    png: Path, annotation: Mapping[str, JSON], names: Mapping[int | str, str], where: str, problems: list[str]
) -> list[AnnotatedObject]:
    if not is_file(png):
        raise InputError(
            "the PNG file of segments is not there",
            where=where,
            received=png,
            allowed="PNG files in the folder of the JSON file's name",
        )
    colours = image_files.read(png, orient=False).astype(np.int64)
    numbers = colours @ np.array([1, 256, 65536])
    read = []
    for segment in read_list(annotation, "segments_info", where):
        if not isinstance(segment, dict):
            continue
        category = read_id(segment.get("category_id"), names)
        number = read_id(segment.get("id"), range(_COLOURS))
        inside = numbers == (-1 if number is None else number)
        if category is None or not inside.any():
            what = "no such category" if category is None else "no pixel"
            problems.append(f"{png.name}, segment {str(segment.get('id'))[:20]}: {what}")
            continue
        read.append(from_full_mask(names[category], inside, {}, not read_flag(segment, "iscrowd", where)))
    return read
