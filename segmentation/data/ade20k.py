"""ADE20K: the 150 classes of MIT's scene parsing benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from framework.config.registry import register
from framework.core.errors import InputError
from segmentation import palettes
from segmentation.data.classes import ADE20K as CLASSES
from segmentation.data.coding import Coding
from segmentation.data.records import MaskDataset, Pair


@register("dataset")
@dataclass(frozen=True)
class ADE20K(MaskDataset):
    """150 classes: the values 1 to 150 of the masks; 0, which stands for anything else, is 255.

    Pictures are `<root>/images/<split>/*.jpg`, masks `<root>/annotations/<split>/*.png` of the same names; the splits
    are "training" and "validation", and "" for the two folders themselves.

    Raises:
        InputError: at the first use, there are no pictures, or masks are not there. At an access, a file cannot be
            read, picture and mask differ in size, or values stand for no class.

    Source: Zhou et al. 2017, https://arxiv.org/abs/1608.05442; https://github.com/CSAILVision/sceneparsing
    """

    root: Path
    split: str = "training"

    @property
    def class_names(self) -> tuple[str, ...]:
        return CLASSES

    @property
    def palette(self) -> np.ndarray:
        return palettes.ADE20K

    def find(self) -> list[Pair]:
        folder = Path(self.root) / "images" / self.split
        masks = Path(self.root) / "annotations" / self.split
        pictures = sorted(folder.glob("*.jpg"))
        if not pictures:
            raise InputError(
                "there are no pictures",
                where=folder,
                allowed="*.jpg",
                fix=f'check root, and split ("training", "validation"); the current folder is {Path.cwd()}',
            )
        return [Pair(picture, masks / f"{picture.stem}.png") for picture in pictures]

    def coding(self, mask: Path) -> Coding:
        return self._coding

    @cached_property
    def _coding(self) -> Coding:
        return Coding(len(CLASSES), values={0: 255, **{index + 1: index for index in range(len(CLASSES))}})
