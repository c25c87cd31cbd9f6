"""Samplers: the order in which a dataset is read. Names and meaning follow `paddle.io`.

Every order is a function of the seed and the epoch and of nothing else: iterating twice gives the same order until
`set_epoch` is called. The loader calls it at the beginning of an epoch.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from framework.core.errors import ConfigError, ShapeError

IndexT = TypeVar("IndexT")


@runtime_checkable
class HasEpoch(Protocol):
    """What gives another order in each epoch: every `Sampler`, and a sampler of the user that says so."""

    def set_epoch(self, epoch: int) -> None: ...


class Indices(Protocol):
    """Indices of samples in some order: a `Sampler` with a length, a list."""

    def __iter__(self) -> Iterator[int]: ...

    def __len__(self) -> int: ...


class Sampler(abc.ABC):
    """Indices of samples in some order; `data_source` is anything that has a length."""

    epoch = 0

    def __init__(self, data_source: Sized | None = None) -> None:
        self.data_source = data_source

    @abc.abstractmethod
    def __iter__(self) -> Iterator[Any]: ...

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order the next iteration gives."""
        self.epoch = epoch


class SequenceSampler(Sampler):
    """0, 1, ..., n - 1."""

    data_source: Sized

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All indices in a random order, or with `replacement` `num_samples` independent draws (as many as there are).

    Raises:
        ConfigError: `num_samples` is given without `replacement`, is not positive, or the seed is negative.
    """

    data_source: Sized

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, seed: int = 0
    ) -> None:
        super().__init__(data_source)
        if num_samples is not None and not replacement:
            raise ConfigError(
                "without replacement every sample is drawn once",
                where="RandomSampler.num_samples",
                received=num_samples,
                fix="leave num_samples out, or set replacement=True",
            )
        if num_samples is not None:
            check_integer("RandomSampler.num_samples", num_samples, at_least=1)
        check_integer("RandomSampler.seed", seed, at_least=0)
        self.replacement, self.seed, self._num_samples = replacement, seed, num_samples

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        rng, count = order_rng(self.seed, self.epoch), len(self.data_source)
        if self.replacement and count:
            return iter(rng.integers(count, size=self.num_samples).tolist())
        return iter(rng.permutation(count).tolist())

    def __len__(self) -> int:
        return self.num_samples if len(self.data_source) else 0


class WeightedRandomSampler(Sampler):
    """`num_samples` indices of `weights [N]`, each drawn with a probability in proportion to its weight.

    Raises:
        ShapeError: `weights` is not one row of finite numbers >= 0.
        ConfigError: `num_samples` is not positive, or larger than the number of positive weights without
            `replacement`; the seed is negative.
    """

    def __init__(
        self, weights: Sequence[float] | np.ndarray, num_samples: int, replacement: bool = True, seed: int = 0
    ) -> None:
        super().__init__()
        self.weights = np.asarray(weights, np.float64)
        if (
            self.weights.ndim != 1
            or not (np.isfinite(self.weights) & (self.weights >= 0)).all()
            or not self.weights.any()
        ):
            raise ShapeError(
                "the weights of samples must be numbers from 0",
                where="WeightedRandomSampler.weights",
                received=f"{list(self.weights.shape)}, from {self.weights.min(initial=np.inf)} "
                f"to {self.weights.max(initial=-np.inf)}",
                allowed="[N] finite numbers >= 0, not all 0",
            )
        check_integer("WeightedRandomSampler.num_samples", num_samples, at_least=1)
        check_integer("WeightedRandomSampler.seed", seed, at_least=0)
        positive = int(np.count_nonzero(self.weights))
        if not replacement and num_samples > positive:
            raise ConfigError(
                "there are not so many samples to draw without replacement",
                where="WeightedRandomSampler.num_samples",
                received=num_samples,
                allowed=f"at most {positive}, the number of weights above 0",
            )
        self.num_samples, self.replacement, self.seed = num_samples, replacement, seed

    def __iter__(self) -> Iterator[int]:
        rng = order_rng(self.seed, self.epoch)
        probabilities = self.weights / self.weights.sum()
        drawn = rng.choice(len(probabilities), self.num_samples, self.replacement, probabilities)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in a random order.

    Raises:
        ConfigError: there is no index, or the seed is negative.
    """

    def __init__(self, indices: Sequence[int], seed: int = 0) -> None:
        super().__init__()
        if len(indices) == 0:
            raise ConfigError(
                "there is nothing to draw from", where="SubsetRandomSampler.indices", received="no index"
            )
        check_integer("SubsetRandomSampler.seed", seed, at_least=0)
        self.indices, self.seed = indices, seed

    def __iter__(self) -> Iterator[int]:
        order = order_rng(self.seed, self.epoch).permutation(len(self.indices))
        return iter([int(self.indices[place]) for place in order])

    def __len__(self) -> int:
        return len(self.indices)


