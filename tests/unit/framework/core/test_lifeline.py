"""Processes that end when what has started them is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import multiprocessing, time
from framework.core.lifeline import end_with_parent

def work():
    end_with_parent()
    print(multiprocessing.current_process().pid, flush=True)
    time.sleep(120)

if __name__ == "__main__":
    multiprocessing.get_context("spawn").Process(target=work).start()
    time.sleep(120)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    """Killed by SIGKILL, as vllm#55510 has it."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT, "utf-8")
    root = os.fspath(Path(__file__).parents[4])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((root, os.environ.get("PYTHONPATH", "")))}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        worker = Path("/proc", parent.stdout.readline().decode().strip(), "stat")
        assert worker.exists()
        parent.kill()
    deadline = time.monotonic() + 20
    while worker.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not worker.exists() or worker.read_text("utf-8").rpartition(")")[2].split()[0] in "ZX"
