"""Create ML's JSON of objects, as LabelImg, RectLabel and Roboflow write it too.

Source: https://developer.apple.com/documentation/createml/building-an-object-detector-data-source
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from framework.core.errors import FormatError
from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import read_many_files
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedObject, AnnotatedSet
from framework.vision.annotations.shapes import box_object
from framework.vision.dataset_files import read_annotations
from framework.vision.image import read_size

_IMAGE = ("imagefilename", "image")
_OBJECTS = ("annotation", "annotations")


def is_create_ml(data: object) -> bool:
    """Whether what a JSON file holds is of this format."""
    return (
        isinstance(data, list)
        and bool(data)
        and all(isinstance(one, dict) and _text(one, _IMAGE) and _listed(one) is not None for one in data)
    )


def read_create_ml(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The objects of a file, or of the files of a folder, each of which is a split by its name, or has images of its
    own. Boxes are told by their centre and their size in pixels; those without a class or an area are listed in
    `problems`. Classes are sorted.

    Args:
        images: The folder of the images, which are searched in the folders of it too; without it the file's folder.

    Raises:
        InputError: an image is not there. FormatError: the file is not of this format.
    """
    return read_many_files(source, images, is_create_ml, _read_file, "Create ML")


def _text(entry: Mapping[str, JSON], names: tuple[str, ...]) -> str:
    return next((text for name in names if isinstance(text := entry.get(name), str)), "")


def _listed(entry: Mapping[str, JSON]) -> list[JSON] | None:
    return next((value for name in _OBJECTS if isinstance(value := entry.get(name), list)), None)


def _read_file(file: Path, folder: Path) -> AnnotatedSet:
    data = read_annotations(file)
    if not isinstance(data, list) or not is_create_ml(data):
        raise FormatError(
            "the file is not Create ML's",
            where=file,
            allowed='[{"imagefilename": "a.jpg", "annotation": [{"label": "cat", "coordinates": {"x": …}}]}, …]',
        )
    index, problems, read = ImageIndex(folder), list[str](), list[AnnotatedImage]()
    for entry in data:
        name = _text(entry, _IMAGE)
        path = index.find(name, str(file))
        objects = tuple(_read_objects(_listed(entry) or [], f"{file}, {name}", problems))
        read.append(AnnotatedImage(path, index.name(path), read_size(path), objects))
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    return AnnotatedSet(tuple(read), names, tuple(problems))


def _read_objects(listed: list[JSON], where: str, problems: list[str]) -> Iterator[AnnotatedObject]:
    for number, one in enumerate(listed, start=1):
        try:
            yield _read_object(one if isinstance(one, dict) else {})
        except ValueError as error:
            problems.append(f"{where}, object {number}: {error}")


def _read_object(one: Mapping[str, JSON]) -> AnnotatedObject:
    """Raises: ValueError."""
    label, sides = str(one.get("label") or ""), one.get("coordinates")
    if not label:
        raise ValueError("no label")
    values = [sides.get(name) for name in ("x", "y", "width", "height")] if isinstance(sides, dict) else []
    numbers = [float(value) for value in values if is_number(value)]
    if len(numbers) < 4:
        raise ValueError(f"{label}: coordinates are {str(sides)[:60]}")
    x, y, width, height = numbers
    return box_object(label, (x - width / 2, y - height / 2, x + width / 2, y + height / 2), {})
