"""Objects on images, in whatever format they were annotated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from framework.core.errors import InputError
from framework.vision import masks, polygons
from framework.vision.contours import trace_pixel_edges

Box = tuple[float, float, float, float]
SUBSETS = {"train": "train", "validation": "val", "val": "val", "valid": "val", "test": "test"}
"""Splits by the names that tools have for them, in lower case."""
_BLOCK = 256  # of points, whose distances to thousands of others are in memory at once
_SPLIT = re.compile(r"(?:^|[^a-z])(train|val|valid|validation|test)(?=[^a-z]|$)", re.IGNORECASE)


def split_spellings(split: str) -> tuple[str, ...]:
    """A split's name, and what other tools call it: `valid` is the `val` of Roboflow."""
    same = (name for name in SUBSETS if SUBSETS[name] == SUBSETS.get(split, split))
    return tuple(dict.fromkeys((split, *same)))


@dataclass(frozen=True, eq=False)
class AnnotatedObject:
    """One object; coordinates are continuous, in pixels of its image.

    Attributes:
        box: xyxy
        outlines: [N, 2] each: the parts of its outline; none where there is only a box, or a mask.
        mask: [H, W] bool of the pixels from the upper left corner of the box on, where the object is told by pixels.
        attributes: What else is said of it.
        is_valid: False of crowds and of difficult objects.
    """

    label: str
    box: Box
    outlines: tuple[np.ndarray, ...] = ()
    mask: np.ndarray | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    is_valid: bool = True

    @property
    def has_shape(self) -> bool:
        """Whether more than a box is known."""
        return bool(self.outlines) or self.mask is not None

    @property
    def has_holes(self) -> bool:
        """Whether its mask has holes, which `find_outlines` leaves out."""
        if self.mask is None:
            return False
        areas = [signed_area(points) for points in trace_pixel_edges(self.mask)]
        largest = max(areas, key=abs, default=0.0)
        return any(area * largest < 0 for area in areas)

    def has_flag(self, name: str) -> bool:
        """Whether an attribute says yes, such as "occluded": tools write 1, true or yes."""
        return self.attributes.get(name, "").strip().lower() in ("1", "true", "yes")

    def fill(self, size_hw: tuple[int, int]) -> np.ndarray:
        """[H, W] bool: its pixels on an image of this size."""
        if self.mask is None:
            if not self.outlines:
                x0, y0, x1, y1 = self.box
                return polygons.fill([np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])], size_hw)
            covered = np.zeros(size_hw, bool)
            for outline in self.outlines:
                covered |= polygons.fill([outline], size_hw)
            return covered
        whole = np.zeros(size_hw, bool)
        (left, top), (height, width) = (round(self.box[0]), round(self.box[1])), self.mask.shape
        x0, y0 = max(0, left), max(0, top)
        x1, y1 = min(size_hw[1], left + width), min(size_hw[0], top + height)
        if x1 > x0 and y1 > y0:
            whole[y0:y1, x0:x1] = self.mask[y0 - top : y1 - top, x0 - left : x1 - left]
        return whole

    def find_outlines(self) -> tuple[np.ndarray, ...]:
        """Its outlines; of a mask those of its parts, without holes."""
        return self.outlines if self.mask is None else self._trace(holes=False)

    def find_rings(self) -> tuple[np.ndarray, ...]:
        """Its outlines, and of a mask those of its holes too: filled by the even-odd rule they are its pixels."""
        return self.outlines if self.mask is None else self._trace(holes=True)

    def _trace(self, holes: bool) -> tuple[np.ndarray, ...]:
        assert self.mask is not None
        contours = [points.astype(np.float64) for points in trace_pixel_edges(self.mask)]
        areas = [signed_area(points) for points in contours]
        largest = max(areas, key=abs, default=0.0)
        corner = np.array([round(self.box[0]), round(self.box[1])], np.float64)
        return tuple(points + corner for points, area in zip(contours, areas) if area * largest > 0 or holes)


