"""Pages with the polygons and texts of their lines: label files of PaddleOCR, and files of ICDAR and SROIE."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, InputError
from framework.io.dataset import LazyDataset
from framework.vision import image
from framework.vision.dataset_files import listed_path, read_image
from framework.vision.sample import Sample
from ocr.data.labels import PageLabel, read_page_labels, read_regions
from ocr.data.listed import ListedImages
from ocr.text.label_files import BadLines


@runtime_checkable
class LabelledPages(Protocol):
    """A data set of pages that knows their regions without reading the images."""

    def labels_of_pages(self) -> Sequence[PageLabel]:
        """The label of each sample."""
        ...


class _Pages(LazyDataset):
    """Pages by their labels; what a data set adds is where they are. Regions stand in `polygons`, `text`, `valid`."""

    root: Path

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, index: int) -> Sample:
        label = self._index[index]
        path = listed_path(self.root, label.image)
        return make_page_sample(read_image(path, path), label)

    def labels_of_pages(self) -> Sequence[PageLabel]:
        return self._index

    @cached_property
    @abstractmethod
    def _index(self) -> list[PageLabel]: ...


@register("dataset")
@dataclass(frozen=True)
class TextPages(ListedImages[PageLabel], _Pages):
    """Pages listed in label files of PaddleOCR: `image<tab>[{"transcription": …, "points": …}, …]`. See `ListedImages`.

    A text of "###" or "*" marks a region that nobody can read: it neither counts in training nor in evaluation.
    """

    def _read_labels(self, path: Path) -> list[PageLabel]:
        return read_page_labels(path, self.bad_lines)


@register("dataset")
@dataclass(frozen=True)
class TextPageFiles(_Pages):
    """Pages with a file of regions each, as of ICDAR 2015 and SROIE: `x1,y1,…,x4,y4,text` a line.

    Attributes:
        root: The folder of both.
        images: The folder of images in it.
        regions: The folder of the files in it. That of `img_1.jpg` is `img_1.txt`, `gt_img_1.txt` or `img_1.csv`.

    Raises:
        InputError: at the first use, an image has no file of regions, or there is no image.
    """

    root: Path
    images: Path
    regions: Path
    bad_lines: BadLines = "error"

    def __post_init__(self) -> None:
        if self.bad_lines not in ("error", "skip"):
            raise ConfigError("no such rule", where="TextPageFiles.bad_lines", received=self.bad_lines)

    @cached_property
    def _index(self) -> list[PageLabel]:
        folder = self.root / self.images
        found = []
        for path in image.list_images(folder):
            file = _find_regions(self.root / self.regions, path.stem)
            if file is None:
                raise InputError(
                    "an image has no file of regions",
                    where=path,
                    received=f"no {path.stem}.txt, gt_{path.stem}.txt or {path.stem}.csv in {self.root / self.regions}",
                    fix="write an empty file for a page without text",
                )
            regions = read_regions(file, self.bad_lines)
            found.append(PageLabel((self.images / path.relative_to(folder)).as_posix(), regions, str(file)))
        if not found:
            raise InputError("there is no image", where=folder)
        return found


def make_page_sample(pixels: np.ndarray, label: PageLabel) -> Sample:
    """The sample of a page: K polygons with their texts, and which of them can be read."""
    return Sample(
        pixels,
        polygons=tuple(region.polygon for region in label.regions),
        text=tuple(region.text for region in label.regions),
        valid=np.array([region.readable for region in label.regions], bool),
        id=f"{label.place} {label.image}",
    )


def _find_regions(folder: Path, stem: str) -> Path | None:
    names = (f"{stem}.txt", f"gt_{stem}.txt", f"{stem}.csv")
    return next((folder / name for name in names if (folder / name).is_file()), None)
