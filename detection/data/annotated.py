"""Data sets in the formats of YOLO and of CVAT."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from detection.data.coco import find_unusable
from detection.data.records import (
    ImageRecord,
    Records,
    RecordsDataset,
    build_records,
    check_files,
    report_problems,
)
from detection.data.selected import check_names, select_classes
from framework.config.registry import register
from framework.vision.annotations.cvat import read_cvat
from framework.vision.annotations.objects import AnnotatedSet
from framework.vision.annotations.yolo import read_yolo
from framework.vision.dataset_files import Orientation
from framework.vision.deep_samples import ValueRange

_log = logging.getLogger("oar")


@register("dataset")
@dataclass(frozen=True)
class YoloDetection(RecordsDataset):
    """Objects on images in YOLO's format: boxes, or the boxes of outlines.

    `root` is a data.yaml, or a folder with one, or with images and text files; `split` is "train", "val" or "test" of
    it, or "" for all. Classes have the order of the names in data.yaml; `classes` are those that are used. What is read
    and what is left out: see `framework.vision.annotations.yolo.read_yolo`. The sample's id is the path of the image.
    `orientation` and `value_range` are those of RecordsDataset.

    Raises:
        ConfigError: `classes` is empty or names a class twice.
        InputError, FormatError: at the first use, as `read_yolo`. At an access, the image cannot be read.
    """

    root: Path
    split: str = ""
    classes: tuple[str, ...] | None = None
    orientation: Orientation = "exif"
    value_range: ValueRange | None = None

    def __post_init__(self) -> None:
        if self.classes is not None:
            check_names(self.classes, "YoloDetection.classes")

    @cached_property
    def _records(self) -> Records:  # pyright: ignore[reportIncompatibleMethodOverride]
        read = read_yolo(Path(self.root), self.split, orientation=self.orientation)
        return annotated_records(read, Path(self.root), self.classes)


@register("dataset")
@dataclass(frozen=True)
class CvatDetection(RecordsDataset):
    """Objects on images in CVAT's format "CVAT for images 1.1": boxes, and the boxes of polygons, ellipses and masks.

    `annotations` is the file and `images` the folder of the images, both seen from `root`; without `images` they are in
    the folder `images` beside the file, or beside it. `split` takes the images of one subset ("train", "val", "test"),
    "" all. Classes have the order of the labels of the task; `classes` are those that are used. Attributes are not
    used. The sample's id is the path of the image. `orientation` and `value_range` are those of RecordsDataset.

    Raises:
        ConfigError: `classes` is empty or names a class twice.
        InputError, FormatError: at the first use, as `framework.vision.annotations.cvat.read_cvat`, or images are not
            there. At an access, the image cannot be read, or has another size than the file says.
    """

    root: Path
    annotations: Path = Path("annotations.xml")
    images: str | None = None
    split: str = ""
    classes: tuple[str, ...] | None = None
    orientation: Orientation = "exif"
    value_range: ValueRange | None = None

    def __post_init__(self) -> None:
        if self.classes is not None:
            check_names(self.classes, "CvatDetection.classes")

    @cached_property
    def _records(self) -> Records:  # pyright: ignore[reportIncompatibleMethodOverride]
        root = Path(self.root)
        file = root / self.annotations
        folder = None if self.images is None else root / self.images
        read = read_cvat(file, folder).select_split(self.split, file)
        return annotated_records(read, file, self.classes)


def annotated_records(read: AnnotatedSet, where: Path, classes: tuple[str, ...] | None) -> Records:
    """The records of annotated images. Raises: InputError, where images are not there."""
    number = {name: index for index, name in enumerate(read.class_names)}
    problems = list(read.problems)
    images, objects = [], []
    for image in read.images:
        images.append(ImageRecord(image.path, str(image.path), image.size_hw))
        entries = []
        for one in image.objects:
            x0, y0, x1, y1 = one.box
            if fault := find_unusable([x0, y0, x1 - x0, y1 - y0], image.size_hw):
                problems.append(f"{image.name}: {one.label} {[round(side, 1) for side in one.box]} {fault}")
            else:
                entries.append((one.box, number[one.label], one.is_valid))
        objects.append(entries)
    check_files(images, where)
    for note in read.notes:
        _log.info("%s: %s", where, note)
    records = build_records(images, read.class_names, objects, problems=report_problems(where, problems))
    return records if classes is None else select_classes(records, classes, where)
