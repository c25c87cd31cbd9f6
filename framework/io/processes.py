"""Spawned processes that make the batches of a loader; arrays come back through shared memory. Imports no jax.

One thread here serves each process: it sends a job, waits for the batch, copies the arrays out of the process'
segment of shared memory and takes the next job. The segment is made, grown and freed on this side, so nothing is left
when a process is killed. Where the system has no room for it (a container's small /dev/shm), arrays come through the
pipe.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing as mp
import os
import shutil
import signal
import traceback
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from multiprocessing import shared_memory
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from framework.core.errors import ConfigError, InputError, OarError
from framework.core.interrupts import hold_signals
from framework.io.recipe import Batch, Job, Recipe, Source, rebuild_error
from framework.io.workers import InitFn, WorkerGroup, enter_worker, start_error

_ALIGN = 64
_SHM = Path("/dev/shm")


class WorkerTraceback(Exception):
    """Carries the traceback of a worker process as text; the cause of the error that is raised here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class _Setup:
    """What a process gets first."""

    recipe: Recipe
    number: int
    count: int
    epoch: int
    first_sample: int
    init_fn: InitFn | None


@dataclass(frozen=True)
class _Failure:
    """An OarError on its way between processes: some of its parts need not be picklable, its class is."""

    kind: type[OarError]
    problem: str
    where: str | None
    received: str | None
    allowed: str | None
    fix: str | None
    traceback: str

    @classmethod
    def of(cls, error: OarError) -> _Failure:
        where, received, allowed = (
            None if part is None else str(part) for part in (error.where, error.received, error.allowed)
        )
        text = "".join(traceback.format_exception(error))
        return cls(type(error), error.problem, where, received, allowed, error.fix, text)

    def error(self) -> OarError:
        error = rebuild_error(self.kind, self.problem, self.where, self.received, self.allowed, self.fix)
        error.__cause__ = WorkerTraceback(self.traceback)
        return error


@dataclass(frozen=True)
class _SegmentRequest:
    """A worker asks for a segment of this many bytes."""

    nbytes: int


