"""A dataset whose samples are split_windows into several each, such as long texts into windows."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from framework.core.errors import ConfigError
from framework.io.dataset import Dataset


class WindowedDataset(Dataset):
    """The parts of sample 0, then those of sample 1, and so on. Each sample is split_windows once to count its parts.

    Args:
        split_windows: Gives the parts of a sample, at least one and always the same.
    """

    def __init__(self, dataset: Any, split_windows: Callable[[Any], Sequence[Any]]) -> None:
        self.dataset, self.split_windows = dataset, split_windows
        counts = (len(split_windows(dataset[index])) for index in range(len(dataset)))
        self._ends = list(itertools.accumulate(counts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of a WindowedDataset with {len(self)} parts")
        index = index + len(self) if index < 0 else index
        place = bisect.bisect_right(self._ends, index)
        return self.split_windows(self.dataset[place])[index - (self._ends[place - 1] if place else 0)]


def split_windows(dataset: Any, transforms: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """The dataset and the transforms for a loader, where the first transform has `split_windows(sample)` and is taken
    out.

    Raises:
        ConfigError: another transform than the first one divides.
    """
    first, rest = tuple(transforms[:1]), tuple(transforms[1:])
    late = [type(transform).__name__ for transform in rest if hasattr(transform, "split_windows")]
    if late:
        raise ConfigError(
            "a transform that divides samples stands first",
            where="transforms",
            received=f"{late[0]} behind {type(first[0]).__name__}",
            fix=f"put {late[0]} before the others",
        )
    if first and hasattr(first[0], "split_windows"):
        return WindowedDataset(dataset, first[0].split_windows), rest
    return dataset, (*first, *rest)
