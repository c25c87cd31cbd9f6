"""Checks a data set before training: how its classes are balanced, and what is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from detection.data.coco import CocoDetection
from detection.data.voc import VocDetection
from framework.core.errors import InputError
from framework.io import data_check
from framework.io.data_check import format_table, read_samples
from framework.vision import boxes as box_ops


@dataclass(frozen=True)
class Report(data_check.Report):
    """What `validate` found."""

    images: int
    classes: tuple[tuple[str, int, int], ...]
    """Name, objects, images with at least one."""
    ignored: int
    """Objects that are crowds or difficult; not counted above."""
    without: int
    """Images without objects."""
    sizes: tuple[int, int, int]
    """Objects that COCO calls small, medium and large."""
    outside: tuple[str, ...]
    """Images with boxes that reach more than a pixel beyond their edges."""
    broken: tuple[str, ...]
    """Images that cannot be read or have another size than is said."""
    left_out: tuple[str, ...]
    """Boxes without an area or outside of their image."""

    def summary(self) -> list[str]:
        objects = sum(count for _, count, _ in self.classes)
        return [
            f"{self.images} images, {self.without} of them without objects",
            f"{objects} objects: {self.sizes[0]} small, {self.sizes[1]} medium, {self.sizes[2]} large; "
            f"{self.ignored} more to ignore (crowds, difficult ones)",
            *format_table(
                {"objects": 7, "share": 5, "images": 8},
                [
                    (name, str(count), f"{count / max(1, objects):.1%}", str(images))
                    for name, count, images in sorted(self.classes, key=lambda row: -row[1])
                ],
            ),
        ]

    def faults(self) -> Mapping[str, Sequence[str]]:
        return {
            "images that cannot be used": self.broken,
            "images with boxes beyond their edges": self.outside,
            "boxes without an area or outside of their image, which are left out": self.left_out,
        }


def open_dataset(path: Path, split: str = "", images: str = "") -> CocoDetection | VocDetection:
    """The data set of a COCO file (images in `images` beside it) or of a folder with VOC annotations.

    Raises:
        InputError: there is no such file or folder.
    """
    if path.is_file():
        return CocoDetection(path.parent, Path(path.name), images)
    if path.is_dir():
        return VocDetection(path, split)
    raise InputError(
        "there is no such file or folder",
        where=path,
        allowed="a COCO file, or a folder with VOC annotations",
        fix=f"the current folder is {Path.cwd()}",
    )


def validate(dataset: CocoDetection | VocDetection) -> Report:
    """Reads every image.

    Raises:
        OarError: the annotations themselves cannot be read.
    """
    names = dataset.class_names
    objects, images = np.zeros(len(names), int), np.zeros(len(names), int)
    ignored = without = 0
    areas: list[np.ndarray] = []
    outside, broken = [], []
    for sample in read_samples(dataset, broken):
        assert sample.boxes is not None and sample.labels is not None and sample.valid is not None
        labels = sample.labels[sample.valid]
        counts = np.bincount(labels, minlength=len(names))
        objects += counts
        images += counts > 0
        ignored += int((~sample.valid).sum())
        without += len(sample.boxes) == 0
        all_areas = box_ops.area(sample.boxes) if sample.areas is None else sample.areas
        areas.append(all_areas[sample.valid])
        beyond = np.abs(sample.boxes - box_ops.clip(sample.boxes, sample.size_hw)).max(axis=1, initial=0) > 1
        if beyond.any():
            height, width = sample.size_hw
            outside.append(f"{sample.id}, {width} x {height}: {sample.boxes[beyond][0].tolist()}")
    area = np.concatenate(areas) if areas else np.zeros(0)
    small, medium = int((area < 32**2).sum()), int((area < 96**2).sum())
    return Report(
        len(dataset),
        tuple(zip(names, objects.tolist(), images.tolist())),
        ignored,
        without,
        (small, medium - small, len(area) - medium),
        tuple(outside),
        tuple(broken),
        dataset.problems,
    )
