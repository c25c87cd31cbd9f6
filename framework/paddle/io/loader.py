"""DataLoader of paddle.io: batches as lists (or dicts) of Tensors, made ahead by threads.

Paddle's workers are forked processes. Forking a process in which jax runs is not safe, and a program's own datasets can
often not be pickled, so workers are threads here: what they do in numpy, OpenCV and Pillow runs beside one another. The
core's loader is not used because its datasets share one reader and its errors name samples; here workers iterate over
an IterableDataset each, and a dataset's own errors reach the caller.
"""

from __future__ import annotations

import copy
import itertools
import numbers
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from framework.io.workers import WorkerInfo, enter_worker
from framework.io.workers import get_worker_info as get_worker_info
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.io.dataset import Dataset, IterableDataset, NoLength
from framework.paddle.io.sampler import BatchSampler

if TYPE_CHECKING:
    from framework.paddle.static.program import Variable

_END = object()  # what a worker gives whose part of an IterableDataset is read


def default_collate_fn(batch: Sequence[Any]) -> Any:
    """One batch of samples of one structure: arrays, Tensors and numbers are stacked, dicts stay dicts, tuples and
    lists become a list of fields, texts stay a list."""
    first = batch[0]
    if isinstance(first, np.ndarray):
        return np.stack(batch)
    if isinstance(first, Tensor):
        return wrap(as_array(np.stack([sample.numpy() for sample in batch])))
    if isinstance(first, numbers.Number):
        return np.array(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate_fn([sample[key] for sample in batch]) for key in first}
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError(
                f"the samples of a batch have different numbers of fields: {sorted({len(s) for s in batch})}"
            )
        return [default_collate_fn(list(fields)) for fields in zip(*batch, strict=True)]
    raise TypeError(
        f"a sample of {type(first).__name__} cannot be put into a batch: give arrays, numbers, texts, Tensors, or "
        "dicts, tuples and lists of them, or a collate_fn"
    )


def default_convert_fn(batch: object) -> Any:
    """One sample as it is, tuples as lists."""
    if isinstance(batch, Mapping):
        return {key: default_convert_fn(value) for key, value in batch.items()}
    if isinstance(batch, Sequence) and not isinstance(batch, str | bytes):
        return [default_convert_fn(part) for part in batch]
    return batch


def _with_tensors(batch: object) -> Any:
    """The arrays of a batch as Tensors."""
    if isinstance(batch, np.ndarray):
        return wrap(as_array(batch))
    if isinstance(batch, Mapping):
        return {key: _with_tensors(value) for key, value in batch.items()}
    if isinstance(batch, Sequence) and not isinstance(batch, str | bytes):
        return [_with_tensors(part) for part in batch]
    return batch


class _DataLoaderIterBase(Iterator[object]):
    """What iterates a loader. Packages look for it by this name, and read its sampler."""

    def __init__(self, loader: DataLoader, batches: Iterator[object]) -> None:
        self._dataset, self._batch_sampler, self._batches = loader.dataset, loader.batch_sampler, batches

    def __next__(self) -> object:
        return next(self._batches)


