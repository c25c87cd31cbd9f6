"""Cityscapes: street scenes of 50 cities."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from framework.config.registry import register
from framework.core.errors import InputError
from segmentation import palettes
from segmentation.data.classes import CITYSCAPES, CITYSCAPES_IDS
from segmentation.data.label_map import LabelMap
from segmentation.data.records import BenchmarkDataset, Pair, read_list, read_pairs

_IMAGE = "_leftImg8bit.png"
_OWN_CLASSES = "label_colors.txt"
_KINDS = ("labelTrainIds", "labelIds")


@register("dataset")
@dataclass(frozen=True)
class Cityscapes(BenchmarkDataset):
    """The 19 classes of Cityscapes that are evaluated; everything else is 255.

    Without a list, the images are `<root>/leftImg8bit/<split>/<city>/*_leftImg8bit.png` and their masks
    `<root>/<annotations>/<split>/<city>/*_<annotations>_labelTrainIds.png`, or `..._labelIds.png` where those are not
    there; the folders of cities may be missing in both. `list_file`, relative to the current folder, has a line a
    sample: image and mask, relative to `root`, separated by a comma or a blank, as PaddleSeg's train.list. Masks whose
    names end in labelIds hold the 34 official ids, of which 19 are turned into classes; all others hold classes.

    Attributes:
        annotations: "gtFine", or "gtCoarse" with the split "train_extra".

    Raises:
        InputError: at the first use, there are no images, a label_colors.txt tells of other classes, the list cannot be
            read or is empty, or files are not there. At an access, a file cannot be read, image and mask differ in
            size, or values stand for no class.

    Source: Cordts et al. 2016, https://arxiv.org/abs/1604.01685; cityscapesScripts, helpers/labels.py
    """

    root: Path
    split: str = "train"
    annotations: str = "gtFine"
    list_file: Path | None = None

    _names = CITYSCAPES
    _colors = palettes.CITYSCAPES

    def find_pairs(self) -> list[Pair]:
        root = Path(self.root)
        if self.list_file is not None:
            commas = all("," in line for line in read_list(Path(self.list_file)))
            return read_pairs(Path(self.list_file), root, "," if commas else None)
        if (root / _OWN_CLASSES).is_file():
            raise InputError(
                "the masks have classes of their own, which are not those of Cityscapes",
                where=root / _OWN_CLASSES,
                allowed="folders without this file, which CVAT and Datumaro write",
                fix=f"type: MaskFolder, images: leftImg8bit/{self.split}, masks: {self.annotations}/{self.split}, "
                f"image_suffix: _leftImg8bit, mask_suffix: _{self.annotations}_labelIds, classes: {_OWN_CLASSES}",
            )
        folder = root / "leftImg8bit" / self.split
        images = sorted(folder.glob(f"*/*{_IMAGE}")) or sorted(folder.glob(f"*{_IMAGE}"))
        if not images:
            raise InputError(
                "there are no images",
                where=folder,
                allowed=f"<city>/*{_IMAGE}, or *{_IMAGE}",
                fix=f"check root and split, or set list_file; the current folder is {Path.cwd()}",
            )
        return [Pair(image, self._find_mask(image)) for image in images]

    def _find_mask(self, image: Path) -> Path:
        city = image.parent.relative_to(Path(self.root) / "leftImg8bit" / self.split)
        folder = Path(self.root) / self.annotations / self.split / city
        name = image.name.removesuffix(_IMAGE)
        masks = [folder / f"{name}_{self.annotations}_{kind}.png" for kind in _KINDS]
        return next((mask for mask in masks if os.path.isfile(mask)), masks[-1])

    def find_label_map(self, mask: Path) -> LabelMap:
        return self._id_map if mask.stem.endswith("labelIds") else self._label_map

    @cached_property
    def _id_map(self) -> LabelMap:
        return LabelMap(len(CITYSCAPES), values=dict(enumerate(CITYSCAPES_IDS)))
