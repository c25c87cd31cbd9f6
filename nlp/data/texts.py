"""What the datasets of texts share."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Self

from framework.io.dataset import LazyDataset
from framework.text.sample import TextSample


class TextDataset(LazyDataset):
    """A LazyDataset whose files are read as a whole, at the first use."""

    def infer_classes(self) -> Self:
        """The same data with the classes that the files have, where the config declares others."""
        return self

    @property
    @abc.abstractmethod
    def samples(self) -> Sequence[TextSample]:
        """All of them; a subclass keeps what it has read."""

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> TextSample:
        return self.samples[index]
