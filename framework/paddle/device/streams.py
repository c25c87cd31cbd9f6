"""Streams and events: accepted, because programs order work with them that jax orders by itself."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import jax

from framework.core.process_state import state
from framework.paddle.device.places import Place, default_device, device_of, place_of


def synchronize(device: str | Place | int | None = None) -> None:
    """Wait until the device has done its work."""
    if isinstance(device, int):
        device = f"{place_of(default_device()).kind}:{device}"
    target = default_device() if device is None else device_of(device)
    jax.device_put(0, target).block_until_ready()
    for array in jax.live_arrays():
        if not array.is_deleted():
            array.block_until_ready()


class Event:
    """A moment in the work of the device."""

    def __init__(
        self,
        device: object = None,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self.device, self.enable_timing = device, enable_timing
        self._seconds: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        if self.enable_timing:
            synchronize()
        self._seconds = time.perf_counter()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to a later one; both are made with `enable_timing` and recorded.

        Raises:
            RuntimeError: one of them has no time.
        """
        if self._seconds is None or end_event._seconds is None:
            raise RuntimeError("elapsed_time: record() both events first")
        return (end_event._seconds - self._seconds) * 1e3


class Stream:
    """An order of work. jax keeps one for each device, so all streams are the same."""

    def __init__(self, device: object = None, priority: int = 2, stream_base: object = None) -> None:
        self.device, self.priority = device, priority

    def wait_event(self, event: Event) -> None:
        event.synchronize()

    def wait_stream(self, stream: Stream) -> None:
        stream.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        chosen = event or Event(self.device)
        chosen.record(self)
        return chosen

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        synchronize()


def current_stream(device: object = None) -> Stream:
    """The stream that work goes to."""
    if state.stream is None:
        state.stream = Stream()
    return state.stream


def set_stream(stream: Stream) -> Stream:
    """Returns the stream before."""
    before, state.stream = current_stream(), stream
    return before


@contextlib.contextmanager
def stream_guard(stream: Stream | None = None) -> Iterator[None]:
    """Use a stream within the block."""
    before = set_stream(stream) if stream is not None else None
    try:
        yield
    finally:
        if before is not None:
            set_stream(before)
