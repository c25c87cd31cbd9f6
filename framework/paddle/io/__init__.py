"""paddle.io: datasets, samplers and the loader; `paddle.batch`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from framework.io.sampler import cut_batches as cut_batches
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.io.dataset import (
    ChainDataset,
    ComposeDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from framework.paddle.io.loader import DataLoader, get_worker_info
from framework.paddle.io.loader import default_collate_fn as default_collate_fn
from framework.paddle.io.loader import default_convert_fn as default_convert_fn
from framework.paddle.io.sampler import (
    BatchSampler,
    DistributedBatchSampler,
    RandomSampler,
    Sampler,
    SequenceSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

Sample = TypeVar("Sample")


def batch(
    reader: Callable[[], Iterable[Sample]], batch_size: int, drop_last: bool = False
) -> Callable[[], Iterator[list[Sample]]]:
    """A reader of lists of `batch_size` samples, made of a reader of samples."""
    size = int(batch_size)
    if size <= 0:
        raise ValueError(f"paddle.batch: batch_size must be above 0, received {batch_size}")

    def read() -> Iterator[list[Sample]]:
        yield from cut_batches(reader(), size, drop_last)

    return read


__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ComposeDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedBatchSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequenceSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "get_worker_info",
    "random_split",
]

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
