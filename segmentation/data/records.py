"""What the data sets share: pairs of an image and a mask, read when they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from framework.core.errors import InputError
from framework.io.dataset import LazyDataset
from framework.vision import image, raw_images
from framework.vision.sample import Sample
from segmentation.data.label_map import LabelMap

_SHOWN = 5


class Pair(NamedTuple):
    """The files of one sample."""

    image: Path
    mask: Path


class MaskDataset(LazyDataset):
    """Images and mask files. What a data set adds is which files they are and what the values stand for.

    `class_names` are the names by index, `palette` [K, 3] uint8 their colours; `ignore_index` stands in masks for
    pixels without a class. The sample's id is the path of the image.
    """

    channels: int | None = None
    """How many an image must have, to be taken as it is stored; None: it is read as 8-bit RGB."""
    ignore_index: int = 255

    @property
    @abstractmethod
    def class_names(self) -> tuple[str, ...]: ...

    @property
    @abstractmethod
    def palette(self) -> np.ndarray: ...

    @cached_property
    def pairs(self) -> list[Pair]:
        """The files, which are all there."""
        pairs = self.find()
        check_files([path for pair in pairs for path in pair])
        return pairs

    @abstractmethod
    def find(self) -> list[Pair]:
        """The files that should be there, at least one pair."""

    @abstractmethod
    def coding(self, mask: Path) -> LabelMap:
        """What the values of a mask file stand for."""

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Sample:
        pair = self.pairs[index]
        return sample_of(read_image(pair.image, self.channels), self.coding(pair.mask).read(pair.mask), pair)


def sample_of(pixels: np.ndarray, mask: np.ndarray, pair: Pair) -> Sample:
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


def read_image(path: Path, channels: int | None) -> np.ndarray:
    """The image as 8-bit RGB, or as it is stored with that many channels.

    Raises:
        InputError: it cannot be read, or has another number of channels.
    """
    try:
        pixels = image.read(path) if channels is None else raw_images.read_channels(path)
    except InputError as error:
        raise InputError(
            f"an image of the data set cannot be read: {error.problem}",
            where=path,
            received=error.received,
            allowed=error.allowed,
            fix="repair the file, or take it out of the data set",
        ) from error
    if channels is not None and pixels.shape[2] != channels:
        first = pixels.shape[0] == channels
        raise InputError(
            "an image has another number of channels than the data set says",
            where=path,
            received=f"{pixels.dtype} {list(pixels.shape)}",
            allowed=f"{channels} channels",
            fix="channels come last: save array.transpose(1, 2, 0)"
            if first
            else "set channels, or correct the file",
        )
    return pixels


def check_files(paths: Sequence[Path]) -> None:
    """Raises: InputError when some of the files are not there."""
    listings: dict[
        Path, set[str]
    ] = {}  # one listing a folder: on a network drive each question takes its time
    missing = []
    for path in paths:
        folder = path.parent
        if folder not in listings:
            listings[folder] = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
        # Some file systems take a name in another case than they list it in.
        if path.name not in listings[folder] and not path.is_file():
            missing.append(str(path))
    if missing:
        raise InputError(
            f"{len(missing)} of {len(paths)} files of the data set are not there",
            received=some(missing),
            fix=f"check root and the names; the current folder is {Path.cwd()}",
        )


def read_lines(file: Path) -> list[str]:
    """The lines of a list that are not empty.

    Raises:
        InputError: there is no such file, it is not UTF-8, or it has no line.
    """
    try:
        text = image.check_file(file, "list").read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            "the list is not UTF-8", where=file, received=error.reason, fix="save it as UTF-8"
        ) from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError("the list is empty", where=file, allowed="a line a sample")
    return lines


def read_pairs(file: Path, root: Path, separator: str | None = None) -> list[Pair]:
    """The pairs of a list, `image mask` a line, relative to `root`; None: separated by blanks or tabs.

    Raises:
        InputError: as `read_lines`, or lines have not two columns.
    """
    pairs, wrong = [], []
    for line in read_lines(file):
        columns = [column.strip() for column in line.split(separator)]
        if len(columns) != 2 or not all(columns):
            wrong.append(line[:80])
        else:
            pairs.append(Pair(root / columns[0], root / columns[1]))
    if wrong:
        shown = "a blank" if separator is None else repr(separator)
        raise InputError(
            f"{len(wrong)} lines of the list are no image and mask",
            where=file,
            received=some(wrong, "; "),
            allowed=f"the path of an image, {shown}, and that of its mask",
            fix="set separator if the columns are separated by something else, or correct the lines",
        )
    return pairs


def some(names: Sequence[str], separator: str = ", ") -> str:
    """The first few of a list and how many more there are."""
    more = f"{separator}and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return separator.join(names[:_SHOWN]) + more
