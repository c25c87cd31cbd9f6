"""What the data sets of objects in other tools' formats share: folder, classes, and how images are read."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from detection.data.records import Records, RecordsDataset
from detection.data.selected import check_names, select_classes
from framework.vision.dataset_files import Orientation
from framework.vision.deep_samples import ValueRange


@dataclass(frozen=True)
class DetectionDataset(RecordsDataset):
    """Objects on images below `root`, of all classes or of some.

    Attributes:
        classes: The names of the classes that are used, in the order in which they are numbered; null for all. Objects
            of others are left out, and a line of the log counts them.
        orientation, value_range: See RecordsDataset.

    Raises:
        ConfigError: `classes` is empty or names a class twice.
    """

    root: Path
    classes: tuple[str, ...] | None = field(default=None, kw_only=True)
    orientation: Orientation = field(default="exif", kw_only=True)
    value_range: ValueRange | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.classes, tuple):
            check_names(self.classes, f"{type(self).__name__}.classes")

    @property
    @abstractmethod
    def _source(self) -> Path:
        """The file or folder that messages name."""

    @abstractmethod
    def _read(self) -> Records:
        """The records of all classes."""

    @cached_property
    def _records(self) -> Records:  # pyright: ignore[reportIncompatibleMethodOverride]
        records = self._read()
        return (
            select_classes(records, self.classes, self._source)
            if isinstance(self.classes, tuple)
            else records
        )
