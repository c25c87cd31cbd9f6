"""A process of a run that fails ends all of them, within seconds and with its words, whoever has started them.

jax keeps a process that ends, well or badly, until all others end too, for five minutes; where they wait for it, none
ends. So each process tells the coordinator of the run how it ended, and looks there every two seconds. Of a process
that is killed or cut off jax itself tells, after `heartbeat_timeout_seconds` of silence.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import NoReturn

import jax
from jax._src import distributed  # the only way to the coordinator of the run that jax.distributed has joined

from framework.core.errors import DeviceError

_FOLDER = "oar/ends/"
_FINISHED = "ended"  # of a process that comes to its end without an error; all else is what went wrong
_POLL = 2.0
_GRACE = 5.0
"""Seconds after another process has failed in which this one may end with words of its own."""
_LAST = 15.0
"""Seconds that the process of the coordinator, which fails, stays for the others to read so."""


class Watch:
    """Of one process over the others of its run."""

    def __init__(self) -> None:
        self._leaving = threading.Event()
        self._waiting: tuple[int, ...] = ()
        self._thread = threading.Thread(target=self._look, daemon=True, name="oar-watch")

    def start(self) -> None:
        """Look at the others from now on, until this process ends."""
        previous = sys.excepthook

        def fail(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            previous(kind, error, trace)
            words = "".join(traceback.format_exception_only(kind, error)).strip()
            self.end(130 if issubclass(kind, KeyboardInterrupt) else 1, words)

        sys.excepthook = fail
        atexit.register(self._leave)  # after jax's own handler was registered, so before it runs
        self._thread.start()

    @contextlib.contextmanager
    def waits_for(self, ranks: tuple[int, ...]) -> Iterator[None]:
        """While this process waits for these: one that has ended will never come."""
        self._waiting = ranks
        try:
            yield
        finally:
            self._waiting = ()

    def end(self, status: int, words: str) -> NoReturn:
        """Tell the others what went wrong and end, without waiting for what they do."""
        self._publish(words)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        if (
            jax.process_index() == 0
        ):  # where the coordinator is gone, jax aborts all others with words of its own
            last = time.monotonic() + _LAST
            time.sleep(_POLL)
            while time.monotonic() < last and not self._all_ended(self._ends()):
                time.sleep(0.2)
        os._exit(status)

    @staticmethod
    def _all_ended(ends: dict[int, str] | None) -> bool:
        return ends is None or len(ends) == jax.process_count()

    def _publish(self, words: str) -> None:
        client = distributed.global_state.client
        if client is not None:
            with contextlib.suppress(
                RuntimeError
            ):  # the coordinator is gone, or this process told its end before
                client.key_value_set(f"{_FOLDER}{jax.process_index()}", words[:2000])

    def _ends(self) -> dict[int, str] | None:
        """How processes have ended, by their numbers; None where the coordinator cannot be asked any more."""
        client = distributed.global_state.client
        if client is None:
            return None
        try:
            return {int(key.rpartition("/")[2]): value for key, value in client.key_value_dir_get(_FOLDER)}
        except RuntimeError:
            return None

    def _hopeless(self, ends: dict[int, str]) -> str | None:
        """Why this process cannot go on."""
        for rank, words in ends.items():
            if words != _FINISHED:
                return f"process {rank}: {words}"
        missing = [rank for rank in self._waiting if rank in ends]
        return f"process {missing[0]} has ended, and this one waits for it" if missing else None

    def _look(self) -> None:
        since, before = 0.0, None
        while not self._leaving.wait(_POLL):
            ends = self._ends()
            if ends is None:
                return
            reason = self._hopeless(ends)
            if reason is None or reason != before:
                since, before = time.monotonic(), reason
            elif time.monotonic() - since >= _GRACE:
                self._give_up(reason)

    def _leave(self) -> None:
        """Wait until all processes come to their end, with no limit of time while they live, or one of them fails."""
        self._leaving.set()
        self._thread.join()
        self._publish(_FINISHED)
        while (ends := self._ends()) is not None:
            reason = self._hopeless(ends)
            if reason is not None:
                self._give_up(reason)
            if self._all_ended(ends):
                return
            time.sleep(0.2)

    def _give_up(self, reason: str) -> NoReturn:
        error = DeviceError(
            "another process of the run has failed, so this one ends",
            where=f"process {jax.process_index()} of {jax.process_count()}",
            received=reason,
            fix="look at its log",
        )
        print(f"error: {error}", file=sys.stderr, flush=True)
        self.end(1, f"ended after {reason}")


WATCH = Watch()
"""Of this process; it looks once the process has joined others."""