class DataLoader:
    """Reads a dataset in batches.

    Args:
        batch_sampler: yields lists of indices; stands for batch_size, shuffle and drop_last.
        batch_size: None gives single samples.
        collate_fn: makes a batch of a list of samples; `default_collate_fn` stacks arrays.
        num_workers: threads that make batches ahead; batch n comes from worker n modulo `num_workers`.
        prefetch_factor: how many batches of each worker are made ahead.
        timeout: seconds to wait for a batch of a worker; 0: as long as it takes.
        worker_init_fn: called in each worker with its number.
        feed_list: with `return_list=False` a batch is [{name of the variable: Tensor}], to feed to an Executor.
        places, use_buffer_reader, use_shared_memory, persistent_workers: change nothing.
    """

    def __init__(
        self,
        dataset: Dataset,
        feed_list: Sequence[Variable] | None = None,
        places: object = None,
        return_list: bool = True,
        batch_sampler: Any = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[..., object] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        prefetch_factor: int = 2,
        use_shared_memory: bool = True,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        persistent_workers: bool = False,
    ) -> None:
        assert num_workers >= 0, f"DataLoader: num_workers must not be negative, received {num_workers}"
        assert prefetch_factor > 0, f"DataLoader: prefetch_factor must be above 0, received {prefetch_factor}"
        assert timeout >= 0, f"DataLoader: timeout must not be negative, received {timeout}"
        is_stream = isinstance(dataset, IterableDataset)
        if is_stream and (shuffle or batch_sampler is not None):
            raise ValueError(
                "DataLoader: an IterableDataset decides on its order: leave out shuffle and batch_sampler"
            )
        self.dataset, self.collate_fn, self.drop_last = dataset, collate_fn, drop_last
        self.num_workers, self.prefetch_factor, self.timeout = num_workers, prefetch_factor, timeout
        self.worker_init_fn, self.feed_list, self.places = worker_init_fn, feed_list, places
        self.return_list, self.use_buffer_reader = return_list, use_buffer_reader
        self.use_shared_memory, self.batch_size = use_shared_memory, batch_size
        self.batch_sampler: Any = None
        if batch_sampler is not None:
            assert batch_size == 1 and not shuffle and not drop_last, (
                "DataLoader: batch_sampler decides on batch_size, shuffle and drop_last: leave them out"
            )
            self.batch_sampler, self.batch_size = batch_sampler, None
        elif batch_size is not None:
            assert batch_size > 0, f"DataLoader: batch_size must be above 0, received {batch_size}"
            if not is_stream:
                self.batch_sampler = BatchSampler(
                    dataset=dataset, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last
                )

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            raise NoLength("DataLoader: an IterableDataset has no length")
        return len(self.dataset if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        batches = self._made_here() if self.num_workers == 0 else self._made_ahead()
        made = map(_with_tensors, batches)
        if self.feed_list and not self.return_list:
            names = [variable.name for variable in self.feed_list]
            return _DataLoaderIterBase(self, ([dict(zip(names, batch, strict=True))] for batch in made))
        return _DataLoaderIterBase(self, made)

    def __call__(self) -> Iterator[Any]:
        return self.__iter__()

    def _jobs(self) -> Iterator[object]:
        """The indices of each batch; of a stream, how many samples."""
        if isinstance(self.dataset, IterableDataset):
            return itertools.repeat(self.batch_size)
        if self.batch_sampler is not None:
            return iter(self.batch_sampler)
        return iter(range(len(self.dataset)))

    def _make(self, dataset: Dataset, job: Any, stream: Iterator[Any] | None) -> object:
        data: Any
        if stream is not None and job is None:
            data = next(stream, _END)
        elif stream is not None:
            data = list(itertools.islice(stream, job))
            if not data or (self.drop_last and len(data) < job):
                return _END
        elif self.batch_sampler is None:
            data = dataset[job]
        else:
            data = [dataset[index] for index in job]
        if data is _END:
            return data
        single = self.batch_sampler is None and (stream is None or job is None)
        return (self.collate_fn or (default_convert_fn if single else default_collate_fn))(data)

    def _made_here(self) -> Iterator[Any]:
        stream = iter(self.dataset) if isinstance(self.dataset, IterableDataset) else None
        for job in self._jobs():
            batch = self._make(self.dataset, job, stream)
            if batch is _END:
                return
            yield batch

    def _made_ahead(self) -> Iterator[Any]:
        workers = [_Worker(self, number) for number in range(self.num_workers)]
        try:
            turns = deque(workers)
            waiting: deque[tuple[_Worker, Future[Any]]] = deque()
            jobs = self._jobs()
            while True:
                while turns and len(waiting) < self.prefetch_factor * self.num_workers:
                    job = next(jobs, _END)
                    if job is _END:
                        turns.clear()
                        break
                    worker = turns[0]
                    turns.rotate(-1)
                    waiting.append((worker, worker.submit(job)))
                if not waiting:
                    return
                worker, future = waiting.popleft()
                batch = future.result(self.timeout or None)
                if batch is _END:
                    if worker in turns:
                        turns.remove(worker)
                else:
                    yield batch
        finally:
            for worker in workers:
                worker.close()


class _Worker:
    """A thread with a shallow copy of the dataset, so that `worker_init_fn` can set this worker's part of the work; of
    an IterableDataset with an iterator of its own."""

    def __init__(self, loader: DataLoader, number: int) -> None:
        self.loader, self.number, self.dataset = loader, number, copy.copy(loader.dataset)
        self.stream: Iterator[Any] | None = None
        self.pool = ThreadPoolExecutor(1, f"paddle-io-{number}", self._start)

    def _start(self) -> None:
        loader = self.loader
        enter_worker(self.number, loader.num_workers, self.dataset, loader.worker_init_fn, one_reader=False)
        if isinstance(self.dataset, IterableDataset):
            self.stream = iter(self.dataset)

    def submit(self, job: object) -> Future[object]:
        return self.pool.submit(lambda: self.loader._make(self.dataset, job, self.stream))

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


_pinned: dict[str, bool | None] = {"memory": None}


def use_pinned_memory(*args: bool) -> bool | None:
    """Whether batches are to lie in pinned memory, as the last call with an argument said; XLA copies them in its own
    way."""
    if not args:
        return _pinned["memory"]
    (_pinned["memory"],) = args
    return None


__all__ = ["DataLoader", "WorkerInfo", "default_collate_fn", "default_convert_fn", "get_worker_info"]
