"""CrowdHuman's .odgt: an image a line, with the boxes of its persons.

Source: https://www.crowdhuman.org/download.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from framework.core import bounded
from framework.core.errors import FormatError, InputError
from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import files_by_split
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedObject, AnnotatedSet, merge_splits
from framework.vision.annotations.shapes import box_object
from framework.vision.dataset_files import read_lines
from framework.vision.image import read_size

SUFFIX = ".odgt"
_PERSON, _REGION = "person", "mask"  # the second are crowds, reflections and drawn persons


def find_crowd_human(folder: Path) -> Mapping[str, Path]:
    """The .odgt files of a folder, or of `annotations` in it, by split. Raises: InputError, where several are of one
    split."""
    paths = (*sorted(folder.glob(f"*{SUFFIX}")), *sorted((folder / "annotations").glob(f"*{SUFFIX}")))
    return files_by_split(paths, folder)


def read_crowd_human(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The persons of a file, or of the files of a folder, each of which is a split by its name.

    The box is `fbox`, of the whole body, which may reach beyond the image; those of the visible part and of the head
    are not read. Persons marked `ignore`, and the regions called "mask", are persons with `is_valid` False, as the
    benchmark counts them. Other tags are classes of their own. Boxes without an area are told in `problems`.

    Args:
        images: The folder of the images, which are called by their ID; without it they are looked for in all folders
            beside the file.

    Raises:
        InputError: there is no such file, or an image is not there. FormatError: a line is not of this format.
    """
    files = {"": source} if source.is_file() else find_crowd_human(source)
    if not files:
        raise InputError("there are no annotations of CrowdHuman", where=source, allowed=f"a file *{SUFFIX}")
    around = source.parent if source.is_file() else source
    sets = {split: _read_file(file, images or around) for split, file in files.items()}
    return merge_splits(sets)


def _read_file(file: Path, folder: Path) -> AnnotatedSet:
    index, problems, read = ImageIndex(folder), list[str](), list[AnnotatedImage]()
    for number, line in enumerate(read_lines(file, "annotation file"), start=1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        name, boxes = _read_line(line, where)
        path = index.find(name, where)
        objects = tuple(_read_objects(boxes, where, problems))
        read.append(AnnotatedImage(path, index.name(path), read_size(path), objects))
    labels = {one.label for image in read for one in image.objects} - {_PERSON}
    return AnnotatedSet(tuple(read), (_PERSON, *sorted(labels)), tuple(problems))


def _read_line(line: str, where: str) -> tuple[str, list[JSON]]:
    entry = bounded.parse_json(line.encode("utf-8"), where, "line")
    name, boxes = (entry.get("ID"), entry.get("gtboxes")) if isinstance(entry, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(boxes, list):
        raise FormatError(
            "the line has no image with boxes",
            where=where,
            received=line.strip()[:120],
            allowed='{"ID": "a", "gtboxes": [{"tag": "person", "fbox": [x, y, width, height], …}, …]}',
        )
    return name, boxes


def _read_objects(boxes: list[JSON], where: str, problems: list[str]) -> Iterator[AnnotatedObject]:
    for number, one in enumerate(boxes, start=1):
        entry: Mapping[str, JSON] = one if isinstance(one, dict) else {}
        tag, sides, extra = entry.get("tag"), entry.get("fbox"), entry.get("extra")
        numbers = [float(side) for side in sides if is_number(side)] if isinstance(sides, list) else []
        ignored = isinstance(extra, dict) and extra.get("ignore") == 1
        try:
            if not isinstance(tag, str) or not tag or len(numbers) != 4:
                raise ValueError(f"the tag {str(tag)[:40]} and the box {str(sides)[:60]}")
            x, y, width, height = numbers
            label = _PERSON if tag == _REGION else tag
            box = (x, y, x + width, y + height)
            yield box_object(label, box, {}, is_valid=not ignored and tag != _REGION)
        except ValueError as error:
            problems.append(f"{where}, object {number}: {error}")
