"""Timers by name, which a trainer starts and stops around its steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import cast

from framework.core.process_state import state
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.device import synchronize


class _Timer:
    """Seconds between `start` and `stop`, added up; both wait for the device."""

    def __init__(self, name: str) -> None:
        self.name, self.elapsed_, self.started_, self.start_time = name, 0.0, False, time.time()

    def start(self) -> None:
        """Begin. Raises: AssertionError: it has begun."""
        assert not self.started_, "timer has already started"
        synchronize()
        self.start_time, self.started_ = time.time(), True

    def stop(self) -> None:
        """End. Raises: AssertionError: it has not begun."""
        assert self.started_, "timer is not started."
        synchronize()
        self.elapsed_ += time.time() - self.start_time
        self.started_ = False

    def reset(self) -> None:
        """Back to 0, stopped."""
        self.elapsed_, self.started_ = 0.0, False

    def elapsed(self, reset: bool = True) -> float:
        """Seconds so far; a timer that runs goes on."""
        started = self.started_
        if started:
            self.stop()
        seconds = self.elapsed_
        if reset:
            self.reset()
        if started:
            self.start()
        return seconds


class Timers:
    """Timers by name: `timers("forward").start()`."""

    def __init__(self) -> None:
        self.timers: dict[str, _Timer] = {}

    def __call__(self, name: str) -> _Timer:
        return self.timers.setdefault(name, _Timer(name))

    def log(self, names: Sequence[str], normalizer: float = 1.0, reset: bool = True) -> None:
        """Print the milliseconds of these timers, divided by `normalizer`."""
        assert normalizer > 0.0
        times = [f"{name}: {self.timers[name].elapsed(reset) * 1000.0 / normalizer:.2f}" for name in names]
        print(" | ".join(["time (ms)", *times]), flush=True)


def is_timer_initialized() -> bool:
    """Whether `set_timers` was called."""
    return state.timers is not None


def set_timers() -> None:
    """Make the timers of this process. Raises: AssertionError: they are made."""
    assert state.timers is None, "timers has been already initialized."
    state.timers = Timers()


def get_timers() -> Timers:
    """Those of this process. Raises: AssertionError: `set_timers` was not called."""
    assert state.timers is not None, "timers is not initialized."
    return cast(Timers, state.timers)


_complete(__name__)
