"""Training as a user does it: train, kill -9, resume, evaluate, export, classify an image; and what can go wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.e2e.tools import run_tool

REPO = Path(__file__).resolve().parents[2]
TIMES = ("samples_per_second", "wait_share", "seconds")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bars and dots, 28x28: 24 images of each class for training and 7 for evaluation."""
    root = tmp_path_factory.mktemp("shapes")
    rng = np.random.default_rng(0)
    for split, count in (("train", 24), ("val", 7)):
        for name in ("bar", "dot"):
            folder = root / split / name
            folder.mkdir(parents=True)
            for number in range(count):
                image = rng.integers(0, 60, (28, 28, 3)).astype(np.uint8)
                x, y = rng.integers(6, 20, 2)
                image[(y - 4 if name == "bar" else y) : y + 3, x : x + 3] = 230
                cv2.imwrite(str(folder / f"{number}.png"), image)
    return root


@pytest.fixture(scope="module")
def config(data: Path) -> Path:
    path = data / "shapes.yml"
    path.write_text(
        f"""
_base_: {(REPO / "configs/_base_/classification.yml").as_posix()}
model: {{type: LeNet, num_classes: 2}}
task: {{topk: [1]}}
data:
  train:
    dataset: {{type: ImageFolder, root: {data.as_posix()}, split: train}}
    transforms: [{{type: RandomHorizontalFlip}}]
    batch_size: 8
  eval:
    dataset: {{type: ImageFolder, root: {data.as_posix()}, split: val}}
    batch_size: 8
optim: {{type: Momentum, learning_rate: {{type: PolynomialDecay, learning_rate: 0.02}}, momentum: 0.9}}
train: {{epochs: 12, log_every: 1, save_every: 5, seed: 3}}
predict: {{transforms: [{{type: Resize, size_hw: [28, 28]}}]}}
export: {{inputs: {{image: {{shape: [n, 28, 28, 3], dtype: uint8}}}}}}
""",
        encoding="utf-8",
    )
    return path


