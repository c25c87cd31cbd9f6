"""DataLoader: batches of a dataset, made ahead by threads or processes and the same by all. Imports no jax."""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Literal

from framework.core.errors import ConfigError, InputError
from framework.core.transform import MixTransform
from framework.core.types import PyTree
from framework.io.collate import default_collate
from framework.io.dataset import Indexed, IterableDataset
from framework.io.processes import ProcessPool
from framework.io.recipe import Batch, Job, Recipe
from framework.io.sampler import BatchSampler, BucketBatchSampler, HasEpoch, Indices, check_integer
from framework.io.skipped import SkipLog
from framework.io.workers import InitFn, Pool, ThreadPool

WorkerMode = Literal["thread", "process"]


class DataLoader:
    """Reads a dataset in batches.

    A sample goes from `dataset[index]` through each transform, called as `transform(sample, rng)` with
    `numpy.random.default_rng((seed, epoch, index))`, through `pack` and into `collate_fn`. A `MixTransform` is called
    as `transform(sample, rng, others)` with `extra` other samples of the dataset, drawn by `rng` and put through the
    transforms before it. A `Transform` whose class has `per_batch = True` gets a generator seeded by (seed, epoch,
    place of the batch), in the same state for each sample of the batch: so all get one size.
    So a batch depends on the seed, the epoch and its place, and not on `num_workers` or `worker_mode`.

    `for batch in loader` gives collated batches, of the epoch chosen by `set_epoch` (0 at first, and the same order
    each time until it is called). `batches` gives them with their ids, from any place on.

    Args:
        transforms: callables, see above.
        pack: makes of a sample what is collated, such as a dict of arrays of fixed shapes.
        collate_fn: makes a batch of a list of packed samples; `default_collate` stacks arrays.
        batch_sampler: yields lists of indices; stands for batch_size, shuffle, drop_last and sampler.
        sampler: yields indices.
        num_workers: 0 makes each batch when it is asked for. A stream has one reader; threads share its transforms,
            of processes one is started.
        worker_mode: threads suit what frees the GIL, such as OpenCV. Processes are spawned, at the beginning of each
            iteration, and get pickled copies of dataset and transforms.
        prefetch_factor: at most this many batches a worker are made ahead.
        pad_last: fill the last batch by repeating its last sample, and give dict batches the key `valid` [N] bool.
            Samples whose arrays have different shapes are given one by one.
        worker_init_fn: called with the worker's number in each worker when it starts.
        skip_bad_samples: leave out samples that the dataset cannot read (InputError, FormatError, OSError) instead of
            raising. In their place come others, drawn by (seed, epoch, index); with `pad_last` these do not count in
            `valid`. `skip_log` has them, and puts a line into the log for each. It ends in the error all the same where
            ten others cannot be read either.
        skip_log: where they are listed; by default a new SkipLog.
        timeout: seconds to wait for one batch; None, or 0 as in Paddle, waits as long as it takes.

    Batches are numpy arrays, made ahead; they are put on devices where they are computed with.

    Raises:
        ConfigError: settings that are out of range or contradict one another.
    """

    def __init__(
        self,
        dataset: Indexed[object] | IterableDataset,
        *,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        transforms: Sequence[Callable[..., object]] = (),
        pack: Callable[[Any], PyTree] | None = None,
        collate_fn: Callable[[Sequence[Any]], PyTree] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        sampler: Indices | None = None,
        num_workers: int = 2,
        worker_mode: WorkerMode = "thread",
        prefetch_factor: int = 2,
        seed: int = 0,
        pad_last: bool = False,
        worker_init_fn: InitFn | None = None,
        timeout: float | None = None,
        skip_bad_samples: bool = False,
        skip_log: SkipLog | None = None,
    ) -> None:
        check_integer("DataLoader.batch_size", batch_size, at_least=1)
        check_integer("DataLoader.num_workers", num_workers, at_least=0)
        check_integer("DataLoader.prefetch_factor", prefetch_factor, at_least=1)
        check_integer("DataLoader.seed", seed, at_least=0)
        if worker_mode not in ("thread", "process"):
            raise ConfigError(
                "unknown kind of worker",
                where="DataLoader.worker_mode",
                received=repr(worker_mode),
                allowed="'thread' or 'process'",
            )
        if timeout is not None and timeout < 0:
            raise ConfigError(
                "a time limit is positive",
                where="DataLoader.timeout",
                received=timeout,
                allowed="seconds > 0, or None",
            )
        arguments = {
            "batch_size": batch_size != 1,
            "shuffle": shuffle,
            "drop_last": drop_last,
            "sampler": sampler,
        }
        if batch_sampler is not None:
            _refuse("batch_sampler", arguments, "a batch sampler decides these itself")
        if sampler is not None:
            _refuse("sampler", {"shuffle": shuffle}, "a sampler decides the order itself")
        if pad_last:
            _refuse("pad_last", {"drop_last": drop_last}, "a batch is either filled up or dropped")
        is_stream = isinstance(dataset, IterableDataset)
        if is_stream:
            mixing = [
                type(transform).__name__ for transform in transforms if isinstance(transform, MixTransform)
            ]
            unfit = {"shuffle": shuffle, "sampler": sampler, "batch_sampler": batch_sampler}
            unfit |= {**dict.fromkeys(mixing, True), "skip_bad_samples": skip_bad_samples}
            _refuse("an IterableDataset", unfit, "a stream has no index: it is read in its own order")
        elif batch_sampler is None:
            order = {"sampler": sampler} if sampler is not None else {"dataset": dataset, "shuffle": shuffle}
            batch_sampler = BatchSampler(batch_size=batch_size, drop_last=drop_last, seed=seed, **order)  # pyright: ignore[reportArgumentType]
        self.dataset, self.batch_sampler = dataset, batch_sampler
        self.batch_size = batch_size if is_stream else getattr(batch_sampler, "batch_size", None)
        if pad_last and self.batch_size is None:
            raise ConfigError(
                "it is not known how large a full batch is",
                where="DataLoader.pad_last",
                received=f"a {type(batch_sampler).__name__} without the attribute batch_size",
                fix="give the batch sampler that attribute",
            )
        self.num_workers, self.worker_mode, self.prefetch_factor = num_workers, worker_mode, prefetch_factor
        self.worker_init_fn, self.timeout = worker_init_fn, timeout or None
        self.epoch = 0
        self._recipe = Recipe(
            dataset,
            tuple(transforms),
            pack,
            default_collate if collate_fn is None else collate_fn,
            int(seed),
            drop_last,
            self.batch_size if pad_last else None,
            skip_bad_samples,
        )
        self.skip_log = SkipLog() if skip_log is None else skip_log
        self._rows: list[int] | None = None

    def select_rows(self, rows: Sequence[int] | None) -> None:
        """Make of each batch only these samples, by their places in it; None makes whole batches.

        Each of several processes reads its part so: order and augmentation of a sample stay those of the whole batch.

        Raises:
            ConfigError: there are no whole batches of one size to choose from.
        """
        if rows is not None and (self.batch_sampler is None or not isinstance(self.batch_size, int)):
            raise ConfigError(
                "several processes divide batches of one size among them",
                where="DataLoader.select_rows",
                received="a stream" if self.batch_sampler is None else "batches without a size",
                allowed="a dataset with an index, and a batch_size",
                fix="train it with one process",
            )
        buckets = getattr(self._recipe.collate, "buckets", ())
        if rows is not None and len(buckets) > 1 and not isinstance(self.batch_sampler, BucketBatchSampler):
            raise ConfigError(
                "several processes pad their samples to the length of the whole batch",
                where="buckets",
                received=f"{list(buckets)}, and a {type(self.batch_sampler).__name__} that knows no lengths",
                allowed="a BucketBatchSampler, which tells the bucket of a batch before it is read, or one bucket",
                fix="give the last bucket alone",
            )
        self._rows = None if rows is None else list(rows)

    def __len__(self) -> int:
        """Batches in an epoch; TypeError for a stream that does not tell how many samples it has."""
        if self.batch_sampler is not None:
            return len(self.batch_sampler)  # pyright: ignore[reportArgumentType]
        samples, size = len(self.dataset), int(self.batch_size or 1)  # pyright: ignore[reportArgumentType]
        return samples // size if self._recipe.drop_last else -(-samples // size)

    @property
    def last_batch_size(self) -> int | None:
        """Samples of the last batch of an epoch, where all others have `batch_size`; None where that is not known."""
        sampler = self.batch_sampler
        if type(sampler) is not BatchSampler or self._recipe.pad_to is not None:
            return None
        return (
            sampler.batch_size if sampler.drop_last else (len(sampler.sampler) - 1) % sampler.batch_size + 1
        )

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that `for batch in loader` gives."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[PyTree]:
        return _data(self.batches(self.epoch))

    def batches(self, epoch: int, start: int = 0) -> Generator[Batch, None, None]:
        """The batches of an epoch from batch `start` on; no sample of an earlier one is loaded (a stream reads past).

        Workers start with the first batch and stop when the iterator is exhausted, closed or dropped.

        Raises:
            ConfigError: `epoch` or `start` is negative, or the loader's parts cannot be sent to processes.
            OarError: a sample could not be made; `where` names it.
            InputError: a batch took longer than `timeout`, or a worker process died.
        """
        check_integer("DataLoader.batches.epoch", epoch, at_least=0)
        check_integer("DataLoader.batches.start", start, at_least=0)
        return self._log_skipped(self._batches(epoch, start))

    def _log_skipped(self, batches: Generator[Batch, None, None]) -> Generator[Batch, None, None]:
        with contextlib.closing(batches):
            for batch in batches:
                for sample in batch.skipped:
                    self.skip_log.add(sample)
                yield batch
                yield from batch.more

    def _batches(self, epoch: int, start: int) -> Generator[Batch, None, None]:
        jobs = self._jobs(epoch, start)
        is_stream = self.batch_sampler is None
        first_sample = start * (self.batch_size or 1) if is_stream else 0
        if self.num_workers == 0:
            source = self._recipe.open(epoch, first_sample)
            for job in jobs:
                batch = self._recipe.make(source, job)
                if batch is None:
                    return
                yield batch
            return
        kind: Callable[..., Pool] = ThreadPool if self.worker_mode == "thread" else ProcessPool
        count = 1 if is_stream and self.worker_mode == "process" else self.num_workers
        pool = kind(self._recipe, count, epoch, first_sample, self.worker_init_fn)
        try:
            ahead = itertools.islice(jobs, self.prefetch_factor * self.num_workers)
            waiting = deque((job, pool.submit(job)) for job in ahead)
            while waiting:
                job, future = waiting.popleft()
                try:
                    batch = future.result(self.timeout)
                except TimeoutError:
                    raise self._timeout_error(job) from None
                if batch is None:
                    return
                waiting.extend((job, pool.submit(job)) for job in itertools.islice(jobs, 1))
                yield batch
        finally:
            pool.close()

    def _jobs(self, epoch: int, start: int) -> Iterator[Job]:
        if self.batch_sampler is None:
            size = self.batch_size or 1
            chunks: Iterable[Sequence[int]] = (range(n * size, (n + 1) * size) for n in itertools.count())
        else:
            if isinstance(self.batch_sampler, HasEpoch):
                self.batch_sampler.set_epoch(epoch)
            chunks = iter(self.batch_sampler)
        numbered = itertools.islice(enumerate(chunks), start, None)
        for number, chunk in numbered:
            samples = _indices(chunk, self.batch_sampler)
            if self._rows is None:
                yield Job(number, epoch, samples)
                continue
            # Of the whole batch, so that all processes compute in one shape.
            sampler = self.batch_sampler
            length = sampler.padded_length(samples) if isinstance(sampler, BucketBatchSampler) else None
            yield Job(number, epoch, [samples[row] for row in self._rows], length)

    def _timeout_error(self, job: Job) -> InputError:
        samples = ", ".join(map(str, job.samples[:8]))
        return InputError(
            "a batch took too long",
            where=f"batch {job.index} of {type(self.dataset).__name__} (samples {samples})",
            received=f"no batch after {self.timeout} seconds",
            allowed="DataLoader.timeout",
            fix="check what reads these samples, or raise timeout",
        )


def _data(batches: Generator[Batch, None, None]) -> Iterator[PyTree]:
    with contextlib.closing(batches):
        for batch in batches:
            yield batch.data


def _indices(chunk: Iterable[int], sampler: object) -> list[int]:
    try:
        indices = [operator.index(index) for index in chunk]
    except TypeError:
        indices = []
    if not indices:
        raise ConfigError(
            "a batch of indices must be a list of whole numbers",
            where=f"{type(sampler).__name__} of the DataLoader",
            received=repr(chunk)[:80],
            allowed="lists of whole numbers, not empty",
        )
    return indices


def _refuse(argument: str, arguments: dict[str, object], reason: str) -> None:
    """ConfigError when one of `given` is set beside `chosen`."""
    wrong = [name for name, value in arguments.items() if value is not None and value is not False]
    if wrong:
        raise ConfigError(
            "these settings contradict one another",
            where="DataLoader",
            received=f"{argument} with {', '.join(wrong)}",
            allowed=reason,
            fix=f"leave {' and '.join(wrong)} out",
        )
