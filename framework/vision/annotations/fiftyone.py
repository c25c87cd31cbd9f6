"""FiftyOne's own format of boxes (`FiftyOneImageDetectionDataset`): `labels.json`, and the images in `data`.

Source: https://docs.voxel51.com/user_guide/export_datasets.html#fiftyoneimagedetectiondataset
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

_CROWD = "iscrowd"


def is_fiftyone(data: object) -> bool:
    """Whether what a JSON file holds is of this format: an image may have no list."""
    labels = data.get("labels") if isinstance(data, dict) and "classes" in data else None
    lists = [one for one in labels.values() if one is not None] if isinstance(labels, dict) else []
    return bool(lists) and all(
        isinstance(listed, list) and all(isinstance(one, dict) and "bounding_box" in one for one in listed)
        for listed in lists
    )


def read_fiftyone(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The objects of a file, or of the file of a folder.

    Boxes are told by left, top, width and height as shares of the image's sides, a class by its name, or by its number
    where the file lists classes. Crowds have `is_valid` False, other attributes are attributes. Boxes without a class
    or an area are told in `problems`. Classes have the order of the file, without which they are sorted.

    Args:
        images: The folder of the images, which are called by name, mostly without suffix; without it the file's.

    Raises:
        InputError: an image is not there. FormatError: the file is not of this format.
    """
    return read_json_files(source, images, is_fiftyone, _read_file, "FiftyOne")


def _read_file(file: Path, folder: Path) -> AnnotatedSet:
    entry = read_annotations(file)
    if not isinstance(entry, dict) or not is_fiftyone(entry):
        raise FormatError(
            "the file is not FiftyOne's",
            where=file,
            allowed='{"classes": ["cat", …], "labels": {"a": [{"label": 0, "bounding_box": [x, y, w, h]}, …], …}}',
        )
    listed, labels = entry["classes"], entry["labels"]
    classes = [str(name) for name in listed] if isinstance(listed, list) else []
    index, problems, read = ImageIndex(folder), list[str](), list[AnnotatedImage]()
    for name, boxes in labels.items():
        path = index.find(name, str(file))
        size_hw = read_size(path)
        objects = tuple(_read_objects(boxes or [], classes, size_hw, f"{file}, {name}", problems))
        read.append(AnnotatedImage(path, index.name(path).removeprefix("data/"), size_hw, objects))
    names = sorted({one.label for image in read for one in image.objects})
    return AnnotatedSet(tuple(read), tuple(dict.fromkeys([*classes, *names])), tuple(problems))


def _read_objects(
    boxes: list[dict[str, JSON]],
    classes: list[str],
    size_hw: tuple[int, int],
    where: str,
    problems: list[str],
) -> Iterator[AnnotatedObject]:
    for number, one in enumerate(boxes, start=1):
        try:
            yield _read_object(one, classes, size_hw)
        except ValueError as error:
            problems.append(f"{where}, object {number}: {error}")


def _read_object(one: Mapping[str, JSON], classes: list[str], size_hw: tuple[int, int]) -> AnnotatedObject:
    """Raises: ValueError."""
    label, sides, listed = one.get("label"), one.get("bounding_box"), one.get("attributes")
    if isinstance(label, int) and 0 <= label < len(classes):
        label = classes[label]
    if not isinstance(label, str) or not label:
        raise ValueError(f"the class is {ascii(label)[:40]}, and there are {len(classes)}")
    numbers = [float(side) for side in sides if is_number(side)] if isinstance(sides, list) else []
    if len(numbers) != 4:
        raise ValueError(f"{label}: bounding_box is {str(sides)[:60]}")
    attributes = {key: str(value) for key, value in (listed.items() if isinstance(listed, dict) else ())}
    is_valid = attributes.pop(_CROWD, "0").lower() not in ("1", "true")
    (height, width), (x, y, across, down) = size_hw, numbers
    box = (x * width, y * height, (x + across) * width, (y + down) * height)
    return box_object(label, box, attributes, is_valid)
