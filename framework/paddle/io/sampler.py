"""Samplers of paddle.io: the order in which a dataset is read. Random ones draw from numpy's global stream as Paddle's
do, so `np.random.seed` gives the same order here and there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Sized
from typing import Any

import numpy as np

from framework.io.sampler import count_batches, cut_batches, share_of_rank
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.io.dataset import IterableDataset, random_order


class Sampler:
    """Indices of samples in some order: a subclass defines `__iter__` and, where it can, `__len__`."""

    def __init__(self, data_source: Sized | None = None) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class SequenceSampler(Sampler):
    """0, 1, …, n - 1."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All indices in a random order; with `replacement` `num_samples` draws (as many as there are samples); or what
    `generator` yields."""

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Iterator[int] | None = None,
    ) -> None:
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: replacement is a bool, received {replacement!r}")
        if num_samples is not None and not replacement:
            raise ValueError(
                "RandomSampler: without replacement every sample is drawn once: leave out num_samples"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"RandomSampler: num_samples must be above 0, received {self.num_samples}")

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        if self.generator:
            for _, index in zip(range(self.num_samples), self.generator, strict=False):
                yield index
            return
        count = len(self.data_source)
        drawn = self.num_samples if self.replacement else count
        yield from np.random.choice(np.arange(count), drawn, replace=self.replacement).tolist()

    def __len__(self) -> int:
        return self.num_samples


class WeightedRandomSampler(Sampler):
    """`num_samples` indices for each row of `weights` [N] or [M, N], drawn in proportion to them."""

    def __init__(
        self, weights: Sequence[float] | np.ndarray | Tensor, num_samples: int, replacement: bool = True
    ) -> None:
        if not isinstance(num_samples, int) or num_samples <= 0:
            raise ValueError(f"WeightedRandomSampler: num_samples must be above 0, received {num_samples!r}")
        if not isinstance(replacement, bool):
            raise ValueError(f"WeightedRandomSampler: replacement is a bool, received {replacement!r}")
        self.weights: Any = weights
        self.num_samples, self.replacement = num_samples, replacement

    def _rows(self) -> np.ndarray:
        weights = np.asarray(self.weights)
        assert weights.ndim <= 2, (
            f"WeightedRandomSampler: weights are [N] or [M, N], received {weights.shape}"
        )
        rows = weights.reshape(-1, weights.shape[-1])
        assert np.isfinite(rows).all() and (rows >= 0).all(), (
            "WeightedRandomSampler: weights are numbers from 0 up"
        )
        needed = 1 if self.replacement else self.num_samples
        found = int((rows > 0).sum(axis=1).min())
        assert found >= needed, (
            f"WeightedRandomSampler: {needed} weights above 0 are needed, there are {found}"
        )
        return rows / rows.sum(axis=1, keepdims=True)

    def __iter__(self) -> Iterator[int]:
        for row in self._rows():
            yield from np.random.choice(len(row), self.num_samples, self.replacement, row).tolist()

    def __len__(self) -> int:
        shape = np.shape(self.weights)
        return self.num_samples * (math.prod(shape) // shape[-1])


class SubsetRandomSampler(Sampler):
    """The given indices in a random order."""

    def __init__(self, indices: Sequence[int]) -> None:
        if len(indices) == 0:
            raise ValueError("SubsetRandomSampler: there is no index")
        self.indices = indices

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[place] for place in random_order(len(self.indices))])

    def __len__(self) -> int:
        return len(self.indices)


class BatchSampler(Sampler):
    """Lists of `batch_size` indices: of `dataset` in its order or shuffled, or of `sampler`."""

    def __init__(
        self,
        dataset: Any = None,
        sampler: Any = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        if dataset is None:
            assert isinstance(sampler, Sampler), (
                f"BatchSampler needs a dataset or a Sampler, received {sampler!r}"
            )
            assert not shuffle, "BatchSampler: the sampler decides on the order: leave out shuffle"
            self.sampler: Any = sampler
        else:
            assert not isinstance(dataset, IterableDataset), "BatchSampler: an IterableDataset has no index"
            assert sampler is None, "BatchSampler takes a dataset or a sampler, not both"
            self.sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)
        self.batch_size, self.drop_last = _size(batch_size, "BatchSampler"), bool(drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        return cut_batches(self.sampler, self.batch_size, self.drop_last)

    def __len__(self) -> int:
        return count_batches(len(self.sampler), self.batch_size, self.drop_last)


class DistributedBatchSampler(BatchSampler):
    """The batches of one of several processes that train together.

    The order is filled up from its beginning until every process gets as many samples. With `shuffle` epoch n is
    shuffled by seed n: call `set_epoch`, or each iteration is the next epoch.
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        import jax

        self.dataset = dataset
        self.batch_size = _size(batch_size, "DistributedBatchSampler")
        self.shuffle, self.drop_last = bool(shuffle), bool(drop_last)
        self.nranks = jax.process_count() if num_replicas is None else num_replicas
        self.local_rank = jax.process_index() if rank is None else rank
        assert isinstance(self.nranks, int) and self.nranks > 0, (
            f"num_replicas must be above 0, received {num_replicas}"
        )
        assert isinstance(self.local_rank, int) and self.local_rank >= 0, (
            f"rank must not be negative, received {rank}"
        )
        self.epoch = 0
        self.num_samples = math.ceil(len(dataset) / self.nranks)
        self.total_size = self.num_samples * self.nranks

    def __iter__(self) -> Iterator[list[int]]:
        order = np.resize(np.arange(len(self.dataset)), self.total_size)  # repeats from the beginning
        if self.shuffle:
            np.random.RandomState(self.epoch).shuffle(order)
            self.epoch += 1
        mine = share_of_rank(order, self.batch_size, self.nranks, self.local_rank)
        return cut_batches(mine.tolist(), self.batch_size, self.drop_last)

    def __len__(self) -> int:
        return count_batches(self.num_samples, self.batch_size, self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order the next iteration gives."""
        self.epoch = epoch


def _size(batch_size: int, where: str) -> int:
    assert isinstance(batch_size, int) and batch_size > 0, (
        f"{where}: batch_size must be above 0, received {batch_size!r}"
    )
    return batch_size
