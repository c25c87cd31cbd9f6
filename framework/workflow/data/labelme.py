"""Annotations of labelme, a .json beside each image, as one file in COCO's format."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from framework.core.disk import walk_files, write_file
from framework.core.errors import FormatError, InputError
from framework.core.fields import read_integer, read_list, read_text, shorten
from framework.core.types import JSON
from framework.vision import masks, polygons
from framework.vision.dataset_files import abbreviate, read_annotations, read_image
from framework.vision.image import SUFFIXES, read_bytes
from framework.workflow.data.commands import check_new, write_whole
from framework.workflow.data.labelme_shapes import NO_AREA, is_unfinished, read_kind, read_mask, read_outline


class LabelmeReport(NamedTuple):
    """What `convert_labelme` wrote."""

    annotations: Path
    images: Path
    counts: Mapping[str, int]
    """Objects of each class."""
    image_count: int
    left_out: Mapping[str, int]
    """Shapes without an area, by what they are: "line crack", or "leaf whose points do not make a polygon"."""
    renamed: Sequence[str] = ()
    """The .json files whose `imagePath` is not there, but an image of their own name."""

    def __str__(self) -> str:
        classes = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        lines = [
            f"{self.annotations}: {sum(self.counts.values())} objects of {len(self.counts)} classes "
            f"({classes or 'none'})",
            f"{self.images}: {self.image_count} images",
        ]
        if self.left_out:
            kinds = ", ".join(f"{count} {name}" for name, count in self.left_out.items())
            lines.append(f"{sum(self.left_out.values())} shapes without an area are left out: {kinds}")
        if self.renamed:
            lines.append(
                f"{len(self.renamed)} images are those of the .json's name, as imagePath names none: "
                f"{abbreviate(self.renamed)}"
            )
        return "\n".join(lines)


class _Object(NamedTuple):
    label: str
    outlines: list[np.ndarray]
    """[N, 2] in pixels"""
    masks: list[np.ndarray]
    """[H, W] bool, of shapes that are masks"""


def convert_labelme(source: str | Path, output: str | Path) -> LabelmeReport:
    """Write `<output>/annotations.json` and `<output>/images` from the .json files of labelme in a folder.

    Files are searched in the folders of `source` too. An image is the file that `imagePath` names, or what
    `imageData` holds where there is no such file, or the one beside the .json that has its name; it is copied as it is,
    and named after its .json. Polygons,
    rectangles, turned ones, circles and masks become objects with an outline, or run lengths, and a box; those of one
    label and one `group_id` are parts of one object. Lines, line strips, points and polygons of fewer than three points
    have no area: they are left out and counted. Classes are numbered from 1 in the order of their names. Images
    without a .json are left out.

    Raises:
        InputError: there is no .json, a field of one is missing or of the wrong type (all faults of shapes in one
            message), an image is not there, cannot be read, or has another size than the file says; the output is
            there already.
            FormatError: a file is not JSON, or not labelme's. DiskError: the disk takes no more; nothing stays.
    """
    source, output = Path(source), Path(output)
    files = sorted(Path(name) for name in walk_files(source) if name.endswith(".json"))
    if not files:
        raise InputError(
            "there are no annotations of labelme",
            where=source,
            allowed="a folder of images, each with a .json of its name",
            fix=f"the current folder is {Path.cwd()}",
        )
    target, folder = output / "annotations.json", output / "images"
    check_new((target, folder))
    images, boxes, sizes_hw, faults = [], [], [], list[str]()
    left_out, renamed = Counter[str](), list[str]()
    with write_whole(output, (target.name, folder.name)) as new:
        for number, file in enumerate(files, start=1):
            data = _load(file)
            content, suffix = _find_image(data, file, renamed)
            name = file.relative_to(source).with_suffix(suffix)
            height, width = _check_size(data, file, content)
            sizes_hw.append((height, width))
            boxes.append(_read_objects(data, file, (height, width), left_out, faults))
            write_file(new / folder.name / name, content)
            images.append({"id": number, "file_name": name.as_posix(), "height": height, "width": width})
        if faults:
            raise InputError(
                f"{len(faults)} shapes cannot be read",
                where=source,
                received=abbreviate(faults, "\n    "),
                allowed="shapes as labelme saves them",
                fix="correct them in labelme, or take them out",
            )
        names = sorted({one.label for objects in boxes for one in objects})
        if not names:
            kinds = ", ".join(f"{count} {name}" for name, count in left_out.items())
            raise InputError(
                "no annotation has an object with an area",
                where=source,
                received=f"{len(files)} files of annotations" + (f", with {kinds}" if kinds else ""),
                allowed="polygons, rectangles, circles and masks",
            )
        index = {name: number for number, name in enumerate(names, start=1)}
        annotations = [
            {"id": 0, "image_id": image["id"], "category_id": index[one.label], **_measure(one, size_hw)}
            for image, objects, size_hw in zip(images, boxes, sizes_hw)
            for one in objects
        ]
        for number, annotation in enumerate(annotations, start=1):
            annotation["id"] = number
        categories = [{"id": number, "name": name} for name, number in index.items()]
        coco = {"images": images, "annotations": annotations, "categories": categories}
        write_file(new / target.name, json.dumps(coco).encode("ascii"))
    counts = {name: sum(one.label == name for objects in boxes for one in objects) for name in names}
    return LabelmeReport(target, folder, counts, len(images), dict(left_out), renamed)


def _load(file: Path) -> dict[str, JSON]:
    data = read_annotations(file)
    if not isinstance(data, dict) or "shapes" not in data:
        raise FormatError(
            "the file is not labelme's",
            where=file,
            received=f"an object with {', '.join(map(repr, list(data)[:8])) or 'no field'}"
            if isinstance(data, dict)
            else type(data).__name__,
            allowed='{"shapes": [...], "imagePath": "...", ...}',
            fix="move other .json files out of the folder",
        )
    return data


def _find_image(data: Mapping[str, JSON], file: Path, renamed: list[str]) -> tuple[bytes, str]:
    """(content, suffix) of the image of a file, which is entered in `renamed` where its own name leads to the image."""
    name = read_text(data, "imagePath", file).replace("\\", "/")  # labelme on Windows writes such
    suffix = Path(name).suffix if Path(name).suffix.lower() in SUFFIXES else ".png"
    path = file.parent / name
    if os.path.isfile(path):
        return read_bytes(path, "image")[0], suffix
    text = read_text(data, "imageData", file, default=None)
    if text is None:
        images = (file.with_suffix(end) for suffix in SUFFIXES for end in (suffix, suffix.upper()))
        if path := next((one for one in images if one.is_file()), None):
            renamed.append(file.name)
            return read_bytes(path, "image")[0], path.suffix
        raise InputError(
            "the image of an annotation is not there",
            where=f"{file}, imagePath",
            received=name,
            allowed="a file, seen from the folder of the .json; or the image itself in imageData",
        )
    try:
        return base64.b64decode(text, validate=True), suffix
    except (binascii.Error, ValueError) as error:
        raise InputError(
            "the field 'imageData' is damaged", where=file, received=error, allowed="an image in base64"
        ) from error


def _check_size(data: Mapping[str, JSON], file: Path, content: bytes) -> tuple[int, int]:
    """(height, width) of the image, which must be what the file says."""
    pixels = read_image(content, file, otherwise="take it and its .json out of the folder")
    size = pixels.shape[0], pixels.shape[1]
    for field, value in zip(("imageHeight", "imageWidth"), size):
        stated = read_integer(data, field, file, default=value)
        if stated != value:
            raise InputError(
                "the image has another size than its annotations",
                where=f"{file}, {field}",
                received=f"{stated}, but the image has {value}",
                fix="annotate the image as it is now, or put the old one back",
            )
    return size


def _read_objects(
    data: Mapping[str, JSON], file: Path, size_hw: tuple[int, int], left_out: Counter[str], faults: list[str]
) -> list[_Object]:
    """The objects of a file; shapes without an area are counted in `left_out`, broken ones described in `faults`."""
    objects: dict[object, _Object] = {}
    for number, shape in enumerate(read_list(data, "shapes", file)):
        where = f"{file}, shapes[{number}]"
        try:
            if not isinstance(shape, dict):
                raise InputError(
                    "a shape must be an object", where=where, received=shorten(shape), allowed="{...}"
                )
            label = read_text(shape, "label", where)
            kind, group = read_kind(shape, where), read_integer(shape, "group_id", where, default=None)
            if kind in NO_AREA:
                left_out[f"{kind} {label}"] += 1
                continue
            if is_unfinished(shape, kind, where):
                left_out[f"{label} whose points do not make a polygon"] += 1
                continue
            one = objects.setdefault(number if group is None else (label, group), _Object(label, [], []))
            if kind == "mask":
                one.masks.append(read_mask(shape, size_hw, where))
            else:
                one.outlines.append(read_outline(shape, kind, where))
        except InputError as error:
            faults.append(f"{error.where}: {error.problem} ({error.received})")
    return [one for one in objects.values() if one.outlines or one.masks]


def _measure(one: _Object, size_hw: tuple[int, int]) -> dict[str, JSON]:
    """`segmentation`, `bbox` (left, top, width, height), `area` in pixels, `iscrowd`."""
    if one.masks:  # what is drawn as pixels stays pixels, with whatever outlines belong to it
        covered = np.logical_or.reduce(
            [*one.masks, *(polygons.fill([line], size_hw) for line in one.outlines)]
        )
        x0, y0, x1, y1 = masks.to_boxes(covered[None])[0].tolist()
        box, area = [x0, y0, x1 - x0, y1 - y0], float(covered.sum())
        return {"segmentation": masks.encode_rle(covered), "bbox": box, "area": area, "iscrowd": 0}
    points = np.concatenate(one.outlines)
    low, high = points.min(axis=0), points.max(axis=0)
    return {
        "segmentation": [line.reshape(-1).tolist() for line in one.outlines],
        "bbox": [*low.tolist(), *(high - low).tolist()],
        "area": _area(one.outlines, size_hw),
        "iscrowd": 0,
    }


def _area(outlines: Sequence[np.ndarray], size_hw: tuple[int, int]) -> float:
    """Of one outline exactly; of several the pixels that they cover together."""
    if len(outlines) == 1:
        x, y = outlines[0].T
        return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)
    covered = np.zeros(size_hw, bool)
    for polygon in outlines:
        covered |= polygons.fill([polygon], size_hw)
    return float(covered.sum())
