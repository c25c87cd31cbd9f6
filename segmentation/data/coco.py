"""Masks of classes from COCO's annotations of objects and of stuff."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError, InputError
from framework.core.fields import read_text
from framework.vision import polygons
from framework.vision.coco_ids import distinct_categories, entries_by_id, read_file_name, read_id
from framework.vision.dataset_files import (
    Region,
    abbreviate,
    decode_region,
    describe_divided,
    image_path,
    read_annotations,
    read_image,
    report_problems,
    usable_region,
)
from framework.vision.sample import Sample
from segmentation import palettes
from segmentation.data.records import Pair, SegmentationDataset, check_classes, check_files, make_sample


class _ImageRecord(NamedTuple):
    path: Path
    objects: list[tuple[int, Region, str]]
    """Class, COCO's `segmentation`, and what to call it in messages."""


class _Records(NamedTuple):
    class_names: tuple[str, ...]
    images: list[_ImageRecord]
    problems: tuple[str, ...]


@register("dataset")
@dataclass(frozen=True)
class CocoMasks(SegmentationDataset):
    """The outlines and run lengths of a COCO file, drawn into one mask of classes for each image.

    `annotations` and the folder `images` of the images are relative to `root`. The classes are the categories in the
    order of their ids. With a `background` that is class 0, and stands for what no object covers; null leaves such
    pixels to be ignored (`ignore_index`), as fits annotations of stuff. Of objects that overlap the smallest is drawn
    last; crowds are drawn too. Images come in the order of their ids, also those without objects. Annotations that
    cannot be drawn, such as polygons of two points, damaged run lengths and boxes without an outline, are left out and
    listed in `problems`.

    Raises:
        InputError: at the first use, there are no such files, annotations name an unknown image or category, none of
            them has a mask, or there are fewer than two classes, or one has the number `ignore_index`. At an access,
            the image cannot be read, or has another size than its masks.
        FormatError: the file is not JSON, or not in this format.
    """

    root: Path
    annotations: Path
    images: str = ""
    background: str | None = "background"
    ignore_index: int = field(default=255, kw_only=True)

    def __post_init__(self) -> None:
        if self.background == "":
            raise ConfigError(
                "the background has no name",
                where="CocoMasks.background",
                received="an empty text",
                allowed="a name, or null where every pixel is annotated",
            )

    @property
    def class_names(self) -> tuple[str, ...]:
        return self._records.class_names

    @property
    def problems(self) -> tuple[str, ...]:
        """What was left out, a line each."""
        return self._records.problems

    @property
    def palette(self) -> np.ndarray:
        return palettes.of_classes(len(self.class_names))

    def __len__(self) -> int:
        return len(self._records.images)

    def __getitem__(self, index: int) -> Sample:
        image = self._records.images[index]
        pixels = read_image(image.path, image.path)
        size_hw = pixels.shape[0], pixels.shape[1]
        mask = np.full(size_hw, self.ignore_index if self.background is None else 0, self.mask_dtype)
        drawn = [(label, self._region(one, name, size_hw, image.path)) for label, one, name in image.objects]
        for label, region in sorted(drawn, key=lambda one: -np.count_nonzero(one[1])):
            mask[region] = label
        return make_sample(pixels, mask, Pair(image.path, self._file))

    @property
    def _file(self) -> Path:
        return Path(self.root) / self.annotations

    def _region(self, one: Region, name: str, size_hw: tuple[int, int], image: Path) -> np.ndarray:
        """[H, W] bool."""
        if not isinstance(one, Mapping):
            mask = np.zeros(size_hw, bool)
            for flat in one:  # parts of one object, which do not cut holes into one another
                mask |= polygons.fill([np.array(flat, np.float64).reshape(-1, 2)], size_hw)
            return mask
        return decode_region(one, size_hw, f"{self._file}, {name} (image {image})")

    @cached_property
    def _records(self) -> _Records:
        data = _load(self._file)
        categories, problems = distinct_categories(data, self._file)
        names = [
            read_text(one, "name", f"{self._file}, category {key}", default=str(key))
            for key, one in categories.items()
        ]
        names = names if self.background is None else [self.background, *names]
        check_classes(names, self.ignore_index, self._file)
        first = len(names) - len(categories)
        number = {key: index for index, key in enumerate(categories, start=first)}
        folder = Path(self.root) / self.images
        images = {
            key: _ImageRecord(image_path(folder, read_file_name(one, f"{self._file}, image {key}")), [])
            for key, one in entries_by_id(data["images"], "image", self._file).items()
        }
        unknown, drawable = [], 0
        for position, one in enumerate(data["annotations"], start=1):
            name = f"annotation {one.get('id', f'number {position}')}"
            image_id, category_id = (
                read_id(one.get("image_id"), images),
                read_id(one.get("category_id"), number),
            )
            if image_id is None or category_id is None:
                what = "image_id" if image_id is None else "category_id"
                unknown.append(f"{name} has {what} {one.get(what)!r}, which is not there")
                continue
            region, fault = usable_region(one.get("segmentation"))
            if fault:
                problems.append(f"{name} on image {image_id!r}: {fault}")
            if region is not None:
                images[image_id].objects.append((number[category_id], region, name))
                drawable += 1
        if unknown or (data["annotations"] and not drawable):
            wrong = unknown or problems
            raise InputError(
                f"{len(wrong)} of {len(data['annotations'])} annotations cannot be drawn",
                where=self._file,
                received=abbreviate(wrong, "; "),
                allowed="ids of the same file, and a list of polygons [x, y, x, y, x, y, ...] or run lengths",
                fix="correct the ids, or add the images and categories"
                if unknown
                else "annotations of boxes alone have no masks; add outlines",
            )
        check_files([one.path for one in images.values()])
        problems += describe_divided(
            (image.path, [(label, region) for label, region, _ in image.objects]) for image in images.values()
        )
        return _Records(tuple(names), list(images.values()), report_problems(self._file, problems))


def _load(file: Path) -> dict[str, list[dict[str, Any]]]:
    data: Any = read_annotations(file)
    for name in ("images", "categories", "annotations"):
        entries = data.get(name) if isinstance(data, dict) else None
        if (
            not isinstance(entries, list)
            or not all(isinstance(one, dict) for one in entries)
            or not (entries or name == "annotations")
        ):
            raise FormatError(
                "the file is not in COCO's format",
                where=file,
                received=f"no list {name!r} of entries in braces",
                allowed='{"images": [...], "annotations": [...], "categories": [...]}',
            )
    return data
