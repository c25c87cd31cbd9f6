"""ADE20K: the 150 classes of MIT's scene parsing benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from framework.config.registry import register
from framework.core.errors import InputError
from segmentation import palettes
from segmentation.data.classes import ADE20K as CLASSES
from segmentation.data.label_map import LabelMap
from segmentation.data.records import BenchmarkDataset, Pair


@register("dataset")
@dataclass(frozen=True)
class ADE20K(BenchmarkDataset):
    """150 classes: the values 1 to 150 of the masks; 0, which stands for anything else, is 255.

    Images are `<root>/images/<split>/*.jpg`, masks `<root>/annotations/<split>/*.png` of the same names; the splits
    are "training" and "validation", and "" for the two folders themselves.

    Raises:
        InputError: at the first use, there are no images, or masks are not there. At an access, a file cannot be
            read, image and mask differ in size, or values stand for no class.

    Source: Zhou et al. 2017, https://arxiv.org/abs/1608.05442; https://github.com/CSAILVision/sceneparsing
    """

    root: Path
    split: str = "training"

    _names = CLASSES
    _colors = palettes.ADE20K

    def find_pairs(self) -> list[Pair]:
        folder = Path(self.root) / "images" / self.split
        masks = Path(self.root) / "annotations" / self.split
        images = sorted(folder.glob("*.jpg"))
        if not images:
            raise InputError(
                "there are no images",
                where=folder,
                allowed="*.jpg",
                fix=f'check root, and split ("training", "validation"); the current folder is {Path.cwd()}',
            )
        return [Pair(image, masks / f"{image.stem}.png") for image in images]

    @cached_property
    def _label_map(self) -> LabelMap:
        return LabelMap(len(CLASSES), values={0: 255, **{index + 1: index for index in range(len(CLASSES))}})
