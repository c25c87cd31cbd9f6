"""paddle.profiler over jax.profiler: traces for TensorBoard and Perfetto, and the time of each step."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from framework.core.errors import OarError
from framework.paddle._kernel.modules import resolver as _resolver

log = logging.getLogger("oar")


class ProfilerState(enum.Enum):
    """What the profiler does in a step."""

    CLOSED, READY, RECORD, RECORD_AND_RETURN = range(4)


class ProfilerTarget(enum.Enum):
    """Devices; jax traces all that are there."""

    CPU, GPU, XPU, CUSTOM_DEVICE = range(4)


class SortedKeys(enum.Enum):
    """Orders of tables; the tables are in TensorBoard."""

    CPUTotal, CPUAvg, CPUMax, CPUMin, GPUTotal, GPUAvg, GPUMax, GPUMin = range(8)


class SummaryView(enum.Enum):
    """Tables; see SortedKeys."""

    DeviceView, OverView, ModelView, DistributedView, KernelView, OperatorView = range(6)
    MemoryView, MemoryManipulationView, UDFView = range(6, 9)


Scheduler = Callable[[int], ProfilerState]


def make_scheduler(
    *, closed: int, ready: int, record: int, repeat: int = 0, skip_first: int = 0
) -> Scheduler:
    """What to do at each step: after `skip_first` steps, periods of closed, ready and record; `repeat` of them (0: for
    ever).

    Raises:
        AssertionError: a number is negative, or nothing is recorded.
    """
    assert min(closed, ready, repeat, skip_first) >= 0 and record > 0, "numbers of steps; record at least one"
    period = closed + ready + record

    def state(step: int) -> ProfilerState:
        place = step - skip_first
        if place < 0 or (repeat and place >= repeat * period):
            return ProfilerState.CLOSED
        place %= period
        if place < closed:
            return ProfilerState.CLOSED
        if place < closed + ready:
            return ProfilerState.READY
        return ProfilerState.RECORD_AND_RETURN if place == period - 1 else ProfilerState.RECORD

    return state


def _always(step: int) -> ProfilerState:
    return ProfilerState.RECORD


def export_chrome_tracing(dir_name: str, worker_name: str | None = None) -> Callable[[Profiler], None]:
    """For `on_trace_ready`: write traces below this folder."""

    def ready(profiler: Profiler) -> None:
        profiler.folder = Path(dir_name) / worker_name if worker_name else Path(dir_name)

    ready.folder = Path(dir_name)  # type: ignore[attr-defined]
    return ready


export_protobuf = export_chrome_tracing


def load_profiler_result(filename: str) -> None:
    """Raises: OarError: traces are read by other programs."""
    raise OarError(
        "profiles are not read back here",
        where=filename,
        fix="open the folder in TensorBoard, or its trace in Perfetto",
    )


class RecordEvent:
    """A named stretch of time in the trace."""

    def __init__(self, name: str, event_type: object = None) -> None:
        self.name = name
        self._annotation: jax.profiler.TraceAnnotation | None = None

    def begin(self) -> None:
        self._annotation = jax.profiler.TraceAnnotation(self.name)
        self._annotation.__enter__()

    def end(self) -> None:
        if self._annotation is not None:
            self._annotation.__exit__(None, None, None)
            self._annotation = None

    def __enter__(self) -> RecordEvent:
        self.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()


class _Times:
    """Seconds of steps, and samples in them."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.samples: list[int | None] = []

    def line(self, unit: str | None) -> str:
        """The averages since the last line."""
        total = sum(self.seconds)
        counted = [n for n in self.samples if n is not None]
        rate = (sum(counted) if counted else len(self.seconds)) / total if total else 0.0
        text = f"batch_cost: {total / max(len(self.seconds), 1):.5f} s ips: {rate:.3f} {unit or 'steps'}/s"
        self.seconds, self.samples = [], []
        return text