@dataclass(frozen=True, eq=False)
class AnnotatedImage:
    """An image file and its objects.

    Attributes:
        name: What the image is called in the data set: a path with slashes, seen from the folder of the images.
        size_hw: None where neither the annotation nor the file says it.
        split: Such as "train"; "" where the data are in one.
    """

    path: Path
    name: str
    size_hw: tuple[int, int] | None
    objects: tuple[AnnotatedObject, ...] = ()
    split: str = ""


@dataclass(frozen=True, eq=False)
class AnnotatedSet:
    """What a file or a folder of annotations tells.

    Attributes:
        problems: What is left out, a line each.
        notes: What else is worth a line, such as images without a file of labels.
    """

    images: tuple[AnnotatedImage, ...]
    class_names: tuple[str, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def select_split(self, split: str, where: Path) -> AnnotatedSet:
        """The images of one split; all where none is asked for. Raises: InputError, where there is none."""
        if not split:
            return self
        images = tuple(image for image in self.images if image.split == split)
        if not images:
            splits = sorted({image.split for image in self.images if image.split})
            raise InputError(
                "the file has no such subset",
                where=where,
                received=split,
                allowed=", ".join(splits) or "none: the file tells no subsets",
                fix="set split to one of them, or to an empty text for all images",
            )
        return AnnotatedSet(images, self.class_names, self.problems, self.notes)


def find_split(name: str) -> str:
    """The split that the last word of the name of a file tells, such as instances_val2017; "" where none does."""
    words = _SPLIT.findall(name.replace("2014", " ").replace("2017", " "))
    return SUBSETS[words[-1].lower()] if words else ""


def merge_splits(sets: Mapping[str, AnnotatedSet]) -> AnnotatedSet:
    """One set of the sets of splits: the classes of all, in the order of the first that has them."""
    images = tuple(
        replace(image, split=image.split or split) for split, one in sets.items() for image in one.images
    )
    names = tuple(dict.fromkeys(name for one in sets.values() for name in one.class_names))
    problems = tuple(line for one in sets.values() for line in one.problems)
    return AnnotatedSet(images, names, problems, tuple(line for one in sets.values() for line in one.notes))


def signed_area(outline: np.ndarray) -> float:
    """Of a polygon [N, 2]; its sign tells the direction."""
    x, y = np.asarray(outline, np.float64).T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def bounds(outlines: Sequence[np.ndarray]) -> Box:
    """xyxy of outlines [N, 2]."""
    points = np.concatenate(outlines)
    (x0, y0), (x1, y1) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return x0, y0, x1, y1


def from_full_mask(
    label: str, mask: np.ndarray, attributes: Mapping[str, str], is_valid: bool = True
) -> AnnotatedObject:
    """The object of a mask [H, W] bool of the whole image."""
    x0, y0, x1, y1 = (int(side) for side in masks.to_boxes(mask[None])[0])
    return AnnotatedObject(label, (x0, y0, x1, y1), (), mask[y0:y1, x0:x1], attributes, is_valid)


def join_outlines(outlines: Sequence[np.ndarray]) -> np.ndarray:
    """[N, 2]: several outlines as one polygon, with lines there and back between the nearest points of each and what
    is joined already. YOLO's format has one outline an object."""
    joined, *others = (np.asarray(outline, np.float64) for outline in outlines)
    for other in others:
        here, there = _nearest(joined, other)
        around = np.roll(other, -there, axis=0)
        joined = np.concatenate([joined[: here + 1], around, around[:1], joined[here:]])
    return joined


def _nearest(points: np.ndarray, others: np.ndarray) -> tuple[int, int]:
    """The indices of the point [N, 2] and the other point [M, 2] that are nearest to one another."""
    best, pair = np.inf, (0, 0)
    for first in range(0, len(points), _BLOCK):
        distances = ((points[first : first + _BLOCK, None] - others) ** 2).sum(axis=2)
        index = int(distances.argmin())
        if distances.flat[index] < best:
            best = float(distances.flat[index])
            pair = first + index // len(others), index % len(others)
    return pair
