"""Some of the classes of a segmentation data set: what trains on them ignores the pixels of all others, or takes them
for one of them, such as the background."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from framework.config.registry import Kind, register
from framework.core.errors import ConfigError, InputError, did_you_mean
from framework.vision.dataset_files import abbreviate
from framework.vision.sample import Sample
from segmentation.data.records import SegmentationDataset


@register("dataset")
@dataclass(frozen=True)
class SelectedClasses(SegmentationDataset):
    """The images of another data set with some of its classes, in the order of `classes`.

    Attributes:
        dataset: With all of its classes.
        classes: Names of the classes that stay.
        others: Of which of `classes` the pixels of all others are; None: they are ignored.

    Raises:
        ConfigError: fewer than two classes are named, one twice, `others` is none of them, or `ignore_index` is the
            number of one.
        InputError: at the first use, the data set has no such class.
    """

    selected_by: ClassVar[str | None] = None

    dataset: Annotated[SegmentationDataset, Kind("dataset")]
    classes: tuple[str, ...]
    others: str | None = None
    ignore_index: int = field(default=255, kw_only=True)

    def __post_init__(self) -> None:
        if len(self.classes) < 2 or len(set(self.classes)) < len(self.classes):
            raise ConfigError(
                "classes must be different names, two or more",
                where="SelectedClasses.classes",
                received=", ".join(self.classes),
                allowed="names of classes of the data set",
                fix="of one class against all else name its background too, with others: <background>",
            )
        if not len(self.classes) <= self.ignore_index <= 65535:
            raise ConfigError(
                "ignore_index is the number of a class, or out of range",
                where="SelectedClasses.ignore_index",
                received=self.ignore_index,
                allowed=f"{len(self.classes)} to 65535, as there are {len(self.classes)} classes",
            )
        if self.others is not None and self.others not in self.classes:
            raise ConfigError(
                "other pixels are of one of the classes, or ignored",
                where="SelectedClasses.others",
                received=self.others,
                allowed=", ".join(self.classes),
            )

    @property
    def class_names(self) -> tuple[str, ...]:
        _ = self._indices  # a name that is none is told before the first sample
        return self.classes

    @cached_property
    def _indices(self) -> list[int]:
        """The index in the data set of each class."""
        names = self.dataset.class_names
        for name in self.classes:
            if name not in names:
                raise InputError(
                    "the data set has no such class",
                    where="SelectedClasses.classes",
                    received=repr(name),
                    allowed=abbreviate(list(names)),
                    fix=did_you_mean(name, names),
                )
        return [names.index(name) for name in self.classes]

    @property
    def palette(self) -> np.ndarray:
        """Those of the data set."""
        return np.asarray(self.dataset.palette)[self._indices]

    @cached_property
    def _table(self) -> np.ndarray:
        """The new index of each old one, and of what has no class behind them."""
        rest = self.ignore_index if self.others is None else self.classes.index(self.others)
        table = np.full(len(self.dataset.class_names) + 1, rest, np.int64)
        table[self._indices] = range(len(self.classes))
        table[-1] = self.ignore_index
        return table

    def __len__(self) -> int:
        _ = self._indices
        return len(self.dataset)

    def __getitem__(self, index: int) -> Sample:
        sample = self.dataset[index]
        assert sample.mask is not None
        return sample.replace(mask=self._select(sample.mask))

    def read_mask(self, index: int) -> np.ndarray:
        return self._select(self.dataset.read_mask(index))

    def _select(self, mask: np.ndarray) -> np.ndarray:
        count = len(self._table) - 1
        inside = np.where((mask == self.dataset.ignore_index) | (mask >= count), count, mask)
        return self._table[inside].astype(self.mask_dtype)
