"""BDD100K's JSON of boxes, which Scalabel writes too: a list of images with their labels.

Source: https://doc.bdd100k.com/format.html and https://github.com/scalabel/scalabel, scalabel/label/transforms.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from framework.core.errors import FormatError
from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import read_json_files
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedObject, AnnotatedSet
from framework.vision.annotations.shapes import box_object
from framework.vision.dataset_files import read_annotations
from framework.vision.image import read_size

_SIDES = ("x1", "y1", "x2", "y2")
_CROWD = "crowd"


def is_bdd100k(data: object) -> bool:
    """Whether what a JSON file holds is of this format: images may have no labels, but one has boxes."""
    listed = data.get("frames") if isinstance(data, dict) else data
    if not isinstance(listed, list) or not listed:
        return False
    return all(_is_image(one) for one in listed) and any(
        isinstance(label, dict) and "category" in label and "box2d" in label
        for one in listed
        for label in one.get("labels") or []
    )


def _is_image(one: object) -> bool:
    return (
        isinstance(one, dict)
        and isinstance(one.get("name"), str)
        and isinstance(one.get("labels") or [], list)
    )


def read_bdd100k(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The objects of a file, or of the files of a folder, each of which is a split by its name.

    The box is `box2d`, whose last pixels, x2 and y2, are inside, as in Scalabel; labels without one, such as lanes and
    areas to drive on, are no objects: a note counts them. Crowds have `is_valid` False. The attributes of a label are
    kept. Classes are sorted. Boxes without an area are told in `problems`.

    Args:
        images: The folder of the images, which are searched in the folders of it too; without it the file's folder.

    Raises:
        InputError: there is no such file, or an image is not there. FormatError: the file is not of this format.
    """
    return read_json_files(source, images, is_bdd100k, _read_file, "BDD100K")


def _read_file(file: Path, folder: Path) -> AnnotatedSet:
    data = read_annotations(file)
    listed = data.get("frames") if isinstance(data, dict) else data
    if not isinstance(listed, list) or not all(map(_is_image, listed)):
        raise FormatError(
            "the file is not BDD100K's",
            where=file,
            allowed='[{"name": "a.jpg", "labels": [{"category": "car", "box2d": {"x1": …}}]}, …]',
        )
    index, problems, read, others = ImageIndex(folder), list[str](), list[AnnotatedImage](), 0
    for entry in listed:
        name, labels = entry["name"], [one for one in entry.get("labels") or [] if isinstance(one, dict)]
        path = index.find(name, str(file))
        boxed = [one for one in labels if one.get("box2d") is not None]
        others += len(labels) - len(boxed)
        objects = tuple(_read_objects(boxed, f"{file}, {name}", problems))
        read.append(AnnotatedImage(path, index.name(path), read_size(path), objects))
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    notes = [f"{others} labels without a box, such as lanes, are no objects"] if others else []
    return AnnotatedSet(tuple(read), names, tuple(problems), tuple(notes))


def _read_objects(
    labels: Sequence[Mapping[str, JSON]], where: str, problems: list[str]
) -> Iterator[AnnotatedObject]:
    for number, one in enumerate(labels, start=1):
        name, sides, marks = one.get("category"), one.get("box2d"), one.get("attributes")
        values = [sides.get(side) for side in _SIDES] if isinstance(sides, dict) else []
        numbers = [float(value) for value in values if is_number(value)]
        attributes = {key: str(value) for key, value in marks.items()} if isinstance(marks, dict) else {}
        try:
            if not isinstance(name, str) or not name or len(numbers) != 4:
                raise ValueError(f"the category {str(name)[:40]} and the box {str(sides)[:60]}")
            x0, y0, x1, y1 = numbers
            is_crowd = attributes.get(_CROWD, "").lower() == "true"
            yield box_object(name, (x0, y0, x1 + 1, y1 + 1), attributes, is_valid=not is_crowd)
        except ValueError as error:
            problems.append(f"{where}, label {number}: {error}")
