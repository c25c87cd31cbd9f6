"""Paddle's guides and ten programs of the size of a paper's run with `from framework import paddle` as they are.

Each reports losses of 20 steps and other numbers, which tests/golden/data/paddle_programs.json has from Paddle 2.6.2
(`tools.golden paddle_programs`). Both start from the same weights and read the same batches.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.paddle_programs.run import run

HERE = Path(__file__).resolve().parent
PROGRAMS = sorted(
    path.stem for path in (HERE / "paddle_programs").glob("*.py") if path.stem not in ("run", "exchange")
)
REFERENCE = json.loads((HERE.parent / "golden" / "data" / "paddle_programs.json").read_text(encoding="utf-8"))
TOLERANCE, CHAOTIC = 1e-4, 5e-3


def assert_as_paddle(program: str, found: dict[str, list[float]]) -> None:
    """Within 1e-4, or 5e-3 where a change of the first weights by 1e-6 of themselves moves Paddle's numbers too."""
    reference = REFERENCE[program]
    tolerance = CHAOTIC if reference["spread"] > TOLERANCE else TOLERANCE
    assert found.keys() == reference["values"].keys()
    for name, numbers in reference["values"].items():
        np.testing.assert_allclose(found[name], numbers, rtol=tolerance, atol=tolerance, err_msg=name)


def in_process_of_its_own(folder: Path, program: str, **settings: str) -> dict[str, list[float]]:
    out = folder / "out.json"
    command = [
        sys.executable,
        str(HERE / "paddle_programs" / "run.py"),
        "framework.paddle",
        str(out),
        program,
    ]
    process = subprocess.run(command, capture_output=True, encoding="utf-8", env={**os.environ, **settings})
    assert process.returncode == 0, process.stderr[-3000:]
    return json.loads(out.read_text(encoding="utf-8"))[program]


def test_the_guide_to_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_as_paddle("tensors", run("framework.paddle", "tensors"))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program(program: str, shared: Path, tmp_path: Path) -> None:
    found = in_process_of_its_own(tmp_path, program, OAR_SHARED=str(shared))
    assert_as_paddle(program, found)
    loss = REFERENCE[program]["values"].get("loss")
    if loss is not None and np.mean(loss[-3:]) < np.mean(loss[:3]):  # an actor's loss need not fall
        assert all(map(math.isfinite, found["loss"]))
        assert np.mean(found["loss"][-3:]) < np.mean(found["loss"][:3])


@pytest.mark.slow
@pytest.mark.parametrize("program", ["quick_start", "train_by_hand"])
def test_lenet_learns_digits(program: str, shared: Path, tmp_path: Path) -> None:
    """6,000 digits to learn from, 2,000 others."""
    found = in_process_of_its_own(tmp_path, program, OAR_SHARED=str(shared), PROGRAM_EPOCHS="12")
    assert found["accuracy"][0] >= 0.98
