"""Checks a data set before training: how its classes are balanced, and what is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from detection.data.coco import CocoDetection
from detection.data.coco_pose import CocoPose
from detection.data.records import RecordsDataset
from detection.data.voc import VocDetection
from framework.core.errors import InputError
from framework.io import data_check
from framework.io.data_check import Observe, format_table, nothing_to_learn, read_samples, validate_samples
from framework.io.dataset import Dataset
from framework.vision import boxes as box_ops
from framework.vision.dataset_files import describe_similar, describe_turned


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
    """Boxes without an area or outside of their image, images without annotations and the like."""
    notes: tuple[str, ...] = ()
    """What is worth a word and need be no fault."""

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
            *self.notes,
        ]

    def faults(self) -> Mapping[str, Sequence[str]]:
        return {
            **nothing_to_learn(sum(count for _, count, _ in self.classes), "object"),
            "images that cannot be used": self.broken,
            "images with boxes beyond their edges": self.outside,
            "entries that are left out": self.left_out,
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


@dataclass(frozen=True)
class PoseReport(data_check.Report):
    """What is found in a data set of people with keypoints."""

    samples: int
    people: int
    """With a labelled keypoint."""
    keypoints: tuple[tuple[str, int], ...]
    """Name, and on how many people it is labelled."""
    outside: tuple[str, ...]
    """Samples with labelled keypoints more than a pixel beyond the image."""
    broken: tuple[str, ...]
    left_out: tuple[str, ...]

    def summary(self) -> list[str]:
        rows = [(name, str(count), f"{count / max(1, self.people):.1%}") for name, count in self.keypoints]
        return [
            f"{self.samples} samples, {self.people} objects with keypoints",
            *format_table({"labelled": 8, "share": 6}, rows),
        ]

    def faults(self) -> Mapping[str, Sequence[str]]:
        return {
            **nothing_to_learn(self.people, "object with keypoints"),
            "samples that cannot be used": self.broken,
            "samples with keypoints beyond the image": self.outside,
            "entries that are left out": self.left_out,
        }


def validate_any(dataset: Dataset, observe: Observe | None = None) -> data_check.Report:
    """The report that fits the data set: of objects, of keypoints, or of samples of a kind of the user's own."""
    if isinstance(dataset, RecordsDataset):
        return validate(dataset, observe)
    return (
        validate_poses(dataset, observe)
        if isinstance(dataset, CocoPose)
        else validate_samples(dataset, observe)
    )


def validate_poses(dataset: CocoPose, observe: Observe | None = None) -> PoseReport:
    """Reads every image. Raises: OarError, where the annotations themselves cannot be read."""
    labelled, people = np.zeros(len(dataset.class_names), int), 0
    outside, broken = [], []
    for sample in read_samples(dataset, broken, observe):
        assert sample.keypoints is not None
        visible = sample.keypoints[..., 2] > 0
        labelled += visible.sum(axis=0)
        people += int(visible.any(axis=1).sum())
        height, width = sample.size_hw
        x, y = sample.keypoints[..., 0], sample.keypoints[..., 1]
        beyond = visible & ((x < -1) | (y < -1) | (x > width + 1) | (y > height + 1))
        if beyond.any():
            outside.append(f"{sample.id}, {width} x {height}: {sample.keypoints[beyond][0, :2].tolist()}")
    counts = tuple(zip(dataset.class_names, labelled.tolist()))
    return PoseReport(len(dataset), people, counts, tuple(outside), tuple(broken), dataset.problems)


def validate(dataset: RecordsDataset, observe: Observe | None = None) -> Report:
    """Reads every image.

    Raises:
        OarError: the annotations themselves cannot be read.
    """
    names = dataset.class_names
    objects, images = np.zeros(len(names), int), np.zeros(len(names), int)
    ignored = without = 0
    areas: list[np.ndarray] = []
    outside, broken = [], []
    for sample in read_samples(dataset, broken, observe):
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
        notes=tuple(
            [
                *(describe_turned(dataset.image_paths) if dataset.orientation == "exif" else ()),
                *describe_similar(names),
            ]
        ),
    )
