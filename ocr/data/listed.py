"""What the data sets of PaddleOCR's label files share: the files, how much of each is used, and their labels."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from framework.io.dataset import LazyDataset
from framework.vision.dataset_files import listed_path, read_image
from ocr.data.labels import PageLabel, check_label_files, mix_files
from ocr.text.label_files import BadLines, LineLabel

LabelT = TypeVar("LabelT", LineLabel, PageLabel)


@dataclass(frozen=True)
class ListedImages(LazyDataset, Generic[LabelT]):
    """Images with a label each, listed in label files.

    Attributes:
        root: The folder that the images' names start from.
        labels: The label files, from `root` or absolute.
        ratios: For each label file, how much of it is used: 0.3 draws three tenths of its lines, 2 takes each twice.
        bad_lines: Whether a line that is no label is an error, or is counted and left out.

    Raises:
        ConfigError: there is no label file, or there are other numbers of ratios. At the first use InputError,
        FormatError: a file cannot be read, or a line is no label.
    """

    root: Path
    labels: tuple[Path, ...]
    ratios: tuple[float, ...] | None = None
    bad_lines: BadLines = "error"

    def __post_init__(self) -> None:
        check_label_files(self.labels, self.ratios, type(self).__name__)

    def __len__(self) -> int:
        return len(self._index)

    @abstractmethod
    def _read_labels(self, path: Path) -> list[LabelT]:
        """The labels of one file."""

    def _read_image(self, label: LabelT) -> np.ndarray:
        path = listed_path(self.root, label.image)
        return read_image(path, path)

    @cached_property
    def _index(self) -> list[LabelT]:
        return mix_files([self._read_labels(self.root / path) for path in self.labels], self.ratios)
