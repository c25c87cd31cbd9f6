"""A worker of `oar launch` or `oar serve` ends when what has started it is gone: nobody else would end it, and it would
keep its devices and its port.

It imports no jax, so that the command can start it before anything else.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time

SUPERVISOR = "OAR_SUPERVISOR"
"""The number of the process that has started this one and watches it."""
WORKER_LOG = "OAR_WORKER_LOG"
"""The file that the supervisor writes this worker's output to."""
GRACE = 60.0
"""Seconds between asking processes to end and ending them: a step and a checkpoint long."""
_POLL = 1.0


def end_without_supervisor(grace: float = GRACE) -> None:
    """Look from now on whether the supervisor that has started this process, if any has, still runs. Without it this
    process and what it has started are asked to end by SIGTERM, with which a training saves, and are ended after
    `grace` seconds.

    A system without POSIX's process groups does not tell, and the workers stay there.
    """
    # What this process starts is not watched by the supervisor: it must not take itself for a worker.
    parent, log = os.environ.pop(SUPERVISOR, ""), os.environ.pop(WORKER_LOG, "")
    if parent.isdecimal() and hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        words = (int(parent), log, grace)
        threading.Thread(target=_look, args=words, daemon=True, name="oar-lifeline").start()


def end_with_parent() -> None:
    """Ask this process, which `multiprocessing` has started, to end by SIGTERM when its parent is gone."""
    if multiprocessing.parent_process() is not None:
        threading.Thread(target=_wait_for_parent, daemon=True, name="oar-lifeline").start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _look(parent: int, log: str, grace: float) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL)
    if (
        log
    ):  # the other end of this process's output is gone with the supervisor, and writing to it would fail
        with contextlib.suppress(OSError):
            file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            for stream in (1, 2):
                os.dup2(file, stream)
            os.close(file)
    with contextlib.suppress(OSError):
        os.write(2, f"error: the supervisor (process {parent}) is gone, so this process ends\n".encode())
    os.killpg(0, signal.SIGTERM)
    time.sleep(grace)
    os.killpg(0, signal.SIGKILL)