@dataclass(frozen=True)
class _InSegment:
    """Stands for an array that lies in the segment."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype


# ---- in the worker process ----


def serve(connection: Connection) -> None:
    """The body of a worker process: batches for jobs until the other end of the pipe closes."""
    # Ctrl-C reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The processes are the parallelism. OpenCV reads this when it first splits work, so before the dataset arrives.
    os.environ.setdefault("OPENCV_FOR_THREADS_NUM", "1")
    segment: shared_memory.SharedMemory | None = None
    source: Source | None = None
    # The other end closes when the loader does, or when its process is killed.
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        setup: _Setup = connection.recv()
        while True:
            job: Job = connection.recv()
            try:
                if source is None:
                    source = _open_source(setup)
                batch = setup.recipe.make(source, job)
            except OarError as error:
                connection.send(_Failure.of(error))
                continue
            arrays, nbytes = _lay_out(None if batch is None else batch.data)
            if nbytes > (0 if segment is None else segment.size):
                connection.send(_SegmentRequest(nbytes))
                name = connection.recv()
                if segment is not None:
                    segment.close()
                segment = None if name is None else shared_memory.SharedMemory(name)
            if batch is not None and segment is not None:
                for address, array in arrays:
                    _view(segment, address)[...] = array
                addresses = iter([address for address, _ in arrays])
                batch = replace(batch, data=_exchange(batch.data, addresses, np.ndarray))
            connection.send(batch)
    if segment is not None:
        segment.close()


def _open_source(setup: _Setup) -> Source:
    try:
        enter_worker(setup.number, setup.count, setup.recipe.dataset, setup.init_fn)
    except Exception as error:
        raise start_error(setup.number, error) from error
    return setup.recipe.open(setup.epoch, setup.first_sample)


def _lay_out(data: object) -> tuple[list[tuple[_InSegment, np.ndarray]], int]:
    """The arrays of a batch with their places in a segment, and the bytes they take."""
    placed, end = [], 0
    for array in _arrays(data):
        placed.append((_InSegment(end, array.shape, array.dtype), array))
        end += -(-array.nbytes // _ALIGN) * _ALIGN
    return placed, end


def _arrays(data: object) -> Iterator[np.ndarray]:
    if isinstance(data, np.ndarray) and not data.dtype.hasobject:
        yield data
    elif type(data) is dict:
        for value in data.values():
            yield from _arrays(value)
    elif type(data) is list or type(data) is tuple:
        for value in data:
            yield from _arrays(value)


def _exchange(data: object, others: Iterator[object], kind: type) -> object:
    """`data` with its arrays (or places of arrays) replaced one by one."""
    if isinstance(data, kind) and not (isinstance(data, np.ndarray) and data.dtype.hasobject):
        return next(others)
    if type(data) is dict:
        return {key: _exchange(value, others, kind) for key, value in data.items()}
    if type(data) is list or type(data) is tuple:
        values = [_exchange(value, others, kind) for value in data]
        return values if type(data) is list else tuple(values)
    return data


def _view(segment: shared_memory.SharedMemory, address: _InSegment) -> np.ndarray:
    return np.ndarray(address.shape, address.dtype, segment.buf, address.offset)


# ---- in the loader's process ----


class ProcessPool:
    """Spawned workers; each task is one batch. A stream is read by a single worker.

    Raises:
        ConfigError: the dataset, a transform, `pack`, `collate_fn` or `worker_init_fn` cannot be pickled.
    """

    def __init__(
        self, recipe: Recipe, count: int, epoch: int, first_sample: int, init_fn: InitFn | None
    ) -> None:
        self._workers: list[_Worker] = []
        self._group: WorkerGroup | None = None
        # The iterator may still be alive when the program ends: no process and no segment outlives it.
        atexit.register(self.close)
        try:
            for number in range(count):
                self._workers.append(_Worker(type(recipe.dataset).__name__, number))
            for number, worker in enumerate(self._workers):
                worker.set_up(_Setup(recipe, number, count, epoch, first_sample, init_fn))
        except BaseException:
            self.close()
            raise
        self._group = WorkerGroup(count)

    def submit(self, job: Job) -> Future[Batch | None]:
        future: Future[Batch | None] = Future()
        assert self._group is not None
        self._group.add(lambda number: self._make(future, number, job))
        return future

    def _make(self, future: Future[Batch | None], number: int, job: Job) -> None:
        try:
            future.set_result(self._workers[number].make(job))
        except Exception as error:
            future.set_exception(error)

    def close(self) -> None:
        atexit.unregister(self.close)
        for worker in self._workers:
            worker.stop()
        if self._group is not None:
            self._group.close()
        for worker in self._workers:
            worker.free()


class _Worker:
    """One process, its pipe and its segment."""

    def __init__(self, dataset: str, number: int) -> None:
        context = mp.get_context("spawn")
        self._name = f"worker {number} of the loader of {dataset}"
        self._segment: shared_memory.SharedMemory | None = None
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs,), name=f"oar-loader-{number}", daemon=True
        )
        # SIGTERM of a service or a batch system may reach all processes: the first one ends the others, and it needs
        # batches for the step that it ends with.
        with hold_signals(signal.SIGINT, signal.SIGTERM):
            self._process.start()
        theirs.close()

    def set_up(self, setup: _Setup) -> None:
        try:
            self._connection.send(setup)
        except OSError:
            raise self._end_error() from None
        except Exception as error:  # pickling raises PicklingError, AttributeError, TypeError, ...
            raise ConfigError(
                "the loader's parts cannot be sent to a worker process",
                where="DataLoader.worker_mode",
                received=error,
                allowed="dataset, transforms, pack, collate_fn and worker_init_fn that can be pickled",
                fix='define them at the top of a module, not as lambdas or in functions; or worker_mode="thread"',
            ) from error

    def make(self, job: Job) -> Batch | None:
        try:
            self._connection.send(job)
            reply = self._connection.recv()
            if isinstance(reply, _SegmentRequest):
                self._grow(reply.nbytes)
                self._connection.send(None if self._segment is None else self._segment.name)
                reply = self._connection.recv()
        except (EOFError, OSError):
            raise self._end_error() from None
        if isinstance(reply, _Failure):
            raise reply.error()
        if reply is None or self._segment is None:
            return reply
        # Copies: the segment is written again at once, and jax may keep a numpy array as it is.
        copies = (_view(self._segment, place).copy() for place in _addresses(reply.data))
        return replace(reply, data=_exchange(reply.data, copies, _InSegment))

    def _grow(self, nbytes: int) -> None:
        self._free_segment()
        nbytes += nbytes // 4
        # A segment that the system cannot back kills the process that writes to it, so the room is checked before.
        if _SHM.is_dir() and shutil.disk_usage(_SHM).free < 2 * nbytes:
            return
        with contextlib.suppress(OSError):
            self._segment = shared_memory.SharedMemory(create=True, size=nbytes)

    def _end_error(self) -> InputError:
        self._process.join(1.0)
        return InputError(
            "a worker process has ended",
            where=self._name,
            received=f"exit code {self._process.exitcode}",
            fix='its own message is above; a script that starts workers needs `if __name__ == "__main__":` '
            'around what it runs, and a dataset must be importable; or worker_mode="thread"',
        )

    def stop(self) -> None:
        self._process.kill()

    def free(self) -> None:
        self._process.join()
        self._connection.close()
        self._free_segment()

    def _free_segment(self) -> None:
        if self._segment is not None:
            self._segment.close()
            self._segment.unlink()
            self._segment = None


def _addresses(data: object) -> Iterator[_InSegment]:
    if isinstance(data, _InSegment):
        yield data
    elif isinstance(data, (dict, list, tuple)):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _addresses(value)
