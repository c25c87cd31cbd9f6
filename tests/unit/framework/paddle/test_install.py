"""`import paddle` means Oar: oar run, python -m framework.paddle, pytest -p, child processes, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[4]
SCRIPT = """
import importlib, pickle, subprocess, sys
import paddle
import paddle.nn.functional as F
from paddle.nn.layer.activation import ReLU
from paddle.io import DataLoader
import framework.paddle

assert paddle is framework.paddle and paddle.nn is framework.paddle.nn and ReLU is paddle.nn.ReLU
assert paddle.nn.__spec__.name == "framework.paddle.nn"
assert importlib.import_module("paddle.tensor.math").add is paddle.add
assert pickle.loads(pickle.dumps(ReLU)) is ReLU
if len(sys.argv) > 1 and sys.argv[1] == "parent":
    subprocess.run([sys.executable, "-c", "import paddle; print(paddle.nn.layer.conv.Conv2D.__name__)"], check=True)
print(sys.argv[1:], float(F.relu(paddle.to_tensor([-1.0, 2.0])).sum()))
"""


def run(*command: str, folder: Path, status: int = 0, env: dict[str, str] | None = None) -> str:
    path = {**os.environ, "PYTHONPATH": str(REPO), **(env or {})}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_a_script_and_the_processes_that_it_starts(script: Path) -> None:
    shown = run("-m", "framework.paddle", "program.py", "parent", "--help", folder=script.parent)
    assert shown.splitlines() == ["Conv2D", "['parent', '--help'] 2.0"]


def test_a_module(script: Path) -> None:
    assert run("-m", "framework.paddle", "-m", "program", "-x", folder=script.parent) == "['-x'] 2.0\n"


def test_pytest_takes_it_as_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(
        "import paddle\n\n\ndef test_sum():\n    assert paddle.ones([2]).sum() == 2\n", encoding="utf-8"
    )
    run("-m", "pytest", "-q", "-p", "framework.paddle.install", "-p", "no:cacheprovider", folder=tmp_path)


def test_another_paddle_that_is_imported_already_is_refused(tmp_path: Path) -> None:
    (tmp_path / "paddle.py").write_text("", encoding="utf-8")
    shown = run("-c", "import paddle, framework.paddle.install", folder=tmp_path, status=1)
    assert "paddle is imported already, and it is not Oar" in shown and "oar run" in shown


@pytest.mark.parametrize("words, problem", [([], "nothing to run"), (["none.py"], "no such script")])
def test_errors(words: list[str], problem: str, tmp_path: Path) -> None:
    assert problem in run("-m", "framework.paddle", *words, folder=tmp_path, status=2)


def test_setuptools_is_loaded_before_pip(tmp_path: Path) -> None:
    """PaddleNLP imports pip and then setuptools, which refuses this order; Paddle itself loads setuptools first."""
    (tmp_path / "setuptools.py").write_text("print('setuptools')", encoding="utf-8")
    (tmp_path / "pip.py").write_text("print('pip')", encoding="utf-8")
    (tmp_path / "program.py").write_text("import pip", encoding="utf-8")
    shown = run("-m", "framework.paddle", "program.py", folder=tmp_path)
    assert shown.split() == ["setuptools", "pip"]
