"""The supervisor of processes, with processes that do nothing."""

from __future__ import annotations

import os
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
