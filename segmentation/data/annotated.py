"""Masks of classes from the outlines of YOLO's format, the shapes of CVAT's, and those of other tools."""

from __future__ import annotations

import logging
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, InputError
from framework.vision.annotations.cvat import find_cvat, read_cvat
from framework.vision.annotations.formats import Format, detect_format, read_set
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedSet
from framework.vision.annotations.yolo import read_yolo
from framework.vision.dataset_files import describe_divided, read_image, report_problems
from framework.vision.deep_samples import ValueRange
from framework.vision.sample import Sample
from segmentation import palettes
from segmentation.data.records import Pair, SegmentationDataset, check_classes, check_files, make_sample

_log = logging.getLogger("oar")


class _Objects(NamedTuple):
    class_names: tuple[str, ...]
    images: tuple[AnnotatedImage, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class _ShapeMasks(SegmentationDataset):
    """What both data sets share: objects drawn into one mask of classes for each image.

    With a `background` that is class 0, and stands for what no object covers; null leaves such pixels to be ignored
    (`ignore_index`, which is a number above those of the classes). Of objects that overlap the smallest is drawn last.
    Boxes alone have no outline: they are left out and listed in `problems`.
    """

    root: Path
    split: str = field(default="", kw_only=True)
    background: str | None = field(default="background", kw_only=True)
    ignore_index: int = field(default=255, kw_only=True)
    value_range: ValueRange | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.background == "":
            raise ConfigError(
                "the background has no name",
                where=f"{type(self).__name__}.background",
                received="an empty text",
                allowed="a name, or null where every pixel is annotated",
            )

    @property
    @abstractmethod
    def _source(self) -> Path: ...

    @abstractmethod
    def _read(self) -> AnnotatedSet: ...

    @property
    def class_names(self) -> tuple[str, ...]:
        return self._objects.class_names

    @property
    def problems(self) -> tuple[str, ...]:
        """What was left out, a line each."""
        return self._objects.problems

    @property
    def palette(self) -> np.ndarray:
        return palettes.of_classes(len(self.class_names))

    def __len__(self) -> int:
        return len(self._objects.images)

    def __getitem__(self, index: int) -> Sample:
        image = self._objects.images[index]
        pixels = read_image(image.path, image.path, value_range=self.value_range)
        size_hw = pixels.shape[0], pixels.shape[1]
        if image.size_hw is not None and image.size_hw != size_hw:
            raise InputError(
                "the image has another size than its annotation says, so the outlines may be wrong",
                where=image.path,
                received="{} high and {} wide".format(*size_hw),
                allowed="{} high and {} wide".format(*image.size_hw),
            )
        mask = np.full(size_hw, self.ignore_index if self.background is None else 0, self.mask_dtype)
        drawn = [(self.class_names.index(one.label), one.fill(size_hw)) for one in image.objects]
        for label, region in sorted(drawn, key=lambda one: -np.count_nonzero(one[1])):
            mask[region] = label
        return make_sample(pixels, mask, Pair(image.path, self._source))

    @cached_property
    def _objects(self) -> _Objects:
        read = self._read()
        names = read.class_names if self.background is None else (self.background, *read.class_names)
        check_classes(names, self.ignore_index, self._source)
        images = []
        problems = list(read.problems)
        for image in read.images:
            shaped = tuple(one for one in image.objects if one.has_shape)
            if boxes := len(image.objects) - len(shaped):
                problems.append(f"{image.name}: {boxes} boxes have no outline")
            images.append(AnnotatedImage(image.path, image.name, image.size_hw, shaped, image.split))
        if any(image.objects for image in read.images) and not any(image.objects for image in images):
            raise InputError(
                "no object has an outline",
                where=self._source,
                allowed="polygons or masks; boxes alone are for detection",
            )
        check_files([image.path for image in images])
        problems += describe_divided(
            (image.path, [(one.label, one.box) for one in image.objects]) for image in images
        )
        for note in read.notes:
            _log.info("%s: %s", self._source, note)
        return _Objects(names, tuple(images), report_problems(self._source, problems))


@register("dataset")
@dataclass(frozen=True)
class YoloMasks(_ShapeMasks):
    """The outlines of YOLO's segmentation format, drawn into one mask of classes for each image.

    `root` is a data.yaml, or a folder with one, or with images and text files; `split` is "train", "val" or "test" of
    it, or "" for all: see `framework.vision.annotations.yolo.read_yolo`. The classes are the names of data.yaml in
    their order, behind the `background`, which stands for what no object covers; with null such pixels are ignored.
    Boxes alone are left out and listed in `problems`.

    Raises:
        InputError, FormatError: at the first use, as `read_yolo`, no object has an outline, or there are fewer than two
            classes, or one has the number `ignore_index`. At an access, the image cannot be read.
    """

    @property
    def _source(self) -> Path:
        return Path(self.root)

    def _read(self) -> AnnotatedSet:
        return read_yolo(Path(self.root), self.split)


@register("dataset")
@dataclass(frozen=True)
class CvatMasks(_ShapeMasks):
    """The polygons, ellipses and masks of CVAT's XML, drawn into one mask of classes for each image.

    `annotations` is the file and `images` the folder of the images, both seen from `root`; without `images` they are in
    the folder `images` beside the file, or beside it. `split` takes the images of one subset, or the subset's own file,
    such as train.xml, where there is no file `annotations`; "" all. The classes are the labels of the task, behind the
    `background`, as in YoloMasks.

    Raises:
        InputError, FormatError: at the first use, as `framework.vision.annotations.cvat.read_cvat`, images are not
            there, no object has an outline, or there are fewer than two classes, or one has the number `ignore_index`.
            At an access, the image cannot be read, or has another size than the file says.
    """

    annotations: Path = Path("annotations.xml")
    images: str | None = None
    not_inherited: ClassVar = ("images",)  # the folder that a recipe names for files of another format

    @property
    def _source(self) -> Path:
        return find_cvat(Path(self.root) / self.annotations, self.split)[0]

    def _read(self) -> AnnotatedSet:
        folder = None if self.images is None else Path(self.root) / self.images
        file, split = find_cvat(Path(self.root) / self.annotations, self.split)
        return read_cvat(file, folder).select_split(split, file)


@register("dataset")
@dataclass(frozen=True)
class AnnotatedMasks(_ShapeMasks):
    """The outlines and masks of any format that `oar data convert` reads but labelme's JSON, drawn into one mask of
    classes for each image: VIA, DOTA, COCO, COCO's panoptic format, the JSON of Label Studio, Datumaro and VoTT, YOLO,
    CVAT, LabelMe's XML.

    `annotations` is the file or the folder, seen from `root`, which is the folder itself by default; `images` is the
    folder of the images, seen from `root`, where the format does not say it. `format` is found out by default. `split`
    takes the images of one split, which a folder or the name of a file tells; "" all. The classes stand behind the
    `background`, as in YoloMasks.

    Raises:
        InputError, FormatError: at the first use, as `framework.vision.annotations.formats.read_set`, there is no such
            split, no object has an outline, or there are fewer than two classes, or one has the number `ignore_index`.
            At an access, the image cannot be read, or has another size than the annotations say.
    """

    annotations: str = ""
    images: str | None = None
    format: Format | None = None
    not_inherited: ClassVar = ("images",)  # as of CvatMasks

    @property
    def _source(self) -> Path:
        return Path(self.root) / self.annotations

    def _read(self) -> AnnotatedSet:
        folder = None if self.images is None else Path(self.root) / self.images
        read = read_set(self._source, self.format or detect_format(self._source), folder)
        return read.select_split(self.split, self._source)
