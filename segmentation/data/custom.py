"""Custom data sets: images and masks in folders, or named in a list."""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from framework.config.registry import register
from framework.core.disk import walk_files
from framework.core.errors import ConfigError, InputError
from framework.vision import raw_images
from framework.vision.dataset_files import abbreviate
from framework.vision.deep_samples import ValueRange
from framework.vision.image import SUFFIXES
from segmentation import palettes
from segmentation.data.class_table import ClassTable, find_table, read_class_table
from segmentation.data.label_map import Color, LabelMap, name_classes
from segmentation.data.records import MaskDataset, Pair, read_pairs

_SAMPLED = 8  # masks, to find out whether the second class is stored as 255


@dataclass(frozen=True)
class _CustomDataset(MaskDataset):
    """The settings that both have."""

    root: Path
    classes: int | tuple[str, ...] | str
    ignore_index: int = field(default=255, kw_only=True)
    label_map: dict[str, int] | None = field(default=None, kw_only=True)
    colors: tuple[Color, ...] | None = field(default=None, kw_only=True)
    channels: int | None = field(default=None, kw_only=True)
    value_range: ValueRange | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.channels is not None and self.channels < 1:
            raise ConfigError(
                "an image has channels",
                where=f"{self._name}.channels",
                received=self.channels,
                allowed="1 or more, or null for 8-bit RGB",
            )
        if not isinstance(self.classes, str):  # whose file is read at the first use
            _ = self._label_map

    @property
    def _name(self) -> str:
        return type(self).__name__

    @cached_property
    def _table(self) -> ClassTable | None:
        if not isinstance(self.classes, str):
            return None
        return read_class_table(find_table(self.classes, Path(self.root)))

    @property
    def class_names(self) -> tuple[str, ...]:
        classes = self.classes if self._table is None else self._table.names
        assert not isinstance(classes, str)
        return name_classes(classes, self._name)

    @property
    def _colors(self) -> tuple[Color, ...]:
        return self.colors or (() if self._table is None else self._table.colors)

    @property
    def palette(self) -> np.ndarray:
        """The colours that are set, or those of the table of classes, else Pascal VOC's."""
        if self._colors:
            return np.array(self._colors, np.uint8)
        return palettes.of_classes(len(self.class_names))

    @cached_property
    def _label_map(self) -> LabelMap:
        if self.colors is not None and len(self.colors) != len(self.class_names):
            raise ConfigError(
                "colours do not fit the classes",
                where=f"{self._name}.colors",
                received=f"{len(self.colors)} colours",
                allowed=f"one for each of the {len(self.class_names)} classes",
            )
        values = None if self._table is None else self._table.values
        if self.label_map is not None:
            texts = [str(text) for text in self.label_map]
            if wrong := [text for text in texts if not text.isdecimal()]:
                raise ConfigError(
                    "masks have no such values",
                    where=f"{self._name}.label_map",
                    received=", ".join(wrong),
                    allowed="whole numbers: {255: 1}",
                )
            values = {**(values or {}), **dict(zip(map(int, texts), self.label_map.values()))}
        colors = tuple((color, index) for index, color in enumerate(self._colors))
        return LabelMap(len(self.class_names), self.ignore_index, values, colors)

    def find_pairs(self) -> list[Pair]:
        pairs = self._list_pairs()
        self._check_second_class([pair.mask for pair in pairs if os.path.isfile(pair.mask)])
        return pairs

    @abstractmethod
    def _list_pairs(self) -> list[Pair]: ...

    def _check_second_class(self, masks: list[Path]) -> None:
        """Raises: InputError where the masks hold 0 and 255 alone, and 255 is not the second class but ignored."""
        if (
            len(self.class_names) != 2
            or self.colors
            or self.ignore_index != 255
            or 255 in (self._label_map.values or {})
        ):
            return
        occurring: set[int] = set()
        for mask in masks[:: max(1, len(masks) // _SAMPLED)][:_SAMPLED]:
            values = raw_images.read_labels(mask)
            if values.ndim == 3 and self._colors:
                return
            occurring |= set(np.unique(values).tolist())
        if occurring == {0, 255}:
            raise InputError(
                "the masks hold 0 and 255 alone, and 255 is ignored: there would be one class to learn, and mIoU 0.5",
                where=masks[0].parent,
                received="values 0 and 255",
                allowed="0 and 1 for two classes",
                fix="set label_map: {255: 1}; if 255 is really to be ignored, {255: 255}",
            )


@register("dataset")
@dataclass(frozen=True)
class MaskFolder(_CustomDataset):
    """Each image in `<root>/<images>` has a mask in `<root>/<masks>` of the same name up to the suffix.

    The name of a mask may have `mask_suffix` at its end: `a.jpg` and `a_mask.png` with "_mask", which may then lie in
    one folder; that of an image `image_suffix`, as Cityscapes' `a_leftImg8bit.png` and `a_gtFine_labelIds.png` have
    both. Folders inside the two are searched too, and must be the same in both. Images without a mask are an error,
    masks without an image are not. Files whose names begin with a dot are left out.

    Attributes:
        classes: Their names by index, how many they are, or the table of them that a tool wrote beside the masks, seen
            from `root` or from the folder around it: labelmap.txt, label_colors.txt, class_dict.csv, _classes.csv; its
            colours are those of the masks. See `segmentation.data.class_table.read_class_table`.
        ignore_index: Stands for pixels without a class, in the files and in the samples.
        label_map: Stored value to class or `ignore_index`, for values that are not the class itself: {255: 1}.
        colors: The colour of each class, for masks in colours, and for drawing.
        channels: How many the images have, which are then read as they are stored (.npy, TIFF of several bands or
            pages, 16 bits); null: any image, read as 8-bit RGB.
        value_range: Black and white of images of more than 8 bits that are read as 8-bit RGB: [0, 4095].

    Raises:
        ConfigError: there are fewer than two classes, or settings that do not fit them.
        InputError: at the first use, there are no images, files are missing, or masks of two classes hold 0 and 255.
            At an access, a file cannot be read, image and mask differ in size, or values stand for no class.
    """

    images: str = "images"
    masks: str = "masks"
    mask_suffix: str = ""
    image_suffix: str = ""

    def _list_pairs(self) -> list[Pair]:
        root = Path(self.root)
        images, masks = _find_files(root / self.images, "images"), _find_files(root / self.masks, "masks")
        ending = self.mask_suffix
        by_name = {
            path.relative_to(root / self.masks).with_name(path.stem.removesuffix(ending)): path
            for path in masks
            if path.stem.endswith(ending)
        }
        if ending:  # Roboflow has masks beside their images
            no_images = set(by_name.values())
            images = [path for path in images if path not in no_images]
        names = [
            path.relative_to(root / self.images).with_name(path.stem.removesuffix(self.image_suffix))
            for path in images
        ]
        if missing := [str(path) for path, name in zip(images, names) if name not in by_name]:
            raise InputError(
                f"{len(missing)} of {len(images)} images have no mask",
                where=root / self.masks,
                received=abbreviate(missing),
                allowed=f"<name of the image>{ending}.png",
                fix="set mask_suffix or image_suffix, add the masks, or take the images out",
            )
        return [Pair(path, by_name[name]) for path, name in zip(images, names)]


@register("dataset")
@dataclass(frozen=True)
class MaskListFile(_CustomDataset):
    """Images and masks named in a text file, a line each: `image mask`, as PaddleSeg's train.txt.

    Paths are relative to `root`, that of the list to the current folder. Without a `separator` columns are separated
    by blanks or tabs; with another one, paths may hold blanks; in double quotes they may hold the separator. The other
    settings are those of MaskFolder.

    Raises:
        ConfigError: there are fewer than two classes, settings that do not fit them, or the separator is empty.
        InputError: at the first use, the list cannot be read, is empty, has lines that are no `image mask`, files are
            missing, or masks of two classes hold 0 and 255. At an access, as MaskFolder.
    """

    list_file: Path
    separator: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.separator == "":
            raise ConfigError(
                "the separator is empty",
                where="MaskListFile.separator",
                allowed="a comma, a tab, ..., or null for blanks",
            )

    def _list_pairs(self) -> list[Pair]:
        return read_pairs(Path(self.list_file), Path(self.root), self.separator)


def _find_files(folder: Path, what: str) -> list[Path]:
    """All images and arrays in a folder and its folders, sorted by name."""
    files = sorted(
        path for path in map(Path, walk_files(folder)) if path.suffix.lower() in (*SUFFIXES, ".npy")
    )
    if not files:
        raise InputError(
            f"there are no {what}",
            where=folder,
            allowed=f"files that end in {', '.join(SUFFIXES)} or .npy",
            fix=f"check root, images and masks; the current folder is {Path.cwd()}",
        )
    return files
