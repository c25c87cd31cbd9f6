"""What commands about data write appears whole or not at all, also of a process that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from framework.core.errors import InputError
from framework.workflow.data.outputs import write_whole

NAMES = ("data.yaml", "images")


def write(folder: Path) -> None:
    (folder / "images").mkdir()
    (folder / "images" / "a.txt").write_text("a", "utf-8")
    (folder / "data.yaml").write_text("names", "utf-8")


@pytest.mark.parametrize("there", [False, True])
def test_an_output_appears_when_it_is_whole(there: bool, tmp_path: Path) -> None:
    output = tmp_path / "out"
    if there:
        output.mkdir()
        (output / "mine.txt").write_text("mine", "utf-8")
    with write_whole(output, NAMES) as folder:
        write(folder)
        assert not any((output / name).exists() for name in NAMES)
    visible = {"mine.txt"} if there else set[str]()
    assert {path.name for path in output.iterdir()} == {*NAMES, *visible}
    assert (output / "images" / "a.txt").read_text("utf-8") == "a"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("there", [False, True])
def test_an_error_leaves_nothing_of_an_output(there: bool, tmp_path: Path) -> None:
    output = tmp_path / "out"
    if there:
        output.mkdir()
        (output / "mine.txt").write_text("mine", "utf-8")
    with pytest.raises(InputError), write_whole(output, NAMES) as folder:
        write(folder)
        raise InputError("an image cannot be read")
    assert [path.name for path in tmp_path.rglob("*")] == (["out", "mine.txt"] if there else [])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
@pytest.mark.parametrize("there", [False, True])
def test_a_killed_process_leaves_nothing_that_looks_whole(there: bool, tmp_path: Path) -> None:
    output = tmp_path / "out"
    if there:
        output.mkdir()
    code = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from framework.workflow.data.outputs import write_whole\n"
        f"with write_whole(Path(sys.argv[1]), {NAMES!r}) as folder:\n"
        "    (folder / 'data.yaml').write_text('half')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(output)], check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    assert not any((output / name).exists() for name in NAMES)
    with write_whole(output, NAMES) as folder:  # which removes what was left
        write(folder)
    assert {path.name for path in output.iterdir()} == set(NAMES)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
