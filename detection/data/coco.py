"""Data sets in COCO's format: one JSON file with images, annotations and categories."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from detection.data.dataset import DetectionDataset
from detection.data.known_classes import KNOWN_CLASSES, ClassList, KnownClasses
from detection.data.records import (
    ImageRecord,
    Records,
    build_records,
    check_files,
    report_problems,
)
from framework.config.registry import register
from framework.core.errors import FormatError, InputError
from framework.core.fields import is_number, read_list, read_number, read_text
from framework.core.types import JSON
from framework.vision.annotations.coco import describe_all_crowds, is_ignored, read_rotation
from framework.vision.annotations.objects import bounds
from framework.vision.annotations.shapes import turn_box
from framework.vision.coco_ids import Id, distinct_categories, entries_by_id, read_file_name, read_id
from framework.vision.dataset_files import (
    abbreviate,
    image_path,
    read_annotations,
    region_bounds,
    usable_region,
)

_log = logging.getLogger("oar")


@register("dataset")
@dataclass(frozen=True)
class CocoDetection(DetectionDataset):
    """Objects on images, as COCO's instances_*.json and person_keypoints_*.json tell them.

    `annotations` and the folder `images` of the images are relative to `root`. Images come in the order of their
    ids, as COCO's evaluation takes them; classes are numbered in that of the categories' ids, which `category_ids`
    keeps. A box (left, top, width, height) becomes xyxy and is not clipped; where there is none, or one without an
    area, it is that of the outline or mask. Crowds, and objects with `ignore: 1`, get valid False, but for boxes of a
    file of crowds alone, as CVAT marks masks; `areas` are the annotated ones. What is left without an area, and boxes
    wholly outside of the size that is said of their image, are left out and listed in `problems`; images without boxes
    stay. The sample's id is that of the image, a number or a text.
    Of categories of one name those without an annotation are left out. `orientation` and `value_range` are those of
    DetectionDataset.

    `classes` may be some names of categories, in the order in which they are to be numbered: objects of others are left
    out, and a line of the log counts them. `classes: coco` says that the classes are COCO's 80, which are then known
    without the file: weights for them can be exported without it. detection/data/known_classes.py has the other lists.

    With `keypoints` a sample has [K, J, 3]: COCO numbers pixels, so their centres are 0.5 further to the right and down
    in our coordinates. Objects without points have visibilities of 0.

    Raises:
        InputError: at the first use, there are no such files, entries name an unknown image or category or are given
            twice, a category is not one that `classes` says, or a box or keypoints are not such. At an access, the
            image cannot be read or has another size.
        FormatError: the file is not JSON, or not in this format.
    """

    annotations: Path
    images: str = ""
    keypoints: bool = False
    classes: KnownClasses | tuple[str, ...] | None = field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default=None, kw_only=True
    )
    not_inherited: ClassVar = ("classes",)  # names that a recipe has for files of another format

    @property
    def class_names(self) -> tuple[str, ...]:
        return KNOWN_CLASSES[self.classes].names if isinstance(self.classes, str) else super().class_names

    @property
    def category_ids(self) -> tuple[int, ...]:
        """The categories' ids by class index: what result files name classes by."""
        return (
            KNOWN_CLASSES[self.classes].ids if isinstance(self.classes, str) else self._records.category_ids
        )

    @property
    def _source(self) -> Path:
        return Path(self.root) / self.annotations

    def _read(self) -> Records:
        data = load_coco(self._source)
        if isinstance(self.classes, str):
            data["categories"] = _as_known(data["categories"], self.classes, self._source)
        return coco_records(data, self._source, Path(self.root) / self.images, self.keypoints)


CocoLists = dict[str, list[dict[str, JSON]]]
"""The lists of a file in COCO's format: "images", "annotations", "categories"."""