class BatchSampler(Sampler):
    """Lists of `batch_size` indices: of `dataset` in its order or shuffled, or of `sampler`.

    Raises:
        ConfigError: not exactly one of `dataset` and `sampler`, `shuffle` with a sampler, or a number out of range.
    """

    def __init__(
        self,
        dataset: Sized | None = None,
        sampler: Indices | None = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if (dataset is None) == (sampler is None) or (sampler is not None and shuffle):
            raise ConfigError(
                "a batch sampler cuts one order",
                where="BatchSampler",
                received=", ".join(
                    name
                    for name, given in (("dataset", dataset), ("sampler", sampler), ("shuffle", shuffle))
                    if given is not None and given is not False
                )
                or "neither dataset nor sampler",
                allowed="dataset, dataset and shuffle, or sampler",
            )
        check_integer("BatchSampler.batch_size", batch_size, at_least=1)
        if sampler is None:
            assert dataset is not None
            sampler = RandomSampler(dataset, seed=seed) if shuffle else SequenceSampler(dataset)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, here and in the sampler."""
        super().set_epoch(epoch)
        if isinstance(self.sampler, HasEpoch):
            self.sampler.set_epoch(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        return cut_batches(iter(self.sampler), self.batch_size, self.drop_last)

    def __len__(self) -> int:
        return count_batches(len(self.sampler), self.batch_size, self.drop_last)


class BucketBatchSampler(Sampler):
    """Lists of `batch_size` indices of about the same length, so that little of a padded batch is padding.

    A sample belongs to the smallest of `buckets` that holds it. What fills no batch of its bucket goes on to the next
    larger one, so at most one batch is not full. With `shuffle` the samples of a bucket and the batches are shuffled.

    Args:
        lengths: Of every sample of the dataset.
        buckets: Lengths, ascending.

    Raises:
        ConfigError: the buckets do not ascend, a sample is longer than the last one, or a number is out of range.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        buckets: Sequence[int],
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_integer("BucketBatchSampler.batch_size", batch_size, at_least=1)
        check_integer("BucketBatchSampler.seed", seed, at_least=0)
        check_buckets("BucketBatchSampler.buckets", buckets)
        if len(lengths) and max(lengths) > buckets[-1]:
            raise ConfigError(
                "a sample fits no bucket",
                where=f"BucketBatchSampler, sample {int(np.argmax(lengths))}",
                received=f"length {max(lengths)}",
                allowed=f"up to {buckets[-1]}, the last of the buckets",
                fix="cut samples, or add a larger bucket",
            )
        self.batch_size, self.shuffle, self.drop_last, self.seed = batch_size, shuffle, drop_last, seed
        self._bucket_of = np.searchsorted(buckets, np.asarray(lengths, np.int64))
        self._lengths = tuple(buckets)

    def padded_length(self, batch: Sequence[int]) -> int:
        """The bucket of a batch of these samples: the smallest one that holds all of them."""
        return self._lengths[int(self._bucket_of[list(batch)].max())]

    def __iter__(self) -> Iterator[list[int]]:
        rng = order_rng(self.seed, self.epoch)
        batches: list[list[int]] = []
        rest: list[int] = []
        for bucket in range(len(self._lengths)):
            group = np.flatnonzero(self._bucket_of == bucket)
            if self.shuffle:
                group = rng.permutation(group)
            batches += cut_batches(rest + group.tolist(), self.batch_size, drop_last=False)
            rest = batches.pop() if batches and len(batches[-1]) < self.batch_size else []
        if rest and not self.drop_last:
            batches.append(rest)
        order = rng.permutation(len(batches)) if self.shuffle else range(len(batches))
        return iter([batches[bucket] for bucket in order])

    def __len__(self) -> int:
        return count_batches(len(self._bucket_of), self.batch_size, self.drop_last)


class DistributedBatchSampler(Sampler):
    """The batches of one of several processes that train together.

    The order is filled up from its beginning until every process gets as many samples; then batch i of process 0,
    batch i of process 1 and so on stand next to one another in it, so that together they are one global batch. The
    number of processes and the rank are jax's unless they are given.

    Raises:
        ConfigError: a number is out of range.
    """

    data_source: Sized

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(dataset)
        if num_replicas is None or rank is None:
            import jax  # here, because workers of a loader import this module and shall not import jax

            num_replicas = jax.process_count() if num_replicas is None else num_replicas
            rank = jax.process_index() if rank is None else rank
        check_integer("DistributedBatchSampler.batch_size", batch_size, at_least=1)
        check_integer("DistributedBatchSampler.num_replicas", num_replicas, at_least=1)
        check_integer("DistributedBatchSampler.rank", rank, at_least=0, below=num_replicas)
        check_integer("DistributedBatchSampler.seed", seed, at_least=0)
        self.batch_size, self.num_replicas, self.rank = batch_size, num_replicas, rank
        self.shuffle, self.drop_last, self.seed = shuffle, drop_last, seed
        self.num_samples = math.ceil(len(dataset) / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[list[int]]:
        order = np.arange(len(self.data_source))
        if len(order):
            order = np.resize(order, self.total_size)  # repeats from the beginning
        if self.shuffle:
            order_rng(self.seed, self.epoch).shuffle(order)
        mine = share_of_rank(order, self.batch_size, self.num_replicas, self.rank)
        return cut_batches(mine.tolist(), self.batch_size, self.drop_last)

    def __len__(self) -> int:
        return count_batches(self.num_samples, self.batch_size, self.drop_last)


def order_rng(seed: int, epoch: int) -> np.random.Generator:
    """The generator of an epoch's order; the spawn key sets it apart from that of sample 0, (seed, epoch, 0)."""
    return np.random.default_rng(np.random.SeedSequence((seed, epoch), spawn_key=(0,)))


def check_integer(where: str, value: object, *, at_least: int, below: int | None = None) -> None:
    """ConfigError unless `value` is an integer in the range."""
    fits = (
        isinstance(value, (int, np.integer))
        and not isinstance(value, bool)
        and value >= at_least
        and (below is None or value < below)
    )
    if not fits:
        raise ConfigError(
            "a number is out of range",
            where=where,
            received=repr(value),
            allowed=f"a whole number >= {at_least}" + (f" and < {below}" if below is not None else ""),
        )


def check_buckets(where: str, buckets: Sequence[int]) -> None:
    """ConfigError unless `buckets` are ascending lengths."""
    if not len(buckets) or buckets[0] < 1 or any(a >= b for a, b in itertools.pairwise(buckets)):
        raise ConfigError(
            "buckets must be ascending lengths",
            where=where,
            received=list(buckets),
            allowed="ascending lengths, such as 16, 32, 64",
        )


def share_of_rank(order: np.ndarray, batch_size: int, num_replicas: int, rank: int) -> np.ndarray:
    """The indices of one process: of each global batch its part, and of what is left as many as the others."""
    whole = len(order) - len(order) % (batch_size * num_replicas)
    mine = order[:whole].reshape(-1, num_replicas, batch_size)[:, rank].ravel()
    return np.concatenate([mine, order[whole:].reshape(num_replicas, -1)[rank]])


def cut_batches(order: Iterable[IndexT], batch_size: int, drop_last: bool) -> Iterator[list[IndexT]]:
    """Lists of `batch_size` indices, the last one shorter, or left out with `drop_last`."""
    batch: list[IndexT] = []
    for index in order:
        batch.append(index)
        if len(batch) == batch_size:
            yield batch
            batch = []
    if batch and not drop_last:
        yield batch


def count_batches(count: int, batch_size: int, drop_last: bool) -> int:
    """How many batches `cut_batches` makes of `count` indices."""
    return count // batch_size if drop_last else math.ceil(count / batch_size)
