"""Overload, in simulated time: clients of a model of known speed, and what LoadControl lets in."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from framework.serving.batching import Batcher, Bucket
from framework.serving.errors import RetryError
from framework.serving.overload import LoadControl

ALONE, FULL, SIZE = 0.01, 0.04, 8  # seconds of one item and of a full batch; its items
CAPACITY = 32
PAUSE = 0.05  # seconds after which clients ask again that were refused


@dataclass
class Simulation:
    """Clients that ask again as soon as they have their answer, and a model with one queue.

    Attributes:
        asks_again: Whether they do.
        latencies: (time of the answer, seconds) of requests that were answered.
        refusals: The times of refusals.
        dropped: The times when requests were refused that had been let in.
        full: Seconds of a full batch.
    """

    load: LoadControl
    now: float = 0.0
    asks_again: bool = True
    latencies: list[tuple[float, float]] = field(default_factory=list)
    refusals: list[float] = field(default_factory=list)
    dropped: list[float] = field(default_factory=list)
    full: float = FULL
    _events: list[tuple[float, int, int | None]] = field(default_factory=list)
    _queue: list[tuple[float, int]] = field(default_factory=list)
    _running: list[tuple[float, int]] = field(default_factory=list)
    _last_end: float = 0.0
    _number: int = 0
    _clients: int = 0

    def run(self, clients: int, until: float) -> None:
        """Go on with so many clients."""
        for client in range(self._clients, clients):
            self._add(self.now + client * 1e-5, client)
        self._clients = clients
        while self._events and self._events[0][0] <= until:
            self.now, _, client = heapq.heappop(self._events)
            if client is None:
                self._end_batch()
            elif client < clients:
                self._arrive(client)
            self._begin_batch()
        self.now = until

    def after(self, start: float) -> list[float]:
        """Latencies of answers since then, in order of size."""
        return sorted(seconds for end, seconds in self.latencies if end >= start)

    def _add(self, at: float, client: int | None) -> None:
        self._number += 1
        heapq.heappush(self._events, (at, self._number, client))

    def _arrive(self, client: int) -> None:
        waiting = len(self._queue) + len(self._running)
        if self.load.is_full(waiting, waiting):
            self._refuse(client)
        else:
            self.load.note_admitted()
            self._queue.append((self.now, client))

    def _refuse(self, client: int) -> None:
        self.refusals.append(self.now)
        self.load.note_refused()
        self._ask_again(self.now + PAUSE, client)

    def _ask_again(self, at: float, client: int) -> None:
        if self.asks_again:
            self._add(at, client)

    def _begin_batch(self) -> None:
        if self._running:
            return
        while self._queue and len(self._running) < self.load.batch_limit(SIZE):
            came, client = self._queue.pop(0)
            if self.load.is_stale(self.now - came):
                self.dropped.append(self.now)
                self._ask_again(self.now + PAUSE, client)
            else:
                self._running.append((came, client))
        if self._running:
            self._add(self.now + min(len(self._running) * ALONE, self.full), None)

    def _end_batch(self) -> None:
        began = max(self._last_end, min(came for came, _ in self._running))
        was_alone = len(self._running) == 1 and not self._queue
        self.load.note_batch(self.now - began, len(self._running), was_alone)
        self._last_end = self.now
        for came, client in self._running:
            self.latencies.append((self.now, self.now - came))
            self._ask_again(self.now, client)
        self._running = []


@pytest.fixture
def simulation() -> Simulation:
    clock = [lambda: 0.0]
    made = Simulation(LoadControl(CAPACITY, 30.0, ALONE, lambda: clock[0]()))
    clock[0] = lambda: made.now
    return made


@pytest.mark.parametrize("clients", [1, 16, CAPACITY])
def test_as_many_clients_as_the_queue_takes_are_never_refused(simulation: Simulation, clients: int) -> None:
    simulation.run(clients, 20)
    assert not simulation.refusals and not simulation.load.is_overloaded
    best = SIZE / FULL if clients > 1 else 1 / ALONE
    assert len(simulation.latencies) == pytest.approx(20 * best, rel=0.1)


def test_under_ten_times_the_load_answers_take_twice_the_time_of_one_alone(simulation: Simulation) -> None:
    simulation.run(10 * 16, 120)
    after = simulation.after(2)
    assert after[int(0.99 * (len(after) - 1))] <= 2 * ALONE + 1e-9
    assert len(after) >= 0.9 * 118 / ALONE  # and it is always busy
    assert simulation.load.is_overloaded


def test_none_waits_for_another_where_batches_gain_nothing(simulation: Simulation) -> None:
    simulation.full = SIZE * ALONE
    simulation.run(160, 120)
    after = simulation.after(2)
    assert after[len(after) // 2] == pytest.approx(ALONE)
    assert after[int(0.99 * (len(after) - 1))] <= 2 * ALONE + 1e-9
    assert len(after) >= 0.9 * 118 / ALONE


def test_batches_stay_full_where_they_take_no_longer_than_one_item(simulation: Simulation) -> None:
    simulation.full = ALONE
    simulation.run(20 * SIZE, 60)
    assert simulation.load.is_overloaded
    assert len(simulation.after(2)) >= 0.9 * 58 * SIZE / ALONE


def test_some_more_clients_than_the_queue_takes_are_no_overload(simulation: Simulation) -> None:
    simulation.run(CAPACITY + 4, 20)
    assert simulation.refusals and not simulation.load.is_overloaded
    assert len(simulation.latencies) == pytest.approx(20 * SIZE / FULL, rel=0.1)


def test_a_burst_is_answered(simulation: Simulation) -> None:
    simulation.asks_again = False
    simulation.run(200, 20)
    assert len(simulation.latencies) == CAPACITY and len(simulation.refusals) == 200 - CAPACITY
    assert not simulation.load.is_overloaded


def test_the_queue_opens_again_where_few_clients_stay(simulation: Simulation) -> None:
    simulation.run(160, 10)
    assert simulation.load.is_overloaded
    simulation.run(16, 60)
    assert not simulation.load.is_overloaded
    assert simulation.refusals[-1] < 10 + 16 + 2  # the longest time between two trials
    last = simulation.after(40)
    assert len(last) == pytest.approx(20 * SIZE / FULL, rel=0.1)


def test_lasting_overload_is_tried_with_few_requests(simulation: Simulation) -> None:
    simulation.run(10 * 16, 120)
    trials = 4 + (120 - 31) // 16 + 1  # after 1, 3, 7 and 15 seconds, then every 16 of them
    assert len([at for at in simulation.dropped if at > 1]) <= 4 * trials


def test_a_trial_takes_up_as_many_clients_as_the_whole_queue(simulation: Simulation) -> None:
    simulation.run(160, 10)
    simulation.run(CAPACITY - 4, 60)
    assert not simulation.load.is_overloaded and simulation.refusals[-1] < 10 + 16 + 2
    assert len(simulation.after(40)) == pytest.approx(20 * SIZE / FULL, rel=0.1)


@pytest.mark.parametrize(("refused", "seconds"), [(2 * CAPACITY, 0.1), (CAPACITY, 0.64)])
def test_far_too_many_requests_are_overload_before_a_full_queue_has_run(refused: int, seconds: float) -> None:
    now = 0.0
    load = LoadControl(CAPACITY, 30.0, 0.02, lambda: now)
    load.note_batch(0.02, 1, was_alone=True)
    load.note_refused()
    for _ in range(CAPACITY):
        load.note_admitted()
    for _ in range(refused):
        load.note_refused()
    now = seconds - 0.01
    load.note_refused()
    assert not load.is_overloaded
    now = seconds + 0.01
    load.note_refused()
    assert load.is_overloaded


def test_nothing_is_stale_before_anything_has_run() -> None:
    load = LoadControl(CAPACITY, 30.0)
    load.is_overloaded = True
    assert not load.is_stale(9.0)
    load.note_batch(1.0, 1, was_alone=False)
    assert load.is_stale(9.0) and not load.is_stale(1.9)


def test_without_requests_overload_is_over_at_once(simulation: Simulation) -> None:
    simulation.run(160, 10)
    simulation.now += 1.01
    assert not simulation.load.is_full(5, 5)
    assert not simulation.load.is_overloaded


def test_a_bound_on_waiting_holds_without_overload() -> None:
    load = LoadControl(CAPACITY, longest_wait=0.05)
    assert not load.is_full(5, 5)  # nothing is known yet
    load.note_batch(0.01, 1, was_alone=True)
    assert not load.is_full(4, 4) and load.is_full(6, 6)
    assert load.is_full(CAPACITY, 0) and not load.is_full(0, 9)


def test_a_bound_on_waiting_holds_before_anything_has_run() -> None:
    load = LoadControl(CAPACITY, longest_wait=0.05, seconds_alone=0.02)
    assert [load.is_full(admitted, admitted) for admitted in range(5)] == [False, False, False, True, True]
    load.note_batch(0.001, 1, was_alone=False)  # which counts from then on
    assert not load.is_full(31, 31)


def test_a_client_of_the_first_burst_hears_when_to_come_again() -> None:
    batcher: Batcher[int, int] = Batcher("burst", 0.0, 2)
    batcher.load.seconds_alone = 4.0
    with batcher.admit(), batcher.admit(), pytest.raises(RetryError) as refused, batcher.admit():
        raise AssertionError("two are let in")
    assert refused.value.retry_after == 8
    batcher.close()


def test_an_overloaded_batcher_does_not_wait_for_others() -> None:
    batcher: Batcher[int, int] = Batcher("t", 1e6, 100)
    with batcher.admit(), batcher.admit():  # the second one is on its way, and does not come
        batcher.load.is_overloaded = True
        ends = time.monotonic() + 60
        assert batcher.submit(Bucket("a", iter, 4), 7, ends).result(30) == 7
    batcher.close()


def test_an_overloaded_batcher_refuses_what_has_waited_too_long() -> None:
    gate, began = threading.Event(), threading.Event()

    def run(items: Sequence[int]) -> Iterator[int]:
        began.set()
        gate.wait(30)
        yield from items

    batcher: Batcher[int, int] = Batcher("t", 0.0, 100)
    bucket = Bucket("a", run, 4)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(batcher.admit())
        ends = time.monotonic() + 30
        gate.set()
        assert batcher.submit(bucket, 0, ends).result(30) == 0  # they take next to no time
        gate.clear()
        began.clear()
        first = batcher.submit(bucket, 1, ends)
        assert began.wait(30)
        page = batcher.submit(bucket, 2, ends)  # of a request that was begun
        late = batcher.submit(bucket, 3, ends, can_be_refused=True)
        batcher.load.seconds_alone, batcher.load.is_overloaded = 0.01, True
        time.sleep(0.3)
        gate.set()
        assert (first.result(30), page.result(30)) == (1, 2)
        error = late.exception(30)
        assert isinstance(error, RetryError) and error.retry_after >= 0
    batcher.close()
