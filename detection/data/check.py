"""Checks a data set before training: how its classes are balanced, and what is broken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from detection.data.coco import CocoDetection
from detection.data.voc import VocDetection
from framework.core.errors import InputError, OarError
from framework.vision import boxes as box_ops

_SHOWN = 10


@dataclass(frozen=True)
class Report:
    """What `validate` found. `str` makes a page of it."""

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
    """Boxes without an area."""

    @property
    def is_clean(self) -> bool:
        return not (self.outside or self.broken or self.left_out)

    def __str__(self) -> str:
        objects = sum(count for _, count, _ in self.classes)
        width = max(len("class"), *(len(name) for name, _, _ in self.classes))
        lines = [
            f"{self.images} images, {self.without} of them without objects",
            f"{objects} objects: {self.sizes[0]} small, {self.sizes[1]} medium, {self.sizes[2]} large; "
            f"{self.ignored} more to ignore (crowds, difficult ones)",
            f"{'class':<{width}}  objects  share  images",
            *(
                f"{name:<{width}}  {count:7d}  {count / max(1, objects):5.1%}  {images:8d}"
                for name, count, images in sorted(self.classes, key=lambda row: -row[1])
            ),
        ]
        for title, found in (
            ("images that cannot be used", self.broken),
            ("images with boxes beyond their edges", self.outside),
            ("boxes without an area, which are left out", self.left_out),
        ):
            lines.append(f"{len(found)} {title}")
            lines += [f"  {line}" for line in found[:_SHOWN]]
            lines += [f"  ... and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
        return "\n".join(lines)


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
    for index in range(len(dataset)):
        try:
            sample = dataset[index]
        except OarError as error:
            broken.append(f"{error.where}: {error.problem}")
            continue
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
