"""The supervisor of processes, with processes that do nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from framework.distributed.supervisor import Supervisor


def is_running(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("status", [0, 3])
def test_what_a_process_has_started_ends_with_it(tmp_path: Path, status: int) -> None:
    """It has the output of process 0, whose end the supervisor waits for."""
    script = (
        "import os, pathlib, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120)'])\n"
        f"pathlib.Path({os.fspath(tmp_path)!r}, os.environ['PADDLE_TRAINER_ID']).write_text(str(child.pid), 'utf-8')\n"
        f"os._exit({status})\n"
    )
    command = [sys.executable, "-c", script]
    start = time.monotonic()
    assert Supervisor(command, 2, 1, 0, None, tmp_path / "log", 0, 100.0).run() == status
    assert time.monotonic() - start < 60
    children = [int((tmp_path / rank).read_text("utf-8")) for rank in "01" if (tmp_path / rank).exists()]
    deadline = time.monotonic() + 20  # the system ends them when it comes to it
    while any(is_running(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children and not any(is_running(pid) for pid in children)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_workers_end_with_their_supervisor(tmp_path: Path) -> None:
    """Of a supervisor that SIGKILL ends: a worker is asked to end and may save; what it starts ends with it, and what
    does not listen is ended. The words of all stand in the logs."""
    worker = (
        "import os, pathlib, signal, subprocess, sys, time\n"
        "from framework.core.lifeline import end_without_supervisor\n"
        "end_without_supervisor(1.0)\n"
        "rank = os.environ['PADDLE_TRAINER_ID']\n"
        "def save(*_):\n"
        "    print('saved', flush=True)\n"
        "    if rank == '0': sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120)'])\n"
        f"pathlib.Path({os.fspath(tmp_path)!r}, rank).write_text(f'{{os.getpid()}} {{child.pid}} ', 'utf-8')\n"
        "while True: time.sleep(120)\n"
    )
    supervisor = (
        "import pathlib, sys\n"
        "from framework.distributed.supervisor import Supervisor\n"
        f"log = pathlib.Path({os.fspath(tmp_path / 'log')!r})\n"
        f"Supervisor([sys.executable, '-c', {worker!r}], 2, 1, 0, None, log, 0, 100.0).run()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", supervisor], stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    numbers: list[int] = []
    while len(numbers) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
        files = [tmp_path / rank for rank in "01" if (tmp_path / rank).exists()]
        numbers = [int(number) for file in files for number in file.read_text("utf-8").split()]
    assert len(numbers) == 4 and all(map(is_running, numbers))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 20
    while any(map(is_running, numbers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, numbers))
    for rank in "01":
        words = (tmp_path / "log" / f"workerlog.{rank}").read_text("utf-8")
        assert f"the supervisor (process {process.pid}) is gone" in words and "saved" in words
