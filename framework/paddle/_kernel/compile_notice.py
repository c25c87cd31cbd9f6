"""Says that a program written for Paddle compiles where that takes seconds, since Paddle itself never waits for it."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import AbstractContextManager

import jax.monitoring

from framework.core.elapsed import report_elapsed

log = logging.getLogger("oar")
# Seconds from the first program until the lines, as far apart as the wait is long.
_LINES = (2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
_PAUSE = 2.0  # seconds without a new program after which compiling has ended


class EagerNotice:
    """Counts the programs of single operations: a line after two seconds of compiling, then ever fewer."""

    def __init__(self) -> None:
        self._lock, self._read = threading.Lock(), threading.local()
        self._began = self._last = -_PAUSE
        self._programs = self._lines = 0

    def count(self, seconds: float) -> None:
        """A program was compiled in so many seconds."""
        with self._lock:
            now = time.perf_counter()
            if now - seconds - self._last > _PAUSE:
                self._began, self._programs, self._lines = now - seconds, 0, 0
            self._last = now
            self._programs += 1
            if self._lines == len(_LINES) or now - self._began < _LINES[self._lines]:
                return
            while self._lines < len(_LINES) and now - self._began >= _LINES[self._lines]:
                self._lines += 1
            programs, took = self._programs, now - self._began
        log.warning(
            f"first step: {programs} operations compiled in {took:.0f} s; they are kept on disk for the next start"
        )

    def listen(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        """Hear jax tell how long something took. What takes longer than an operation is announced by itself, and a
        program that was read from disk was not compiled."""
        if event == "/jax/compilation_cache/cache_retrieval_time_sec":
            self._read.now = True
        elif event == "/jax/core/compile/backend_compile_duration":
            is_read, self._read.now = getattr(self._read, "now", False), False
            if not is_read and duration_secs < _LINES[0]:
                self.count(duration_secs)


_notice = EagerNotice()
_lock = threading.Lock()
_listening = False


def announce_compiling() -> None:
    """From now on, say that operations compile where that takes more than two seconds."""
    global _listening
    with _lock:
        if not _listening:
            jax.monitoring.register_event_duration_secs_listener(_notice.listen)
            _listening = True


def announced(what: str) -> AbstractContextManager[None]:
    """Around the first call of one large program: lines while it compiles, from the second second on."""
    return report_elapsed(
        _LINES,
        lambda took: log.warning(
            f"{what} compiles: {took:.0f} s until now; programs are kept on disk for the next start"
        ),
    )
