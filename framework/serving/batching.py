"""Requests of all clients in shared batches: a bounded queue, a bound on waiting, a deadline each.

A predictor's `predict_stream` puts neighbours of one shape into one run of the program. So what stands in one batch is
of one bucket: the same predictor with the same options, and inputs of one size where the program takes any.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from framework.core.errors import OarError
from framework.serving.errors import DeadlineError, RetryError
from framework.serving.overload import LoadControl

Item = TypeVar("Item")
R = TypeVar("R")
log = logging.getLogger("oar.serving")


@dataclass(eq=False)
class _Job(Generic[Item, R]):
    item: Item
    deadline: float
    since: float
    can_be_refused: bool
    future: Future[R] = field(default_factory=Future)


@dataclass(frozen=True)
class Bucket(Generic[Item, R]):
    """What may run together.

    Attributes:
        key: Tells buckets apart.
        run: One result for each item, in order, as they are ready.
        size: Items of one batch at most.
    """

    key: Hashable
    run: Callable[[Sequence[Item]], Iterator[R]]
    size: int


class Batcher(Generic[Item, R]):
    """Runs items in batches on one thread, the bucket whose oldest item waits longest first.

    A batch goes when it is full, when its oldest item has waited `max_wait`, when no other request is on its way, or
    at once under overload.

    Args:
        max_wait: Seconds that an item waits for others.
        capacity: Requests under way at a time: see `admit`.
        longest_wait: Seconds that a request may have to wait for those before it, as far as can be told.
        observe: Called with the number of items of each batch and the seconds that it took.

    Attributes:
        load: Says how many requests are let in, and learns from those that were.
    """

    def __init__(
        self,
        name: str,
        max_wait: float,
        capacity: int,
        observe: Callable[[int, float], object] = lambda count, seconds: None,
        longest_wait: float = math.inf,
    ) -> None:
        self.max_wait, self._observe = max_wait, observe
        self.load = LoadControl(capacity, longest_wait)
        self._queues: OrderedDict[Hashable, tuple[Bucket[Item, R], deque[_Job[Item, R]]]] = OrderedDict()
        self._changed = threading.Condition()
        self._admitted = self._coming = self._waiting = self._running = 0
        self._closing = False
        self._last_end = 0.0
        self._thread = threading.Thread(target=self._work, name=f"oar-batch-{name}", daemon=True)
        self._thread.start()

    @property
    def admitted(self) -> int:
        """Requests under way."""
        return self._admitted

    @property
    def waiting(self) -> int:
        """Items in the queue."""
        return self._waiting

    @property
    def expected_wait(self) -> float:
        """Seconds until a request that comes now would begin to run, about."""
        return max(self._admitted, self._waiting + self._running) * self.load.seconds_each

    @property
    def is_full(self) -> bool:
        """Whether a request that comes now is refused."""
        return self.load.is_full(self._admitted, self._waiting + self._running)

    def check_admission(self) -> None:
        """Raises: RetryError, where it is full or closing."""
        if self._closing:
            raise RetryError("the server is stopping")
        if self.is_full:
            self.load.note_refused()
            raise RetryError(
                "the server has as many requests as it can answer in time",
                received=f"{self._admitted} requests under way",
                retry_after=self.expected_wait,
            )

    @contextlib.contextmanager
    def admit(self) -> Iterator[None]:
        """Count a request as under way, from before its body is read to its answer.

        Raises: as `check_admission`.
        """
        with self._changed:
            self.check_admission()
            self.load.note_admitted()
            self._admitted += 1
            self._coming += 1
        try:
            yield
        finally:
            with self._changed:
                self._admitted -= 1
                self._coming = min(self._coming, self._admitted)  # where it failed before its item came
                self._changed.notify()  # a batch may have waited for this request

    def check_stale(self, since: float) -> None:
        """Raises: RetryError, where a request that waits since then, in seconds of `time.monotonic`, is better asked
        for again, as the model is overloaded."""
        if self.load.is_stale(time.monotonic() - since):
            raise self._make_stale()

    def _make_stale(self) -> RetryError:
        return RetryError(
            "the server has more requests than it can answer in time", retry_after=self.expected_wait
        )

    def submit(
        self, bucket: Bucket[Item, R], item: Item, deadline: float, can_be_refused: bool = False
    ) -> Future[R]:
        """The future result of an item of an admitted request.

        Args:
            deadline: In seconds of `time.monotonic`; an item that has not begun by then is dropped: DeadlineError.
            can_be_refused: Whether an overloaded model may drop it where it has waited for too long: RetryError.
        """
        job: _Job[Item, R] = _Job(item, deadline, time.monotonic(), can_be_refused)
        with self._changed:
            if self._closing and not self._admitted:
                raise RetryError("the server is stopping")
            _, queue = self._queues.setdefault(bucket.key, (bucket, deque()))
            queue.append(job)
            self._waiting += 1
            self._coming = max(self._coming - 1, 0)
            self._changed.notify()
        return job.future

    def close(self, timeout: float | None = None) -> None:
        """Take no request any more, run what waits, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout)

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while batch := self._take():
            bucket, jobs = batch
            live = [job for job in jobs if self._begin(job)]
            started = time.monotonic()
            if live:
                self._run(bucket, live)
                self._note(live, started)
            with self._changed:
                self._running = 0
            del batch, jobs, live  # images are let go before the next batch comes

    def _take(self) -> tuple[Bucket[Item, R], list[_Job[Item, R]]] | None:
        """The next batch; None at the end."""
        with self._changed:
            while True:
                if not self._queues:
                    if self._closing and not self._admitted:
                        return None
                    self._changed.wait()
                    continue
                key, (bucket, queue) = min(self._queues.items(), key=lambda entry: entry[1][1][0].since)
                left = queue[0].since + self.max_wait - time.monotonic()
                size = self.load.batch_limit(bucket.size)
                # Under overload there is always one on its way: others wait while this one runs, not before.
                if len(queue) >= size or left <= 0 or not self._coming or self.load.is_overloaded:
                    if jobs := self._remove(key, queue, size):
                        self._running = len(jobs)
                        return bucket, jobs
                    continue
                self._changed.wait(left)

    def _remove(self, key: Hashable, queue: deque[_Job[Item, R]], size: int) -> list[_Job[Item, R]]:
        """Take the first jobs out of a queue. Those whose clients have gone take no room in a batch."""
        jobs: list[_Job[Item, R]] = []
        while queue and len(jobs) < size:
            job = queue.popleft()
            self._waiting -= 1
            if not job.future.cancelled():
                jobs.append(job)
        if not queue:
            del self._queues[key]
        return jobs

    def _begin(self, job: _Job[Item, R]) -> bool:
        """Whether somebody still waits for the job."""
        if not job.future.set_running_or_notify_cancel():
            return False
        now = time.monotonic()
        late = now - job.deadline
        if late <= 0 and job.can_be_refused and self.load.is_stale(now - job.since):
            job.future.set_exception(self._make_stale())
            return False
        if late > 0:
            job.future.set_exception(
                DeadlineError(
                    "the request waited longer than its deadline allows",
                    received=f"{time.monotonic() - job.since:.2f} s in the queue",
                )
            )
        return late <= 0

    def _run(self, bucket: Bucket[Item, R], jobs: list[_Job[Item, R]]) -> None:
        """Each job gets its own result or its own error: where a batch fails, its items run alone."""
        waiting = deque(jobs)
        try:
            for result in bucket.run([job.item for job in jobs]):
                waiting.popleft().future.set_result(result)
            if waiting:
                raise RuntimeError(f"{len(jobs)} items gave {len(jobs) - len(waiting)} results")
        except Exception as error:
            if not isinstance(error, OarError):
                log.debug("a batch of %d failed", len(jobs), exc_info=True)
            if len(jobs) == 1:
                if waiting:
                    waiting.popleft().future.set_exception(error)
                return
            for job in waiting:
                self._run(bucket, [job])

    def _note(self, jobs: Sequence[_Job[Item, R]], started: float) -> None:
        """A batch has run: what the next ones will take is told by the time between the ends of two batches, in which
        others are read and written too, or from when the first of its requests came."""
        end = time.monotonic()
        seconds = end - max(self._last_end, min(job.since for job in jobs))
        self._last_end = end
        self.load.note_batch(seconds, len(jobs), len(jobs) == self._admitted == 1)
        self._observe(len(jobs), end - started)
