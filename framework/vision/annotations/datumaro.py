"""Datumaro's own format, which CVAT exports too ("Datumaro 1.0"): a JSON file a split, and the images in folders.

Source: https://open-edge-platform.github.io/datumaro, data format "datumaro"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from framework.core.errors import FormatError, InputError
from framework.core.fields import is_number, read_list
from framework.core.types import JSON
from framework.vision.annotations.groups import GroupedShape, join_groups
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import read_json_files
from framework.vision.annotations.objects import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotatedSet,
    from_full_mask,
)
from framework.vision.annotations.shapes import box_object, ellipse_outline, outline_object, turn, turn_box
from framework.vision.dataset_files import abbreviate, decode_region, is_region, read_annotations
from framework.vision.image import read_size

_KINDS = ("bbox", "rotated_bbox", "polygon", "ellipse", "mask")


def is_datumaro(data: object) -> bool:
    """Whether what a JSON file holds is of this format."""
    return (
        isinstance(data, dict)
        and isinstance(data.get("items"), list)
        and isinstance(data.get("categories"), dict)
    )


def read_datumaro(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The objects of a file, or of the files in `annotations` of a folder, each of which is a split by its name.

    Boxes are read, those that are turned (`rotated_bbox`, or the attribute `rotation` of CVAT) and ellipses as
    outlines, polygons and masks; those of one group may be one object (`join_groups`). Other kinds (labels, captions,
    points, lines, cuboids) have no area: they are counted in `problems`, as items without an image are. Crowds have
    `is_valid` False. Classes have the order of the labels.

    Args:
        images: The folder of the images; without it `images/<name of the file>`, or `images`, of the folder around
            `annotations`.

    Raises:
        InputError: there are no labels, or no image is there. FormatError: the file is not of this format.
    """
    return read_json_files(source, images, is_datumaro, _read_file, "Datumaro")


def _read_file(file: Path, folder: Path) -> AnnotatedSet:
    data = read_annotations(file)
    if not isinstance(data, dict) or not is_datumaro(data):
        raise FormatError(
            "the file is not Datumaro's", where=file, allowed='{"categories": {...}, "items": [...]}'
        )
    names = _read_names(data["categories"], file)
    index = ImageIndex(_image_folder(file, folder))
    problems, skipped = list[str](), Counter[str]()
    missing: list[str] = []
    read: dict[Path, AnnotatedImage] = {}
    for number, item in enumerate(read_list(data, "items", file), start=1):
        if not isinstance(item, dict):
            problems.append(f"{file}, item {number}: no item, but {str(item)[:40]}")
            continue
        name = _image_name(item)
        path = index.look_up(name) if name else None
        if path is None or not path.is_relative_to(index.folder):
            missing.append(name or f"item {number}")
            continue
        if path in read:
            problems.append(f"{file}: {name} comes twice")
            continue
        size_hw = read_size(path)
        objects = _read_item(item, names, size_hw, f"{file}, {name}", problems, skipped)
        read[path] = AnnotatedImage(path, index.name(path), size_hw, objects)
    if not read:
        raise InputError(
            "none of the images is there",
            where=file,
            received=f"{len(missing)} items; {abbreviate(missing)}",
            allowed=f"images in {index.folder}",
            fix="name the folder of the images with --images",
        )
    if missing:
        problems.append(
            f"{file}: {len(missing)} items have no image in {index.folder}: {abbreviate(missing)}"
        )
    problems += [f"{file}: {count} x {what}" for what, count in skipped.items()]
    return AnnotatedSet(tuple(read.values()), names, tuple(problems))


def _image_folder(file: Path, folder: Path) -> Path:
    """Where the images of a file are: in the folder of its split, where there is one."""
    around = file.parent.parent if file.parent.name == "annotations" else file.parent
    options = [one / "images" / file.stem for one in (folder, around)]
    options += [folder / file.stem, *(one / "images" for one in (folder, around))]
    return next((one for one in options if one.is_dir()), folder)


def _read_names(categories: JSON, file: Path) -> tuple[str, ...]:
    labels = categories.get("label") if isinstance(categories, dict) else None
    listed = labels.get("labels") if isinstance(labels, dict) else None
    entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    names = tuple(str(one.get("name")) for one in entries)
    if not names or len(set(names)) < len(names):
        raise InputError(
            "the data set needs a name of its own for each label",
            where=file,
            received=abbreviate(list(names)) if names else "no label",
            allowed='"categories": {"label": {"labels": [{"name": "cat"}, ...]}}',
        )
    return names


