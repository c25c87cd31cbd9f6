"""What the datasets of texts share."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import Self

from framework.io.dataset import LazyDataset
from framework.text.sample import TextSample


class TextDataset(LazyDataset):
    """A LazyDataset whose files are read as a whole, at the first use."""

    @property
    @abc.abstractmethod
    def samples(self) -> Sequence[TextSample]:
        """All of them; a subclass keeps what it has read."""

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> TextSample:
        return self.samples[index]


@dataclasses.dataclass(frozen=True)
class ClassDataset(TextDataset):
    """Texts, or words, with a class each, whose names are `classes`, or else those in the files."""

    @abc.abstractmethod
    def read_classes(self) -> tuple[tuple[str, ...], list[TextSample]]:
        """The names of the classes by index, and the samples."""

    @cached_property
    def _read(self) -> tuple[tuple[str, ...], list[TextSample]]:
        return self.read_classes()

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes by index."""
        return self._read[0]

    @property
    def samples(self) -> list[TextSample]:
        return self._read[1]

    def infer_classes(self) -> Self:
        """The same data with the classes that the files have, whatever `classes` says."""
        return dataclasses.replace(self, classes=None)
