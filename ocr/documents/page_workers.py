"""Processes that read the pages of PDFs side by side, those that need no network.

Text layers, tables and their order are Python's work on one CPU, and PDFium takes one call at a time in a process. So
each worker opens the PDF itself, and is given one page after the other. A page that needs OCR or another network goes
back to the process that has it, whose engine uses all CPUs. A worker that dies is replaced and its page tried once
more; where a page ends two of them, it is one that cannot be read.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing as mp
import signal
import sys
from collections import Counter, deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

from framework.core.interrupts import hold_signals
from ocr.documents.page_store import PageStore
from ocr.results.pages import Page

if TYPE_CHECKING:
    from ocr.documents.reader import DocumentReader, OpenDocument

log = logging.getLogger("oar")
TRIES = 2  # of a page whose worker died
AHEAD = 4  # pages for each worker that are read or under way before the one that is waited for
FEW = 8  # pages for each worker: no process is started for fewer
MOST_ON_WINDOWS = 61  # pipes: Windows waits for no more than 63 handles at once
_READY = "ready"


class NeedsNetwork(Exception):
    """Raised in a worker for a page that is not read by the text layer alone."""


def no_network(*_: object) -> object:
    """What workers have in place of all that opens a network."""
    raise NeedsNetwork


@dataclass(frozen=True)
class WorkerTask:
    """A PDF whose pages workers read: what they need is pickled.

    Attributes:
        reader: Without networks; see `DocumentReader.without_networks`.
        source: The file or its bytes.
        store: Where pages are kept; None: they come back whole.
    """

    reader: DocumentReader
    source: str | Path | bytes
    label: str
    password: str | None = None
    store: PageStore | None = None


# ---- in a worker ----


def serve(connection: Connection) -> None:
    """The body of a worker: (a task, or None for the one before; number) in, page out, None where it is read elsewhere.

    It ends when the other end of the pipe is closed.
    """
    # Ctrl+C reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.ExitStack() as stack, contextlib.suppress(EOFError, OSError):
        connection.send(_READY)
        pages: _Pages | None = None
        while True:
            task, number = connection.recv()
            if task is not None:
                stack.pop_all().close()
                pages = stack.enter_context(contextlib.closing(_Pages(task)))
            connection.send(None if pages is None else pages.read(number))


class _Pages:
    """The pages of a task, whose document is opened for the first of them."""

    def __init__(self, task: WorkerTask) -> None:
        self.task = task
        self._opened: OpenDocument | None = None

    def read(self, number: int) -> Page | None:
        task = self.task
        try:
            if self._opened is None:
                self._opened = task.reader.open(task.source, password=task.password)
            page = self._opened.read(number)
            return page if task.store is None else task.store.save(page)
        except NeedsNetwork:
            return None
        except Exception:  # it comes again where it can be told: the file is gone, the disk is full
            log.debug("page %d of %s in a worker", number, task.label, exc_info=True)
            return None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.__exit__()
            self._opened = None


# ---- in the process that has them ----


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    task: WorkerTask | None = None  # that it knows
    number: int | None = None  # the page that it reads
    ready: bool = False


class PageWorkers:
    """Up to `count` processes, started when they are first needed and kept until `close`; on Windows at most 61."""

    def __init__(self, count: int) -> None:
        self._count = min(count, MOST_ON_WINDOWS) if sys.platform == "win32" else count
        self._workers: list[_Worker] = []

    def are_worth(self, pages: int) -> bool:
        """Whether so many pages are read sooner by workers, which take seconds to start."""
        return self._count > 1 and pages >= (2 if self._workers else FEW * self._count)

    def read(
        self, task: WorkerTask, numbers: Sequence[int]
    ) -> Generator[tuple[int, Page | None], None, None]:
        """(number, page) of each, in this order; None in place of a page that workers do not read.

        Memory does not grow with their number. Where workers cannot be started all pages are None.
        """
        reading = _Reading(task, deque(numbers))
        try:
            for place, number in enumerate(numbers, 1):
                reading.limit = place + AHEAD * self._count
                self._give(reading)
                while number not in reading.done and self._workers:
                    self._take(reading)
                    self._give(reading)
                yield number, reading.done.pop(number, None)
        finally:
            if any(worker.number is not None for worker in self._workers):
                self.close()  # it was left in the middle: what still comes is of no use

    def _give(self, reading: _Reading) -> None:
        """A page to each worker that has none; workers are started where some are missing."""
        while reading.has_next() and len(self._workers) < self._count:
            self._workers.append(_start())
        for worker in self._workers:
            if worker.number is None and worker.ready and reading.has_next():
                worker.number = reading.next()
                with contextlib.suppress(OSError):  # it is dead, which `_take` finds
                    worker.connection.send(
                        (None if worker.task is reading.task else reading.task, worker.number)
                    )
                worker.task = reading.task

    def _take(self, reading: _Reading) -> None:
        """Wait until a worker says something, or has died."""
        known = {worker.connection: worker for worker in self._workers}
        for connection in wait(list(known)):
            worker = known[connection]  # type: ignore[index]
            try:
                said = worker.connection.recv()
            except (EOFError, OSError):
                self._bury(worker, reading)
                continue
            if said == _READY:
                worker.ready = True
            elif worker.number is not None:
                reading.done[worker.number], worker.number = said, None

    def _bury(self, worker: _Worker, reading: _Reading) -> None:
        self._workers.remove(worker)
        worker.connection.close()
        worker.process.join()
        reason = f"the process that read it ended, exit code {worker.process.exitcode}"
        if worker.number is not None:
            reading.fail(worker.number, reason)
        elif not worker.ready:
            log.warning(
                "worker processes cannot be started (exit code %s), so %d read on. A script that starts some needs "
                '`if __name__ == "__main__":` around what it runs',
                worker.process.exitcode,
                len(self._workers) or 1,
            )
            self._count = len(self._workers)

    def close(self) -> None:
        """End the processes, each behind the page that it reads. They start again when pages are read."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.connection.close()
        for worker in workers:
            worker.process.join(10.0)
            if worker.process.is_alive():
                worker.process.terminate()
                worker.process.join()


@dataclass
class _Reading:
    """How far the pages of one document are."""

    task: WorkerTask
    waiting: deque[int]
    limit: int = 0  # so many pages may have been given
    given: int = 0
    tries: Counter[int] = field(default_factory=Counter)
    done: dict[int, Page | None] = field(default_factory=dict)

    def has_next(self) -> bool:
        return bool(self.waiting) and self.given < self.limit

    def next(self) -> int:
        self.given += 1
        return self.waiting.popleft()

    def fail(self, number: int, reason: str) -> None:
        """A page whose worker died: it is tried again, or cannot be read."""
        self.tries[number] += 1
        if self.tries[number] < TRIES:
            self.given -= 1
            self.waiting.appendleft(number)
            return
        page = Page((), number, warnings=(reason,), source=self.task.label, width=0, height=0)
        self.done[number] = page if self.task.store is None else self.task.store.save(page)


def _start() -> _Worker:
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), name="oar-pages", daemon=True)
    with hold_signals(signal.SIGINT):
        process.start()
    theirs.close()
    return _Worker(process, ours)
