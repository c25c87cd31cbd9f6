"""Saying how long something takes while it goes on."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator


@contextlib.contextmanager
def report_elapsed(seconds: Iterable[float], say: Callable[[float], None]) -> Iterator[None]:
    """While the block runs, call `say` with the seconds since its start, at each of `seconds`, which rise."""
    began, done = time.perf_counter(), threading.Event()

    def report() -> None:
        for until in seconds:
            if done.wait(max(0.0, began + until - time.perf_counter())):
                return
            say(time.perf_counter() - began)

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
