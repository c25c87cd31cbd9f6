"""paddle.profiler.utils: the range of steps in which something is measured."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from framework.paddle._kernel.modules import complete as _complete


@contextlib.contextmanager
def job_schedule_profiler_range(
    iter_id: int, start: int, end: int, exit_after_prof: bool = True
) -> Iterator[bool]:
    """Whether step `iter_id` lies in [start, end), which is never so where `start` is no less than `end`.

    Raises:
        SystemExit: behind the last step of the range, with `exit_after_prof`.
    """
    if start >= end:
        yield False
        return
    try:
        yield start <= iter_id < end
    finally:
        if iter_id == end - 1 and exit_after_prof:
            sys.exit()


@contextlib.contextmanager
def _nvprof_range(iter_id: int, start: int, end: int, exit_after_prof: bool = True) -> Iterator[None]:
    """The end of a program behind the last step of a range; `paddle.profiler.Profiler` measures.

    Raises:
        SystemExit: as `job_schedule_profiler_range`.
    """
    with job_schedule_profiler_range(iter_id, start, end, exit_after_prof):
        yield


_complete(__name__)
