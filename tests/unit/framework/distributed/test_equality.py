"""The losses of a training do not depend on devices and processes: networks with batch statistics, texts in buckets."""

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
TOLERANCE = {"bert": 1e-6, "resnet18": 1e-5, "picodet": 1e-5, "pp_liteseg": 1e-5}


def _run(name: str, steps: int, options: dict[str, Any], devices: int, processes: int = 1) -> list[dict]:
    """What each process has printed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        master = f"127.0.0.1:{probe.getsockname()[1]}"
    words = ["-m", "tests.unit.framework.distributed.equality_run", name, str(steps), json.dumps(options)]
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
    alone = train("bert", 4, None)
    assert len(alone["losses"]) == 4
    for row in _run("bert", 4, {"fsdp": 2}, devices=1, processes=2):
        np.testing.assert_allclose(row["losses"], alone["losses"], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "resnet18", "picodet", "pp_liteseg"])
def test_thirty_steps_on_all_meshes(name: str) -> None:
    alone = train(name, STEPS, None)
    rows = _run(name, STEPS, {"fsdp": 8}, devices=8) + _run(name, STEPS, {"fsdp": 2, "tensor": 2}, devices=8)
    rows += _run(name, STEPS, {}, devices=8)
    for processes in (2, 4):
        rows += _run(name, STEPS, {"fsdp": 2}, devices=1, processes=processes)
    for row in rows:
        np.testing.assert_allclose(row["losses"], alone["losses"], rtol=TOLERANCE[name])
        for key, value in alone["statistics"].items():  # of the whole batch, not of a device's samples
            np.testing.assert_allclose(row["statistics"][key], value, rtol=1e-3, atol=1e-4, err_msg=key)
