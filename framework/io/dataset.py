"""Datasets: what a loader reads samples from. Names and meaning follow `paddle.io`, with numpy arrays for Tensors."""

from __future__ import annotations

import abc
import bisect
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from framework.core.errors import ConfigError, ShapeError
from framework.core.transform import WindowTransform

SampleT = TypeVar("SampleT")
SampleT_co = TypeVar("SampleT_co", covariant=True)
TransformT = TypeVar("TransformT", bound=Callable[..., object])


class Indexed(Protocol[SampleT_co]):
    """What can be read by index: a `Dataset`, a list."""

    def __getitem__(self, index: int, /) -> SampleT_co: ...

    def __len__(self) -> int: ...


class DatasetError(ConfigError, AssertionError):
    """These datasets cannot be joined; Paddle asserts it."""


class NoSuchSample(IndexError, ValueError):
    """A dataset has no sample of this index; Paddle raises a ValueError where it counts from the end."""


class Dataset(abc.ABC):
    """Samples found by their index, 0 to `len(dataset) - 1`.

    With threads as workers (the loader's default) `__getitem__` is called from several threads at once: open files
    inside of it, or keep one handle a thread. `__getitem__` raises IndexError beyond the end, so that `for sample in
    dataset` ends.
    """

    @abc.abstractmethod
    def __getitem__(self, index: int) -> Any: ...

    @abc.abstractmethod
    def __len__(self) -> int: ...


class IterableDataset(abc.ABC):
    """Samples that come one after another: a stream, an archive, a log.

    It has no index, and no length unless its class tells one (`__len__`): a Trainer needs it to know what an epoch
    is. A loader reads it with one reader whatever the number of workers, so `__iter__` yields every sample once and
    need not share the work out. It shuffles itself, by the epoch.
    """

    def set_epoch(self, epoch: int) -> None:
        """The loader calls it before it iterates; for streams whose order or content depends on the epoch."""
        return

    @abc.abstractmethod
    def __iter__(self) -> Iterator[Any]: ...


Dataset.register(IterableDataset)  # isinstance(x, Dataset) holds for both, as in Paddle; nothing is inherited


class LazyDataset(Dataset):
    """A frozen dataclass that keeps what it has read in cached properties, which are not pickled."""

    def __getstate__(self) -> dict[str, object]:
        settings = {field.name for field in dataclasses.fields(self)}  # pyright: ignore[reportArgumentType]
        return {name: value for name, value in vars(self).items() if name in settings}


class TensorDataset(Dataset):
    """Sample i is the tuple of the rows i of some arrays.

    Raises:
        ShapeError: there is no array, or they differ in their first dimension.
    """

    def __init__(self, tensors: Sequence[ArrayLike]) -> None:
        self.tensors = tuple(np.asarray(tensor) for tensor in tensors)
        if len({tensor.shape[:1] for tensor in self.tensors} - {()}) != 1 or any(
            tensor.ndim == 0 for tensor in self.tensors
        ):
            raise ShapeError(
                "the arrays do not have the same number of rows",
                where="TensorDataset",
                received=[tensor.shape for tensor in self.tensors],
                allowed="one or more arrays [N, ...] with one N",
            )

    def __getitem__(self, index: int) -> tuple[np.ndarray, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class ComposeDataset(Dataset):
    """Sample i is one tuple of all fields of the samples i of several datasets of one length.

    Raises:
        DatasetError: there is no dataset, one of them has no index, or they differ in length.
    """

    def __init__(self, datasets: Iterable[Indexed[object]]) -> None:
        self.datasets = _check_indexed(datasets, "ComposeDataset")
        if len({len(dataset) for dataset in self.datasets}) > 1:
            raise DatasetError(
                "the datasets differ in length",
                where="ComposeDataset",
                received=[len(dataset) for dataset in self.datasets],
                allowed="one length",
            )

    def __getitem__(self, index: int) -> tuple[object, ...]:
        fields: list[object] = []
        for dataset in self.datasets:
            sample = dataset[index]
            fields.extend(sample if isinstance(sample, (tuple, list)) else (sample,))
        return tuple(fields)

    def __len__(self) -> int:
        return len(self.datasets[0])


class ConcatDataset(Dataset):
    """The samples of several datasets one after another; negative indices count from the end.

    Raises:
        DatasetError: there is no dataset, or one of them has no index.
    """

    @staticmethod
    def cumsum(sequence: Iterable[Sized]) -> list[int]:
        """The sum of the lengths up to each dataset."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __init__(self, datasets: Iterable[Indexed[object]]) -> None:
        self.datasets = _check_indexed(datasets, "ConcatDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise NoSuchSample(f"index {index} of a ConcatDataset with {len(self)} samples")
        index = index + len(self) if index < 0 else index
        number = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[number][index - (self.cumulative_sizes[number - 1] if number else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset):
    """The samples of several iterable datasets one after another.

    Raises:
        DatasetError: there is no dataset, or one of them is no IterableDataset.
    """

    def __init__(self, datasets: Iterable[IterableDataset]) -> None:
        self.datasets = list(datasets)
        if not self.datasets or not all(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise DatasetError(
                "these datasets cannot be chained",
                where="ChainDataset",
                received=[type(dataset).__name__ for dataset in self.datasets],
                allowed="one or more IterableDatasets",
                fix="ConcatDataset joins datasets that have an index",
            )

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of each dataset."""
        for dataset in self.datasets:
            dataset.set_epoch(epoch)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


class Subset(Dataset):
    """The samples of `dataset` at `indices`, in that order."""

    def __init__(self, dataset: Indexed[object], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset, lengths: Sequence[int], seed: int = 0) -> list[Subset]:
    """Cut `dataset` into parts of these lengths that share no sample; one seed gives one split.

    Raises:
        ConfigError: the lengths are negative or do not add up to the dataset's.
    """
    if min(lengths, default=0) < 0 or sum(lengths) != len(dataset):
        raise ConfigError(
            "the parts do not make up the dataset",
            where="random_split",
            received=f"lengths {list(lengths)}, together {sum(lengths)}",
            allowed=f"lengths >= 0 that add up to {len(dataset)}",
        )
    order = np.random.default_rng(seed).permutation(len(dataset))
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - length : end].tolist()) for end, length in zip(ends, lengths)]


def _check_indexed(datasets: Iterable[Indexed[object]], where: str) -> list[Indexed[object]]:
    members = list(datasets)
    if not members or any(isinstance(dataset, IterableDataset) for dataset in members):
        raise DatasetError(
            "these datasets cannot be joined",
            where=where,
            received=[type(dataset).__name__ for dataset in members],
            allowed="one or more datasets with an index and a length",
            fix="ChainDataset joins IterableDatasets",
        )
    return members


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
        number = bisect.bisect_right(self._ends, index)
        return self.split_windows(self.dataset[number])[index - (self._ends[number - 1] if number else 0)]


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
