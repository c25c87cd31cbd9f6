"""Which way up lines and pages are: images listed with their direction, and upright pages in all four directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from framework.config.registry import Kind, register
from framework.core.errors import InputError
from framework.io.dataset import Dataset, LazyDataset
from framework.vision import image
from framework.vision.dataset_files import read_image
from framework.vision.sample import Sample
from ocr.data.labels import LineLabel, read_line_labels
from ocr.data.listed import ListedImages
from ocr.text.preprocess import LINE_TURNS, PAGE_TURNS


class _Directions(ListedImages[LineLabel]):
    """Images and how far they are turned, listed in label files: `image<tab>90`."""

    turns: ClassVar[tuple[str, ...]]

    @property
    def class_names(self) -> tuple[str, ...]:
        """Degrees clockwise, by index."""
        return self.turns

    def __getitem__(self, index: int) -> Sample:
        label = self._index[index]
        turned = np.array(self._class_of(label))
        return Sample(self._read_image(label), labels=turned, id=f"{label.place} {label.image}")

    def read_labels(self) -> Sequence[np.ndarray]:
        """The class index [1] of each sample, without its image."""
        return [np.array([self._class_of(label)]) for label in self._index]

    def _class_of(self, label: LineLabel) -> int:
        if label.text not in self.turns:
            raise InputError(
                "this is no direction",
                where=label.place,
                received=repr(label.text),
                allowed=" or ".join(self.turns),
            )
        return self.turns.index(label.text)

    def _read_labels(self, path: Path) -> list[LineLabel]:
        return read_line_labels(path, self.bad_lines)


@register("dataset")
@dataclass(frozen=True)
class TextLineDirections(_Directions):
    """Images of lines and how far they are turned, listed in label files of PaddleOCR: `image<tab>0` or `180`. See
    `ListedImages`."""

    turns = LINE_TURNS


@register("dataset")
@dataclass(frozen=True)
class PageDirections(_Directions):
    """Images of pages and how far they are turned clockwise, listed as lines are: `image<tab>0`, `90`, `180` or `270`.
    See `ListedImages`."""

    turns = PAGE_TURNS


@register("dataset")
@dataclass(frozen=True)
class PageFolder(LazyDataset):
    """The images of a folder and of those below it, without labels: pages that stand upright.

    Raises:
        InputError: at the first use, there is no such folder or no image in it.
    """

    root: Path

    @property
    def class_names(self) -> tuple[str, ...]:
        """None: pages have no classes."""
        return ()

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> Sample:
        path = self._paths[index]
        return Sample(read_image(path, path), id=str(path))

    @cached_property
    def _paths(self) -> list[Path]:
        found = image.list_images(self.root, recursive=True)
        if not found:
            raise InputError(
                "the folder holds no image",
                where=self.root,
                allowed=f"files that end in {', '.join(image.SUFFIXES)}",
            )
        return found


@register("dataset")
@dataclass(frozen=True)
class TurnedPages(LazyDataset):
    """Each upright page of a data set four times: as it is, and turned clockwise by 90, 180 and 270 degrees.

    What the pages hold besides their image is left out. The label [] (int32) is the number of quarter turns.

    Attributes:
        pages: Any data set of upright pages, such as PageFolder, TextPages or SyntheticPages.
    """

    pages: Annotated[Dataset, Kind("dataset")]

    @property
    def class_names(self) -> tuple[str, ...]:
        """Degrees clockwise, by index."""
        return PAGE_TURNS

    def __len__(self) -> int:
        return len(PAGE_TURNS) * len(self.pages)

    def __getitem__(self, index: int) -> Sample:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)} turned pages")
        number, turns = divmod(index % len(self), len(PAGE_TURNS))
        page: Sample = self.pages[number]
        pixels = image.rotate90(page.image, turns)
        return Sample(pixels, labels=np.array(turns, np.int32), id=f"{page.id} turned by {PAGE_TURNS[turns]}")

    def read_labels(self) -> Sequence[np.ndarray]:
        """The class index [1] of each sample, without its image."""
        return [np.array([index % len(PAGE_TURNS)]) for index in range(len(self))]
