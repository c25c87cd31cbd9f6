from __future__ import annotations

import threading
import time

import pytest

from framework.io import IterableDataset
from framework.io import get_worker_info as exported
from framework.io.workers import WorkerGroup, enter_worker, get_worker_info


def test_tasks_run_in_the_group_and_closing_drops_what_waits() -> None:
    before = threading.active_count()
    entered: list[int] = []
    group = WorkerGroup(2, entered.append)
    started, go, ran = threading.Semaphore(0), threading.Event(), []

    def wait(number: int) -> None:
        ran.append(number)
        started.release()
        go.wait(5)

    for _ in range(10):
        group.add(wait)
    started.acquire(), started.acquire()
    threading.Timer(0.05, go.set).start()
    group.close()
    assert sorted(ran) == [0, 1] == sorted(entered)
    time.sleep(0.05)
    assert threading.active_count() <= before


def test_there_is_no_worker_here() -> None:
    assert get_worker_info() is None and exported is get_worker_info


@pytest.mark.parametrize("is_stream", [False, True])
def test_worker_info(is_stream: bool) -> None:
    dataset = type("Stream", (IterableDataset,), {"__iter__": lambda self: iter(())})() if is_stream else [1]
    calls, found = [], []

    def body() -> None:
        enter_worker(1, 3, dataset, calls.append)
        found.append(get_worker_info())

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    (info,) = found
    assert (info.id, info.num_workers) == ((0, 1) if is_stream else (1, 3)) and info.dataset is dataset
    assert calls == [1]
    assert get_worker_info() is None
