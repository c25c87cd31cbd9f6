"""People and their keypoints, from data sets in COCO's format: whole images, or one sample a person."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from detection.data import keypoints as keypoint_names
from detection.data.coco import (
    CocoLists,
    coco_records,
    count_keypoints,
    find_unusable,
    load_coco,
    read_box,
)
from detection.data.records import Records
from framework.config.registry import register
from framework.core.errors import InputError
from framework.core.fields import is_number, read_list
from framework.io.dataset import LazyDataset
from framework.vision import polygons
from framework.vision.coco_ids import read_id
from framework.vision.dataset_files import Region, decode_region, usable_region
from framework.vision.masks import RunLengths
from framework.vision.sample import Sample
from framework.vision.sample_transforms import keep_objects

_log = logging.getLogger("oar")
_HiddenRegion = RunLengths | list[np.ndarray] | np.ndarray
"""Run lengths, polygons [P, 2], or a box xyxy."""


class _Poses(NamedTuple):
    records: Records
    keypoints: tuple[str, ...]
    skeleton: tuple[tuple[int, int], ...]
    hidden: dict[int, list[_HiddenRegion]]
    """By the place of an image, what of it no loss is taken of: a segmentation each, or a box xyxy."""
    people: np.ndarray
    """[P] rows of the records that are not crowds and have a labelled keypoint"""


@register("dataset")
@dataclass(frozen=True)
class CocoPose(LazyDataset):
    """Keypoints of people, or of what else a file in COCO's format describes by keypoints.

    `annotations` and the folder `images` are relative to `root`. What a sample has is told at CocoDetection; besides,
    `mask` [H, W] bool is False where there are crowds and objects without a labelled keypoint: no loss is taken there.

    With `per_person` a sample is an image with one object that has labelled keypoints, and has no mask. With
    `people_only` images without annotations are left out.

    `class_names` are the names of the keypoints, which are what a pose model tells apart. They come from the category,
    are "keypoint_0" and so on where it names none, and are stated by `keypoints` ("coco": the 17 of a person) where the
    file may be elsewhere, as when a trained model is exported. `skeleton` holds the category's lines, or else those
    between keypoints of such names on a body.

    Raises:
        InputError: see CocoDetection; no object has keypoints; the file has other keypoints than `keypoints`; or
            the segmentation of a crowd, or of someone without keypoints, cannot be drawn, or, at an access, has
            another size than its image.
        FormatError: the file is not JSON, or not in this format.
    """

    root: Path
    annotations: Path
    images: str = ""
    keypoints: tuple[str, ...] | Literal["coco"] | None = None
    per_person: bool = False
    people_only: bool = False

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the keypoints by index."""
        return self._stated_names or self._poses.keypoints

    @property
    def object_name(self) -> str:
        """What the objects are: the name of the category, of several that of the first."""
        return self._poses.records.class_names[0]

    @property
    def category_ids(self) -> tuple[int, ...]:
        """The category's id, of several the first's: what result files call the objects."""
        return self._poses.records.category_ids[:1]

    @property
    def skeleton(self) -> tuple[tuple[int, int], ...]:
        """Pairs of indices of keypoints between which there is a line."""
        return self._poses.skeleton

    @property
    def problems(self) -> tuple[str, ...]:
        """What was left out, a line each."""
        return self._poses.records.problems

    def __len__(self) -> int:
        return len(self._poses.people) if self.per_person else len(self._image_indices)

    def __getitem__(self, index: int) -> Sample:
        records, index = self._poses.records, range(len(self))[index]
        if self.per_person:
            row = int(self._poses.people[index])
            image = int(np.searchsorted(records.starts, row, side="right")) - 1
            return keep_objects(
                records.sample(image), np.arange(records.starts[image], records.starts[image + 1]) == row
            )
        image = int(self._image_indices[index])
        sample = records.sample(image)
        where = f"{Path(self.root) / self.annotations}, image {sample.id!r}"
        return sample.replace(mask=_build_loss_mask(sample, self._poses.hidden.get(image, []), where))

    @property
    def _stated_names(self) -> tuple[str, ...]:
        return keypoint_names.COCO_KEYPOINTS if self.keypoints == "coco" else self.keypoints or ()

    @cached_property
    def _image_indices(self) -> np.ndarray:
        """Of the images that are samples."""
        counts = np.diff(self._poses.records.starts)
        return np.flatnonzero(counts) if self.people_only else np.arange(len(counts))

    @cached_property
    def _poses(self) -> _Poses:
        file = Path(self.root) / self.annotations
        data = load_coco(file)
        records = coco_records(data, file, Path(self.root) / self.images, keypoints=True)
        if records.keypoints is None:
            raise InputError(
                "no object has keypoints", where=file, allowed="annotations with keypoints and boxes"
            )
        named = next((one for one in data["categories"] if one.get("keypoints")), {})
        names = tuple(map(str, read_list(named, "keypoints", file, [])))
        stated = self._stated_names
        names = names or stated or tuple(f"keypoint_{i}" for i in range(count_keypoints(data, file)))
        if stated and (names != stated or records.keypoints.shape[1] != len(stated)):
            raise InputError(
                "the file has other keypoints than were stated",
                where=f"{file}: keypoints",
                received=f"{records.keypoints.shape[1]} keypoints, {', '.join(names[:5])}",
                allowed=f"{len(stated)} keypoints, {', '.join(stated[:5])}",
                fix="state those of the file in their order, or none: keypoints: null",
            )
        labelled = (records.keypoints[..., 2] > 0).any(axis=1) & records.valid
        if not labelled.any():
            raise InputError(
                "no object has keypoints", where=file, allowed="labelled keypoints on one object or more"
            )
        hidden = {} if self.per_person else _find_hidden(data, records, labelled, file)
        lines = _lines(read_list(named, "skeleton", file, []), names, file)
        return _Poses(records, names, lines, hidden, np.flatnonzero(labelled))


