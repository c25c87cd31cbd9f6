"""A dataset whose samples are split into several each, such as long texts into windows."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from framework.core.errors import ConfigError
from framework.core.transform import WindowTransform
from framework.io.dataset import Dataset, Indexed

SampleT = TypeVar("SampleT")


class WindowedDataset(Dataset, Generic[SampleT]):
    """The windows of sample 0, then those of sample 1, and so on. Each sample is split once to count its windows.

    Args:
        split_windows: Gives the windows of a sample, at least one and always the same.
    """

    def __init__(
        self, dataset: Indexed[SampleT], split_windows: Callable[[SampleT], Sequence[SampleT]]
    ) -> None:
        self.dataset, self.split_windows = dataset, split_windows
        counts = (len(split_windows(dataset[index])) for index in range(len(dataset)))
        self._ends = list(itertools.accumulate(counts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int) -> SampleT:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of a WindowedDataset with {len(self)} windows")
        index = index + len(self) if index < 0 else index
        place = bisect.bisect_right(self._ends, index)
        return self.split_windows(self.dataset[place])[index - (self._ends[place - 1] if place else 0)]


TransformT = TypeVar("TransformT", bound=Callable[..., object])


def split_windows(
    dataset: Indexed[SampleT], transforms: Sequence[TransformT]
) -> tuple[Indexed[SampleT], tuple[TransformT, ...]]:
    """The dataset and the transforms for a loader: a first transform that splits samples becomes part of the dataset.

    Raises:
        ConfigError: another transform than the first one splits samples.
    """
    late = [
        type(transform).__name__ for transform in transforms[1:] if isinstance(transform, WindowTransform)
    ]
    if late:
        raise ConfigError(
            "a transform that splits samples comes first",
            where="transforms",
            received=f"{late[0]} behind {type(transforms[0]).__name__}",
            fix=f"put {late[0]} before the others",
        )
    if transforms and isinstance(transforms[0], WindowTransform):
        return WindowedDataset(dataset, transforms[0].split_windows), tuple(transforms[1:])
    return dataset, tuple(transforms)
