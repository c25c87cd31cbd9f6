"""Ultralytics' NDJSON, which its platform exports: a line about the data set, and a line for each image.

Source: https://docs.ultralytics.com/datasets/detect/#ultralytics-ndjson-format
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from framework.core.errors import FormatError, InputError
from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import read_json_files
from framework.vision.annotations.objects import SUBSETS, AnnotatedImage, AnnotatedObject, AnnotatedSet
from framework.vision.annotations.shapes import box_object, outline_object
from framework.vision.dataset_files import abbreviate, read_annotations
from framework.vision.image import read_size

_OUTLINES, _BOXES = ("segments", "obb"), ("boxes", "pose")


def is_ultralytics(data: object) -> bool:
    """Whether what a file of JSON lines holds is of this format."""
    first = data[0] if isinstance(data, list) and data else None
    return isinstance(first, dict) and first.get("type") == "dataset" and "task" in first


def read_ultralytics(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The objects of a file, or of the file of a folder, with the splits that its lines tell.

    Boxes (of poses too, whose keypoints are not read), segments and turned boxes are told by shares of the image's
    sides; classes by their number in `class_names`. Images that are not there, which the file has addresses of, are
    told in `problems`. Classes without a name are called by their number.

    Args:
        images: The folder of the images, which are searched by name; without it the file's folder.

    Raises:
        InputError: the file is of another task, or none of the images is there. FormatError: it is not of this format.
    """
    return read_json_files(source, images, is_ultralytics, _read_file, "Ultralytics")


def _read_file(file: Path, folder: Path) -> AnnotatedSet:
    lines = read_annotations(file)
    if not isinstance(lines, list) or not is_ultralytics(lines):
        raise FormatError(
            "the file is not Ultralytics'",
            where=file,
            allowed='{"type": "dataset", "task": "detect", "class_names": {"0": "cat"}}, and a line for each image',
        )
    task, listed = lines[0]["task"], lines[0].get("class_names")
    if task not in ("detect", "segment", "pose", "obb"):
        raise InputError(
            "the data set has no objects",
            where=file,
            received=f"task {str(task)[:40]}",
            allowed="detect, segment, pose or obb",
        )
    names = listed if isinstance(listed, dict) else {}
    index, problems, skipped = ImageIndex(folder), list[str](), Counter[str]()
    missing, read = list[str](), list[AnnotatedImage]()
    for number, line in enumerate(lines[1:], start=2):
        name = line.get("file") if isinstance(line, dict) else None
        if not isinstance(line, dict) or not isinstance(name, str) or not name:
            problems.append(f"{file}, line {number}: no image, but {str(line)[:40]}")
            continue
        split = SUBSETS.get(str(line.get("split")).lower(), "")
        path = index.look_up_inside([f"{split}/{name}" if split else name])
        if path is None:
            missing.append(name)
            continue
        size_hw = read_size(path)
        objects = tuple(_read_objects(line, names, size_hw, f"{file}, line {number}", problems, skipped))
        read.append(AnnotatedImage(path, index.name(path), size_hw, objects, split))
    if not read:
        raise InputError(
            "none of the images is there",
            where=file,
            received=f"{len(missing)} images; {abbreviate(missing)}",
            allowed=f"images in {index.folder}: their addresses are not opened",
            fix="download the images, and name their folder with --images",
        )
    if missing:
        problems.append(f"{file}: {len(missing)} images are not in {index.folder}: {abbreviate(missing)}")
    notes = tuple(f"{count} times: {what}" for what, count in skipped.items())
    ordered = [str(names[key]) for key in sorted(names, key=lambda key: (len(key), key))]
    others = sorted({one.label for image in read for one in image.objects})
    return AnnotatedSet(tuple(read), tuple(dict.fromkeys([*ordered, *others])), tuple(problems), notes)


def _read_objects(
    line: Mapping[str, JSON],
    names: Mapping[str, JSON],
    size_hw: tuple[int, int],
    where: str,
    problems: list[str],
    skipped: Counter[str],
) -> Iterator[AnnotatedObject]:
    annotations = line.get("annotations")
    of_kinds = annotations if isinstance(annotations, dict) else {}
    for kind in (*_BOXES, *_OUTLINES):
        listed = of_kinds.get(kind)
        for number, values in enumerate(listed if isinstance(listed, list) else [], start=1):
            try:
                yield _read_object(kind, values, names, size_hw)
            except ValueError as error:
                problems.append(f"{where}, object {number} ({kind}): {error}")
                continue
            if kind == "pose":
                skipped["keypoints behind a box are not read"] += 1


def _read_object(
    kind: str, values: JSON, names: Mapping[str, JSON], size_hw: tuple[int, int]
) -> AnnotatedObject:
    """Raises: ValueError."""
    listed = values if isinstance(values, list) else []
    numbers = [float(value) for value in listed if is_number(value)]
    if len(numbers) < max(5, len(listed)) or numbers[0] != int(numbers[0]):
        raise ValueError(f"the values are {str(values)[:60]}")
    label = str(names.get(str(int(numbers[0])), int(numbers[0])))
    height, width = size_hw
    if kind in _BOXES:
        x, y, across, down = numbers[1:5]
        shares = [(x - across / 2, y - down / 2), (x + across / 2, y + down / 2)]
        (x0, y0), (x1, y1) = (np.clip(shares, 0, 1) * (width, height)).tolist()
        return box_object(label, (x0, y0, x1, y1), {})
    if len(numbers) % 2 == 0:
        raise ValueError(f"{label}: {len(numbers) - 1} numbers are no points")
    points = np.clip(np.array(numbers[1:], np.float64).reshape(-1, 2), 0, 1)
    return outline_object(label, points * (width, height), {})
