"""The process: how many CPUs it may use, a port that is free, and whether it computes (a child that was forked after
that has none of its threads and would wait for ever)."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
from collections.abc import Iterator

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
    """CPUs that this process may use (a container's share, not the host's)."""
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
