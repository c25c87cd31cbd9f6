"""COCO's format: one JSON file with images, annotations and categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from framework.core.errors import FormatError
from framework.core.fields import is_number, read_flag, read_list, read_number, read_text
from framework.core.types import JSON
from framework.vision import masks
from framework.vision.annotations.objects import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotatedSet,
    bounds,
    from_full_mask,
    signed_area,
)
from framework.vision.annotations.shapes import turn_box
from framework.vision.coco_ids import distinct_categories, entries_by_id, read_file_name, read_id
from framework.vision.dataset_files import Region, abbreviate, image_path, read_annotations, usable_region

_RESERVED = (
    "rotation",
)  # keys of `attributes` that CVAT and Datumaro write and that are no attributes of the object


def read_coco(file: Path, images: Path) -> AnnotatedSet:
    """The objects of a file, whose images lie in the folder `images`. Keypoints are not read.

    Raises:
        FormatError: the file is not of this format. InputError: an entry lacks a field, or has a wrong one.
    """
    data = read_annotations(file)
    if not isinstance(data, dict):
        raise FormatError("the file is not in COCO's format", where=file, allowed='{"images": [...], ...}')
    lists = {name: _entries(data, name, file) for name in ("images", "annotations", "categories")}
    categories, problems = distinct_categories(lists, file)
    names = {key: read_text(one, "name", f"{file}, category {key}") for key, one in categories.items()}
    entries = entries_by_id(lists["images"], "image", file)
    sizes = {key: _size(one, f"{file}, image {key}") for key, one in entries.items()}
    objects: dict[int | str, list[AnnotatedObject]] = {key: [] for key in entries}
    faults: list[str] = []
    for number, one in enumerate(lists["annotations"], start=1):
        where = f"annotation {one.get('id', f'number {number}')}"
        image, category = read_id(one.get("image_id"), entries), read_id(one.get("category_id"), names)
        if image is None or category is None:
            problems.append(f"{where}: there is no such image or category")
            continue
        empty = one.get("segmentation") in (None, [], [[]], {}, "")
        region, fault = (None, None) if empty else usable_region(one["segmentation"])
        try:
            objects[image].append(_read_object(one, names[category], region, f"{file}, {where}"))
            if fault:
                faults.append(f"{where}: {fault}")
        except ValueError as error:
            problems.append(f"{where} on image {image!r}: {error}" + (f"; {fault}" if fault else ""))
    every, notes = [one for listed in objects.values() for one in listed], list[str]()
    if every and not any(one.is_valid for one in every):
        notes.append(describe_all_crowds(len(every)))
        objects = {key: [replace(one, is_valid=True) for one in listed] for key, listed in objects.items()}
    if faults:
        notes.append(
            f"{len(faults)} objects have an outline that cannot be read, all of it or some: {abbreviate(faults)}"
        )
    read = [
        AnnotatedImage(
            image_path(images, name := read_file_name(one, f"{file}, image {key}")),
            name,
            sizes[key],
            tuple(objects[key]),
        )
        for key, one in entries.items()
    ]
    return AnnotatedSet(tuple(read), tuple(names.values()), tuple(problems), tuple(notes))


def is_ignored(annotation: Mapping[str, JSON], where: str) -> bool:
    """Whether an annotation is a crowd, or to be ignored, as converters of VOC's difficult objects and CrowdHuman mark
    it: neither learnt nor missed. (pycocotools overwrites `ignore` by `iscrowd`.) Raises: InputError."""
    return read_flag(annotation, "iscrowd", where) or read_flag(annotation, "ignore", where)


def read_rotation(annotation: Mapping[str, JSON]) -> float:
    """By how many degrees the box of an annotation is turned clockwise around its middle: CVAT and Datumaro write a
    turned box as it was before, with this in `attributes`. 0 where nothing, or no number of degrees, is said."""
    attributes = annotation.get("attributes")
    degrees = attributes.get("rotation") if isinstance(attributes, dict) else None
    return float(degrees) if is_number(degrees) and abs(degrees) <= 360 else 0.0


def describe_all_crowds(count: int) -> str:
    """What is to be said of a file that has crowds alone, of which nothing would be learnt."""
    return (
        f"all {count} objects are marked as crowds or to be ignored (iscrowd: 1, ignore: 1), as CVAT marks masks: "
        "they are read as objects"
    )


def _entries(data: Mapping[str, JSON], name: str, file: Path) -> list[Mapping[str, JSON]]:
    listed = read_list(data, name, file, [] if name == "annotations" else None) or []
    entries: list[Mapping[str, JSON]] = [one for one in listed if isinstance(one, dict)]
    if len(entries) < len(listed) or (not entries and name != "annotations"):
        raise FormatError(
            "the file is not in COCO's format", where=file, received=f"no list {name!r} of entries in braces"
        )
    return entries


def _size(one: Mapping[str, JSON], where: str) -> tuple[int, int] | None:
    height, width = (int(read_number(one, side, where, 0)) for side in ("height", "width"))
    return (height, width) if height > 0 and width > 0 else None


def _read_object(one: Mapping[str, JSON], label: str, region: Region | None, where: str) -> AnnotatedObject:
    """Raises: ValueError, where it has neither a box nor an outline."""
    named = one.get("attributes")
    attributes = (
        {str(key): str(value) for key, value in named.items() if key not in _RESERVED}
        if isinstance(named, dict)
        else {}
    )
    is_valid = not is_ignored(one, where)
    if isinstance(region, Mapping):
        mask = masks.decode_rle(region)
        if mask.any():
            return from_full_mask(label, mask, attributes, is_valid)
        region = None
    outlines = tuple(np.array(flat, np.float64).reshape(-1, 2) for flat in region or ())
    box = one.get("bbox")
    numbers = [float(value) for value in box if is_number(value)] if isinstance(box, list) else []
    if len(numbers) == 4 and min(numbers[2:]) > 0:
        x, y, width, height = numbers
        if degrees := 0.0 if outlines else read_rotation(one):
            outlines = (turn_box((x, y, x + width, y + height), degrees),)
            return AnnotatedObject(label, bounds(outlines), outlines, None, attributes, is_valid)
        return AnnotatedObject(label, (x, y, x + width, y + height), outlines, None, attributes, is_valid)
    if outlines:
        return AnnotatedObject(label, bounds(outlines), outlines, None, attributes, is_valid)
    raise ValueError(f"neither a box with an area nor an outline ({str(box)[:40]})")


def coco_dict(images: Sequence[AnnotatedImage], names: Sequence[str]) -> dict[str, JSON]:
    """The content of a file: categories are numbered from 1 in the order of the names, images and annotations too."""
    number = {name: index for index, name in enumerate(names, start=1)}
    annotations: list[JSON] = []
    entries: list[JSON] = []
    for key, image in enumerate(images, start=1):
        height, width = image.size_hw or (0, 0)
        entries.append({"id": key, "file_name": image.name, "height": height, "width": width})
        for one in image.objects:
            x0, y0, x1, y1 = one.box
            outline: JSON = [line.reshape(-1).tolist() for line in one.outlines]
            area = (x1 - x0) * (y1 - y0)
            if one.mask is not None:
                whole = one.fill((height, width))
                outline, area = masks.encode_rle(whole), float(whole.sum())
            elif len(one.outlines) == 1:
                area = abs(signed_area(one.outlines[0]))
            elif one.outlines:
                area = float(one.fill((height, width)).sum())
            entry: dict[str, JSON] = {
                **{"id": len(annotations) + 1, "image_id": key, "category_id": number[one.label]},
                **{"bbox": [x0, y0, x1 - x0, y1 - y0], "area": area, "iscrowd": int(not one.is_valid)},
                "segmentation": outline,
            }
            if one.attributes:
                entry["attributes"] = dict(one.attributes)
            annotations.append(entry)
    categories: list[JSON] = [{"id": index, "name": name} for name, index in number.items()]
    return {
        "info": {},
        "licenses": [],  # CVAT and Datumaro read no file without them
        "categories": categories,
        "images": entries,
        "annotations": annotations,
    }
