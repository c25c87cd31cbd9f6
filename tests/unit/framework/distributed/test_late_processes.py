"""Processes of a run wait for one that comes late, and end where one has failed or has gone, whoever started them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from framework.core.errors import DeviceError
from framework.distributed import init_parallel_env

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

FAILURE = """
import sys
import jax
from framework.distributed import init_parallel_env
from framework.distributed.collectives import all_reduce, barrier
init_parallel_env()
if jax.process_index() == int(sys.argv[1]):
    if sys.argv[2] == "raises":
        raise ValueError("a file is missing")
    sys.exit(3 if sys.argv[2] == "leaves" else 0)
barrier() if sys.argv[3] == "barrier" else all_reduce(1.0)
"""


def start(program: str, *words: str) -> list[subprocess.Popen[str]]:
    """Two processes of one run, which nobody watches."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        master = f"127.0.0.1:{probe.getsockname()[1]}"
    return [
        subprocess.Popen(
            [sys.executable, "-c", program, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            env={
                **os.environ,
                "PADDLE_MASTER": master,
                "PADDLE_TRAINERS_NUM": "2",
                "PADDLE_TRAINER_ID": str(rank),
            },
        )
        for rank in (0, 1)
    ]


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_a_port_that_another_program_has(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """jax's coordinator would end by a segmentation fault."""
    with socket.create_server((host, 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setenv("PADDLE_MASTER", f"127.0.0.1:{port}")
        monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
        monkeypatch.setenv("PADDLE_TRAINER_ID", "0")
        with pytest.raises(DeviceError, match=f"port {port} cannot be opened: Address already in use"):
            init_parallel_env()
        monkeypatch.setenv("PADDLE_MASTER", "127.0.0.1:99999")
        with pytest.raises(DeviceError, match="'99999' is no port"):
            init_parallel_env()


@pytest.mark.parametrize(
    "words",
    [
        ("1", "raises", "barrier"),
        pytest.param(("0", "raises", "barrier"), marks=pytest.mark.slow),
        pytest.param(("1", "leaves", "barrier"), marks=pytest.mark.slow),
        pytest.param(("1", "returns", "all_reduce"), marks=pytest.mark.slow),
    ],
)
def test_one_that_fails_ends_the_other(words: tuple[str, ...]) -> None:
    """Within a minute, most of which is the start where the machine is busy; jax alone keeps both for five."""
    failed = int(words[0])
    processes = start(FAILURE, *words)
    texts = [process.communicate(timeout=120)[0] for process in processes]
    assert processes[1 - failed].returncode == 1, texts
    assert "another process of the run has failed, so this one ends" in texts[1 - failed]
    reason = (
        "ValueError: a file is missing" if words[1] == "raises" else "has ended, and this one waits for it"
    )
    assert f"process {failed}" in texts[1 - failed] and reason in texts[1 - failed]
    assert processes[failed].returncode != 0


@pytest.mark.slow
def test_one_that_comes_later_than_gloo_waits() -> None:
    """35 s; in a collective of CPUs gloo gives it up after 30."""
    processes = start(PROGRAM, "35")
    texts = [process.communicate(timeout=300)[0] for process in processes]
    for process, text in zip(processes, texts):
        assert process.returncode == 0 and "objects [0, 1]" in text, text[-3000:]
    assert float(texts[0].split("waited ")[1].split()[0]) > 20
