"""Datasets of paddle.io: the core's, which are Datasets here too. Classes of a program may leave out a method that the
core's have to have."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from framework.io import dataset as core
from framework.io.dataset import ComposeDataset as ComposeDataset
from framework.io.dataset import ConcatDataset as ConcatDataset
from framework.io.dataset import Subset as Subset
from framework.paddle._kernel.random import default_generator
from framework.paddle._kernel.tensor import Tensor


class Dataset(abc.ABC):  # noqa: B024, a subclass may leave one of them out
    """Samples by their index: a subclass defines `__getitem__` and `__len__`."""

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} defines no __len__")


Dataset.register(core.Dataset)  # Model.fit and user code ask isinstance of paddle.vision.datasets.MNIST too


class NoLength(RuntimeError, ValueError, TypeError):
    """A stream is asked for its length. `list(stream)` asks too, and takes a TypeError for: not known."""


class IterableDataset(Dataset, core.IterableDataset):
    """Samples that come one after another: a subclass defines `__iter__`.

    Every worker of a loader iterates over it, so with workers `__iter__` shares the samples out by `get_worker_info`.
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")

    def __getitem__(self, idx: object) -> NoReturn:
        raise RuntimeError(f"{type(self).__name__} is an IterableDataset: it has no index")

    def __len__(self) -> int:
        raise NoLength(f"{type(self).__name__} is an IterableDataset: it has no length")


class TensorDataset(core.TensorDataset):
    """Sample i is the tuple of the rows i of some Tensors."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError(
                f"TensorDataset: the Tensors have {[t.shape[0] for t in tensors]} rows, not one number of them"
            )
        self.tensors = tensors


class ChainDataset(core.ChainDataset, IterableDataset):
    """The samples of several iterable datasets one after another."""


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
