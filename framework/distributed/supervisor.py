"""Starts the processes of a run on this machine, watches them, and starts all of them again where one fails.

jax's collectives do not survive the loss of a process: the others abort or hang. So all end, and go on from the last
checkpoint (arXiv 2304.01433 and TorchElastic do the same).
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from framework.core.disk import scratch_folder
from framework.core.lifeline import GRACE, SUPERVISOR, WORKER_LOG
from framework.core.process import find_free_port
from framework.distributed.processes import HEARTBEAT, RESTARTS

log = logging.getLogger("oar")

_POLL = 0.1
_TAIL = 20  # lines of the log of the process that failed
_NO_RESTART = (2, 130)  # an error of ours, which comes again; Ctrl+C


@dataclass
class _Worker:
    rank: int
    process: subprocess.Popen[bytes]
    log: Path
    stream: IO[bytes]
    heartbeat: Path
    copier: threading.Thread | None
    started: float = field(default_factory=time.time)

    def silent_for(self) -> float:
        """Seconds since the last sign of life."""
        try:
            return time.time() - max(self.started, self.heartbeat.stat().st_mtime)
        except OSError:
            return time.time() - self.started


@dataclass(frozen=True)
class Supervisor:
    """Runs `command` in several processes.

    Attributes:
        processes: On this machine.
        nodes, node: How many machines, and which this is; each has its own supervisor.
        master: Where processes meet; None: a free port of this machine, a new one at every start.
        log_dir: Of workerlog.0, workerlog.1, …, numbered over all machines; process 0 writes to the terminal too.
        max_restart: How often all are started again.
        hang_timeout: Seconds without a sign of life after which a process that has given one counts as hung.
    """

    command: Sequence[str]
    processes: int
    nodes: int
    node: int
    master: str | None
    log_dir: Path
    max_restart: int
    hang_timeout: float

    def run(self) -> int:
        """The exit status: 0 where all processes end well, else that of the first that failed for good."""
        self.log_dir.mkdir(parents=True, exist_ok=True)
        signals: list[int] = []
        before, status = {}, 0
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, lambda number, frame: signals.append(number))
        try:
            for attempt in range(self.max_restart + 1):
                status, failed = self._run_once(attempt, signals)
                if failed is None or signals or status in _NO_RESTART:
                    return status
                if attempt < self.max_restart:
                    log.warning(f"starting all processes again ({attempt + 1} of {self.max_restart})")
            return status
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _run_once(self, attempt: int, signals: list[int]) -> tuple[int, int | None]:
        """Exit status, and the number of the first process that failed."""
        with scratch_folder("oar-heartbeats-") as beats:
            return self._run_workers(attempt, signals, beats)

    def _run_workers(self, attempt: int, signals: list[int], beats: Path) -> tuple[int, int | None]:
        workers = self._start(attempt, beats)
        try:
            return self._watch(workers, signals)
        finally:
            _end(workers)
            for worker in workers:
                if worker.copier is not None:
                    worker.copier.join()
                if worker.process.stdout is not None:
                    worker.process.stdout.close()
                worker.stream.close()

    def _start(self, attempt: int, beats: Path) -> list[_Worker]:
        master = self.master or f"127.0.0.1:{find_free_port()}"
        total = self.nodes * self.processes
        workers = []
        for local in range(self.processes):
            rank = self.node * self.processes + local
            path, beat = self.log_dir / f"workerlog.{rank}", beats / str(rank)
            stream = path.open("ab" if attempt else "wb")
            process = subprocess.Popen(
                list(self.command),
                stdout=subprocess.PIPE if rank == 0 else stream,
                stderr=subprocess.STDOUT,
                # Ctrl+C comes to the supervisor alone, which asks them to end; and each is a group with what it starts
                start_new_session=True,
                env={
                    **os.environ,
                    **_variables(master, total, rank, local, self.processes),
                    HEARTBEAT: str(beat),
                    RESTARTS: str(attempt),
                    SUPERVISOR: str(os.getpid()),
                    WORKER_LOG: str(path.absolute()),
                },
            )
            copier = None
            if process.stdout is not None:
                copier = threading.Thread(target=_copy, args=(process.stdout, stream), daemon=True)
                copier.start()
            workers.append(_Worker(rank, process, path, stream, beat, copier))
        return workers

    def _watch(self, workers: list[_Worker], signals: list[int]) -> tuple[int, int | None]:
        stopping, deadline = False, 0.0
        while True:
            if signals and not stopping:
                stopping = True
                for worker in workers:
                    _signal(worker, signal.SIGTERM)
                deadline = time.monotonic() + GRACE
            codes = [worker.process.poll() for worker in workers]
            bad = next((w for w, code in zip(workers, codes) if code not in (None, 0)), None)
            if bad is not None and not stopping:
                status = bad.process.returncode
                self._explain(bad, f"ended with status {status}")
                return (status if status > 0 else 1), bad.rank
            if all(code is not None for code in codes):
                return max(abs(code or 0) for code in codes), None
            if stopping and time.monotonic() > deadline:
                return 130, None
            hung = max(workers, key=_Worker.silent_for)  # the others wait for it
            if hung.heartbeat.exists() and hung.silent_for() > self.hang_timeout and not stopping:
                self._explain(hung, f"has not done a step for {self.hang_timeout:g} s")
                return 1, hung.rank
            time.sleep(_POLL)

    def _explain(self, worker: _Worker, what: str) -> None:
        worker.stream.flush()
        tail = [] if worker.rank == 0 else _tail(worker.log)  # that of the first was shown as it came
        lines = "".join(f"\n  {line}" for line in tail)
        log.error(f"process {worker.rank} {what}; its log: {worker.log}{lines}")


def _variables(master: str, total: int, rank: int, local: int, on_machine: int) -> Mapping[str, str]:
    """What a process is told, by Paddle's names."""
    return {
        "PADDLE_MASTER": master,
        "PADDLE_TRAINERS_NUM": str(total),
        "PADDLE_GLOBAL_SIZE": str(total),
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_GLOBAL_RANK": str(rank),
        "PADDLE_LOCAL_SIZE": str(on_machine),
        "PADDLE_LOCAL_RANK": str(local),
        "PADDLE_RANK_IN_NODE": str(local),
    }


def _copy(source: IO[bytes], file: IO[bytes]) -> None:
    """What a process prints, to its log and to the terminal."""
    for line in source:
        file.write(line)
        file.flush()
        sys.stdout.write(line.decode("utf-8", "replace"))
        sys.stdout.flush()


def _signal(worker: _Worker, number: int) -> None:
    if worker.process.poll() is None:
        worker.process.send_signal(number)


def _end(workers: Sequence[_Worker]) -> None:
    """End what still runs: a process whose peers are gone waits for them for ever, and what a process has started, such
    as readers of data, would keep its memory, its devices, and the end of the log that is read here."""
    for worker in workers:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: of a group that is ending
                os.killpg(worker.process.pid, signal.SIGKILL)
        elif worker.process.poll() is None:
            worker.process.kill()
    for worker in workers:
        worker.process.wait()


def _tail(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()[-_TAIL:]
    except OSError:
        return []