def _lines(listed: list[Any], names: tuple[str, ...], file: Path) -> tuple[tuple[int, int], ...]:
    """The lines of a category, which counts keypoints from 1."""
    pairs = keypoint_names.skeleton(names)
    if not listed:
        return pairs
    for line in listed:
        if not isinstance(line, list) or len(line) != 2 or not all(map(is_number, line)):
            raise InputError(
                "the skeleton of a category must be a list of lines",
                where=f"{file}: categories, skeleton",
                received=repr(line)[:80],
                allowed="pairs of the numbers of keypoints, counted from 1: [[1, 2], [2, 3]]",
            )
    lines = tuple((int(first) - 1, int(second) - 1) for first, second in listed)
    if all(0 <= end < len(names) for line in lines for end in line):
        return lines
    # CrowdPose's own file has COCO's lines between its other keypoints.
    _log.warning("%s: the skeleton has lines to keypoints that are not there; it is not used", file)
    return pairs


def _find_hidden(
    data: CocoLists, records: Records, labelled: np.ndarray, file: Path
) -> dict[int, list[_HiddenRegion]]:
    """Segmentations, or boxes without one, of the objects that are not `labelled`, in the order of the records."""
    place_of = {image.id: index for index, image in enumerate(records.images)}
    sizes = {image.id: image.size_hw for image in records.images}
    at = records.starts[:-1].copy()
    keypoints = count_keypoints(data, file)
    regions: dict[int, list[_HiddenRegion]] = {}
    for one in data["annotations"]:
        image_id = read_id(one.get("image_id"), sizes)
        if image_id is None or find_unusable(
            read_box(one, keypoints, "an annotation", file), sizes[image_id]
        ):
            continue  # left out of the records too
        index = place_of[image_id]
        row, at[index] = int(at[index]), at[index] + 1
        if not labelled[row]:
            region, fault = usable_region(outline) if (outline := one.get("segmentation")) else (None, None)
            if fault:
                raise InputError(
                    "a segmentation cannot be drawn",
                    where=f"{file}, annotation {one.get('id')}",
                    received=fault,
                    allowed='[[x, y, x, y, x, y, ...]] or {"size": [height, width], "counts": runs}, or none',
                )
            regions.setdefault(index, []).append(_pack_region(region, records.boxes[row]))
    return regions


def _pack_region(region: Region | None, box: np.ndarray) -> _HiddenRegion:
    if isinstance(region, Mapping):
        return region
    if region is not None:  # far smaller as arrays than as lists
        return [np.array(ring, np.float32).reshape(-1, 2) for ring in region]
    return box


def _build_loss_mask(sample: Sample, regions: list[_HiddenRegion], where: str) -> np.ndarray:
    """[H, W] bool: False within one of the regions."""
    counted = np.ones(sample.size_hw, bool)
    for region in regions:
        if isinstance(region, Mapping):
            counted &= ~decode_region(region, sample.size_hw, where)
        elif isinstance(region, list):
            for ring in region:
                counted &= ~polygons.fill([ring], sample.size_hw)
        else:
            x0, y0, x1, y1 = (max(0, round(float(side))) for side in region)
            counted[y0:y1, x0:x1] = False
    return counted
