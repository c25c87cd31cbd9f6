"""Threads that make the batches of a loader ahead of its consumer. Imports no jax.

Each takes the next single sample, so all work on the batch that is wanted first; the thread that finishes the last
sample of a batch collates it.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from framework.core.errors import OarError
from framework.io.dataset import Indexed, IterableDataset
from framework.io.recipe import Batch, Job, PreparedSample, Recipe, describe_error

InitFn = Callable[[int], object]
_STOP_SECONDS = 5.0


@dataclass(frozen=True)
class WorkerInfo:
    """What `get_worker_info` tells: this worker's number, how many there are, and its dataset."""

    id: int
    num_workers: int
    dataset: Indexed[object] | IterableDataset


_here = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """The worker in which this runs; None outside of a loader's workers.

    An IterableDataset has one reader, whatever the number of workers: for it this is worker 0 of 1. Threads
    share one dataset, processes have a copy each.
    """
    return getattr(_here, "info", None)


def enter_worker(
    number: int,
    count: int,
    dataset: Indexed[object] | IterableDataset,
    init_fn: InitFn | None,
    one_reader: bool = True,
) -> None:
    """Make this thread a worker: what `get_worker_info` gives here, then `init_fn`. `one_reader`: an IterableDataset is
    read by one worker; else each worker iterates over it."""
    one = one_reader and isinstance(dataset, IterableDataset)
    _here.info = WorkerInfo(0 if one else number, 1 if one else count, dataset)
    if init_fn is not None:
        init_fn(number)


def start_error(number: int, error: Exception) -> OarError:
    """What is raised for every batch when a worker's `worker_init_fn` failed."""
    named = describe_error(error, f"worker {number} of the DataLoader", "a worker could not start")
    named.__cause__ = error
    return named


class Pool(Protocol):
    """Makes batches in the background."""

    def submit(self, job: Job) -> Future[Batch | None]: ...

    def close(self) -> None: ...


class WorkerGroup:
    """Threads that run tasks from one queue; a task is called with the number of its thread."""

    def __init__(self, count: int, enter: Callable[[int], None] | None = None) -> None:
        self._tasks: queue.SimpleQueue[Callable[[int], None] | None] = queue.SimpleQueue()
        self._stopped = False
        # Daemons: a program that ends in the middle of an epoch does not wait for them.
        self._threads = [
            threading.Thread(
                target=self._work, args=(number, enter), name=f"oar-loader-{number}", daemon=True
            )
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, number: int, enter: Callable[[int], None] | None) -> None:
        if enter is not None:
            enter(number)
        while (task := self._tasks.get()) is not None and not self._stopped:
            task(number)

    def add(self, task: Callable[[int], None]) -> None:
        self._tasks.put(task)

    def close(self) -> None:
        """Drop what waits and let each thread end what it is doing."""
        self._stopped = True
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            if not sys.is_finalizing():  # daemons no longer run then
                thread.join(_STOP_SECONDS)


class ThreadPool:
    """Threads that share the dataset; each task is one sample."""

    def __init__(
        self, recipe: Recipe, count: int, epoch: int, first_sample: int, init_fn: InitFn | None
    ) -> None:
        self._recipe, self._source = recipe, recipe.open(epoch, first_sample)
        self._count, self._init_fn = count, init_fn
        self._init_error: Exception | None = None
        self._group = WorkerGroup(count, self._enter)

    def _enter(self, number: int) -> None:
        try:
            enter_worker(number, self._count, self._recipe.dataset, self._init_fn)
        except Exception as error:
            self._init_error = start_error(number, error)

    def submit(self, job: Job) -> Future[Batch | None]:
        assembly = _Assembly(self._recipe, job)
        for position, index in enumerate(job.samples):
            self._group.add(lambda _, position=position, index=index: self._sample(assembly, position, index))
        return assembly.future

    def _sample(self, assembly: _Assembly, position: int, index: int) -> None:
        try:
            if self._init_error is not None:
                raise self._init_error
            result = self._recipe.prepare(self._source, assembly.job, index)
        except BaseException as error:  # SystemExit too, else the consumer would wait for ever
            result = error
        assembly.put(position, result)

    def close(self) -> None:
        self._group.close()


class _Assembly:
    """A batch whose samples come in from several threads."""

    def __init__(self, recipe: Recipe, job: Job) -> None:
        self.job, self.future = job, Future[Batch | None]()
        self._recipe, self._lock = recipe, threading.Lock()
        self._samples: list[PreparedSample | BaseException | None] = [None] * len(job.samples)
        self._missing = len(job.samples)

    def put(self, position: int, sample: PreparedSample | BaseException | None) -> None:
        self._samples[position] = sample
        with self._lock:
            self._missing -= 1
            if self._missing:
                return
        # The first error by place, not by time: one run reports the same as another.
        samples = []
        for sample_or_error in self._samples:
            if isinstance(sample_or_error, BaseException):
                self.future.set_exception(sample_or_error)
                return
            samples.append(sample_or_error)
        try:
            self.future.set_result(self._recipe.batch(self.job, samples))
        except Exception as error:
            self.future.set_exception(error)
