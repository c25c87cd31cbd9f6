"""The processes of a run: who they are, how they find each other, and that they are alive.

`oar launch` gives each process Paddle's variables (PADDLE_MASTER, PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM), by which
`init_parallel_env` joins them through jax.distributed. Under Slurm, Open MPI and on pods of TPUs jax finds them itself.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from pathlib import Path

import jax

from framework.core.errors import ConfigError, DeviceError
from framework.distributed.failures import WATCH

HEARTBEAT = "OAR_HEARTBEAT"
"""The file whose time of change tells the supervisor that this process is alive."""
RESTARTS = "OAR_RESTARTS"
"""How often the supervisor has started this run again, after a process of it failed."""
JOIN_TIMEOUT = "OAR_JOIN_TIMEOUT"
"""Seconds that processes wait for one another at the start; by default 60."""
_SILENCE = (
    40  # seconds without a sign of life after which a process counts as dead: the others end within a minute
)
_JOINED = "OAR_JOINED"  # the number of the process that has joined: those that it starts must not
_DETECTED = ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")  # numbers of processes that jax finds by itself


def init_parallel_env() -> int:
    """Join the other processes of this run, before the first use of a device; returns how many there are.

    A process that nobody started beside others is alone. A second call changes nothing.

    Raises:
        ConfigError: the variables contradict one another. DeviceError: the others did not come in time.
    """
    if jax.distributed.is_initialized():
        return jax.process_count()
    if os.environ.get(_JOINED):  # a helper that a process of the run has started, such as a reader of data
        return 1
    count = _number("PADDLE_TRAINERS_NUM", 1)
    if count > 1:
        rank, master = _number("PADDLE_TRAINER_ID", 0), _master()
        if not rank < count:
            raise ConfigError(
                "the number of a process is smaller than their number",
                where="PADDLE_TRAINER_ID",
                received=f"{rank} of {count}",
                allowed=f"0 to {count - 1}",
            )
        _join(master, count, rank)
    elif any(_number(name, 1) > 1 for name in _DETECTED):
        _join(None, None, None)
    else:
        return 1
    os.environ[_JOINED] = str(os.getpid())
    WATCH.start()
    return jax.process_count()


def _join(master: str | None, count: int | None, rank: int | None) -> None:
    seconds = _number(JOIN_TIMEOUT, 60)

    def describe(received: str) -> DeviceError:
        return DeviceError(
            "the processes of the run did not find each other",
            where=f"process {rank} of {count} at {master}",
            received=received,
            allowed=f"all of them within {seconds} s, and a free port",
            fix=f"look at the logs of the others; --master names a free port; {JOIN_TIMEOUT} gives them more time",
        )

    def give_up() -> None:  # jax would abort the process with a trace of its own
        print(f"error: {describe('too few came')}", file=sys.stderr, flush=True)
        os._exit(2)

    if rank == 0 and master is not None and (reason := _why_closed(master)) is not None:
        raise describe(reason)
    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        jax.distributed.initialize(
            master,
            count,
            rank,
            initialization_timeout=seconds + 30,
            heartbeat_timeout_seconds=_SILENCE,
        )
    except (RuntimeError, ValueError) as error:
        raise describe((str(error).splitlines() or [""])[0][:200]) from error
    finally:
        timer.cancel()


def _why_closed(master: str) -> str | None:
    """Why the coordinator cannot listen at this port of this machine, with which jax crashes; None where it can."""
    port = master.rpartition(":")[2]
    if not port.isdecimal() or int(port) >= 2**16:
        return f"{port!r} is no port"
    dual = socket.has_dualstack_ipv6()
    try:
        family = socket.AF_INET6 if dual else socket.AF_INET
        socket.create_server(("", int(port)), family=family, dualstack_ipv6=dual).close()
    except OSError as error:
        return f"port {port} cannot be opened: {os.strerror(error.errno) if error.errno else error}"
    return None


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if text and not text.isdecimal():
        raise ConfigError("a variable must be a number", where=name, received=text, allowed="such as 2")
    return int(text) if text else default


def _master() -> str:
    master = os.environ.get("PADDLE_MASTER") or os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")[0]
    if ":" not in master:
        raise ConfigError(
            "the processes do not know where to meet",
            where="PADDLE_MASTER",
            received=master or "nothing",
            allowed="an address and a port, such as 10.0.0.1:12361",
            fix="start them with oar launch, or set it for each of them",
        )
    return master


def was_restarted() -> bool:
    """Whether a supervisor has started this run again: it goes on from its last checkpoint, where it has one."""
    return _number(RESTARTS, 0) > 0


def is_main() -> bool:
    """Whether this process writes what there is one of: checkpoints, logs, reports."""
    return jax.process_index() == 0


class Heartbeat:
    """Tells the supervisor that the process is alive, at most once a second, where there is one."""

    def __init__(self) -> None:
        path = os.environ.get(HEARTBEAT)
        self._path = Path(path) if path else None
        self._last = 0.0

    def beat(self) -> None:
        """Call it at every step."""
        if self._path is not None and (now := time.monotonic()) - self._last >= 1.0:
            self._last = now
            self._path.touch()
