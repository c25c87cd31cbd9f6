"""Masks of classes from COCO's annotations of objects and of stuff."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError, InputError
from framework.core.fields import read_text
from framework.vision import polygons
from framework.vision.dataset_files import (
    Region,
    abbreviate,
    decode_region,
    is_region,
    read_annotations,
    read_image,
)
from framework.vision.sample import Sample
from segmentation import palettes
from segmentation.data.records import Pair, SegmentationDataset, check_files, make_sample


class _ImageRecord(NamedTuple):
    path: Path
    objects: list[tuple[int, Region, str]]
    """Class, COCO's `segmentation`, and what to call it in messages."""


class _Records(NamedTuple):
    class_names: tuple[str, ...]
    images: list[_ImageRecord]


@register("dataset")
@dataclass(frozen=True)
class CocoMasks(SegmentationDataset):
    """The outlines and run lengths of a COCO file, drawn into one mask of classes for each image.

    `annotations` and the folder `images` of the images are relative to `root`. The classes are the categories in the
    order of their ids. With a `background` that is class 0, and stands for what no object covers; null leaves such
    pixels to be ignored (255), as fits annotations of stuff. Of objects that overlap the smallest is drawn last;
    crowds are drawn too. Images come in the order of their ids, also those without objects.

    Raises:
        InputError: at the first use, there are no such files, annotations name an unknown image or category or have
            no mask, or there are fewer than two classes or more than 255. At an access, the image cannot be read,
            has another size than its masks, or a mask is damaged.
        FormatError: the file is not JSON, or not in this format.
    """

    root: Path
    annotations: Path
    images: str = ""
    background: str | None = "background"

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
    def palette(self) -> np.ndarray:
        return palettes.of_classes(len(self.class_names))

    def __len__(self) -> int:
        return len(self._records.images)

    def __getitem__(self, index: int) -> Sample:
        image = self._records.images[index]
        pixels = read_image(image.path, image.path)
        size_hw = pixels.shape[0], pixels.shape[1]
        mask = np.full(size_hw, self.ignore_index if self.background is None else 0, np.uint8)
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
        categories = sorted(data["categories"], key=lambda one: one["id"])
        names = [
            read_text(one, "name", f"{self._file}, category {one['id']}", default=str(one["id"]))
            for one in categories
        ]
        names = names if self.background is None else [self.background, *names]
        if not 2 <= len(names) <= 255 or len(set(names)) < len(names):
            raise InputError(
                "the categories must be 2 to 255 classes of different names",
                where=self._file,
                received=f"{len(names)} classes, {len(set(names))} different names",
                allowed="2 to 255, the background included, each of another name",
            )
        first = len(names) - len(categories)
        number = {one["id"]: index for index, one in enumerate(categories, start=first)}
        folder = Path(self.root) / self.images
        images = {
            one["id"]: _ImageRecord(
                folder / read_text(one, "file_name", f"{self._file}, image {one['id']}"), []
            )
            for one in sorted(data["images"], key=lambda one: one["id"])
        }
        wrong = []
        for position, one in enumerate(data["annotations"], start=1):
            name = f"annotation {one.get('id', f'number {position}')}"
            what = next(
                (
                    key
                    for key, known in (("image_id", images), ("category_id", number))
                    if not isinstance(one.get(key), int) or one[key] not in known
                ),
                None,
            )
            if what is not None:
                wrong.append(f"{name} has {what} {one.get(what)!r}, which is not there")
            elif not is_region(one.get("segmentation")):
                wrong.append(f"{name} has no mask, but segmentation {str(one.get('segmentation'))[:40]}")
            else:
                images[one["image_id"]].objects.append(
                    (number[one["category_id"]], one["segmentation"], name)
                )
        if wrong:
            raise InputError(
                f"{len(wrong)} of {len(data['annotations'])} annotations cannot be drawn",
                where=self._file,
                received=abbreviate(wrong, "; "),
                allowed="ids of the same file, and a list of polygons [x, y, x, y, x, y, ...] or run lengths",
                fix="annotations of boxes alone have no masks; correct or remove the others",
            )
        check_files([one.path for one in images.values()])
        return _Records(tuple(names), list(images.values()))


def _load(file: Path) -> dict[str, list[dict[str, Any]]]:
    data: Any = read_annotations(file)
    for name in ("images", "categories", "annotations"):
        entries = data.get(name) if isinstance(data, dict) else None
        ids = [one.get("id") for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
        named = name == "annotations" or (
            all(isinstance(one, int) for one in ids) and len(set(ids)) == len(ids)
        )
        if (
            not isinstance(entries, list)
            or len(ids) < len(entries)
            or not named
            or not (entries or name == "annotations")
        ):
            raise FormatError(
                "the file is not in COCO's format",
                where=file,
                received=f"no list {name!r} of entries, each with an id of its own",
                allowed='{"images": [...], "annotations": [...], "categories": [...]}',
            )
    return data
