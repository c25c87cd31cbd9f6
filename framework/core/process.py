"""The process: how many CPUs it may use, a port that is free, and whether it computes (a child that was forked after
that has none of its threads and would wait for ever)."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from framework.core.errors import DeviceError

_user: int | None = None


def check_process() -> None:
    """Note that this process computes with jax. What runs programs calls it first.

    Raises:
        DeviceError: this process was forked from one that computed.
    """
    global _user
    if _user is None:
        _user = os.getpid()
    if _user != os.getpid():
        raise DeviceError(
            "this process was forked from one in which jax was at work, and cannot compute",
            where=f"process {os.getpid()}",
            received=f"a fork of process {_user}",
            allowed="a process of its own, or threads, which share one predictor",
            fix='multiprocessing.get_context("spawn"), or fork before the first model is opened',
        )


@contextlib.contextmanager
def pause_collection() -> Iterator[None]:
    """Look for no garbage meanwhile: what imports and configs make stays, and each search walks through all of it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def cpu_count() -> int:
    """CPUs that this process may use: those that it is bound to, or fewer where its container has a quota
    (`docker run --cpus`, a limit of Kubernetes). Parts count whole, as in Go and Java."""
    return min(_bound_cpus(), cpu_quota() or sys.maxsize)


def cpu_limit() -> int | None:
    """`cpu_count` where a quota makes it fewer than the CPUs that the process is bound to; else None.

    Libraries count those that they are bound to, and start a thread for each: a group of threads that is over its quota
    stands still for the rest of each tenth of a second, all of them.
    """
    count = cpu_count()
    return count if count < _bound_cpus() else None


def cpu_quota(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """CPUs by the smallest quota of the control groups that this process is in, rounded up; None without one.

    Args:
        proc, groups: Where Linux shows processes and control groups, of version 2 or 1.
    """
    quotas = []
    for line in _read_text(proc / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        # In a container the path may be the host's: then the folders of the path are not there, and the mount is it.
        names = [name for name in path.split("/") if name not in ("", "..")]
        for mount in (controllers, "cpu") if controllers else ("", "unified"):
            above = [groups.joinpath(mount, *names[:depth]) for depth in range(len(names) + 1)]
            quotas += [quota for folder in above if (quota := _group_quota(folder)) is not None]
    return math.ceil(min(quotas)) if quotas else None


def _group_quota(folder: Path) -> float | None:
    """CPUs of one control group; None where it has no quota."""
    files = ("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    for names in files:
        numbers = " ".join(_read_text(folder / name) for name in names).split()
        if len(numbers) == 2 and all(number.isdecimal() for number in numbers) and int(numbers[1]):
            return max(int(numbers[0]), 1) / int(numbers[1])
    return None  # "max 100000", "-1 100000"


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, UnicodeError):
        return ""


def _bound_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux only
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def find_free_port() -> int:
    """A port of this machine on which nobody listens at the moment.

    Raises:
        DeviceError: none is free.
    """
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])
    except OSError as error:
        raise DeviceError(
            "no port is free on this machine",
            received=error.strerror or str(error),
            fix="end programs that listen, or name a port yourself",
        ) from error
