"""Training a config: what goes into the folder of a run, signals, classes of an evaluation, rate and batch size."""

from __future__ import annotations

import csv
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from framework.config import load
from framework.core.disk import DiskError
from framework.core.errors import InputError, WeightError
from framework.engine import finders
from framework.engine.callbacks import Callback
from framework.engine.experiment import bind_experiment
from framework.engine.stopping import TrainingStopped
from framework.vision import image
from framework.workflow.train import run as workflow_run
from framework.workflow.train.run import evaluate_classes, find_batch_size, find_lr, make_trainer, train

REPO = Path(__file__).resolve().parents[5]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LeNet on 12 dark and 6 bright images of 28x28."""
    root = tmp_path_factory.mktemp("shades")
    rng = np.random.default_rng(0)
    for name, count, level in (("bright", 6, 150), ("dark", 12, 0)):
        for number in range(count):
            pixels = rng.integers(level, level + 100, (28, 28, 3)).astype(np.uint8)
            image.write(root / "images" / name / f"{number}.png", pixels)
    path = root / "shades.yml"
    path.write_text(
        f"""
domain: classification
model: {{type: LeNet, num_classes: 2}}
task: {{type: ImageClassification, topk: [1], weight: balanced}}
data:
  train: &data {{dataset: {{type: ImageFolder, root: {root.as_posix()}/images}}, batch_size: 6, num_workers: 0}}
  eval: *data