class Profiler:
    """Times steps, and traces those that the schedule records.

    Args:
        scheduler: (from, to) steps, or what `make_scheduler` returns; without it every step.
        on_trace_ready: `export_chrome_tracing(folder)`; by default the folder is `profiler_log`.
        timer_only: only the times.
    """

    def __init__(
        self,
        *,
        targets: Iterable[ProfilerTarget] | None = None,
        scheduler: Scheduler | tuple[int, int] | None = None,
        on_trace_ready: Callable[..., object] | None = None,
        record_shapes: bool | None = False,
        profile_memory: bool | None = False,
        timer_only: bool | None = False,
        emit_nvtx: bool | None = False,
        custom_device_types: list[str] | None = None,
        with_flops: bool | None = False,
    ) -> None:
        if isinstance(scheduler, tuple | list):
            start, end = scheduler
            scheduler = make_scheduler(
                closed=max(start - 1, 0), ready=int(start > 0), record=end - start, repeat=1
            )
        self._schedule: Scheduler = scheduler or _always
        self._ready, self._timer_only = on_trace_ready, bool(timer_only)
        self.folder = Path(getattr(on_trace_ready, "folder", "profiler_log"))
        self.step_num = 0
        self._tracing = False
        self._now, self._all = _Times(), _Times()
        self._last = 0.0

    def start(self) -> None:
        """Begin at step 0."""
        self._last = time.perf_counter()
        self._turn(self._schedule(0))

    def stop(self) -> None:
        """End: a trace that is open is written; with `timer_only` the times are printed."""
        if self._tracing:
            self._close()
        if self._timer_only and self._all.seconds:
            print(self._table())

    def step(self, num_samples: int | None = None) -> None:
        """A step has ended; `num_samples` were in it."""
        now = time.perf_counter()
        for times in (self._now, self._all):
            times.seconds.append(now - self._last)
            times.samples.append(num_samples)
        self._last = now
        before = self._schedule(self.step_num)
        self.step_num += 1
        if before is ProfilerState.RECORD_AND_RETURN and self._tracing:
            self._close()
        self._turn(self._schedule(self.step_num))

    def step_info(self, unit: str | None = None) -> str:
        """Average time of a step and steps (or samples) a second since the last call."""
        return self._now.line(unit)

    def _turn(self, state: ProfilerState) -> None:
        recording = state in (ProfilerState.RECORD, ProfilerState.RECORD_AND_RETURN)
        if recording and not self._tracing and not self._timer_only:
            jax.profiler.start_trace(self.folder)
            self._tracing = True
        elif not recording and self._tracing:
            self._close()

    def _close(self) -> None:
        jax.profiler.stop_trace()
        self._tracing = False
        log.info("profile written to %s", self.folder)
        if self._ready is not None:
            self._ready(self)

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def export(self, path: str = "", format: str = "json") -> None:
        """Say where the trace lies: it is written while it is recorded."""
        log.info("the trace lies in %s (TensorBoard, Perfetto), not in %s", self.folder, path)

    def summary(
        self,
        sorted_by: SortedKeys = SortedKeys.CPUTotal,
        op_detail: bool = True,
        thread_sep: bool = False,
        time_unit: str = "ms",
        views: object = None,
    ) -> None:
        """Print the times of steps; operations are in the trace."""
        print(self._table())

    def _table(self) -> str:
        seconds = self._all.seconds or [0.0]
        counts = [1 if n is None else n for n in self._all.samples] or [1]
        rates = [n / max(s, 1e-9) for s, n in zip(seconds, counts, strict=True)]
        unit = "samples/s" if any(n is not None for n in self._all.samples) else "steps/s"
        lines = [
            "Perf Summary".center(100, "="),
            f"Time Unit: s, IPS Unit: {unit}",
            "|" + "|".join(title.center(17) for title in ("", "avg", "max", "min")) + "|",
        ]
        for title, values in (("batch_cost", seconds), ("ips", rates)):
            row = (title, *(f"{v:.5f}" for v in (sum(values) / len(values), max(values), min(values))))
            lines.append("|" + "|".join(cell.center(17) for cell in row) + "|")
        return "\n".join(lines)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
