"""Images of single lines with their text: label files, LMDB, and the lines of labelled pages."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np

from framework.config.registry import Kind, register
from framework.core.bounded import decode
from framework.core.errors import ConfigError, FormatError
from framework.io.dataset import Dataset, LazyDataset
from framework.io.lmdb_file import LmdbFile
from framework.vision import image
from framework.vision.annotations.objects import signed_area
from framework.vision.contours import order_corners, quad_sizes
from framework.vision.dataset_files import read_image
from framework.vision.sample import Sample
from ocr.data.labels import check_label_files, mix_files
from ocr.data.listed import ListedImages
from ocr.data.pages import LabelledPages
from ocr.data.protocols import HasSizes, HasTexts
from ocr.text.label_files import LineLabel, read_line_labels
from ocr.text.preprocess import crop_lines

_KEPT_PAGES = 8


@register("dataset")
@dataclass(frozen=True)
class TextLineImages(ListedImages[LineLabel]):
    """Images of lines, listed in label files of PaddleOCR: `image<tab>text`. See `ListedImages`."""

    def __getitem__(self, index: int) -> Sample:
        label = self._index[index]
        return Sample(self._read_image(label), text=label.text, id=f"{label.place} {label.image}")

    def labels_of_lines(self) -> Sequence[tuple[str, str]]:
        return [(label.text, label.place) for label in self._index]

    def size_hw(self, index: int) -> tuple[int, int]:
        return image.read_size(self.root / self._index[index].image)

    def _read_labels(self, path: Path) -> list[LineLabel]:
        return read_line_labels(path, self.bad_lines)


@register("dataset")
@dataclass(frozen=True)
class TextLineLMDB(LazyDataset):
    """Lines in an LMDB folder, as PaddleOCR's and deep-text-recognition-benchmark's tools write it: `num-samples`,
    `image-000000001`, `label-000000001`, …

    Raises:
        InputError, FormatError: there is no such folder, or it is another kind of database, or damaged.
    """

    root: Path

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Sample:
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        number = index % len(self) + 1
        place = f"{self.root}:{number}"
        data, text = self._get(f"image-{number:09d}"), self._text(number)
        return Sample(read_image(data, Path(place)), text=text, id=place)

    def labels_of_lines(self) -> Sequence[tuple[str, str]]:
        return [(self._text(number), f"{self.root}:{number}") for number in range(1, len(self) + 1)]

    def size_hw(self, index: int) -> tuple[int, int]:
        return self[index].size_hw

    @cached_property
    def _count(self) -> int:
        value = self._get("num-samples")
        if not value.isdigit() or len(value) > 18:
            raise FormatError(
                "the database does not say how many lines it has",
                where=self.root,
                received=f"num-samples: {value[:20]!r}",
            )
        return int(value)

    def _text(self, number: int) -> str:
        return decode(self._get(f"label-{number:09d}"), f"{self.root}:{number}", "label")

    def _get(self, key: str) -> bytes:
        value = _open_lmdb(self.root).get(key.encode())
        if value is None:
            raise FormatError(
                "the database has no such entry",
                where=self.root,
                received=f"no {key}",
                allowed="num-samples, image-000000001, label-000000001, …",
            )
        return value


@functools.cache  # a process opens a database once
def _open_lmdb(root: Path) -> LmdbFile:
    return LmdbFile(root)


@register("dataset")
@dataclass(frozen=True)
class LinesOfPages(LazyDataset):
    """The lines of labelled pages, cut out along their quads: what a recogniser sees of a detector's data set.

    A quad starts at the text's own upper left corner. One whose corners run counter-clockwise, as a box that was drawn
    from the right to the left has them, is taken clockwise from the page's: its text would stand mirrored. Regions that
    nobody can read or whose text is not said, and those of other polygons than quads, are left out.

    Attributes:
        pages: A data set of pages, such as TextPages.
    """

    pages: Annotated[Dataset, Kind("dataset")]

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, index: int) -> Sample:
        page, quad, text, place = self._index[index]
        # A tall quad is one tall glyph or a column; alone it cannot be told, so upstream's rule decides.
        (crop,) = crop_lines(self._page(page), quad[None])
        return Sample(np.ascontiguousarray(crop), text=text, id=place)

    def labels_of_lines(self) -> Sequence[tuple[str, str]]:
        return [(text, place) for _, _, text, place in self._index]

    def size_hw(self, index: int) -> tuple[int, int]:
        height, width = quad_sizes(self._index[index][1][None])[0]
        height, width = max(1, round(float(height))), max(1, round(float(width)))
        return (width, height) if height >= 1.5 * width else (height, width)

    @cached_property
    def _index(self) -> list[tuple[int, np.ndarray, str, str]]:
        if not isinstance(self.pages, LabelledPages):
            raise ConfigError(
                "this data set has no pages with text",
                where="LinesOfPages.pages",
                received=type(self.pages).__name__,
                allowed="TextPages, TextPageFiles",
            )
        return [
            (number, _clockwise(region.polygon), region.text, f"{label.place} region {place + 1}")
            for number, label in enumerate(self.pages.labels_of_pages())
            for place, region in enumerate(label.regions)
            if region.has_text and len(region.polygon) == 4
        ]

    @cached_property
    def _recent(self) -> tuple[OrderedDict[int, np.ndarray], threading.Lock]:
        return OrderedDict(), threading.Lock()

    def _page(self, number: int) -> np.ndarray:
        pages, lock = self._recent
        with lock:
            if number in pages:
                pages.move_to_end(number)
                return pages[number]
        pixels = self.pages[number].image
        with lock:
            pages[number] = pixels
            while len(pages) > _KEPT_PAGES:
                pages.popitem(last=False)
        return pixels


def _clockwise(quad: np.ndarray) -> np.ndarray:
    return quad if signed_area(quad) >= 0 else order_corners(quad[None])[0]


@register("dataset")
@dataclass(frozen=True)
class MixedTextLines(LazyDataset):
    """Lines of several data sets as one, such as labelled lines beside synthetic ones.

    Attributes:
        datasets: Data sets of lines with a text each.
        ratios: For each, how much of it is used; see `TextLineImages`.

    Raises:
        ConfigError: there is no data set, or there are other numbers of ratios.
    """

    datasets: tuple[Annotated[Dataset, Kind("dataset")], ...]
    ratios: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_label_files(self.datasets, self.ratios, "MixedTextLines")

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, index: int) -> Sample:
        number, place = self._index[index]
        sample = self.datasets[number][place]
        return sample if isinstance(sample.id, str) else sample.replace(id=f"{number}: {sample.id}")

    def labels_of_lines(self) -> Sequence[tuple[str, str]]:
        """Those of the data sets that know theirs without reading images."""
        known = {
            number: one.labels_of_lines()
            for number, one in enumerate(self.datasets)
            if isinstance(one, HasTexts) and isinstance(one, HasSizes)
        }
        return [known[number][place] for number, place in self._index if number in known]

    @cached_property
    def _index(self) -> list[tuple[int, int]]:
        entries = [[(number, place) for place in range(len(one))] for number, one in enumerate(self.datasets)]
        return mix_files(entries, self.ratios)