def coco_records(data: CocoLists, file: Path, folder: Path, keypoints: bool) -> Records:
    """What `load_coco` read of `file`, with images in `folder`. Raises: see CocoDetection.

    With `keypoints` an annotation without a box gets the bounds of its labelled points, and one without an area 0.53
    of its box, as the evaluation of CrowdPose defines it.
    """
    images = entries_by_id(data["images"], "image", file)
    named, notes = distinct_categories(data, file)
    categories, number = list(named.items()), {key: index for index, key in enumerate(named)}
    source_images = [
        ImageRecord(
            image_path(folder, read_file_name(one, f"{file}, image {key}")), key, find_size(one, file)
        )
        for key, one in images.items()
    ]
    sizes = {record.id: record.size_hw for record in source_images}
    annotations: dict[Id, list[list[object]]] = {key: [] for key in images}
    points = count_keypoints(data, file) if keypoints else 0
    unknown, problems = [], list(notes)
    for position, one in enumerate(data["annotations"]):
        name = f"annotation {one.get('id', f'number {position + 1}')}"
        image_id, category_id = read_id(one.get("image_id"), images), read_id(one.get("category_id"), named)
        if image_id is None or category_id is None:
            what = "image_id" if image_id is None else "category_id"
            unknown.append(f"{name} has {what} {one.get(what)!r}")
            continue
        x, y, width, height = box = read_box(one, points, name, file)
        if fault := find_unusable(box, sizes[image_id]):
            problems.append(f"{name} on image {image_id!r}: box {one.get('bbox', box)} {fault}")
            continue
        where = f"{file}, {name}"
        entry: list[object] = [
            (x, y, x + width, y + height),
            number[category_id],
            not is_ignored(one, where),
            float(read_number(one, "area", where, 0) or width * height * (0.53 if points else 1)),
        ]
        if points:
            entry.append(_points(one, points, name, file))
        annotations[image_id].append(entry)
    if unknown:
        raise InputError(
            f"{len(unknown)} annotations belong to nothing",
            where=file,
            received=abbreviate(unknown, "; "),
            allowed="ids that are in the lists images and categories of the same file",
            fix="correct the annotations, or add the categories",
        )
    entries = [entry for listed in annotations.values() for entry in listed]
    if entries and not points and not any(entry[2] for entry in entries):
        _log.warning("%s: %s", file, describe_all_crowds(len(entries)))
        annotations = {
            key: [[*entry[:2], True, *entry[3:]] for entry in listed] for key, listed in annotations.items()
        }
    check_files(source_images, file)
    names = [read_text(one, "name", f"{file}, category {key}") for key, one in categories]
    problem_count = report_problems(file, problems)
    return build_records(
        source_images,
        names,
        list(annotations.values()),
        category_ids=tuple(key if isinstance(key, int) else index for key, index in number.items()),
        problems=problem_count,
    )


def _as_known(categories: list[dict[str, JSON]], classes: KnownClasses, file: Path) -> list[dict[str, JSON]]:
    """The categories of a known list. Raises: InputError where the file has one of another name or id."""
    listed: ClassList = KNOWN_CLASSES[classes]
    names: dict[Id, str] = dict(zip(listed.ids, listed.names, strict=True))
    named = {
        key: read_text(one, "name", f"{file}, category {key}")
        for key, one in entries_by_id(categories, "category", file).items()
    }
    others = [f"{key}: {name}" for key, name in named.items() if names.get(key) != name]
    if others:
        raise InputError(
            f"the categories are not those of {listed.title}",
            where=file,
            received=abbreviate(others),
            allowed=abbreviate([f"{key}: {name}" for key, name in names.items()])
            + f", since the data set has `classes: {classes}`",
            fix="for classes of your own: -o data.train.dataset.classes=null data.eval.dataset.classes=null "
            f"model.num_classes={len(named)}",
        )
    return [{"id": key, "name": name} for key, name in names.items()]


