"""`oar plan` and `parallel: auto`, on a small training."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from framework.commands.main import main

CONFIG = """
domain: classification
model: {{type: LeNet, num_classes: 2}}
task: {{type: ImageClassification, topk: [1]}}
data:
  train:
    dataset: {{type: ImageFolder, root: {root}, split: train}}
    transforms: [{{type: Resize, size_hw: [28, 28]}}]
    batch_size: 8
    num_workers: 0
optim: {{type: Momentum, learning_rate: 0.01, momentum: 0.9}}
train: {{iters: 3, log_every: 1}}
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    for number in range(16):
        path = folder / "train" / ("dark", "light")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.full((28, 28), 200 * (number % 2) + number, np.uint8))
    file = folder / "tiny.yml"
    file.write_text(CONFIG.format(root=folder.as_posix()), encoding="utf-8")
    return file


def test_a_plan_is_printed_and_can_be_pasted(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "-c", str(config), "--devices", "16", "--hardware", "a100", "--top", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("parameters, batch 8, 16 devices of 80 GB")
    assert re.search(r"no multiple of data x fsdp", "\n".join(lines))
    rows = [line.split() for line in lines if re.match(r"  +\d", line)]
    assert len(rows) == 3
    assert all(int(row[0]) * int(row[1]) * int(row[2]) == 16 for row in rows)
    assert lines[-1].startswith("-o parallel.")


def test_what_fits_nowhere(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "-c", str(config), "--devices", "8", "--memory", "20KiB"]) == 2
    assert "no size of memory" in capsys.readouterr().err
    assert main(["plan", "-c", str(config), "--devices", "8", "--memory", "0.02MB"]) == 1
    assert "none fits into 90% of a device" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, message",
    [
        (["--devices", "0"], "a plan is made for devices"),
        (["--devices", "8", "--hardware", "h2000"], "nothing is known of this device"),
        (["--devices", "4096", "--compile", "1"], "cannot be made of a CPU"),
        (["--devices", "8", "-o", "parallel.rules={nowhere: [fsdp]}"], "found in no name"),
        (["--devices", "8", "-o", "parallel.pipeline=2"], "over data, fsdp and tensor alone"),
        (["--devices", "8", "-o", "data.train.dataset.root=missing"], "missing"),
    ],
)
def test_plans_that_cannot_be(
    config: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "-c", str(config), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_training_divides_itself(config: Path) -> None:
    """`parallel: auto` on four devices gives the losses of one."""
    losses = {}
    for name, words in {"one": [], "auto": ["-o", "parallel=auto"]}.items():
        run = config.parent / name
        done = subprocess.run(
            [sys.executable, "-m", "framework", "train", "-c", str(config), "--output_dir", str(run), *words],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env={**os.environ, "JAX_NUM_CPU_DEVICES": "1" if name == "one" else "4"},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert ("parallel: auto" in done.stderr + done.stdout) == (name == "auto")
        rows = (run / "metrics.jsonl").read_text("utf-8").splitlines()
        losses[name] = [json.loads(row)["loss"] for row in rows if "loss" in row]
    np.testing.assert_allclose(losses["auto"], losses["one"], rtol=2e-6, atol=2e-7)  # they are near 0
