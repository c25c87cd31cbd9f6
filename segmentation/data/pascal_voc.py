"""Pascal VOC 2012, and its masks made more by SBD."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from framework.config.registry import register
from framework.vision.dataset_files import is_file
from framework.vision.image import SUFFIXES
from segmentation import palettes
from segmentation.data.class_table import LABELMAP, ClassTable, read_class_table
from segmentation.data.classes import PASCAL_VOC
from segmentation.data.records import BenchmarkDataset, Pair, read_list, read_pairs

_MASKS = ("SegmentationClass", "SegmentationClassAug")


@register("dataset")
@dataclass(frozen=True)
class PascalVOC(BenchmarkDataset):
    """20 classes and the background, which is class 0; edges of objects are 255.

    `<root>/ImageSets/Segmentation/<split>.txt` lists names of images in `<root>/JPEGImages`, whose masks are in
    `<root>/SegmentationClass` or else in `<root>/SegmentationClassAug`; a line may also name both files, as lists of
    the augmented set do (`/JPEGImages/a.jpg /SegmentationClassAug/a.png`). Several splits are joined by a plus:
    "train+aug". Masks are PNG with a palette, or grey.

    A `labelmap.txt` in `root`, as CVAT ("Segmentation mask 1.1") and Datumaro write it, has other classes and colours
    than VOC's, which the masks may then hold; its images need not be JPEG.

    Raises:
        InputError: at the first use, a list cannot be read, is empty or names files that are not there. At an
            access, a file cannot be read, image and mask differ in size, or values stand for no class.

    Source: http://host.robots.ox.ac.uk/pascal/VOC/voc2012; the augmented masks are Hariharan's, 2011
    """

    root: Path
    split: str = "train"

    _names = PASCAL_VOC
    _colors = palettes.PASCAL_VOC

    def find_pairs(self) -> list[Pair]:
        return [pair for split in self.split.split("+") for pair in self._read_split(split)]

    def _read_split(self, split: str) -> list[Pair]:
        root = Path(self.root)
        file = root / "ImageSets" / "Segmentation" / f"{split}.txt"
        lines = read_list(file)
        if len(lines[0].split()) == 2:
            # The leading slash stands for root.
            pairs = read_pairs(file, Path())
            return [Pair(*(root / path.as_posix().lstrip("/") for path in pair)) for pair in pairs]
        return [Pair(self._find_image(name), self._find_mask(name)) for name in lines]

    def _find_image(self, name: str) -> Path:
        first, *others = (
            Path(self.root) / "JPEGImages" / f"{name}{suffix}" for suffix in (".jpg", *SUFFIXES)
        )
        return next((image for image in (first, *others) if os.path.isfile(image)), first)

    @cached_property
    def _table(self) -> ClassTable | None:
        file = Path(self.root) / LABELMAP
        return read_class_table(file) if is_file(file) else None

    def _find_mask(self, name: str) -> Path:
        masks = [Path(self.root) / folder / f"{name}.png" for folder in _MASKS]
        return next((mask for mask in masks if os.path.isfile(mask)), masks[0])
