"""What the data sets share: pairs of an image and a mask, read when they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from framework.core.errors import InputError
from framework.core.process import cpu_count
from framework.io.dataset import LazyDataset
from framework.vision.dataset_files import (
    abbreviate,
    find_missing,
    listed_path,
    read_image,
    read_lines,
    split_columns,
    split_quoted,
)
from framework.vision.deep_samples import ValueRange
from framework.vision.sample import Sample
from segmentation.data.class_table import ClassTable
from segmentation.data.label_map import LabelMap


class Pair(NamedTuple):
    """The files of one sample."""

    image: Path
    mask: Path


class SegmentationDataset(LazyDataset):
    """Images with a mask each: what training, checking and drawing ask of a data set."""

    ignore_index: int = 255
    """Stands in masks for pixels without a class."""
    selected_by: ClassVar[str | None] = "SelectedClasses"
    """The type of the data set around this one that has some of its classes."""

    @property
    @abstractmethod
    def class_names(self) -> tuple[str, ...]:
        """By index."""

    @property
    @abstractmethod
    def palette(self) -> np.ndarray:
        """[K, 3] uint8 RGB, the colours of the classes."""

    @abstractmethod
    def __getitem__(self, index: int) -> Sample: ...

    @property
    def mask_dtype(self) -> type[np.generic]:
        """Of masks: what holds the classes and `ignore_index`."""
        return np.uint8 if max(len(self.class_names) - 1, self.ignore_index) <= 255 else np.int32

    def read_mask(self, index: int) -> np.ndarray:
        """[H, W] class indices and `ignore_index` of the sample at `index`."""
        mask = self[index].mask
        assert mask is not None
        return mask

    def count_pixels(self) -> np.ndarray:
        """[num_classes] int64: the pixels of each class in all masks, all of which are read.

        Raises:
            InputError: a mask cannot be read, or has values that stand for no class.
        """
        size = max(len(self.class_names), self.ignore_index + 1)

        def count(index: int) -> np.ndarray:
            return np.bincount(self.read_mask(index).reshape(-1), minlength=size)[: len(self.class_names)]

        total = np.zeros(len(self.class_names), np.int64)
        with ThreadPoolExecutor(cpu_count()) as pool:
            for counts in pool.map(count, range(len(self))):
                total += counts
        return total


class MaskDataset(SegmentationDataset):
    """Images and mask files. What a data set adds is which files they are and what the values stand for.

    The sample's id is the path of the image.
    """

    channels: int | None = None
    value_range: ValueRange | None = None
    """How many an image must have, to be taken as it is stored; None: it is read as 8-bit RGB."""

    @cached_property
    def pairs(self) -> list[Pair]:
        """The files, which are all there."""
        pairs = self.find_pairs()
        check_files([path for pair in pairs for path in pair])
        return pairs

    @abstractmethod
    def find_pairs(self) -> list[Pair]:
        """The files that should be there, at least one pair."""

    def find_label_map(self, mask: Path) -> LabelMap:
        """What the values of a mask file stand for."""
        return self._label_map

    @cached_property
    def _label_map(self) -> LabelMap:
        return LabelMap(len(self.class_names))

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Sample:
        pair = self.pairs[index]
        image = read_image(pair.image, pair.image, self.channels, value_range=self.value_range)
        return make_sample(image, self.read_mask(index), pair)

    def read_mask(self, index: int) -> np.ndarray:
        mask = self.pairs[index].mask
        return self.find_label_map(mask).read(mask)


class BenchmarkDataset(MaskDataset):
    """A public data set, whose classes and their colours are known, or own classes in its format."""

    _names: ClassVar[tuple[str, ...]]
    _colors: ClassVar[np.ndarray]

    @cached_property
    def _table(self) -> ClassTable | None:
        """The own classes, where a tool wrote a table of them into the folder."""
        return None

    @property
    def class_names(self) -> tuple[str, ...]:
        return self._names if self._table is None else self._table.names

    @property
    def palette(self) -> np.ndarray:
        return self._colors if self._table is None else np.array(self._table.colors, np.uint8)

    @cached_property
    def _label_map(self) -> LabelMap:
        colors = () if self._table is None else self._table.colors
        return LabelMap(len(self.class_names), colors=tuple(zip(colors, range(len(colors)))))


def make_sample(pixels: np.ndarray, mask: np.ndarray, pair: Pair) -> Sample:
    """Raises: InputError when image and mask have different sizes."""
    if pixels.shape[:2] != mask.shape:
        raise InputError(
            "the mask has another size than its image",
            where=pair.mask,
            received="{} high and {} wide".format(*mask.shape),
            allowed="{} high and {} wide, as {}".format(*pixels.shape[:2], pair.image),
            fix="make the mask anew at the image's size (a photo may be stored sideways, with a mark to turn it)",
        )
    return Sample(pixels, mask=mask, id=str(pair.image), source_size=(mask.shape[0], mask.shape[1]))


def check_classes(names: Sequence[str], ignore_index: int, where: Path) -> None:
    """Raises: InputError unless there are two classes of different names, none of which has the number that stands for
    no class."""
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError(
            "the labels must be 2 or more classes of different names",
            where=where,
            received=f"{len(names)} classes, {len(set(names))} different names",
            allowed="2 or more, the background included, each of another name",
        )
    if not len(names) <= ignore_index <= 65535:
        raise InputError(
            "ignore_index is the number of a class, or out of range",
            where=where,
            received=f"ignore_index {ignore_index}, {len(names)} classes",
            allowed=f"{len(names)} to 65535",
            fix="set ignore_index: 65535 for the data sets, the losses, the metric and the transforms that have it",
        )


def check_files(paths: Sequence[Path]) -> None:
    """Raises: InputError when some of the files are not there."""
    if missing := find_missing(paths):
        raise InputError(
            f"{len(missing)} of {len(paths)} files of the data set are not there",
            received=abbreviate([str(paths[number]) for number in missing]),
            fix=f"check root and the names; the current folder is {Path.cwd()}",
        )


def read_list(file: Path) -> list[str]:
    """The lines of a list that are not empty.

    Raises:
        InputError: there is no such file, it is not UTF-8, or it has no line.
    """
    lines = [line.strip() for line in read_lines(file, "list") if line.strip()]
    if not lines:
        raise InputError("the list is empty", where=file, allowed="a line a sample")
    return lines


def _split(line: str, separator: str) -> tuple[str, str] | None:
    if quoted := split_quoted(line.strip(), separator):
        return quoted
    columns = [column.strip() for column in line.split(separator)]
    return (columns[0], columns[1]) if len(columns) == 2 and all(columns) else None


def read_pairs(file: Path, root: Path, separator: str | None = None) -> list[Pair]:
    """The pairs of a list, `image mask` a line, relative to `root`; None: separated by blanks or tabs.

    Raises:
        InputError: as `read_list`, or lines have not two columns.
    """
    pairs, wrong = [], []
    for line in read_list(file):
        columns = split_columns(line, root) if separator is None else _split(line, separator)
        if columns is None:
            wrong.append(line[:80])
        else:
            pairs.append(Pair(listed_path(root, columns[0]), listed_path(root, columns[1])))
    if wrong:
        separator_text = "a blank" if separator is None else repr(separator)
        raise InputError(
            f"{len(wrong)} lines of the list are no image and mask",
            where=file,
            received=abbreviate(wrong, "; "),
            allowed=f"the path of an image, {separator_text}, and that of its mask",
            fix="set separator if the columns are separated by something else, or correct the lines",
        )
    return pairs
