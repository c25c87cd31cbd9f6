"""The losses of a training on texts of several buckets do not depend on devices and processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.unit.framework.distributed.equality_run import train

STEPS = 30


def _run(steps: int, options: dict[str, Any], devices: int, processes: int = 1) -> list[dict]:
    """What each process has printed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        master = f"127.0.0.1:{probe.getsockname()[1]}"
    words = ["-m", "tests.unit.framework.distributed.equality_run", str(steps), json.dumps(options)]
    shared = {"PADDLE_MASTER": master, "PADDLE_TRAINERS_NUM": str(processes), "OAR_JOIN_TIMEOUT": "300"}
    started = [
        subprocess.Popen(
            [sys.executable, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, **shared, "DEVICES": str(devices), "PADDLE_TRAINER_ID": str(rank)},
        )
        for rank in range(processes)
    ]
    rows = []
    for process in started:
        out, errors = process.communicate(timeout=3000)
        assert process.returncode == 0, errors[-3000:]
        rows.append(json.loads(next(line for line in out.splitlines() if line.startswith("{"))))
    return rows


def test_two_processes_pad_their_texts_to_one_bucket() -> None:
    alone = train(4, None)
    assert len(alone["losses"]) == 4
    for row in _run(4, {"fsdp": 2}, devices=1, processes=2):
        np.testing.assert_allclose(row["losses"], alone["losses"], rtol=1e-6)


@pytest.mark.slow
def test_thirty_steps_on_all_meshes() -> None:
    alone = train(STEPS, None)
    meshes: list[dict[str, Any]] = [{}, {"fsdp": 8}, {"fsdp": 2, "tensor": 2}]
    rows = [row for options in meshes for row in _run(STEPS, options, devices=8)]
    for processes in (2, 4):
        rows += _run(STEPS, {"fsdp": 2}, devices=1, processes=processes)
    for row in rows:
        np.testing.assert_allclose(row["losses"], alone["losses"], rtol=1e-6)