optim: {{type: Momentum, learning_rate: {{type: CosineAnnealingDecay, learning_rate: 0.01}}}}
train: {{epochs: 2, log_every: 100}}
""",
        encoding="utf-8",
    )
    return path


class Stop(Callback):
    def on_step(self, trainer, step):
        if step == 3:
            signal.raise_signal(signal.SIGINT)


def test_a_run_that_is_stopped_says_how_to_go_on_and_ends_as_if_it_had_not_been(
    config: Path, tmp_path: Path
) -> None:
    straight = train(config, (), tmp_path / "straight")
    with pytest.raises(TrainingStopped) as stopped:
        train(config, (), tmp_path / "run", callbacks=(Stop(),))
    assert (
        stopped.value.step == 4
        and stopped.value.checkpoint == tmp_path / "run" / "checkpoints" / "step_00000004"
    )
    assert str(stopped.value).endswith(f"to go on: oar train -c {tmp_path / 'run' / 'config.yml'} --resume")
    assert train(tmp_path / "run" / "config.yml", resume=True) == straight
    states = [
        tmp_path / run / "checkpoints" / "step_00000006" / "model.safetensors" for run in ("straight", "run")
    ]
    assert states[0].read_bytes() == states[1].read_bytes()
    kept = {path.name for path in (tmp_path / "run").iterdir()}
    assert kept >= {"config.yml", "curves.png", "curves.csv", "evaluation", "metrics.jsonl", "train.log"}
    rows = list(csv.DictReader((tmp_path / "run" / "curves.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["step"] for row in rows] == ["1", "3", "3", "6", "6"]


def test_the_classes_of_an_evaluation(config: Path, tmp_path: Path) -> None:
    train(config, ("train.epochs=1",), tmp_path / "run")
    found = evaluate_classes(tmp_path / "run" / "config.yml")
    assert found.details is not None and found.details.confusion is not None
    assert [(row[0], row[-1]) for row in found.details.classes.rows] == [("bright", 6), ("dark", 12)]
    right = np.trace(found.details.confusion) / found.details.confusion.sum()
    assert found.scores == {"top1": pytest.approx(right)}
    names = [path.name for path in found.write(tmp_path / "scores")]
    assert names == ["scores.json", "per_class.csv", "confusion.csv", "confusion.png"]
    assert json.loads((tmp_path / "scores" / "scores.json").read_text(encoding="utf-8")) == found.scores
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DiskError, match=r"file(.|\n)*a file stands where a folder is needed"):
        found.write(tmp_path / "file")


def test_weights_that_are_balanced_are_those_of_the_training_data(config: Path) -> None:
    trainer = make_trainer(bind_experiment(load(config)), None)
    assert trainer.task.weight == pytest.approx((18 / (2 * 6), 18 / (2 * 12)))  # type: ignore[attr-defined]


def test_a_rate_and_a_batch_size_are_found(config: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    found = find_lr(config, (), tmp_path / "lr", steps=25, start=1e-4, end=1.0)
    assert len(found.rates) <= 25
    assert {path.name for path in (tmp_path / "lr").iterdir()} == {"lr_finder.csv", "lr_finder.png"}
    said = (
        f"-o optim.learning_rate.learning_rate={found.suggestion:.3g}" if found.suggestion else "never fell"
    )
    assert said in capsys.readouterr().out
    monkeypatch.setattr(finders, "_measure", lambda trainer, batch, size: size)  # the engine's test compiles
    size = find_batch_size(config, free=2**33)
    assert (size.batch_size, size.limited_by) == (16, "data")
    assert "-o data.train.batch_size=16" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="there a process cannot be sent SIGINT alone")
def test_ctrl_c_from_outside(config: Path, tmp_path: Path) -> None:
    command = [sys.executable, "tools/train.py", "-c", str(config), "--output_dir", str(tmp_path / "run")]
    process = subprocess.Popen(
        [*command, "-o", "train.epochs=100000", "train.eval_every=100000"],
        cwd=REPO,
        env={**os.environ, "PYTHONUTF8": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        log = tmp_path / "run" / "metrics.jsonl"
        deadline = time.monotonic() + 120
        while not (log.is_file() and log.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    lines = errors.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("stopped by SIGINT after step ") and "--resume" in lines[0]
    assert list((tmp_path / "run" / "checkpoints").glob("step_*"))


def test_a_refused_resume_changes_nothing(config: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(config, (), folder)

    def state() -> dict[str, bytes]:
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    before = state()
    own = folder / "config.yml"
    for setting in (
        "data.train.batch_size=4",
        "train.seed=5",
        "model={type: ResNet, variant: resnet18, num_classes: 2}",
    ):
        with pytest.raises(WeightError):
            train(own, (setting, "train.epochs=3"), resume=True)
        assert state() == before
    with pytest.raises(InputError, match="there is no checkpoint"):
        train(config, (), tmp_path / "none", resume=True)
    assert not (tmp_path / "none").exists()
    train(own, ("train.epochs=3",), resume=True)
    assert json.loads((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])["step"] == 9


def test_more_epochs_say_what_they_do_to_the_rate(
    config: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "run"
    train(config, (), folder)
    own = folder / "config.yml"
    train(own, (), resume=True)
    assert "nothing is left to train: the checkpoint has 6 of 6 steps" in caplog.text
    caplog.clear()
    train(own, ("train.epochs=4",), resume=True)
    (line,) = [one for one in caplog.messages if "steps now" in one]
    assert line.startswith("the run has 12 steps now, in place of 6") and "from 0.00067 to 0.005;" in line
    assert "-o optim.learning_rate=0.00067 goes on" in line
    assert "the run has 12 steps now" in (folder / "train.log").read_text(encoding="utf-8")
    caplog.clear()
    train(own, ("train.epochs=6", "optim.learning_rate=0.0005"), resume=True)
    assert "the run has 18 steps now, in place of 12; the learning rate goes on at 0.0005" in caplog.text


def test_an_evaluation_part_without_a_class_and_with_another(
    config: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rng = np.random.default_rng(1)
    for name in ("dark", "odd"):
        image.write(tmp_path / "val" / name / "0.png", rng.integers(0, 100, (28, 28, 3)).astype(np.uint8))
    root = f"data.eval.dataset.root={(tmp_path / 'val').as_posix()}"
    scores = train(config, (root,), tmp_path / "run")
    assert scores["top1"] <= 0.5  # odd is no class that it could say
    assert "unknown to the model, each counted as an error: 1 (odd)" in caplog.text
    assert "known to the model, but not in the data: 1 (bright)" in caplog.text
    with pytest.raises(InputError, match="the model knows none of the classes"):
        train(config, (root, "data.eval.dataset.classes=[odd]"), tmp_path / "other")


def test_names_that_are_no_text_are_in_the_log(tmp_path: Path) -> None:
    with workflow_run._log_file(tmp_path / "log.txt") as start:
        start()
        logging.getLogger("oar").info("best checkpoint: a\udcff/step_1")
    text = (tmp_path / "log.txt").read_text(encoding="utf-8")
    assert text.endswith("best checkpoint: a\\udcff/step_1\n")
