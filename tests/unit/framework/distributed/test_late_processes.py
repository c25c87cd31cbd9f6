"""Processes of a run wait for one that comes late."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

PROGRAM = """
import sys, time
import jax
from framework.distributed import init_parallel_env
from framework.distributed.collectives import all_gather_object, barrier
init_parallel_env()
rank = jax.process_index()
if rank == 1:
    time.sleep(float(sys.argv[1]))
began = time.monotonic()
barrier()
print("waited", time.monotonic() - began)
barrier()
if rank == 0:
    time.sleep(float(sys.argv[1]))
print("objects", all_gather_object(rank))
"""


@pytest.mark.slow
def test_one_that_comes_later_than_gloo_waits() -> None:
    """35 s; in a collective of CPUs gloo gives it up after 30."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        master = f"127.0.0.1:{probe.getsockname()[1]}"
    shared = {**os.environ, "PADDLE_MASTER": master, "PADDLE_TRAINERS_NUM": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "35"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            env={**shared, "PADDLE_TRAINER_ID": str(rank)},
        )
        for rank in (0, 1)
    ]
    texts = [process.communicate(timeout=300)[0] for process in processes]
    for process, text in zip(processes, texts):
        assert process.returncode == 0 and "objects [0, 1]" in text, text[-3000:]
    assert float(texts[0].split("waited ")[1].split()[0]) > 20
