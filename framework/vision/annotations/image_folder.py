"""Hugging Face's folder of images with objects: `metadata.jsonl`, an image a line.

Source: https://huggingface.co/docs/datasets/image_dataset
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from framework.core.errors import FormatError, InputError
from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedObject, AnnotatedSet
from framework.vision.annotations.shapes import box_object
from framework.vision.image import read_size

METADATA = "metadata.jsonl"
_CLASSES = ("categories", "category", "labels", "label")
_BOXES = ("bbox", "bboxes", "boxes")


def is_image_folder(folder: Path) -> bool:
    """Whether the first line of a folder's metadata.jsonl has an image and objects."""
    try:
        with (folder / METADATA).open(encoding="utf-8-sig") as file:
            first = json.loads(file.readline())
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and "file_name" in first and isinstance(first.get("objects"), dict)


def read_image_folder(folder: Path, images: Path | None = None) -> AnnotatedSet:
    """The objects of a folder's metadata.jsonl: `{"file_name": "a.jpg", "objects": {"bbox": [[left, top, width,
    height], …], "categories": [0, …]}}`, in pixels.

    Classes are names or numbers, which the format gives no names: they are called "0", "1", … Objects without an area
    are listed in `problems`.

    Args:
        images: The folder of the images, which are searched in the folders of it too; without it the folder itself.

    Raises:
        InputError: there is no such file, or an image is not there. FormatError: a line is not of this format.
    """
    file = folder / METADATA
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("the file cannot be read", where=file, received=error, allowed=METADATA) from None
    index, problems, read = ImageIndex(images or folder), list[str](), list[AnnotatedImage]()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        name, boxes, classes = _read_line(line, where)
        path = index.find(name, where)
        objects = tuple(_read_objects(boxes, classes, where, problems))
        read.append(AnnotatedImage(path, index.name(path), read_size(path), objects))
    names = order_names({one.label for image in read for one in image.objects})
    return AnnotatedSet(tuple(read), names, tuple(problems))


def order_names(names: Iterable[str]) -> tuple[str, ...]:
    """Classes in the order of their names, those that are numbers in the order of these, before all others."""
    return tuple(
        sorted(names, key=lambda name: (not name.isdecimal(), int(name) if name.isdecimal() else 0, name))
    )


def _read_line(line: str, where: str) -> tuple[str, list[JSON], list[JSON]]:
    """The image's name, and its boxes and classes, as many of either."""
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    name = entry.get("file_name") if isinstance(entry, dict) else None
    objects = entry.get("objects") if isinstance(entry, dict) else None
    boxes, classes = _listed(objects, _BOXES), _listed(objects, _CLASSES)
    if not isinstance(name, str) or boxes is None or classes is None or len(boxes) != len(classes):
        raise FormatError(
            "the line has no image with boxes and as many classes",
            where=where,
            received=line.strip()[:120],
            allowed='{"file_name": "a.jpg", "objects": {"bbox": [[x, y, width, height], …], "categories": [0, …]}}',
        )
    return name, boxes, classes


def _listed(objects: JSON, names: tuple[str, ...]) -> list[JSON] | None:
    """The first list of these names; an image without objects may have none."""
    if not isinstance(objects, Mapping):
        return [] if objects is None else None
    return next((value for name in names if isinstance(value := objects.get(name), list)), None)


def _read_objects(
    boxes: list[JSON], classes: list[JSON], where: str, problems: list[str]
) -> Iterator[AnnotatedObject]:
    for number, (box, label) in enumerate(zip(boxes, classes, strict=True), start=1):
        numbers = [float(side) for side in box if is_number(side)] if isinstance(box, list) else []
        try:
            if len(numbers) != 4 or isinstance(label, (list, dict)) or str(label or 0).strip() == "":
                raise ValueError(f"the class {str(label)[:40]} and the box {str(box)[:60]}")
            x, y, width, height = numbers
            yield box_object(str(label), (x, y, x + width, y + height), {})
        except ValueError as error:
            problems.append(f"{where}, object {number}: {error}")