def count_keypoints(data: CocoLists, file: Path) -> int:
    """How many keypoints an object has: the one number that the categories or else the annotations say."""
    named = _lengths(data["categories"], "categories", file)
    counts = named or {length // 3 for length in _lengths(data["annotations"], "annotations", file)}
    if len(counts) != 1:
        raise InputError(
            "there are no keypoints, or not the same number on every object",
            where=file,
            received=f"{sorted(counts)} keypoints",
            allowed="one number for all categories",
            fix="leave keypoints out for boxes alone" if not counts else "split the file by category",
        )
    return counts.pop()


def _lengths(entries: list[dict[str, JSON]], what: str, file: Path) -> set[int]:
    """Of the lists of keypoints that are there."""
    lists = (
        read_list(one, "keypoints", f"{file}, {what} number {n}", [])
        for n, one in enumerate(entries, start=1)
    )
    return {len(found) for found in lists if found}


def load_coco(file: Path) -> CocoLists:
    """The lists of a file in COCO's format. Raises: InputError, FormatError."""
    content = read_annotations(file)
    data = content if isinstance(content, dict) else {}
    if data and "annotations" not in data:
        data["annotations"] = []  # COCO's test sets: images alone
    for name in ("images", "annotations", "categories"):
        entries = data.get(name)
        if not isinstance(entries, list) or any(not isinstance(one, dict) for one in entries):
            raise FormatError(
                "the file is not in COCO's format",
                where=file,
                received=f"no list {name!r} of entries in braces",
                allowed='{"images": [...], "annotations": [...], "categories": [...]}',
            )
    return data


def find_size(entry: Mapping[str, JSON], file: Path) -> tuple[int, int] | None:
    """(height, width) of an image, where the file says it."""
    where = f"{file}, image {entry.get('id')}"
    height, width = (int(read_number(entry, side, where, 0)) for side in ("height", "width"))
    return (height, width) if height and width else None


def find_unusable(box: list[float], size_hw: tuple[int, int] | None) -> str | None:
    """Why a box [left, top, width, height] is left out; None where it is not."""
    left, top, width, height = box
    if width <= 0 or height <= 0:
        return "has no area"
    if size_hw is None or (left < size_hw[1] and top < size_hw[0] and left + width > 0 and top + height > 0):
        return None
    return "lies outside of its image, {1} wide and {0} high".format(*size_hw)


def read_box(entry: dict[str, JSON], keypoints: int, name: str, file: Path) -> list[float]:
    """[left, top, width, height] of an annotation; where it has no box, the bounds of its labelled keypoints or of its
    outline, and those of the outline where its box has no area. A box that CVAT turned is that around its corners."""
    if keypoints and "bbox" not in entry:
        return _bounds(_points(entry, keypoints, name, file))
    box = entry.get("bbox")
    numbers = [value for value in box if is_number(value)] if isinstance(box, list) else []
    if not box or (len(numbers) == 4 and min(numbers[2:]) <= 0):
        region = usable_region(entry.get("segmentation"))[0]
        if region and (around := region_bounds(region) or (None if box else (0.0, 0.0, 0.0, 0.0))):
            x0, y0, x1, y1 = around
            return [x0, y0, x1 - x0, y1 - y0]
    if not isinstance(box, list) or len(box) != 4 or len(numbers) != 4:
        raise InputError(
            "an annotation has no box",
            where=f"{file}, {name}",
            received=f"bbox {box!r}",
            allowed="[left, top, width, height], four numbers",
        )
    if (degrees := read_rotation(entry)) and usable_region(entry.get("segmentation"))[0] is None:
        x, y, width, height = numbers
        x0, y0, x1, y1 = bounds((turn_box((x, y, x + width, y + height), degrees),))
        return [x0, y0, x1 - x0, y1 - y0]
    return [float(value) for value in numbers]


def _points(entry: dict[str, JSON], keypoints: int, name: str, file: Path) -> list[list[float]]:
    flat = entry.get("keypoints") or [0] * (3 * keypoints)
    numbers = [value for value in flat if is_number(value)] if isinstance(flat, list) else []
    if not isinstance(flat, list) or not len(flat) == len(numbers) == 3 * keypoints:
        raise InputError(
            "an annotation has other keypoints than its category",
            where=f"{file}, {name}",
            received=f"{len(flat)} values" if isinstance(flat, list) else repr(flat),
            allowed=f"{3 * keypoints} numbers: x, y and visibility of {keypoints} points",
        )
    triples = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    return [[x + 0.5, y + 0.5, v] if v > 0 else [0.0, 0.0, 0.0] for x, y, v in triples]


def _bounds(points: list[list[float]]) -> list[float]:
    labelled = [(x, y) for x, y, v in points if v > 0]
    if not labelled:
        return [0.0, 0.0, 0.0, 0.0]
    left, top = (min(values) for values in zip(*labelled))
    right, bottom = (max(values) for values in zip(*labelled))
    return [left, top, right - left, bottom - top]
