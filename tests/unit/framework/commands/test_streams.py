"""Standard output that is closed, full, broken or ASCII: no traceback, and the status of what was done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OAR = [sys.executable, "-m", "framework"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a shell, /dev/full")


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env={**os.environ, "OAR": " ".join(OAR), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("$OAR models names >&-", 0, ""),
        ("$OAR models names >&- 2>&- <&-", 0, ""),
        ("$OAR --help >&-", 0, ""),
        ("$OAR --help | true", 0, ""),
        ("$OAR models names | true", 0, ""),
        ("$OAR document --help | true", 0, ""),
        ("$OAR models names > /dev/full", 2, "error: No space left on device"),
        ("$OAR --help > /dev/full", 2, "error: No space left on device"),
        ("$OAR models --help > /dev/full", 2, "error: No space left on device"),
        ("$OAR infer -c $(printf 'n/%.0s' {1..2500})x.yml x.jpg", 2, "error: "),
        ("$OAR check -c lenet_mnist --data $(printf 'n/%.0s' {1..2500})", 2, "error: "),
        ("$OAR nothing 2>&-", 2, ""),
    ],
)
def test_no_traceback(command: str, status: int, message: str) -> None:
    done = shell(command)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert (done.returncode, message in done.stderr) == (status, True), done.stderr[-500:]
    assert message or not done.stderr


def test_signs_that_the_encoding_lacks_are_spelt() -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = shell("$OAR --help && $OAR document --help", **ascii_only)
    assert done.returncode == 0
    assert "oar COMMAND ..." in done.stdout
    done = shell("$OAR infer -c 没有 x.jpg", **ascii_only)
    assert done.returncode == 2
    assert "error: " in done.stderr


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    code = (
        "import os, sys; from framework.commands import streams; streams.prepare(); "
        "file = open(sys.argv[1], 'w'); os.write(1, b'printed by a library'); print('printed'); file.close()"
    )
    done = shell(f'{sys.executable} -c "{code}" {tmp_path / "result"} >&-')
    assert done.returncode == 0
    assert (tmp_path / "result").read_text(encoding="utf-8") == ""
