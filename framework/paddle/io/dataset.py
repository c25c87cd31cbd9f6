"""Datasets of paddle.io. Paddle's programs subclass them without calling `__init__`, and index them as they like; the
core's are stricter."""

from __future__ import annotations

import abc
import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from framework.io import Dataset as CoreDataset
from framework.paddle._kernel.random import default_generator
from framework.paddle._kernel.tensor import Tensor


class Dataset(abc.ABC):  # noqa: B024, a subclass may leave one of them out
    """Samples by their index: a subclass defines `__getitem__` and `__len__`."""

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} defines no __len__")


Dataset.register(CoreDataset)  # Model.fit and user code ask isinstance of paddle.vision.datasets.MNIST too


class NoLength(RuntimeError, ValueError, TypeError):
    """A stream is asked for its length. `list(stream)` asks too, and takes a TypeError for: not known."""


class IterableDataset(Dataset):
    """Samples that come one after another: a subclass defines `__iter__`.

    Every worker of a loader iterates over it, so with workers `__iter__` shares the samples out by `get_worker_info`.
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")

    def __getitem__(self, idx: Any) -> Any:
        raise RuntimeError(f"{type(self).__name__} is an IterableDataset: it has no index")

    def __len__(self) -> int:
        raise NoLength(f"{type(self).__name__} is an IterableDataset: it has no length")


class TensorDataset(Dataset):
    """Sample i is the tuple of the rows i of some Tensors."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError(
                f"TensorDataset: the Tensors have {[t.shape[0] for t in tensors]} rows, not one number of them"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)  # type: ignore[misc]

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


def _indexed(datasets: Iterable[Dataset], where: str) -> list[Dataset]:
    found = list(datasets)
    assert found, f"{where}: there is no dataset"
    streams = [type(d).__name__ for d in found if isinstance(d, IterableDataset)]
    assert not streams, f"{where}: {streams} have no index; ChainDataset joins IterableDatasets"
    return found


class ComposeDataset(Dataset):
    """Sample i is one tuple of all fields of the samples i of several datasets of one length."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = _indexed(datasets, "ComposeDataset")
        lengths = [len(dataset) for dataset in self.datasets]
        assert len(set(lengths)) == 1, f"ComposeDataset: the datasets have the lengths {lengths}, not one"

    def __len__(self) -> int:
        return len(self.datasets[0])

    def __getitem__(self, idx: Any) -> tuple[Any, ...]:
        fields: list[Any] = []
        for dataset in self.datasets:
            sample = dataset[idx]
            fields.extend(sample if isinstance(sample, list | tuple) else [sample])
        return tuple(fields)


class ChainDataset(IterableDataset):
    """The samples of several iterable datasets one after another."""

    def __init__(self, datasets: Iterable[IterableDataset]) -> None:
        self.datasets = list(datasets)
        assert self.datasets, "ChainDataset: there is no dataset"
        others = [type(d).__name__ for d in self.datasets if not isinstance(d, IterableDataset)]
        assert not others, f"ChainDataset: {others} are no IterableDatasets; ConcatDataset joins those"

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


class ConcatDataset(Dataset):
    """The samples of several datasets one after another; negative indices count from the end."""

    @staticmethod
    def cumsum(sequence: Iterable[Sized]) -> list[int]:
        """The ends of the parts."""
        return list(itertools.accumulate(len(part) for part in sequence))

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = _indexed(datasets, "ConcatDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError(f"index {idx} of a ConcatDataset of {len(self)} samples")
            idx += len(self)
        part = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[part][idx - (self.cumulative_sizes[part - 1] if part else 0)]


class Subset(Dataset):
    """The samples of `dataset` at `indices`, in that order."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx: Any) -> Any:
        return self.dataset[self.indices[idx]]

    def __len__(self) -> int:
        return len(self.indices)


def random_order(count: int) -> list[int]:
    """0 … count - 1 in an order that `paddle.seed` decides on."""
    return np.random.default_rng(default_generator.next_key()).permutation(count).tolist()


def random_split(dataset: Dataset, lengths: Sequence[int], generator: object = None) -> list[Subset]:
    """Cut a dataset at random into parts of these lengths that share no sample."""
    if sum(lengths) != len(dataset):
        raise ValueError(
            f"random_split: the lengths {list(lengths)} add up to {sum(lengths)}, the dataset has "
            f"{len(dataset)} samples"
        )
    order = random_order(len(dataset))
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths, strict=True)]
