"""What the datasets of texts share."""

from __future__ import annotations

import abc
from collections.abc import Sequence

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
