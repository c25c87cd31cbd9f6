"""Batches of the requests of all clients: full ones, late ones, failing ones, and never another client's result."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from framework.core.errors import InputError
from framework.serving.batching import Batcher, Bucket
from framework.serving.budget import Budget
from framework.serving.errors import DeadlineError, RetryError


class Runner:
    """Doubles numbers; waits at the gate, and refuses 13."""

    def __init__(self) -> None:
        self.gate, self.batches = threading.Event(), []
        self.gate.set()

    def run(self, items: Sequence[int]) -> Iterator[int]:
        self.gate.wait(30)
        self.batches.append(list(items))
        for item in items:
            if item == 13:
                raise InputError("thirteen")
            if item == 14:
                raise ZeroDivisionError
            yield 2 * item


def later(seconds: float = 30) -> float:
    return time.monotonic() + seconds


def test_full_batches_and_buckets_apart() -> None:
    runner, batcher = Runner(), Batcher("t", 0.05, 100)
    with ExitStack() as stack:
        for _ in range(11):
            stack.enter_context(batcher.admit())
        runner.gate.clear()
        buckets = [Bucket(key, runner.run, 4) for key in ("a", "b")]
        first = batcher.submit(buckets[0], 99, later())
        time.sleep(0.2)  # it waits at the gate, alone
        futures = [batcher.submit(buckets[n % 2], n, later()) for n in range(10)]
        runner.gate.set()
        assert first.result(30) == 198
        assert [future.result(30) for future in futures] == [2 * n for n in range(10)]
    assert runner.batches == [[99], [0, 2, 4, 6], [1, 3, 5, 7], [8], [9]]
    batcher.close()


def test_one_that_fails_does_not_harm_the_others() -> None:
    runner, batcher = Runner(), Batcher("t", 5.0, 100)
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(batcher.admit())
        bucket = Bucket("a", runner.run, 4)
        one, bad, bug, last = (batcher.submit(bucket, n, later()) for n in (1, 13, 14, 2))
        assert (one.result(30), last.result(30)) == (2, 4)
        assert isinstance(bad.exception(30), InputError)
        assert isinstance(bug.exception(30), ZeroDivisionError)
    batcher.close()


def test_cancelled_items_take_no_room_in_a_batch() -> None:
    runner, batcher = Runner(), Batcher("t", 0.0, 100)
    runner.gate.clear()
    with ExitStack() as stack:
        for _ in range(7):
            stack.enter_context(batcher.admit())
        bucket = Bucket("a", runner.run, 3)
        first = batcher.submit(bucket, 0, later())
        while not first.running():
            time.sleep(0.01)
        gone = [batcher.submit(bucket, n, later()) for n in (1, 2, 3, 4)]
        assert all(future.cancel() for future in gone)
        live = [batcher.submit(bucket, n, later()) for n in (5, 6)]
        runner.gate.set()
        assert [future.result(30) for future in live] == [10, 12]
    assert runner.batches == [[0], [5, 6]]
    assert batcher.waiting == 0
    batcher.close()


def test_late_and_cancelled_items_are_not_run() -> None:
    runner, batcher = Runner(), Batcher("t", 0.0, 100)
    runner.gate.clear()
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(batcher.admit())
        bucket = Bucket("a", runner.run, 1)
        first = batcher.submit(bucket, 1, later())
        late, cancelled, last = (
            batcher.submit(bucket, n, later(s)) for n, s in ((2, 0.05), (3, 30), (4, 30))
        )
        assert cancelled.cancel()
        time.sleep(0.1)
        runner.gate.set()
        assert (first.result(30), last.result(30)) == (2, 8)
        assert isinstance(late.exception(30), DeadlineError)
    assert runner.batches == [[1], [4]]
    batcher.close()


def test_more_than_the_capacity_are_refused_at_once() -> None:
    batcher = Batcher("t", 0.0, 2)
    with batcher.admit(), batcher.admit():
        with pytest.raises(RetryError) as caught, batcher.admit():
            pass
        assert caught.value.status == 503 and caught.value.retry_after >= 1
    with batcher.admit():
        assert batcher.admitted == 1
    batcher.close()
    with pytest.raises(RetryError, match="stopping"), batcher.admit():
        pass


def test_what_is_admitted_is_answered_though_the_server_stops() -> None:
    runner, batcher = Runner(), Batcher("t", 0.0, 10)
    with batcher.admit():
        stopping = threading.Thread(target=batcher.close)
        stopping.start()
        time.sleep(0.05)
        assert batcher.submit(Bucket("a", runner.run, 4), 5, later()).result(30) == 10
    stopping.join(30)
    assert not stopping.is_alive()


def test_a_request_alone_waits_for_nobody() -> None:
    runner, batcher = Runner(), Batcher("t", 60.0, 10)
    with batcher.admit():
        assert (
            batcher.submit(Bucket("a", runner.run, 8), 1, later()).result(30) == 2
        )  # and not after a minute
    batcher.close()


def test_results_of_many_threads_are_their_own() -> None:
    runner, batcher = Runner(), Batcher("t", 0.002, 64)

    def ask(number: int) -> bool:
        number = number * 100 + 50
        with batcher.admit():
            return batcher.submit(Bucket(number % 3, runner.run, 8), number, later()).result(60) == 2 * number

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(ask, range(2000)))
    assert max(map(len, runner.batches)) > 1
    batcher.close()


async def take(budget: Budget, amount: int, order: list[int]) -> None:
    await budget.take(amount)
    order.append(amount)


def test_a_budget_is_handed_out_in_order() -> None:
    import asyncio

    async def main() -> None:
        budget, order = Budget(10), []
        assert budget.try_take(8) and not budget.try_take(3)
        tasks = [asyncio.create_task(take(budget, amount, order)) for amount in (5, 1, 99)]
        await asyncio.sleep(0)
        assert order == [] and not budget.try_take(1)  # nobody overtakes
        tasks[0].cancel()
        await asyncio.sleep(0.01)
        assert order == [1]
        budget.give(8)
        await asyncio.sleep(0)
        assert order == [1] and budget.left == 9
        budget.give(1)
        await asyncio.gather(*tasks[1:])
        assert order == [1, 99] and budget.left == 0  # who asks for more than there is gets all
        budget.give(99)
        assert budget.left == 10

    asyncio.run(main())


def test_a_request_is_refused_where_it_would_wait_too_long() -> None:
    runner, batcher = Runner(), Batcher("t", 0.0, 100, longest_wait=0.5)
    bucket = Bucket("a", runner.run, 1)
    with batcher.admit():  # nothing is known yet of how long one takes
        runner.gate.clear()
        future = batcher.submit(bucket, 1, later())
        time.sleep(0.3)
        runner.gate.set()
        assert future.result(30) == 2
    while not batcher.load.seconds_per_item:
        time.sleep(0.01)
    assert 0.3 <= batcher.load.seconds_per_item < 5
    with batcher.admit():
        if batcher.load.seconds_per_item <= 0.5:
            with batcher.admit():
                assert batcher.is_full
        with ExitStack() as stack, pytest.raises(RetryError) as caught:
            for _ in range(3):
                stack.enter_context(batcher.admit())
        assert caught.value.retry_after >= 1
    assert not batcher.is_full
    for number in range(20, 60):  # one at a time goes always, and those that are fast let others in again
        with batcher.admit():
            assert batcher.submit(bucket, number, later()).result(30) == 2 * number
    with batcher.admit(), batcher.admit(), batcher.admit():
        assert not batcher.is_full
    batcher.close()


def test_a_batch_does_not_wait_for_requests_that_have_their_result() -> None:
    runner, batcher = Runner(), Batcher("t", 30.0, 100)
    bucket = Bucket("a", runner.run, 8)
    with batcher.admit(), batcher.admit():  # the first one is still being written to its client
        futures = [batcher.submit(bucket, number, later()) for number in (1, 2)]
        assert [future.result(10) for future in futures] == [2, 4]
        with batcher.admit():
            assert batcher.submit(bucket, 3, later()).result(10) == 6
    batcher.close()