def tool(name: str, *arguments: object, home: Path) -> list[str]:
    return [sys.executable, str(REPO / "tools" / f"{name}.py"), *map(str, arguments)]


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "OAR_HOME": str(home), "OAR_OFFLINE": "1", "PYTHONUTF8": "1"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def run(home: Path, name: str, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        tool(name, *arguments, home=home),
        env=environment(home),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def call(name: str, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """As `run`, in this process."""
    done = run_tool(name, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def rows(folder: Path) -> list[dict]:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]


@pytest.fixture(scope="module")
def straight(config: Path, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "straight"
    # `weights` are for evaluation and export, and never those of a run
    done = run(home, "train", "-c", config, "--output_dir", folder, "-o", "weights=the_shipped_ones")
    assert "step 72/72" in done.stdout and "best checkpoint" in done.stdout
    return folder


def killed(config: Path, home: Path, folder: Path, after: int, *more: str) -> None:
    """Start a run and kill it, the hard way, once it has logged step `after`."""
    command = tool("train", "-c", config, "--output_dir", folder, *more, home=home)
    process = subprocess.Popen(
        command, env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 200
    log = folder / "metrics.jsonl"
    while process.poll() is None and time.monotonic() < until:
        if log.is_file() and f'"step": {after},' in log.read_text(encoding="utf-8"):
            process.kill()
            process.wait()
            return
        time.sleep(0.01)
    process.kill()
    process.wait()
    pytest.fail(f"the run ended before step {after}")


@pytest.mark.parametrize("workers", [0, 2, 4])
def test_a_killed_run_goes_on_to_the_bit(
    config: Path, home: Path, straight: Path, tmp_path: Path, workers: int
) -> None:
    folder = tmp_path / "run"
    killed(config, home, folder, 17, "-o", f"data.train.num_workers={workers}")
    done = run(
        home,
        "train",
        "-c",
        config,
        "--output_dir",
        folder,
        "--resume",
        "-o",
        f"data.train.num_workers={workers}",
    )
    assert "going on from step" in done.stdout
    assert rows(folder) == rows(straight)


def test_a_kill_while_a_checkpoint_is_written(
    config: Path, home: Path, straight: Path, tmp_path: Path
) -> None:
    """Checkpoints after every step: wherever the kill lands, one that can be loaded is there."""
    folder = tmp_path / "run"
    killed(config, home, folder, 9, "-o", "train.save_every=1")
    run(home, "train", "-c", config, "--output_dir", folder, "--resume", "-o", "train.save_every=1")
    assert rows(folder) == rows(straight)
    assert not list((folder / "checkpoints").glob(".writing-*"))


def test_evaluate_export_and_classify(
    config: Path, home: Path, straight: Path, data: Path, tmp_path: Path
) -> None:
    weights = f"weights={straight.as_posix()}"
    scores = json.loads(run(home, "eval", "-c", config, "-o", weights).stdout)
    evaluated = [row["top1"] for row in rows(straight) if row["kind"] == "eval"]
    assert scores["top1"] == max(evaluated) >= 0.85
    own = straight / "config.yml"
    assert json.loads(run(home, "eval", "-c", own).stdout) == scores
    run(home, "export_model", "-c", config, "--output_dir", tmp_path / "inf", "-o", weights)
    run(home, "export_model", "-c", own, "--output_dir", tmp_path / "inf")
    programs = [tmp_path / "inf" / name / "program_weights.safetensors" for name in ("shapes", "straight")]
    assert programs[0].read_bytes() == programs[1].read_bytes()
    images = data / "val" / "bar"
    call(
        "infer",
        "--model_dir",
        tmp_path / "inf" / "shapes",
        "--image_dir",
        images,
        "--output_dir",
        tmp_path / "a",
    )
    call("infer", "-c", config, "--image_dir", images, "--output_dir", tmp_path / "b", "-o", weights)
    found = [json.loads(p.read_text(encoding="utf-8")) for p in sorted((tmp_path / "a").glob("*.json"))]
    assert found == [
        json.loads(p.read_text(encoding="utf-8")) for p in sorted((tmp_path / "b").glob("*.json"))
    ]
    labels = [result["classes"][0]["label"] for result in found]
    assert len(labels) == 7 and labels.count("bar") >= 5 and set(labels) <= {"bar", "dot"}
    drawn = cv2.imread(str(tmp_path / "a" / "0.png"))
    assert drawn.shape == (28, 28, 3)


def test_a_second_run_into_the_folder_is_refused(
    config: Path, home: Path, straight: Path, tmp_path: Path
) -> None:
    done = call("train", "-c", config, "--output_dir", straight, code=2)
    assert "the folder holds a run already" in done.stderr and "--resume" in done.stderr
    folder = tmp_path / "run"
    process = subprocess.Popen(
        tool("train", "-c", config, "--output_dir", folder, "-o", "train.epochs=1000", home=home),
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 120
        while not (folder / ".lock").exists() and time.monotonic() < until:
            time.sleep(0.05)
        done = call("train", "-c", config, "--output_dir", folder, "--resume", code=2)
        assert "another process trains into this folder" in done.stderr
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["model.num_classes=3"], ["different numbers of classes", "-o model.num_classes=2"]),
        (["data.train.dataset.root=nowhere"], ["nowhere"]),
        (["optim.learning_rate.type=Polynomial"], ["unknown schedule", "PolynomialDecay"]),
        (["train.epoch=3"], ["unknown key", "did you mean 'epochs'?"]),
        (["data.train.batch_size=100"], ["fewer samples than a batch"]),
        (["pretrained.weights=nothing_like_this"], ["no such file, and no weights of this name"]),
        (["optim.learning_rate.learning_rate=1e9"], ["training has diverged", "step "]),
    ],
)
def test_wrong_settings(config: Path, tmp_path: Path, changes: list[str], says: list[str]) -> None:
    done = call("train", "-c", config, "--output_dir", tmp_path / "run", "-o", *changes, code=2)
    assert done.stderr.startswith("error: ")
    for text in says:
        assert text in done.stderr


def test_an_unreadable_image_is_named(config: Path, data: Path, tmp_path: Path) -> None:
    broken = data / "train" / "bar" / "broken.png"
    broken.write_bytes(b"\x89PNG no image")
    try:
        done = call("train", "-c", config, "--output_dir", tmp_path / "run", code=2)
    finally:
        broken.unlink()
    assert "broken.png" in done.stderr


def test_a_checkpoint_of_another_model(config: Path, straight: Path, tmp_path: Path) -> None:
    arguments = ["-c", config, "--output_dir", tmp_path / "run", "--resume", straight]
    done = call("train", *arguments, "-o", "model.type=CifarResNet", "model.num_classes=2", code=2)
    assert "the checkpoint is of another model" in done.stderr
    done = call(
        "eval", "-c", config, "-o", "model.type=CifarResNet", f"weights={straight.as_posix()}", code=2
    )
    assert "the weights do not fit CifarResNet" in done.stderr
