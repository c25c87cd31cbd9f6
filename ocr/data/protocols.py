"""What data sets and transforms may tell without reading images; a task asks which of it they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class HasTexts(Protocol):
    """A data set of lines that knows their texts."""

    def labels_of_lines(self) -> Sequence[tuple[str, str]]:
        """(text, place) of each sample; the place is for messages."""
        ...


@runtime_checkable
class HasSizes(Protocol):
    """A data set that knows the sizes of its images."""

    def __len__(self) -> int: ...

    def size_hw(self, index: int) -> tuple[int, int]:
        """(height, width) of an image, in pixels."""
        ...


@runtime_checkable
class HasLineWidths(Protocol):
    """A transform that knows how wide a line will be, by the size of its image."""

    def line_width(self, size_hw: tuple[int, int]) -> int: ...
