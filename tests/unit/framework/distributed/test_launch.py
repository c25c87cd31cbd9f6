"""`oar launch`: several processes train one run, and go on where one of them dies."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import pytest

from framework.io.checkpoint import load_checkpoint

REPO = Path(__file__).resolve().parents[4]
CONFIG = """
domain: classification
model: {{type: LeNet, num_classes: 2}}
task: {{type: ImageClassification, topk: [1]}}
data:
  train: &set
    dataset: {{type: ImageFolder, root: {root}, split: train}}
    transforms: [{{type: Resize, size_hw: [28, 28]}}]
    batch_size: 8
    num_workers: 0
  eval: *set
optim: {{type: Momentum, learning_rate: 0.01, momentum: 0.9}}
train: {{iters: 12, log_every: 1, eval_every: 6, save_every: 2}}
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launch")
    rng = np.random.default_rng(0)
    for number in range(24):
        path = folder / "train" / ("dark", "light")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), rng.integers(100 * (number % 2), 130 + 100 * (number % 2), (28, 28), np.uint8))
    file = folder / "tiny.yml"
    file.write_text(CONFIG.format(root=folder.as_posix()), encoding="utf-8")
    return file


def _train(
    config: Path, name: str, *words: str, processes: int = 1, **variables: str
) -> subprocess.Popen[str]:
    launch = [sys.executable, "-m", "framework", "launch", "--nproc_per_node", str(processes)]
    where = ["--log_dir", str(config.parent / f"{name}.log")]
    train = ["train", "-c", str(config), "--output_dir", str(config.parent / name), *words]
    return subprocess.Popen(
        [*launch, *where, *train],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        env={**os.environ, **variables},
    )


def _finish(process: subprocess.Popen[str]) -> str:
    text = process.communicate(timeout=600)[0]
    assert process.returncode == 0, text[-3000:]
    return text


def _rows(run: Path) -> list[tuple[int, float]]:
    """(step, loss or score) of a run."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    return [(row["step"], row.get("loss", row.get("top1"))) for row in rows]


def _model(run: Path) -> dict[str, np.ndarray]:
    return load_checkpoint(run / "checkpoints" / "step_00000012").model


@pytest.fixture(scope="module")
def alone(config: Path) -> Path:
    _finish(_train(config, "alone"))
    return config.parent / "alone"


@pytest.fixture(scope="module")
def pair(config: Path) -> Path:
    text = _finish(_train(config, "pair", "-o", "parallel.fsdp=2", processes=2))
    assert "step 12/12" in text and "best checkpoint" in text
    return config.parent / "pair"


def test_two_processes_train_as_one(alone: Path, pair: Path) -> None:
    ours, theirs = _rows(pair), _rows(alone)
    assert [step for step, _ in ours] == [step for step, _ in theirs]
    np.testing.assert_allclose([value for _, value in ours], [value for _, value in theirs], rtol=1e-5)
    ours, theirs = _model(pair), _model(alone)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    log = (pair.parent / "pair.log" / "workerlog.1").read_text("utf-8")
    assert "step 12/12" in log


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason='Ray is not installed: pip install "oar-toolkit[ray]"'
)
def test_the_workers_of_ray_train_as_one(config: Path, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ray ends workers where the memory of the machine is short, whoever uses it.
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "0")
    run = config.parent / "ray"
    command = [sys.executable, "tools/deploy/ray_train.py", str(config), "--workers", "2"]
    command += ["--output_dir", str(run), "-o", "parallel.fsdp=2"]
    done = subprocess.run(
        command, cwd=REPO, capture_output=True, text=True, check=False, timeout=600, encoding="utf-8"
    )
    assert done.returncode == 0 and "top1" in done.stdout, done.stdout + done.stderr[-3000:]
    ours, theirs = _rows(run), _rows(alone)
    assert [step for step, _ in ours] == [step for step, _ in theirs]
    np.testing.assert_allclose([value for _, value in ours], [value for _, value in theirs], rtol=1e-5)


def test_a_run_whose_process_dies_goes_on(config: Path, pair: Path) -> None:
    """A script beside the config kills process 1 of the first start after its fifth step."""
    killer = config.parent / "killer.py"
    killer.write_text(
        "import os, signal\n"
        "from dataclasses import dataclass\n"
        "from framework.config import register\n"
        "from framework.engine.callbacks import Callback\n\n"
        "@register('callback')\n@dataclass(frozen=True)\nclass Killer(Callback):\n"
        "    def on_step(self, trainer, step):\n"
        "        if step == 5 and os.environ['OAR_RESTARTS'] == '0' and os.environ['PADDLE_TRAINER_ID'] == '1':\n"
        "            os.kill(os.getpid(), signal.SIGTERM if os.name == 'nt' else signal.SIGKILL)\n",
        encoding="utf-8",
    )
    words = ("-o", "parallel.fsdp=2", f"imports=[{killer.as_posix()}]", "train.callbacks=[{type: Killer}]")
    text = _finish(_train(config, "killed", *words, processes=2))
    assert "process 1 ended with status -9" in text and "starting all processes again (1 of 3)" in text
    assert "going on from step" in text
    ours, theirs = _model(config.parent / "killed"), _model(pair)
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)


def test_an_error_of_the_user_comes_once(config: Path) -> None:
    process = _train(config, "wrong", "-o", "data.train.batch_size=7", processes=2)
    text = process.communicate(timeout=600)[0]
    assert process.returncode == 2
    assert "7 samples for" in text and "starting all processes again" not in text


@pytest.mark.parametrize("failure", ["raise KeyError('rank 1 fails')", "sys.exit('rank 1 fails')"])
def test_a_process_that_fails_alone_ends_all(failure: str, tmp_path: Path) -> None:
    """While the other one waits for it."""
    script = tmp_path / "alone.py"
    script.write_text(
        "import sys\nimport paddle.distributed as dist\n"
        f"dist.init_parallel_env()\ndist.barrier()\nif dist.get_rank() == 1:\n    {failure}\ndist.barrier()\n",
        encoding="utf-8",
    )
    words = ["--nproc_per_node", "2", "--max_restart", "0", "--log_dir", str(tmp_path / "log"), str(script)]
    done = subprocess.run(
        [sys.executable, "-m", "framework", "launch", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=120,  # jax waits 300 s for the other one
    )
    assert done.returncode == 1 and "rank 1 fails" in done.stdout + done.stderr


def test_a_process_that_never_comes_is_told(config: Path) -> None:
    """Of two machines one is missing."""
    words = ["--nnodes", "2", "--rank", "0", "--master", "127.0.0.1:0", "--max_restart", "0"]
    log = ["--log_dir", str(config.parent / "missing.log")]
    command = [sys.executable, "-m", "framework", "launch", *words, *log, "train", "-c", str(config)]
    began = time.monotonic()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "OAR_JOIN_TIMEOUT": "3"},
        check=False,
        timeout=300,
    )
    assert done.returncode == 2 and time.monotonic() - began < 200
    assert "did not find each other" in done.stdout + done.stderr, done.stdout + done.stderr
