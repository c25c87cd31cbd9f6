"""What the annotations of a data set become: flat arrays, cut into images; and how an image is read with them."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from framework.core.errors import InputError
from framework.io.dataset import LazyDataset
from framework.vision.dataset_files import (
    Orientation,
    abbreviate,
    describe_divided,
    find_missing,
    read_image,
)
from framework.vision.dataset_files import report_problems as report_problems
from framework.vision.deep_samples import ValueRange
from framework.vision.sample import Sample

_log = logging.getLogger("oar")


@dataclass(frozen=True)
class ImageRecord:
    """One file as its annotation describes it; a size of None is not stated."""

    path: Path
    id: str | int
    size_hw: tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class Records:
    """T objects on N images: those of image i are rows `starts[i]` to `starts[i + 1]`.

    Flat arrays instead of an object each: the 860,000 of COCO take 30 MB.
    """

    images: tuple[ImageRecord, ...]
    class_names: tuple[str, ...]
    starts: np.ndarray
    """[N + 1] int64"""
    boxes: np.ndarray
    """[T, 4] float32 xyxy"""
    labels: np.ndarray
    """[T] int32"""
    valid: np.ndarray
    """[T] bool"""
    areas: np.ndarray | None = None
    """[T] float32"""
    keypoints: np.ndarray | None = None
    """[T, J, 3] float32"""
    category_ids: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()

    def sample(
        self, index: int, orientation: Orientation = "exif", value_range: ValueRange | None = None
    ) -> Sample:
        """Reads the image and puts its objects beside it. Where the annotation does not say the image's size, objects
        wholly outside of it have valid False.

        Raises:
            InputError: the image cannot be read, or has another size than its annotation says.
        """
        index = range(len(self.images))[index]
        record, rows = self.images[index], slice(self.starts[index], self.starts[index + 1])
        pixels = _read(record, orientation, value_range)
        boxes, valid = self.boxes[rows].copy(), self.valid[rows].copy()
        if record.size_hw is None:
            height, width = pixels.shape[:2]
            valid &= (boxes[:, :2] < (width, height)).all(axis=1) & (boxes[:, 2:] > 0).all(axis=1)
        return Sample(
            pixels,
            boxes=boxes,
            keypoints=None if self.keypoints is None else self.keypoints[rows].copy(),
            labels=self.labels[rows].copy(),
            valid=valid,
            areas=None if self.areas is None else self.areas[rows].copy(),
            id=record.id,
        )


class RecordsDataset(LazyDataset):
    """A data set whose annotations are read at the first use.

    Attributes:
        orientation: Whether images are turned as their EXIF mark says, or left as they are stored, for annotations of
            tools that do not know the mark.
        value_range: Black and white of images of more than 8 bits, as `framework.vision.image.read` takes it.
    """

    orientation: Orientation = "exif"
    value_range: ValueRange | None = None

    @property
    def _records(self) -> Records:
        raise NotImplementedError

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes by index."""
        return self._records.class_names

    def read_labels(self) -> Sequence[np.ndarray]:
        """The classes [K] of the objects of each image, without the image; crowds and difficult ones do not count."""
        records, starts = self._records, self._records.starts
        rows = (slice(*ends) for ends in itertools.pairwise(starts))
        return [records.labels[of_image][records.valid[of_image]] for of_image in rows]

    @property
    def problems(self) -> tuple[str, ...]:
        """What was left out, a line each."""
        return self._records.problems

    def __len__(self) -> int:
        return len(self._records.images)

    def __getitem__(self, index: int) -> Sample:
        return self._records.sample(index, self.orientation, self.value_range)

    @property
    def image_paths(self) -> tuple[Path, ...]:
        """The files of the images, in order."""
        return tuple(record.path for record in self._records.images)


def build_records(
    images: Sequence[ImageRecord],
    class_names: Sequence[str],
    objects: Sequence[Sequence[Sequence[object]]],
    problems: tuple[str, ...],
    category_ids: tuple[int, ...] = (),
) -> Records:
    """Records of lists of (box, label, valid, ...) an image.

    Further entries of an object are its area and its keypoints, the same number of entries in each. Images that have
    several entries with other objects are told in `problems`: what one entry has is background in the others.
    """
    entries = Counter(image.path for image in images)
    pairs = ((i.path, some) for i, some in zip(images, objects, strict=True) if entries[i.path] > 1)
    for line in describe_divided((path, [str(one[:2]) for one in some]) for path, some in pairs):
        _log.warning("%s", line)
        problems = (*problems, line)
    counts = [len(of_image) for of_image in objects]
    columns: list[list[object]] = [list(column) for column in zip(*(one for some in objects for one in some))]
    boxes, labels, valid, areas, keypoints = columns + [[]] * (5 - len(columns))
    return Records(
        tuple(images),
        tuple(class_names),
        np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64),
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array(labels, np.int32),
        np.array(valid, bool),
        **({"areas": np.array(areas, np.float32)} if areas else {}),
        **({"keypoints": np.array(keypoints, np.float32)} if keypoints else {}),
        category_ids=category_ids,
        problems=problems,
    )


def check_files(images: Sequence[ImageRecord], where: Path) -> None:
    """InputError with the images that are not there."""
    if missing := find_missing(record.path for record in images):
        raise InputError(
            f"{len(missing)} of {len(images)} images are not there",
            where=where,
            received=abbreviate([str(images[number].path) for number in missing]),
            fix="check the folders, unpack the images, or take them out of the annotations",
        )


def _read(record: ImageRecord, orientation: Orientation, value_range: ValueRange | None) -> np.ndarray:
    pixels = read_image(
        record.path,
        record.path,
        otherwise="take it out of the annotations",
        orient=orientation == "exif",
        value_range=value_range,
    )
    if record.size_hw is not None and pixels.shape[:2] != record.size_hw:
        raise InputError(
            "the image has another size than its annotation says, so the boxes may be wrong",
            where=record.path,
            received="{} high and {} wide".format(*pixels.shape[:2]),
            allowed="{} high and {} wide".format(*record.size_hw),
            fix="annotate the image anew, or correct the size if the boxes fit (a photo may be stored sideways, with a "
            "mark to turn it; where boxes are of the stored one, -o data.train.dataset.orientation=stored)",
        )
    return pixels