def _image_name(item: Mapping[str, JSON]) -> str:
    for key in ("image", "media"):
        media = item.get(key)
        if isinstance(media, dict) and isinstance(path := media.get("path"), str) and path:
            return path
    name = item.get("id")
    return name if isinstance(name, str) else ""


def _read_item(
    item: Mapping[str, JSON],
    names: tuple[str, ...],
    size_hw: tuple[int, int],
    where: str,
    problems: list[str],
    skipped: Counter[str],
) -> tuple[AnnotatedObject, ...]:
    listed = item.get("annotations")
    shapes: list[GroupedShape] = []
    for number, one in enumerate(listed if isinstance(listed, list) else [], start=1):
        kind = one.get("type") if isinstance(one, dict) else None
        if not isinstance(one, dict) or kind not in _KINDS:
            skipped[f"an annotation of the kind {str(kind)[:40]}"] += 1
            continue
        group = one.get("group")
        try:
            read = _read_shape(str(kind), one, names, size_hw)
        except (ValueError, InputError) as error:
            text = error.problem if isinstance(error, InputError) else error
            problems.append(f"{where}, annotation {number} ({kind}): {text}")
            continue
        name = str(group) if isinstance(group, int) and group > 0 else ""
        shapes.append(GroupedShape(read, name, kind == "polygon"))
    return tuple(join_groups(shapes))


def _read_shape(
    kind: str, one: Mapping[str, JSON], names: tuple[str, ...], size_hw: tuple[int, int]
) -> AnnotatedObject:
    """Raises: ValueError, InputError."""
    index = one.get("label_id")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(names):
        raise ValueError(f"label_id is {str(index)[:20]}, and there are {len(names)} labels")
    label = names[index]
    listed = one.get("attributes")
    attributes = {key: str(value) for key, value in (listed.items() if isinstance(listed, dict) else ())}
    is_valid = attributes.pop("is_crowd", "").lower() not in ("1", "true")
    rotation = attributes.pop("rotation", "0")
    if kind == "mask":
        region = one.get("rle")
        if not is_region(region) or not isinstance(region, dict):
            raise ValueError(f"{label}: rle is {str(region)[:40]}")
        mask = decode_region(region, size_hw, "")
        if not mask.any():
            raise ValueError(f"{label}: the mask has no pixel")
        return from_full_mask(label, mask, attributes, is_valid)
    if kind == "polygon":
        points = _numbers(one, "points")
        if len(points) % 2:
            raise ValueError(f"{label}: {len(points)} numbers are no points")
        return outline_object(label, np.array(points, np.float64).reshape(-1, 2), attributes, is_valid)
    if kind == "ellipse":
        x0, y0, x1, y1 = _numbers(one, "points", 4)
        outline = ellipse_outline((x0 + x1) / 2, (y0 + y1) / 2, abs(x1 - x0) / 2, abs(y1 - y0) / 2)
        return outline_object(label, turn(outline, _degrees(rotation)), attributes, is_valid)
    if kind == "rotated_bbox":
        x, y, width, height, degrees = _numbers(one, "points", 5)
        x, y = x - width / 2, y - height / 2
    else:
        x, y, width, height = _numbers(one, "bbox", 4)
        degrees = _degrees(rotation)
    box = box_object(label, (x, y, x + width, y + height), attributes, is_valid)
    if not degrees:
        return box
    return outline_object(label, turn_box(box.box, degrees), attributes, is_valid)


def _degrees(text: str) -> float:
    degrees = float(text)
    if not abs(degrees) <= 360:
        raise ValueError(f"the rotation is {text[:20]}")
    return degrees


def _numbers(one: Mapping[str, JSON], name: str, count: int | None = None) -> list[float]:
    listed = one.get(name)
    values = [float(value) for value in listed if is_number(value)] if isinstance(listed, list) else []
    if not isinstance(listed, list) or len(values) < len(listed) or len(values) != (count or len(values)):
        raise ValueError(f"{name} are {str(listed)[:40]}")
    return values
